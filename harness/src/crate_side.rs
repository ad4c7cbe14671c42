//! The crate, as a profiler sees it.

use crate::runtime::SoftRuntime;
use crate::serializing::{BoxError, Counters, Dispatched, Serializing};
use hsa_serializer::{
    DispatchError, Domain, Handler, MAX_PACKETS, Queue, QueueId, Runtime, Serializer, Ticket,
    Transition,
};
use hsa_sys::AqlPacket;
use std::time::Duration;

/// The crate's serializer, in a reclamation domain of its own.
pub fn crate_serializer(runtime: SoftRuntime) -> Serializer<SoftRuntime> {
    Serializer::<SoftRuntime>::builder()
        .domain(Domain::new())
        .build(runtime)
}

impl<R: Runtime> Serializing for Serializer<R> {
    type Queue = Queue<R>;
    type Ticket = Ticket;

    fn add_queue(&self) -> Result<Queue<R>, BoxError> {
        Ok(Serializer::add_queue(self)?)
    }

    fn id(queue: &Queue<R>) -> QueueId {
        queue.id()
    }

    fn dispatch(
        &self,
        queue: &mut Queue<R>,
        packets: &mut Vec<AqlPacket>,
    ) -> Option<Dispatched<Ticket>> {
        let mut inject = [AqlPacket::INVALID; MAX_PACKETS];
        match queue.dispatch(&mut inject) {
            Ok(dispatch) => {
                packets.extend_from_slice(&inject[..dispatch.packets]);
                Some(Dispatched {
                    ticket: dispatch.ticket,
                    serialized: dispatch.serialized,
                })
            }
            Err(DispatchError::ShutDown | DispatchError::QueueGone(_)) => None,
            Err(e) => panic!("a dispatch with room enough: {e}"),
        }
    }

    fn complete(&self, ticket: Ticket) {
        if let Err(e) = Serializer::complete(self, ticket) {
            panic!("the profiler completes each ticket once: {e}");
        }
    }

    fn abandon(&self, ticket: Ticket) {
        ticket.abandon();
    }

    fn ready(&self, queue: QueueId) -> Handler {
        Serializer::ready(self, queue)
    }

    fn enable(&self) -> Result<bool, BoxError> {
        Ok(Serializer::enable(self)? != Transition::Unchanged)
    }

    fn disable(&self) -> Result<bool, BoxError> {
        Ok(Serializer::disable(self)? != Transition::Unchanged)
    }

    fn queue_destroyed(&self, queue: QueueId) {
        if let Err(e) = Serializer::queue_destroyed(self, queue) {
            panic!("the profiler says it once: {e}");
        }
    }

    fn counters(&self) -> Counters {
        let s = self.statistics();
        Counters {
            transitions: s.transitions,
            transitions_that_counted: s.transitions_that_counted,
            barriers: s.barriers,
            barriers_live_most: s.barriers_live_most,
            tags: s.tags,
            retired_after_drain: s.retired_after_drain,
            grants: s.grants,
            grants_contended: s.grants_contended,
            serialized: Duration::from_nanos(s.serialized),
            token_waited: Duration::from_nanos(s.token_waited),
            token_waited_most: Duration::from_nanos(s.token_waited_most),
            barriers_armed: Duration::from_nanos(s.barriers_armed),
        }
    }
}
