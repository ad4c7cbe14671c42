//! The profiler: serializers, one for each agent, and on and off.

use crate::flights::Pool;
use crate::gate::Gate;
use crate::hsa::Hsa;
use crate::interpose::interpose;
use crate::lock;
use crate::queues::Entry;
use crate::setup::{Fault, Make, Ours, Parts, Setup};
use crate::shared::{Core, Counters, Kernels};
use crate::tally::{Live, Tally};
use harness::{BoxError, Serializing};
use hsa_serializer::{Handler, QueueId};
use hsa_sys::{hsa_agent_t, hsa_status_t};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// The serializers, and whether they are to be on.
struct Sides<S> {
    on: bool,
    sides: Vec<(hsa_agent_t, Arc<S>)>,
}

/// A profiler of all agents, with a serializer for each.
pub struct Profiler<S: Serializing> {
    pub(crate) core: Arc<Core<S>>,
    tally: Arc<Tally>,
    make: Make<S>,
    collect: fn(&S),
    /// The functions that the serializers get.
    counted: Hsa,
    sides: Mutex<Sides<S>>,
    /// By the address of the application's queue.
    pub(crate) queues: Mutex<HashMap<usize, Entry<S>>>,
}

impl<S: Serializing> fmt::Debug for Profiler<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profiler")
            .field("kernels", &self.kernels())
            .field("tally", &self.tally)
            .finish_non_exhaustive()
    }
}

impl<S: Serializing> Profiler<S> {
    /// A profiler without queues.
    #[must_use]
    pub fn new(setup: Setup<S>) -> Self {
        let (gate, tally) = (Arc::new(Gate::default()), Arc::new(Tally::default()));
        let core = Arc::new(Core {
            hsa: setup.hsa,
            pool: Pool::new(setup.hsa, gate.clone(), tally.clone()),
            gate,
            counts: Counters::default(),
            tail: setup.tail,
            fault: setup.fault,
        });
        let weak = Arc::downgrade(&core);
        core.pool.on_end(Arc::new(move |flight, slot, value| {
            if let Some(core) = weak.upgrade() {
                core.ended(flight, slot, value);
            }
        }));
        let (gate, tallied) = (core.gate.clone(), tally.clone());
        let leaks = setup.fault == Some(Fault::Leak);
        let counted = interpose(*setup.hsa.api(), gate, tallied, leaks);
        Self {
            core,
            tally,
            make: setup.make,
            collect: setup.collect,
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
        self.serializers().iter().for_each(|s| (self.collect)(s));
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

    /// From now on nothing of the profiler's calls the runtime, and its interceptors pass packets on
    /// as they are. To be called before the runtime is shut down, where queues are still alive; not
    /// by a handler. False if somebody was still at it after a second.
    pub fn let_go(&self) -> bool {
        self.core.fault == Some(Fault::HoldOn) || self.core.gate.close(Duration::from_secs(1))
    }

    /// Ends the profiler, all of whose queues were destroyed: waits until the handlers of their
    /// `ready` signals have run once more and what was put off was destroyed, then destroys what is
    /// left. What is alive after that should be nothing, and is returned, with what was alive before.
    #[must_use]
    pub fn finish(&self, patience: Duration) -> (Live, Live) {
        let deadline = Instant::now() + patience;
        let queues_have_some = |live: Live| live.ready + live.gpu_only > 0;
        loop {
            self.collect();
            if !queues_have_some(self.tally.live()) || Instant::now() >= deadline {
                break;
            }
            thread::sleep(Duration::from_micros(200));
        }
        let before = self.tally.live();
        self.core.pool.destroy();
        lock(&self.sides).sides.clear();
        (before, self.tally.live())
    }
}

impl Profiler<Ours> {
    /// Dispatches are passed on as they are from now on.
    pub fn begin_shutdown(&self) {
        for serializer in self.serializers() {
            serializer.begin_shutdown();
        }
    }
}
