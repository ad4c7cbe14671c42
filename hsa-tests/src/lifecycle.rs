//! What a profiler asks of a serializer beside its daily work: at the end, and after a gap.

use crate::host::Host;
use crate::setup::Ours;
use harness::{LockedSerializer, Serializing};
use hsa_serializer::{MAX_PACKETS, QueueId, ShutdownError};
use hsa_sys::AqlPacket;
use std::time::Duration;

/// A serializer that can be ended. The yardstick can't: there it does nothing.
pub trait Lifecycle: Serializing {
    /// Destroys what it has put off.
    fn collect(&self) {}

    /// From now on it has every kernel passed on as it is.
    fn begin_shutdown(&self) {}

    /// Waits until all that it was given has completed, and gives its queues up. Afterwards nothing of
    /// it calls the runtime.
    ///
    /// # Errors
    /// What is left when the time is over; on a handler's thread.
    fn finish_shutdown(&self, timeout: Duration) -> Result<(), ShutdownError> {
        let _ = timeout;
        Ok(())
    }

    /// From now on it does not call the runtime, whatever is left.
    fn leave(&self) {}

    /// The queue is gone; false where it was given up before.
    fn remove(&self, queue: QueueId) -> bool {
        self.queue_destroyed(queue);
        true
    }

    /// Counts the work that the queue got unseen, and pushes the packets that stand for it, the last of
    /// which is the one to wait for. `None`, and nothing pushed, where it can't.
    fn gap(&self, queue: &mut Self::Queue, packets: &mut Vec<AqlPacket>) -> Option<Self::Ticket> {
        let _ = (queue, packets);
        None
    }
}

impl Lifecycle for LockedSerializer<Host> {}

impl Lifecycle for Ours {
    fn collect(&self) {
        Self::collect(self);
    }

    fn begin_shutdown(&self) {
        Self::begin_shutdown(self);
    }

    fn finish_shutdown(&self, timeout: Duration) -> Result<(), ShutdownError> {
        Self::finish_shutdown(self, timeout)
    }

    fn leave(&self) {
        Self::leave(self);
    }

    fn remove(&self, queue: QueueId) -> bool {
        Self::queue_destroyed(self, queue).is_ok()
    }

    fn gap(&self, queue: &mut Self::Queue, packets: &mut Vec<AqlPacket>) -> Option<Self::Ticket> {
        let mut marked = [AqlPacket::INVALID; MAX_PACKETS];
        let marker = queue.gap(&mut marked).ok()?;
        packets.extend_from_slice(&marked[..marker.packets]);
        Some(marker.ticket)
    }
}
