//! The transition barrier: a signal, a map of who is waited for, and a map of who waits.

use crate::queue::Queue;
use crate::{lock, packet};
use hsa_serializer::{QueueId, Runtime};
use hsa_sys::{AqlPacket, hsa_signal_t};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// A barrier over the kernels that were in flight when it was set.
#[derive(Debug)]
pub struct HsaBarrier {
    signal: hsa_signal_t,
    /// How many kernels of each queue are waited for.
    waiting: Mutex<HashMap<QueueId, i64>>,
    /// The queues that were given its packet, and the kernel behind which it stands.
    enqueued: Mutex<HashMap<QueueId, (Arc<Queue>, u64)>>,
}

impl HsaBarrier {
    /// A barrier of this signal, whose value is 1.
    #[must_use]
    pub fn new(signal: hsa_signal_t) -> Self {
        Self {
            signal,
            waiting: Mutex::default(),
            enqueued: Mutex::default(),
        }
    }

    /// Its signal.
    #[must_use]
    pub fn signal(&self) -> hsa_signal_t {
        self.signal
    }

    /// Waits for everything that is in flight. How many queues that concerns.
    pub fn set_barrier<'a>(
        &self,
        runtime: &impl Runtime,
        queues: impl Iterator<Item = &'a Arc<Queue>>,
    ) -> usize {
        for queue in queues {
            if queue.in_flight() > 0 {
                self.wait_for(queue);
            }
        }
        let waiting = lock(&self.waiting);
        if waiting.is_empty() {
            runtime.store(self.signal, 0);
        }
        waiting.len()
    }

    /// Waits for what this queue has in flight, by a look of its own at how much that is.
    pub fn wait_for(&self, queue: &Queue) {
        let count = queue.in_flight();
        lock(&self.waiting).insert(queue.id(), count);
    }

    /// The packet for this queue's kernel number `kernel`, unless the queue has it already or the
    /// barrier is complete.
    pub fn enqueue_packet(
        &self,
        runtime: &impl Runtime,
        queue: &Arc<Queue>,
        kernel: u64,
    ) -> Option<AqlPacket> {
        if self.complete(runtime) {
            return None;
        }
        let mut enqueued = lock(&self.enqueued);
        if enqueued.contains_key(&queue.id()) {
            return None;
        }
        enqueued.insert(queue.id(), (queue.clone(), kernel));
        Some(packet::transition(self.signal))
    }

    /// A kernel of this queue has completed.
    pub fn register_completion(&self, runtime: &impl Runtime, queue: QueueId) {
        let mut waiting = lock(&self.waiting);
        let Some(count) = waiting.get_mut(&queue) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            waiting.remove(&queue);
            if waiting.is_empty() {
                runtime.store(self.signal, 0);
            }
        }
    }

    /// Whether everything that it waited for has completed.
    pub fn complete(&self, runtime: &impl Runtime) -> bool {
        // A compare-exchange that changes nothing: a load.
        runtime.compare_exchange(self.signal, 0, 0) == 0
    }

    /// Whether some queue was given its packet and has not completed the kernel behind it.
    pub(crate) fn outstanding(&self) -> bool {
        lock(&self.enqueued)
            .values()
            .any(|(queue, kernel)| queue.completed() < *kernel)
    }

    /// The queue is gone: nothing of it is waited for.
    pub fn remove_queue(&self, runtime: &impl Runtime, queue: QueueId) {
        lock(&self.enqueued).remove(&queue);
        let mut waiting = lock(&self.waiting);
        if waiting.remove(&queue).is_some() && waiting.is_empty() {
            runtime.store(self.signal, 0);
        }
    }
}
