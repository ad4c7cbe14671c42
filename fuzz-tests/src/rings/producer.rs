//! What the host does with rings, on the GPU and on its shadow.

use super::host::Machine;
use super::mutant::Mutant;
use super::operation::At;
use super::queue::Shadow;
use super::violation::{Checked, Rule, ensure};
use hsa_sys::{AqlPacket, hsa_status_t};
use softgpu::QueueState;

impl Machine {
    /// What the GPU gets for this packet.
    fn planted(&self, packet: &AqlPacket) -> AqlPacket {
        self.mutant.map_or(*packet, |m| m.packet(packet))
    }

    fn planted_header(&self, header: u16) -> u16 {
        self.mutant.map_or(header, |m| m.header(header))
    }

    pub(crate) fn reserve(&mut self, queue: u8, n: u64) -> Checked<Option<u64>> {
        let more = u64::from(self.is(Mutant::LosesSlot));
        let Some(shadow) = self.queue(queue) else {
            return Ok(None);
        };
        let should = shadow.reserve(n);
        let got = shadow.real.reserve(n.saturating_add(more));
        self.tally.no_room += u64::from(should.is_none());
        let lost = more > 0 && should.is_some() && got.is_none();
        ensure(got == should || lost, Rule::Answer, || {
            format!("{n} slots were reserved at {got:?}, not {should:?}")
        })?;
        Ok(should)
    }

    pub(crate) fn put(&mut self, queue: u8, packet: AqlPacket) -> Checked {
        let Some(index) = self.reserve(queue, 1)? else {
            return Ok(());
        };
        let planted = self.planted(&packet);
        let misses = self.is(Mutant::MissesDoorbell);
        if let Some(shadow) = self.queue(queue) {
            shadow.write_body(index, &packet);
            shadow.publish(index, packet.header());
            shadow.ring(index);
            shadow.real.write(index, &planted);
            shadow.real.publish(index, planted.header());
            if !misses {
                shadow.real.ring_doorbell(index);
            }
        }
        Ok(())
    }

    pub(crate) fn submit(&mut self, queue: u8, batch: &[AqlPacket]) -> Checked {
        let planted: Vec<_> = batch.iter().map(|packet| self.planted(packet)).collect();
        let Some(shadow) = self.queue(queue) else {
            return Ok(());
        };
        let answer = shadow.real.submit(&planted);
        let should = match shadow.state {
            QueueState::Destroyed => Err(hsa_status_t::ERROR_INVALID_QUEUE),
            QueueState::Inactive => {
                shadow.dropped += batch.len() as u64;
                Ok(())
            }
            QueueState::Active | QueueState::Faulted => {
                shadow.overflow.extend(batch);
                shadow.fill();
                Ok(())
            }
        };
        ensure(answer == should, Rule::Answer, || {
            format!("submit: {answer:?}, not {should:?}")
        })
    }

    fn index(&mut self, queue: u8, at: At) -> Option<(&mut Shadow, u64)> {
        let shadow = self.queue(queue)?;
        let index = at.resolve(shadow.size(), shadow.read, shadow.write, shadow.rung);
        Some((shadow, index))
    }

    pub(crate) fn write(&mut self, queue: u8, at: At, packet: &AqlPacket) {
        let planted = self.planted(packet);
        if let Some((shadow, index)) = self.index(queue, at) {
            shadow.write_body(index, packet);
            shadow.real.write(index, &planted);
        }
    }

    pub(crate) fn publish(&mut self, queue: u8, at: At, header: u16) {
        let planted = self.planted_header(header);
        let unrung = self.is(Mutant::RunsUnrung);
        if let Some((shadow, index)) = self.index(queue, at) {
            shadow.publish(index, header);
            shadow.real.publish(index, planted);
            if unrung {
                shadow.real.ring_doorbell(index);
            }
        }
    }

    pub(crate) fn ring(&mut self, queue: u8, at: At) {
        let misses = self.is(Mutant::MissesDoorbell);
        if let Some((shadow, index)) = self.index(queue, at) {
            shadow.ring(index);
            if !misses {
                shadow.real.ring_doorbell(index);
            }
        }
    }

    pub(crate) fn poke(&mut self, queue: u8, at: At, word: u8, value: u64) {
        let mutant = self.mutant;
        if let Some((shadow, index)) = self.index(queue, at) {
            let mut words = shadow.packet(index).words();
            words[usize::from(word)] = value;
            let packet = AqlPacket::from_words(words);
            let planted = mutant.map_or(packet, |m| m.packet(&packet));
            shadow.write_body(index, &packet);
            shadow.publish(index, packet.header());
            shadow.real.write(index, &planted);
            shadow.real.publish(index, planted.header());
        }
    }
}
