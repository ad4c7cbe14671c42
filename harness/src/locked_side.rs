//! The yardstick, as a profiler sees it.

use crate::runtime::SoftRuntime;
use crate::serializing::{BoxError, Counters, Dispatched, Serializing};
use hsa_serializer::{Handler, QueueId, Runtime};
use hsa_sys::AqlPacket;
use locked::{ProfilerSerializer, Retire};
use std::sync::Arc;

/// The yardstick with its two steps put together as a profiler does: count, then ask; tell, then
/// count.
#[derive(Debug)]
pub struct LockedSerializer<R: Runtime>(pub ProfilerSerializer<R>);

/// The queue that a kernel runs on.
#[derive(Debug)]
pub struct LockedTicket(Arc<locked::Queue>);

/// The yardstick as it was before its fix.
pub fn eager_serializer(runtime: SoftRuntime) -> LockedSerializer<SoftRuntime> {
    LockedSerializer(ProfilerSerializer::new(runtime, Retire::Eager))
}

/// The yardstick as it is with its fix.
pub fn drained_serializer(runtime: SoftRuntime) -> LockedSerializer<SoftRuntime> {
    LockedSerializer(ProfilerSerializer::new(runtime, Retire::Drained))
}

impl<R: Runtime> Serializing for LockedSerializer<R> {
    type Queue = Arc<locked::Queue>;
    type Ticket = LockedTicket;

    fn add_queue(&self) -> Result<Arc<locked::Queue>, BoxError> {
        Ok(self.0.add_queue()?)
    }

    fn id(queue: &Arc<locked::Queue>) -> QueueId {
        queue.id()
    }

    fn dispatch(
        &self,
        queue: &mut Arc<locked::Queue>,
        packets: &mut Vec<AqlPacket>,
    ) -> Option<Dispatched<LockedTicket>> {
        let kernel = queue.started();
        let inject = self.0.kernel_dispatch(queue, kernel);
        packets.extend(inject.packets);
        Some(Dispatched {
            ticket: LockedTicket(queue.clone()),
            serialized: inject.serialized,
        })
    }

    fn complete(&self, ticket: LockedTicket) {
        self.0.kernel_completion(&ticket.0);
        ticket.0.ended();
    }

    fn abandon(&self, ticket: LockedTicket) {
        drop(ticket);
    }

    fn ready(&self, queue: QueueId) -> Handler {
        self.0.queue_ready(queue)
    }

    fn enable(&self) -> Result<bool, BoxError> {
        Ok(self.0.enable()?)
    }

    fn disable(&self) -> Result<bool, BoxError> {
        Ok(self.0.disable()?)
    }

    fn queue_destroyed(&self, queue: QueueId) {
        // The emulated runtime reports by itself what it refuses.
        let _ = self.0.destroy_queue(queue);
    }

    fn counters(&self) -> Counters {
        let s = self.0.statistics();
        Counters {
            transitions: s.transitions,
            transitions_that_counted: s.transitions_that_counted,
            barriers: s.barriers,
            barriers_live_most: s.barriers_live_most,
            tags: s.tags,
            retired_after_drain: s.retired_after_drain,
            grants: s.grants,
            grants_contended: s.grants_contended,
            ..Counters::default()
        }
    }
}
