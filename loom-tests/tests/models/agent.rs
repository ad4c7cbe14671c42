//! A serializer, and what a packet processor and a handler do to it.

use hsa_serializer::{AqlPacket, Domain, Handler, MAX_PACKETS, Queue, QueueId, Serializer, Ticket};
use loom_tests::{Packet, Sim, drain};

/// A serializer over a domain and a runtime of its own.
pub(crate) struct Agent {
    pub(crate) sim: Sim,
    pub(crate) domain: Domain,
    pub(crate) serializer: Serializer<Sim>,
}

/// One serialized kernel, written to its queue.
pub(crate) struct Kernel {
    pub(crate) ticket: Ticket,
    /// Waits for `ready`.
    pub(crate) ready: Packet,
    /// Waits for `block`.
    pub(crate) block: Packet,
}

impl Agent {
    /// Enabled.
    pub(crate) fn new() -> Self {
        let agent = Self::disabled();
        agent.serializer.enable().expect("a signal");
        agent
    }

    pub(crate) fn disabled() -> Self {
        let (sim, domain) = (Sim::new(), Domain::new());
        let builder = Serializer::<Sim>::builder().domain(domain.clone());
        let serializer = builder.build(sim.clone());
        Self {
            sim,
            domain,
            serializer,
        }
    }

    pub(crate) fn queue(&self) -> Queue<Sim> {
        self.serializer.add_queue().expect("there is room")
    }

    /// The agent with a queue whose kernel has reached its `ready` packet: the handler's turn.
    pub(crate) fn arrived(&self) -> (Queue<Sim>, Ticket, Packet) {
        let mut queue = self.queue();
        let kernel = dispatch(&mut queue, &self.sim);
        self.sim.run(kernel.ready);
        (queue, kernel.ticket, kernel.block)
    }

    /// What the handler does; the queue is alive.
    pub(crate) fn ready(&self, queue: QueueId) {
        let kept = self.serializer.ready(queue) == Handler::Keep;
        self.sim.expect(kept, "a live queue's handler was dropped");
    }

    pub(crate) fn complete(&self, ticket: Ticket) {
        self.serializer.complete(ticket).expect("counted");
    }

    /// Grants go on until these kernels, which wait for `block`, have run.
    pub(crate) fn run_all(&self, mut waiting: Vec<(Ticket, Packet)>) {
        while !waiting.is_empty() {
            let granted = |(_, p): &(Ticket, Packet)| self.sim.can_run(p);
            let count = waiting.iter().filter(|w| granted(w)).count();
            self.sim
                .expect(count < 2, "two queues were granted at once");
            self.sim.expect(count > 0, "the token was lost");
            self.sim.raise();
            let next = waiting.iter().position(granted).expect("one is granted");
            let (ticket, packet) = waiting.swap_remove(next);
            self.sim.run(packet);
            self.complete(ticket);
        }
    }

    /// The model is over: its queues are gone too.
    pub(crate) fn finish(self, queues: Vec<QueueId>) {
        self.sim.raise();
        for queue in queues {
            if self.serializer.queue_destroyed(queue).is_ok() {
                let dropped = self.serializer.ready(queue) == Handler::Drop;
                self.sim.expect(dropped, "a removed queue's handler stays");
            }
        }
        let contenders = self.serializer.statistics().contenders;
        self.sim.expect(
            contenders == 0,
            "the token was given back too often or not often enough",
        );
        drain(&self.domain, || self.serializer.collect());
        drop(self.serializer);
        self.sim.finish();
    }
}

/// Dispatches one serialized kernel. No barrier is armed.
pub(crate) fn dispatch(queue: &mut Queue<Sim>, sim: &Sim) -> Kernel {
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let d = queue.dispatch(&mut packets).expect("the queue is alive");
    sim.expect(d.serialized && d.packets == 2, "not just serialized");
    Kernel {
        ticket: d.ticket,
        ready: sim.write(&packets[0]),
        block: sim.write(&packets[1]),
    }
}
