//! What interceptors, handlers and the profiler share, and what happens at a kernel's end.

use crate::flights::{End, Flight, Pool, Slot, Watched};
use crate::gate::Gate;
use crate::hsa::Hsa;
use crate::lifecycle::Lifecycle;
use crate::lock;
use crate::setup::Fault;
use hsa_sys::{hsa_signal_t, hsa_signal_value_t};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Kernels, counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) kernels: AtomicU64,
    pub(crate) dispatched: AtomicU64,
    pub(crate) serialized: AtomicU64,
    pub(crate) passed_on: AtomicU64,
    pub(crate) ended: AtomicU64,
    pub(crate) reported: AtomicU64,
    pub(crate) abandoned: AtomicU64,
    pub(crate) unseen: AtomicU64,
    pub(crate) markers: AtomicU64,
    pub(crate) waited_for_room: AtomicU64,
}

/// Kernels, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kernels {
    /// Kernels that were intercepted.
    pub kernels: u64,
    /// Those that went through the serializer.
    pub dispatched: u64,
    /// Those of them that were serialized.
    pub serialized: u64,
    /// Those that were passed on as they were.
    pub passed_on: u64,
    /// Completions that were reported to the serializer.
    pub reported: u64,
    /// Kernels that will never end, since their queue is gone.
    pub abandoned: u64,
    /// Kernels that were passed on while the profiler did not listen. They are not among the others.
    pub unseen: u64,
    /// Packets that stand for such kernels, which are dispatched and reported like a kernel.
    pub markers: u64,
    /// How often an interceptor waited for room in the ring.
    pub waited_for_room: u64,
}

impl Kernels {
    /// Whether the serializer has heard of the end of every kernel.
    #[must_use]
    pub fn accounted_for(&self) -> bool {
        self.reported + self.abandoned == self.dispatched
    }
}

/// What interceptors, handlers and the profiler share.
pub(crate) struct Core<S: Lifecycle> {
    pub(crate) hsa: Hsa,
    pub(crate) gate: Arc<Gate>,
    pub(crate) pool: Pool<S>,
    pub(crate) counts: Counters,
    /// Whether the interceptors take kernels to the serializer.
    pub(crate) listens: AtomicBool,
    /// Whether the end has begun, in which serializers give up queues by themselves.
    pub(crate) ends: AtomicBool,
    pub(crate) tail: bool,
    pub(crate) fault: Option<Fault>,
}

impl<S: Lifecycle> Core<S> {
    /// A group has ended: first the serializer is told, then the application, which may destroy the
    /// queue the moment it knows.
    pub(crate) fn ended(&self, flight: Flight<S>, slot: &Arc<Slot<S>>, value: hsa_signal_value_t) {
        let ended = self.counts.ended.fetch_add(1, Relaxed);
        let Flight {
            queue,
            ticket,
            forward,
            number,
            barrier,
            ..
        } = flight;
        let due = ended % 100 == 99;
        if self.fault == Some(Fault::ForwardFirst) {
            self.forward(slot, forward, value);
            thread::sleep(Duration::from_millis(1));
        }
        if self.fault == Some(Fault::SkipComplete) && due {
            queue.serializer.abandon(ticket);
        } else {
            queue.serializer.complete(ticket);
        }
        self.counts.reported.fetch_add(1, SeqCst);
        if self.fault == Some(Fault::ForwardTwice) && due {
            self.forward(slot, forward, value);
        }
        let end = End {
            slot: slot.clone(),
            forward,
            value,
        };
        queue
            .order
            .ended(number, barrier, end, |end| self.tell(end));
    }

    /// Tells the application of an end, and gives the slot back.
    fn tell(&self, end: End<S>) {
        if self.fault != Some(Fault::ForwardFirst) {
            self.forward(&end.slot, end.forward, end.value);
        }
        self.pool.give(end.slot);
    }

    /// Tells the application, as the packet processor would have.
    fn forward(&self, slot: &Slot<S>, signal: hsa_signal_t, value: hsa_signal_value_t) {
        if signal.is_null() {
            return;
        }
        if value < 0 {
            self.hsa.store(signal, value);
        } else {
            self.hsa.copy_times(slot.signal, signal);
            self.hsa.subtract(signal, 1);
        }
    }

    /// The queue executes nothing any more.
    pub(crate) fn queue_gone(&self, watched: &Arc<Watched<S>>) {
        if watched.closed.swap(true, SeqCst) {
            return;
        }
        let left = self.pool.close(watched);
        if self.fault != Some(Fault::SkipRemove) {
            let known = watched.serializer.remove(watched.id);
            assert!(known || self.ends.load(SeqCst), "the profiler says it once");
        }
        watched.order.finish(|end| self.tell(end));
        for (slot, ticket) in left {
            self.counts.abandoned.fetch_add(1, Relaxed);
            watched.serializer.abandon(ticket);
            lock(&watched.left).push(slot);
        }
    }
}
