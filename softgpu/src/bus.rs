//! The emulated queue as its packet processor sees it, and what the checks see of both.

use crate::kernel::Kernel;
use crate::processor::{At, Bus, Head, signals};
use crate::queue::{Inner, QueueState};
use crate::ring::Meta;
use crate::violation::{KernelView, Violation};
use hsa_sys::{AqlPacket, PacketType, hsa_signal_t};

impl Inner {
    /// The first of these signals that is not the one that the packet was written with.
    fn find_stale(
        &self,
        index: u64,
        named: impl IntoIterator<Item = (hsa_signal_t, u64)>,
    ) -> Option<Violation> {
        named.into_iter().find_map(|(signal, written)| {
            let (found, alive) = self.shared.signals.generation(signal);
            let stale = !signal.is_null() && (!alive || found != written);
            stale.then_some(Violation::StalePacket {
                queue: self.id,
                packet: index,
                signal,
                written,
                found,
                alive,
            })
        })
    }

    /// Reports a stale signal of a packet that was never launched, or is not yet.
    pub(crate) fn check(&self, index: u64, packet: &AqlPacket, meta: &Meta) -> bool {
        let named = signals(packet).into_iter().zip(meta.generations);
        let stale = self.find_stale(index, named);
        let found = stale.is_some();
        stale
            .into_iter()
            .for_each(|stale| self.shared.violations.add(stale));
        found
    }

    /// Reports, once a packet of the ring, a signal that is not the one it was written with.
    fn check_once(&self, index: u64, packet: &AqlPacket) {
        let mut meta = self.ring.meta(index);
        if !meta.told {
            meta.told = self.check(index, packet, &meta);
        }
    }

    /// Drops all packets that were not launched; says how many.
    ///
    /// Where they were `executable`, a signal that one of them refers to was due to live until now,
    /// so they are checked, too.
    pub(crate) fn drop_packets(&self, executable: bool) -> u64 {
        let mut dropped = 0;
        while self.ring.read_index() < self.ring.write_index() {
            let index = self.ring.read_index();
            let packet = self.ring.packet(index);
            if packet.packet_type() != Some(PacketType::Invalid) {
                if executable {
                    self.check_once(index, &packet);
                }
                dropped += 1;
            }
            self.ring.consume();
        }
        dropped
    }
}

impl Bus for Inner {
    type Mark = Meta;

    fn now(&self) -> u64 {
        self.shared.clock.now()
    }

    fn head(&self) -> Head {
        if self.state() != QueueState::Active {
            Head::Stopped
        } else if self.ring.has_packet() {
            Head::Packet(self.ring.read_index())
        } else if self.ring.read_index() >= self.ring.write_index() {
            Head::Empty
        } else {
            Head::Unpublished
        }
    }

    fn packet(&self, index: u64) -> (AqlPacket, Meta) {
        (self.ring.packet(index), *self.ring.meta(index))
    }

    fn consume(&self) {
        self.ring.consume();
    }

    fn kernel(&self, packet: &AqlPacket) -> Option<Kernel> {
        Kernel::of(packet)
    }

    fn peek(&self, signal: hsa_signal_t) -> i64 {
        self.shared.signals.peek(signal)
    }

    fn store(&self, signal: hsa_signal_t, value: i64) {
        self.shared.signals.store(signal, value);
    }

    fn complete(&self, signal: hsa_signal_t, _started: u64) {
        self.shared.signals.subtract(signal, 1);
    }

    fn looked_at(&self, at: At<'_, Meta>) {
        self.check_once(at.index, at.packet);
    }

    fn started(&self, at: At<'_, Meta>, id: u32, now: u64) {
        let periods = at.mark.periods;
        let view = KernelView {
            queue: self.id,
            packet: at.index,
            id,
            started: now,
            periods: periods.unwrap_or_default(),
        };
        let seen = periods.is_some();
        self.shared.witness.started(self.agent, view, seen);
    }

    fn finished(&self, at: At<'_, Meta>) {
        let completion = at.packet.completion_signal();
        if !at.mark.told {
            let named = [(completion, at.mark.generations[5])];
            if let Some(stale) = self.find_stale(at.index, named) {
                self.shared.violations.add(stale);
            }
        }
        let witness = &self.shared.witness;
        witness.finished(self.agent, self.id, at.index, Some(self.now()));
    }

    fn lost(&self, index: u64) {
        let witness = &self.shared.witness;
        witness.finished(self.agent, self.id, index, None);
    }
}
