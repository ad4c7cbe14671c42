//! A queue and its packet processor, stepped by hand: packets in order, one kernel at a time.

use crate::host::Rig;
use hsa_serializer::{
    AqlPacket, DispatchError, Handler, MAX_PACKETS, Queue, QueueId, Serializer, Ticket,
};
use std::collections::VecDeque;

struct Kernel {
    ticket: Ticket,
    packets: VecDeque<AqlPacket>,
}

pub(crate) struct Lane {
    serializer: Serializer<Rig>,
    pub(crate) queue: Queue<Rig>,
    ring: VecDeque<Kernel>,
}

impl Lane {
    pub(crate) fn new(serializer: &Serializer<Rig>) -> Self {
        Self {
            serializer: serializer.clone(),
            queue: serializer.add_queue().unwrap(),
            ring: VecDeque::new(),
        }
    }

    pub(crate) fn id(&self) -> QueueId {
        self.queue.id()
    }

    /// Dispatches a kernel; whether it is serialized.
    pub(crate) fn dispatch(&mut self) -> bool {
        self.try_dispatch(u64::MAX).unwrap()
    }

    pub(crate) fn try_dispatch(&mut self, limit: u64) -> Result<bool, DispatchError> {
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let d = self.queue.try_dispatch(&mut packets, limit)?;
        self.ring.push_back(Kernel {
            ticket: d.ticket,
            packets: packets[..d.packets].iter().copied().collect(),
        });
        Ok(d.serialized)
    }

    /// Runs the packets in front of the next kernel; whether that is running now.
    pub(crate) fn reach(&mut self) -> bool {
        let Some(kernel) = self.ring.front_mut() else {
            return false;
        };
        let host = self.serializer.runtime().host();
        while let Some(packet) = kernel.packets.front() {
            let dependencies = packet.dependencies().expect("a barrier packet");
            let met = |s: &hsa_serializer::hsa_signal_t| host.value(*s) == Some(0);
            if !dependencies.iter().any(met) {
                return false;
            }
            let done = packet.completion_signal();
            kernel.packets.pop_front();
            if done.is_null() {
                continue;
            }
            host.decrement(done);
            let id = self.queue.id();
            if host.ready_signal(id) == Some(done) {
                assert_eq!(self.serializer.ready(id), Handler::Keep);
            }
        }
        true
    }

    /// The kernel that is running ends, and is reported.
    pub(crate) fn end(&mut self) {
        assert!(self.reach(), "no kernel is running");
        let kernel = self.ring.pop_front().expect("it is running");
        self.serializer.complete(kernel.ticket).unwrap();
    }

    /// The queue is destroyed, with whatever is in it.
    pub(crate) fn destroy(self) {
        self.serializer.queue_destroyed(self.id()).unwrap();
        self.was_destroyed();
    }

    /// What is left to do where it was said already that the queue is gone.
    pub(crate) fn was_destroyed(self) {
        let id = self.id();
        for kernel in self.ring {
            kernel.ticket.abandon();
        }
        drop(self.queue);
        assert_eq!(self.serializer.ready(id), Handler::Drop);
    }
}
