//! How a serializer ends: what a host, its handler thread and a packet processor do about it.

use super::agent::Agent;
use hsa_serializer::{AqlPacket, Handler, MAX_PACKETS, Queue, Serializer, Ticket};
use loom_tests::{Packet, Sim, drain};

/// Attempts and calls after which something is taken for endless.
const ENOUGH: usize = 20;

/// Dispatches one kernel, unless it is turned away: its ticket, and its packets in order.
pub(crate) fn try_dispatch(queue: &mut Queue<Sim>, sim: &Sim) -> Option<(Ticket, Vec<Packet>)> {
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let d = queue.dispatch(&mut packets).ok()?;
    let written = packets[..d.packets].iter().map(|p| sim.write(p)).collect();
    Some((d.ticket, written))
}

/// Counts what the queue holds unseen, while the mode is enabled: the marker's ticket, and the packets
/// in front of it.
pub(crate) fn gap(queue: &mut Queue<Sim>, sim: &Sim) -> (Ticket, Vec<Packet>) {
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let marker = queue.gap(&mut packets).expect("open, and a signal");
    let front = packets[..marker.packets - 1].iter();
    (marker.ticket, front.map(|p| sim.write(p)).collect())
}

/// The handler thread's turn: it calls each handler whose signal has fired.
pub(crate) fn handlers(serializer: &Serializer<Sim>, sim: &Sim) {
    for _ in 0..ENOUGH {
        let Some(id) = sim.fired() else {
            return;
        };
        if serializer.ready(id) == Handler::Drop {
            sim.unwatch(id);
        }
    }
    sim.breach("a handler is called for ever");
}

/// Tries to finish the shutdown so many times, with the handlers' turn in between; the runtime is
/// over where that is done.
pub(crate) fn try_finish(serializer: &Serializer<Sim>, sim: &Sim, times: usize) -> bool {
    for _ in 0..times {
        if serializer.try_finish_shutdown().is_ok() {
            sim.is_over();
            return true;
        }
        handlers(serializer, sim);
    }
    false
}

impl Agent {
    /// The queue's packet processor runs these, in order, and then the kernel behind them, which is
    /// reported.
    pub(crate) fn run_through(&self, (ticket, packets): (Ticket, Vec<Packet>)) {
        for packet in packets {
            self.sim.run(packet);
            handlers(&self.serializer, &self.sim);
        }
        self.complete(ticket);
    }

    /// The model is over, and everything has completed: the serializer is shut down, and then does
    /// nothing any more, with its queues' dispatching halves and its handles going.
    pub(crate) fn shut_down(self, queues: Vec<Queue<Sim>>) {
        self.sim.raise();
        // A thread may still be giving up its handle of the domain, hence the yielding.
        let finished = (0..ENOUGH).any(|_| {
            let done = try_finish(&self.serializer, &self.sim, 1);
            loom::thread::yield_now();
            done
        });
        self.sim.expect(finished, "the shutdown never finishes");
        let contenders = self.serializer.statistics().contenders;
        self.sim.expect(
            contenders == 0,
            "the token was given back too often or not often enough",
        );
        self.sim.raise();
        drop(queues);
        drain(&self.domain, || self.serializer.collect());
        drop(self.serializer);
        self.sim.finish();
    }
}
