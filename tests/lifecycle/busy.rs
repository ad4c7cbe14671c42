//! A serializer with work in every state, without a GPU: what a process ends or forks in the middle of.

use crate::guarded::Guarded;
use hsa_serializer::{Domain, Handler, MAX_PACKETS, Queue, QueueId, Serializer, Ticket};
use hsa_sys::AqlPacket;

pub(crate) struct Busy {
    pub(crate) serializer: Serializer<Guarded>,
    pub(crate) queues: Vec<Queue<Guarded>>,
    /// Of the first queue, before any transition; all others are abandoned at the end.
    pub(crate) first: Vec<Ticket>,
}

fn dispatch(queue: &mut Queue<Guarded>) -> Ticket {
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    queue.dispatch(&mut packets).unwrap().ticket
}

impl Busy {
    /// One queue holds an armed barrier back, one holds the token, one waits for it, one has a
    /// transition packet, and one has nothing.
    pub(crate) fn new(domain: Domain) -> Self {
        let builder = Serializer::<Guarded>::builder().domain(domain);
        let serializer = builder.build(Guarded::new());
        let mut queues: Vec<_> = (0..5).map(|_| serializer.add_queue().unwrap()).collect();
        let first = (0..4).map(|_| dispatch(&mut queues[0])).collect();
        serializer.enable().unwrap();
        for queue in &mut queues[1..3] {
            dispatch(queue).abandon();
            reach(&serializer, queue.id());
        }
        serializer.disable().unwrap();
        dispatch(&mut queues[3]).abandon();
        Self {
            serializer,
            queues,
            first,
        }
    }

    pub(crate) fn ids(&self) -> Vec<QueueId> {
        self.queues.iter().map(Queue::id).collect()
    }

    /// The application's queues go, and with them everything; nothing may be left.
    pub(crate) fn end(self) {
        let Self {
            serializer,
            queues,
            first,
        } = self;
        let host = serializer.runtime().host.clone();
        for ticket in first {
            serializer.complete(ticket).unwrap();
        }
        for queue in &queues {
            serializer.queue_destroyed(queue.id()).unwrap();
            assert_eq!(serializer.ready(queue.id()), Handler::Drop);
        }
        drop(queues);
        serializer.disable().unwrap();
        for _ in 0..1_000 {
            if serializer.statistics().reclaim_pending == 0 {
                break;
            }
            serializer.collect();
        }
        let stats = serializer.statistics();
        assert_eq!((stats.queues, stats.barriers_live, stats.misuse), (0, 0, 0));
        assert_eq!(stats.barriers, stats.reclaimed, "{stats:?}");
        drop(serializer);
        assert_eq!(host.live_signals(), 0);
        assert_eq!(host.reports(), []);
    }
}

/// The queue's `ready` packet executes, and the handler is called.
fn reach(serializer: &Serializer<Guarded>, queue: QueueId) {
    let host = &serializer.runtime().host;
    host.decrement(host.ready_signal(queue).unwrap());
    assert_eq!(serializer.ready(queue), Handler::Keep);
}
