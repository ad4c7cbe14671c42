//! The profiler: serializers, one for each agent, and on and off.

use crate::flights::Pool;
use crate::gate::Gate;
use crate::hsa::Hsa;
use crate::interpose::{self, interpose};
use crate::lifecycle::Lifecycle;
use crate::lock;
use crate::queues::Entry;
use crate::setup::{Fault, Make, Parts, Setup};
use crate::shared::{Core, Counters, Kernels};
use crate::tally::{Live, Tally};
use harness::BoxError;
use hsa_serializer::{Handler, QueueId, ShutdownError};
use hsa_sys::{hsa_agent_t, hsa_queue_t, hsa_status_t};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

/// The serializers, and whether they are to be on.
struct Sides<S> {
    on: bool,
    sides: Vec<(hsa_agent_t, Arc<S>)>,
}

/// A profiler of all agents, with a serializer for each.
pub struct Profiler<S: Lifecycle> {
    pub(crate) core: Arc<Core<S>>,
    tally: Arc<Tally>,
    make: Make<S>,
    /// The functions that the serializers get.
    counted: Hsa,
    sides: Mutex<Sides<S>>,
    /// By the address of the application's queue.
    pub(crate) queues: Mutex<HashMap<usize, Entry<S>>>,
}

impl<S: Lifecycle> fmt::Debug for Profiler<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profiler")
            .field("kernels", &self.kernels())
            .field("tally", &self.tally)
            .finish_non_exhaustive()
    }
}

impl<S: Lifecycle> Profiler<S> {
    /// A profiler without queues.
    #[must_use]
    pub fn new(setup: Setup<S>) -> Self {
        let (gate, tally) = (Arc::new(Gate::default()), Arc::new(Tally::default()));
        let core = Arc::new(Core {
            hsa: setup.hsa,
            pool: Pool::new(setup.hsa, gate.clone(), tally.clone()),
            gate,
            counts: Counters::default(),
            listens: AtomicBool::new(true),
            ends: AtomicBool::new(false),
            tail: setup.tail,
            fault: setup.fault,
        });
        let weak = Arc::downgrade(&core);
        core.pool.on_end(Arc::new(move |flight, slot, value| {
            if let Some(core) = weak.upgrade() {
                core.ended(flight, slot, value);
            }
        }));
        setup.hsa.find_handlers_thread();
        let (gate, tallied) = (core.gate.clone(), tally.clone());
        let leaks = setup.fault == Some(Fault::Leak);
        let counted = interpose(*setup.hsa.api(), gate, tallied, leaks);
        Self {
            core,
            tally,
            make: setup.make,
            // SAFETY: as `setup.hsa`, and more careful.
            counted: unsafe { Hsa::new(counted) },
            sides: Mutex::new(Sides {
                on: false,
                sides: Vec::new(),
            }),
            queues: Mutex::default(),
        }
    }

    /// The serializer of an agent.
    ///
    /// # Errors
    /// Where it could not be made, or had to be turned on at once and could not.
    pub fn serializer(&self, agent: hsa_agent_t) -> Result<Arc<S>, BoxError> {
        let mut sides = lock(&self.sides);
        if let Some((_, side)) = sides.sides.iter().find(|(a, _)| *a == agent) {
            return Ok(side.clone());
        }
        let own: Arc<OnceLock<Weak<S>>> = Arc::default();
        let found = own.clone();
        let on_ready = move |queue| match found.get().and_then(Weak::upgrade) {
            Some(serializer) => serializer.ready(queue),
            None => Handler::Drop,
        };
        let side = Arc::new((self.make)(Parts {
            hsa: self.counted,
            agent,
            tally: self.tally.clone(),
            on_ready: Arc::new(on_ready),
        })?);
        let _ = own.set(Arc::downgrade(&side));
        if sides.on {
            side.enable()?;
        }
        sides.sides.push((agent, side.clone()));
        Ok(side)
    }

    /// Creates so many completion signals ahead of their use.
    ///
    /// # Errors
    /// What the runtime answered.
    pub fn reserve(&self, signals: usize) -> Result<(), hsa_status_t> {
        self.core.pool.reserve(signals)
    }

    /// Turns serialization on for all agents, or off. Whether that is a change.
    ///
    /// # Errors
    /// What a serializer said; the agents behind it are not reached.
    pub fn set(&self, on: bool) -> Result<bool, BoxError> {
        let mut sides = lock(&self.sides);
        let mut changed = sides.on != on;
        sides.on = on;
        for (_, side) in &sides.sides {
            changed |= if on { side.enable() } else { side.disable() }?;
        }
        Ok(changed)
    }

    /// Kernels, counted.
    #[must_use]
    pub fn kernels(&self) -> Kernels {
        let c = &self.core.counts;
        Kernels {
            kernels: c.kernels.load(Relaxed),
            dispatched: c.dispatched.load(Relaxed),
            serialized: c.serialized.load(Relaxed),
            passed_on: c.passed_on.load(Relaxed),
            reported: c.reported.load(SeqCst),
            abandoned: c.abandoned.load(Relaxed),
            unseen: c.unseen.load(Relaxed),
            markers: c.markers.load(Relaxed),
            waited_for_room: c.waited_for_room.load(Relaxed),
        }
    }

    /// Signals, counted; failures are injected here.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Transitions that took place, of all agents.
    #[must_use]
    pub fn transitions(&self) -> u64 {
        let sides = lock(&self.sides);
        let each = sides.sides.iter().map(|(_, s)| s.counters().transitions);
        each.sum()
    }

    /// The most barriers that one serializer had at once.
    #[must_use]
    pub fn barriers_live_most(&self) -> u64 {
        let sides = lock(&self.sides);
        let each = sides.sides.iter().map(|(_, s)| s.counters());
        each.map(|counters| counters.barriers_live_most)
            .max()
            .unwrap_or(0)
    }

    /// Barriers that were kept after they had cleared, because a packet of theirs might not have
    /// executed: each is a chance for the fault that the crate exists for.
    #[must_use]
    pub fn retired_after_drain(&self) -> u64 {
        let sides = lock(&self.sides);
        let each = sides.sides.iter();
        each.map(|(_, s)| s.counters().retired_after_drain).sum()
    }

    /// Lets the serializers destroy what they have put off.
    pub fn collect(&self) {
        self.serializers().iter().for_each(|s| s.collect());
    }

    /// Whether it intercepts that queue.
    #[must_use]
    pub fn intercepts(&self, queue: *mut hsa_queue_t) -> bool {
        lock(&self.queues).contains_key(&(queue as usize))
    }

    /// How many queues are alive.
    #[must_use]
    pub fn live_queues(&self) -> usize {
        lock(&self.queues).len()
    }

    /// The serializers' names of the queues that are alive.
    #[must_use]
    pub fn queue_ids(&self) -> Vec<QueueId> {
        let queues = lock(&self.queues);
        queues.values().map(|entry| entry.watched.id).collect()
    }

    /// The serializers of all agents that were met.
    #[must_use]
    pub fn serializers(&self) -> Vec<Arc<S>> {
        let sides = lock(&self.sides);
        sides.sides.iter().map(|(_, side)| side.clone()).collect()
    }

    /// The same where nobody changes them now, else none: it never waits.
    #[must_use]
    pub fn try_serializers(&self) -> Vec<Arc<S>> {
        let sides = self.sides.try_lock().ok();
        let sides = sides.iter().flat_map(|sides| &sides.sides);
        sides.map(|(_, side)| side.clone()).collect()
    }

    /// Whether the interceptors take kernels to the serializer, or pass them on unseen.
    pub fn listen(&self, on: bool) {
        self.core.listens.store(on, SeqCst);
    }

    /// From now on serializers may give up queues by themselves: somebody is about to end them.
    pub fn expect_end(&self) {
        self.core.ends.store(true, SeqCst);
    }

    /// The first phase of the end: kernels are passed on as they are from now on.
    pub fn begin_shutdown(&self) {
        self.expect_end();
        self.serializers().iter().for_each(|s| s.begin_shutdown());
    }

    /// The second phase, for the serializers: nothing of them calls the runtime afterwards.
    ///
    /// # Errors
    /// What the first serializer that is not through has left; on a handler's thread.
    pub fn finish_shutdown(&self, timeout: Duration) -> Result<(), ShutdownError> {
        self.begin_shutdown();
        let deadline = Instant::now() + timeout;
        let left = || deadline.saturating_duration_since(Instant::now());
        let serializers = self.serializers();
        serializers
            .iter()
            .try_for_each(|s| s.finish_shutdown(left()))
    }

    /// Ends the profiler, in both phases: its serializers, then what is its own. Queues that are alive
    /// are the application's alone afterwards.
    ///
    /// # Errors
    /// Where the serializers are not through in time: then nothing of the profiler's own was ended.
    pub fn finish(&self, timeout: Duration) -> Result<Left, ShutdownError> {
        self.finish_shutdown(timeout)?;
        let calls = interpose::calls();
        let serializers = self.tally.live();
        // Every kernel's handler has told the serializer; it may still be telling the application.
        let alone = self.core.gate.close(Duration::from_secs(1));
        if alone {
            self.core.pool.destroy();
        }
        lock(&self.sides).sides.clear();
        Ok(Left {
            serializers,
            all: self.tally.live(),
            calls: interpose::calls() - calls,
        })
    }

    /// From now on nothing of the profiler calls the runtime, whatever is left, and its interceptors
    /// pass packets on as they are: for where it is shut down under live queues. Not by a handler. False
    /// if somebody was still at it after a second.
    pub fn let_go(&self) -> bool {
        if self.core.fault == Some(Fault::HoldOn) {
            return true;
        }
        self.expect_end();
        if self.core.fault != Some(Fault::SkipLeave) {
            self.serializers().iter().for_each(|s| s.leave());
        }
        self.core.gate.close(Duration::from_secs(1))
    }
}

/// What an ended profiler has left.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// Signals that were alive when the serializers had finished.
    pub serializers: Live,
    /// The same when all had ended.
    pub all: Live,
    /// How often serializers that had finished called the runtime.
    pub calls: u64,
}
