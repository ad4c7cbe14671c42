//! The agent: packet processors, kernels, and what is checked of them.
//!
//! One thread of the schedule runs all packet processors, one packet or one kernel's start or end
//! at a time, in random order: what they do to signals is atomic, so this is every interleaving of
//! theirs. The state is behind one lock of the standard library's, which is never held across a
//! switch; each access from the serializer is preceded by one.

use crate::signals::{Breach, Reference, Signals};
use hsa_serializer::{
    AqlPacket, QueueId, Report, Runtime, SignalKind, Ticket, hsa_signal_t, hsa_status_t,
};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicBool, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

/// The runtime. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Gpu(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Looked at only for being looked at: the schedule may change here.
    crossing: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    signals: Signals,
    queues: Vec<HardwareQueue>,
    /// Kernels that have ended and were not reported yet.
    ended: Vec<Ticket>,
    /// Handlers that are in a call, and threads that may still dispatch or toggle.
    busy: usize,
    /// Kernels may overlap: the host has let them.
    shared: bool,
    /// The runtime may not be called any more.
    over: bool,
    breach: Option<String>,
}

#[derive(Debug)]
struct HardwareQueue {
    id: QueueId,
    packets: VecDeque<Packet>,
    running: Vec<Kernel>,
    ready: hsa_signal_t,
    /// Its `ready` signal has a handler.
    watched: bool,
}

#[derive(Debug)]
enum Packet {
    Barrier {
        /// It waits for one of the two, the second of which is the escape signal.
        waits_for: [Reference; 2],
        counts_down: bool,
    },
    Kernel(Kernel),
}

#[derive(Debug)]
struct Kernel {
    ticket: Ticket,
    epoch: u32,
    serialized: bool,
}

/// What a handler has to do.
#[derive(Debug)]
pub(crate) enum Event {
    Ready(QueueId),
    Ended(Ticket),
}

#[derive(Clone, Copy)]
enum Action {
    Next { queue: usize },
    End { queue: usize, kernel: usize },
}

impl Gpu {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            crossing: AtomicBool::new(false),
            state: Mutex::default(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("nobody panics with the state")
    }

    /// The state, after a point at which another thread may be scheduled.
    fn cross(&self) -> MutexGuard<'_, State> {
        self.0.crossing.load(Ordering::Relaxed);
        self.state()
    }

    /// The same for a call of the runtime's.
    fn called(&self) -> MutexGuard<'_, State> {
        let mut state = self.cross();
        if state.over {
            let what = "the runtime was called after its end";
            state.breach.get_or_insert(what.into());
        }
        state
    }

    /// From now on kernels may run side by side.
    pub(crate) fn gives_up_exclusiveness(&self) {
        self.state().shared = true;
    }

    /// From now on nobody may call the runtime, nor be in a call.
    pub(crate) fn is_over(&self) {
        self.state().over = true;
    }

    /// Records a breach; the first one counts.
    pub(crate) fn breach(&self, what: impl Into<String>) {
        self.state().breach.get_or_insert(what.into());
    }

    pub(crate) fn is_breached(&self) -> bool {
        self.state().breach.is_some()
    }

    /// Raises what was recorded.
    pub(crate) fn raise(&self) {
        let breach = self.state().breach.take();
        if let Some(what) = breach {
            panic!("{what}");
        }
    }

    /// Writes a dispatch to its queue.
    pub(crate) fn submit(&self, injected: &[AqlPacket], ticket: Ticket, serialized: bool) {
        let raw = ticket.into_raw();
        let ticket = Ticket::from_raw(raw);
        let mut state = self.cross();
        let state = &mut *state;
        let Some(queue) = state.queues.iter_mut().find(|q| q.id == ticket.queue()) else {
            return;
        };
        for packet in injected {
            let [signal, escape, ..] = packet.dependencies().expect("a barrier packet");
            match state.signals.refer([signal, escape]) {
                Ok(waits_for) => queue.packets.push_back(Packet::Barrier {
                    waits_for,
                    counts_down: !packet.completion_signal().is_null(),
                }),
                Err(what) => _ = state.breach.get_or_insert(what.into()),
            }
        }
        queue.packets.push_back(Packet::Kernel(Kernel {
            ticket,
            // The low half of a word.
            epoch: raw[1] as u32,
            serialized,
        }));
    }

    /// The runtime's destroy: what the queue holds never executes, and its running kernels die.
    pub(crate) fn destroy_queue(&self, id: QueueId) {
        let mut state = self.cross();
        let state = &mut *state;
        let queue = state.queues.iter_mut().find(|q| q.id == id);
        let queue = queue.expect("it was created");
        for packet in queue.packets.drain(..) {
            let gone = match packet {
                Packet::Barrier { waits_for, .. } => state.signals.let_go(waits_for, false),
                Packet::Kernel(kernel) => {
                    let _ = kernel.ticket.into_raw();
                    Ok(())
                }
            };
            if let Err(what) = gone {
                state.breach.get_or_insert(what.into());
            }
        }
        for kernel in queue.running.drain(..) {
            let _ = kernel.ticket.into_raw();
        }
    }

    /// One step of the packet processors; false where none can be made.
    pub(crate) fn step(&self) -> bool {
        let mut state = self.cross();
        let actions = state.actions();
        if actions.is_empty() {
            return false;
        }
        let chosen = actions[thread_rng().gen_range(0..actions.len())];
        if let Err(what) = state.act(chosen) {
            state.breach.get_or_insert(what.into());
        }
        true
    }

    /// Something for a handler to do. `ready` handlers run on one thread only.
    pub(crate) fn event(&self, also_ready: bool) -> Option<Event> {
        let mut state = self.cross();
        let mut ready: Vec<QueueId> = Vec::new();
        if also_ready {
            ready = state.fired();
        }
        let n = ready.len() + state.ended.len();
        if n == 0 {
            return None;
        }
        state.busy += 1;
        let chosen = thread_rng().gen_range(0..n);
        Some(match ready.get(chosen) {
            Some(id) => Event::Ready(*id),
            None => Event::Ended(state.ended.swap_remove(chosen - ready.len())),
        })
    }

    /// A handler said that it goes.
    pub(crate) fn unwatch(&self, id: QueueId) {
        for queue in self.state().queues.iter_mut().filter(|q| q.id == id) {
            queue.watched = false;
        }
    }

    pub(crate) fn begin(&self, threads: usize) {
        self.state().busy += threads;
    }

    pub(crate) fn end(&self) {
        self.state().busy -= 1;
    }

    /// Whether all is done. Where nothing can ever be done any more, that is a breach.
    pub(crate) fn is_through(&self) -> bool {
        let mut state = self.state();
        let still = state.busy == 0
            && state.ended.is_empty()
            && state.fired().is_empty()
            && state.actions().is_empty();
        if !still {
            return false;
        }
        let stuck = state.queues.iter().find_map(|q| match q.packets.front()? {
            Packet::Barrier {
                counts_down: false, ..
            } => Some("a transition packet waits for ever"),
            Packet::Barrier { .. } => Some("a ready queue is never granted"),
            Packet::Kernel(_) => Some("a kernel never starts"),
        });
        if let Some(what) = stuck {
            state.breach.get_or_insert(what.into());
        }
        true
    }

    pub(crate) fn watched(&self) -> usize {
        self.state().queues.iter().filter(|q| q.watched).count()
    }

    /// The end: every signal is destroyed, and the serializer's shared state is gone.
    pub(crate) fn finish(self) {
        if self.state().signals.alive() > 0 {
            self.breach("a signal was left");
        }
        if Arc::strong_count(&self.0) > 1 {
            self.breach("the shared state was left");
        }
        self.raise();
    }
}

impl State {
    fn fired(&mut self) -> Vec<QueueId> {
        let signals = &mut self.signals;
        let watched = self.queues.iter().filter(|q| q.watched);
        watched
            .filter(|q| signals.value(q.ready).is_ok_and(|v| *v == -1))
            .map(|q| q.id)
            .collect()
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (i, queue) in self.queues.iter().enumerate() {
            let ends = 0..queue.running.len();
            actions.extend(ends.map(|kernel| Action::End { queue: i, kernel }));
            let can = match queue.packets.front() {
                None => false,
                Some(Packet::Barrier {
                    waits_for,
                    counts_down,
                }) => {
                    // The gates have the barrier bit, the transition packet has not.
                    self.signals.is_met(*waits_for) && (!counts_down || queue.running.is_empty())
                }
                Some(Packet::Kernel(k)) => !k.serialized || queue.running.is_empty(),
            };
            if can {
                actions.push(Action::Next { queue: i });
            }
        }
        actions
    }

    fn act(&mut self, action: Action) -> Breach {
        match action {
            Action::End { queue, kernel } => {
                let kernel = self.queues[queue].running.swap_remove(kernel);
                self.ended.push(kernel.ticket);
                Ok(())
            }
            Action::Next { queue } => match self.queues[queue].packets.pop_front() {
                None => Ok(()),
                Some(Packet::Barrier {
                    waits_for,
                    counts_down,
                }) => self.signals.let_go(waits_for, counts_down),
                Some(Packet::Kernel(kernel)) => {
                    let queues = self.queues.iter().filter(|_| !self.shared);
                    let mut beside = queues.flat_map(|q| &q.running);
                    let overlap = beside.try_for_each(|other| {
                        if other.epoch != kernel.epoch {
                            Err("a kernel of a new mode overlaps one of the old")
                        } else if kernel.serialized {
                            Err("two serialized kernels overlap")
                        } else {
                            Ok(())
                        }
                    });
                    self.queues[queue].running.push(kernel);
                    overlap
                }
            },
        }
    }
}

impl Runtime for Gpu {
    fn create_signal(&self, _: SignalKind, initial: i64) -> Result<hsa_signal_t, hsa_status_t> {
        Ok(self.called().signals.create(initial))
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        let done = self.called().signals.destroy(signal);
        if let Err(what) = done {
            self.breach(what);
        }
        Ok(())
    }

    fn store(&self, signal: hsa_signal_t, value: i64) {
        let done = self.called().signals.value(signal).map(|v| *v = value);
        if let Err(what) = done {
            self.breach(what);
        }
    }

    fn compare_exchange(&self, signal: hsa_signal_t, expected: i64, desired: i64) -> i64 {
        let seen = self.called().signals.value(signal).map(|value| {
            let seen = *value;
            if seen == expected {
                *value = desired;
            }
            seen
        });
        seen.unwrap_or_else(|what| {
            self.breach(what);
            i64::MIN
        })
    }

    fn watch_ready(&self, ready: hsa_signal_t, id: QueueId) -> Result<(), hsa_status_t> {
        self.called().queues.push(HardwareQueue {
            id,
            packets: VecDeque::new(),
            running: Vec::new(),
            ready,
            watched: true,
        });
        Ok(())
    }

    fn report(&self, report: Report) {
        self.breach(format!("reported: {report}"));
    }
}
