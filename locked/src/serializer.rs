//! The serializer: one lock over the deque of barriers and the token, another over the queues.

use crate::barrier::HsaBarrier;
use crate::queue::Queue;
use crate::{Retire, packet, read, write};
use hsa_serializer::{Handler, QueueId, Runtime, SignalError, SignalKind};
use hsa_sys::{AqlPacket, hsa_signal_t, hsa_status_t};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, RwLock};

/// What has to stand in front of a kernel.
#[derive(Debug)]
pub struct Packets {
    /// The packets, in order.
    pub packets: Vec<AqlPacket>,
    /// Whether the kernel is serialized.
    pub serialized: bool,
}

/// What it has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Transitions that took place.
    pub transitions: u64,
    /// Those of them that found a kernel in flight.
    pub transitions_that_counted: u64,
    /// Barriers created.
    pub barriers: u64,
    /// The most barriers that were there at once.
    pub barriers_live_most: u64,
    /// Transition packets handed out.
    pub tags: u64,
    /// Barriers that were complete and were kept because a packet of theirs might not have
    /// executed.
    pub retired_after_drain: u64,
    /// Grants of the token.
    pub grants: u64,
    /// Those of them that had to wait for another queue to release it.
    pub grants_contended: u64,
}

struct Entry {
    barrier: HsaBarrier,
    /// It was complete before it was drained.
    kept: bool,
}

struct State {
    enabled: bool,
    barriers: VecDeque<Entry>,
    /// The queue that may run.
    dispatch_queue: Option<QueueId>,
    /// The queues that wait for it.
    dispatch_ready: VecDeque<Arc<Queue>>,
    statistics: Statistics,
}

/// See the [crate].
pub struct ProfilerSerializer<R: Runtime> {
    runtime: R,
    retire: Retire,
    queues: RwLock<BTreeMap<QueueId, Arc<Queue>>>,
    state: RwLock<State>,
    /// Counted under the reader's side of the lock.
    tags: AtomicU64,
    next: AtomicU64,
}

impl<R: Runtime> fmt::Debug for ProfilerSerializer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfilerSerializer")
            .field("retire", &self.retire)
            .finish_non_exhaustive()
    }
}

impl<R: Runtime> ProfilerSerializer<R> {
    /// A serializer, disabled.
    pub fn new(runtime: R, retire: Retire) -> Self {
        Self {
            runtime,
            retire,
            queues: RwLock::default(),
            state: RwLock::new(State {
                enabled: false,
                barriers: VecDeque::new(),
                dispatch_queue: None,
                dispatch_ready: VecDeque::new(),
                statistics: Statistics::default(),
            }),
            tags: AtomicU64::new(0),
            next: AtomicU64::new(0),
        }
    }

    /// The runtime that it was made with.
    pub fn runtime(&self) -> &R {
        &self.runtime
    }

    fn create(&self, kind: SignalKind, initial: i64) -> Result<hsa_signal_t, SignalError> {
        match self.runtime.create_signal(kind, initial) {
            Ok(signal) if signal.is_null() => Err(SignalError::NullHandle),
            Ok(signal) => Ok(signal),
            Err(status) => Err(SignalError::Status(status)),
        }
    }

    /// Adds a queue.
    ///
    /// # Errors
    /// Where a signal or the handler could not be had.
    pub fn add_queue(&self) -> Result<Arc<Queue>, SignalError> {
        let ready = self.create(SignalKind::Ready, 0)?;
        let block = self.create(SignalKind::Block, 1)?;
        let id = QueueId::from_raw(self.next.fetch_add(1, Relaxed));
        self.runtime
            .watch_ready(ready, id)
            .map_err(SignalError::Status)?;
        let queue = Arc::new(Queue::new(id, ready, block));
        write(&self.queues).insert(id, queue.clone());
        Ok(queue)
    }

    /// Destroys a queue. It takes the lock of the queues, then that of the state (R5: a transition
    /// takes them the other way round); the token stays where it is (R4); the `ready` signal is
    /// not destroyed (R6).
    ///
    /// # Errors
    /// What the runtime said to the destruction of the `block` signal.
    pub fn destroy_queue(&self, id: QueueId) -> Result<(), hsa_status_t> {
        let mut queues = write(&self.queues);
        let mut state = write(&self.state);
        let Some(queue) = queues.remove(&id) else {
            return Ok(());
        };
        for entry in &state.barriers {
            entry.barrier.remove_queue(&self.runtime, id);
        }
        state.dispatch_ready.retain(|other| other.id() != id);
        self.retire(&mut state);
        drop(state);
        drop(queues);
        self.runtime.destroy_signal(queue.block())
    }

    /// The second step of a dispatch, whose first said that it is the queue's kernel number
    /// `kernel`: what has to stand in front of it.
    pub fn kernel_dispatch(&self, queue: &Arc<Queue>, kernel: u64) -> Packets {
        let state = read(&self.state);
        let mut packets = Vec::new();
        for entry in &state.barriers {
            packets.extend(entry.barrier.enqueue_packet(&self.runtime, queue, kernel));
        }
        self.tags.fetch_add(packets.len() as u64, Relaxed);
        if state.enabled {
            packets.push(packet::gate(queue.ready()));
            packets.push(packet::gate(queue.block()));
        }
        Packets {
            packets,
            serialized: state.enabled,
        }
    }

    /// The first step of a completion: tells the barriers, and passes the token on.
    pub fn kernel_completion(&self, queue: &Queue) {
        let mut state = write(&self.state);
        for entry in &state.barriers {
            entry.barrier.register_completion(&self.runtime, queue.id());
        }
        self.retire(&mut state);
        if state.dispatch_queue != Some(queue.id()) {
            return;
        }
        self.runtime.store(queue.block(), 1);
        self.runtime.store(queue.ready(), 0);
        state.dispatch_queue = None;
        if let Some(next) = state.dispatch_ready.pop_front() {
            state.statistics.grants_contended += 1;
            self.grant(&mut state, &next);
        }
    }

    /// A queue's `ready` signal has become -1.
    pub fn queue_ready(&self, id: QueueId) -> Handler {
        let Some(queue) = read(&self.queues).get(&id).cloned() else {
            return Handler::Drop;
        };
        let mut state = write(&self.state);
        self.runtime.store(queue.ready(), 1);
        if state.dispatch_queue.is_none() {
            self.grant(&mut state, &queue);
        } else {
            state.dispatch_ready.push_back(queue);
        }
        Handler::Keep
    }

    fn grant(&self, state: &mut State, queue: &Queue) {
        state.dispatch_queue = Some(queue.id());
        state.statistics.grants += 1;
        self.runtime.store(queue.block(), 0);
    }

    /// Serializes from now on. Whether that is a change.
    ///
    /// # Errors
    /// Where no signal could be had for the barrier.
    pub fn enable(&self) -> Result<bool, SignalError> {
        self.change_to(true)
    }

    /// Serializes no longer. Whether that is a change.
    ///
    /// # Errors
    /// Where no signal could be had for the barrier.
    pub fn disable(&self) -> Result<bool, SignalError> {
        self.change_to(false)
    }

    fn change_to(&self, enabled: bool) -> Result<bool, SignalError> {
        let mut state = write(&self.state);
        if state.enabled == enabled {
            return Ok(false);
        }
        let queues = read(&self.queues);
        let barrier = HsaBarrier::new(self.create(SignalKind::Barrier, 1)?);
        state.enabled = enabled;
        let counted = barrier.set_barrier(&self.runtime, queues.values());
        let kept = false;
        state.barriers.push_back(Entry { barrier, kept });
        let live = state.barriers.len() as u64;
        let statistics = &mut state.statistics;
        statistics.transitions += 1;
        statistics.transitions_that_counted += u64::from(counted > 0);
        statistics.barriers += 1;
        statistics.barriers_live_most = statistics.barriers_live_most.max(live);
        Ok(true)
    }

    /// Destroys the barriers that may go, as the policy says.
    fn retire(&self, state: &mut State) {
        let State {
            barriers,
            statistics,
            ..
        } = state;
        barriers.retain_mut(|entry| {
            if !entry.barrier.complete(&self.runtime) {
                return true;
            }
            if self.retire == Retire::Drained && entry.barrier.outstanding() {
                entry.kept = true;
                return true;
            }
            statistics.retired_after_drain += u64::from(entry.kept);
            // It fails only where somebody else destroyed it, which the runtime reports.
            let _ = self.runtime.destroy_signal(entry.barrier.signal());
            false
        });
    }

    /// What it has done so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics {
            tags: self.tags.load(Relaxed),
            ..read(&self.state).statistics
        }
    }
}
