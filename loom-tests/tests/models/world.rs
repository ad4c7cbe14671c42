//! What every model starts and ends with.

use hsa_serializer::{AqlPacket, BarrierSet, Domain, MAX_PACKETS, Queue, Serializer, Ticket};
use loom_tests::{Packet, Sim, drain};

/// A set of barriers over a domain and a runtime of its own.
pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) domain: Domain,
    pub(crate) set: BarrierSet<Sim>,
}

impl World {
    pub(crate) fn new() -> Self {
        let (sim, domain) = (Sim::new(), Domain::new());
        let builder = Serializer::<Sim>::builder().domain(domain.clone());
        let set = BarrierSet::with(builder, sim.clone());
        Self { sim, domain, set }
    }

    pub(crate) fn queue(&self) -> Queue<Sim> {
        self.set.add_queue().expect("there is room")
    }

    /// The queues of the model are gone, and everything has completed.
    pub(crate) fn finish(self) {
        drain(&self.domain, || self.set.collect());
        self.sim.raise();
        let live = self.set.statistics().barriers_live;
        self.sim.expect(live == 0, "a barrier was left");
        drop(self.set);
        self.sim.finish();
    }
}

/// Dispatches one kernel; its ticket and its transition packet, if it carries one.
pub(crate) fn dispatch(queue: &mut Queue<Sim>, sim: &Sim) -> (Ticket, Option<Packet>) {
    try_dispatch(queue, sim).expect("the queue is alive")
}

/// The same for a queue that may be gone.
pub(crate) fn try_dispatch(queue: &mut Queue<Sim>, sim: &Sim) -> Option<(Ticket, Option<Packet>)> {
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let d = queue.dispatch(&mut packets).ok()?;
    let packet = (d.packets > 0).then(|| sim.write(&packets[0]));
    Some((d.ticket, packet))
}
