//! The shadow's queues.

use super::packet::{self, End, Length, Meaning};
use super::signals::Signals;
use super::violation::{Checked, Rule, ensure};
use hsa_sys::{AqlPacket, hsa_signal_t};
use softgpu::{Queue, QueueState};
use std::collections::VecDeque;

/// A kernel under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub(crate) index: u64,
    pub(crate) length: Length,
    pub(crate) end: End,
    pub(crate) writes: (hsa_signal_t, i64),
    pub(crate) completion: hsa_signal_t,
    pub(crate) started: u64,
}

impl Running {
    /// Whether it can end at this time.
    pub(crate) fn may_end(&self, signals: &Signals, now: u64) -> bool {
        match self.length {
            Length::For(ns) => now >= self.started.saturating_add(ns),
            Length::Until(signal) => signals.value(signal) < 1,
            Length::Forever => false,
        }
    }
}

/// Why a queue's next packet can't be launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Stopped,
    Empty,
    Unpublished,
    Earlier,
    Full,
    All,
    Any,
}

/// One queue: its ring's memory and indices, what waits for room, and what runs.
#[derive(Debug)]
pub(crate) struct Shadow {
    pub(crate) real: Queue,
    pub(crate) state: QueueState,
    slots: Vec<AqlPacket>,
    pub(crate) most_running: usize,
    pub(crate) read: u64,
    pub(crate) write: u64,
    /// One more than the highest index that was rung for.
    pub(crate) rung: u64,
    pub(crate) overflow: VecDeque<AqlPacket>,
    pub(crate) running: Vec<Running>,
    pub(crate) dropped: u64,
    pub(crate) foreign: u64,
    /// A fault that the callback was not told of yet.
    pub(crate) untold: bool,
    /// A kernel was launched before.
    pub(crate) ran: bool,
}

impl Shadow {
    pub(crate) fn new(real: Queue, slots: usize, most_running: usize) -> Self {
        let or = |value: usize, default| if value == 0 { default } else { value };
        Self {
            real,
            state: QueueState::Active,
            slots: vec![AqlPacket::INVALID; or(slots, 1_024)],
            most_running: or(most_running, 64),
            read: 0,
            write: 0,
            rung: 0,
            overflow: VecDeque::new(),
            running: Vec::new(),
            dropped: 0,
            foreign: 0,
            untold: false,
            ran: false,
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.slots.len() as u64
    }

    fn slot(&mut self, index: u64) -> &mut AqlPacket {
        let size = self.size();
        &mut self.slots[(index % size) as usize]
    }

    pub(crate) fn packet(&self, index: u64) -> AqlPacket {
        self.slots[(index % self.size()) as usize]
    }

    /// Packets that the ring holds, by its indices.
    pub(crate) fn pending(&self) -> u64 {
        self.write.saturating_sub(self.read)
    }

    pub(crate) fn reserve(&mut self, n: u64) -> Option<u64> {
        let write = self.write.checked_add(n)?;
        if write.saturating_sub(self.read) > self.size() {
            return None;
        }
        Some(std::mem::replace(&mut self.write, write))
    }

    pub(crate) fn write_body(&mut self, index: u64, packet: &AqlPacket) {
        *self.slot(index) = packet.with_header(1);
    }

    pub(crate) fn publish(&mut self, index: u64, header: u16) {
        let slot = self.slot(index);
        *slot = slot.with_header(header);
    }

    pub(crate) fn ring(&mut self, index: u64) {
        self.rung = self.rung.max(index.saturating_add(1));
    }

    /// Moves what waits into the ring, as far as there is room; says how many.
    pub(crate) fn fill(&mut self) -> usize {
        let mut moved = 0;
        while let Some(packet) = self.overflow.front().copied() {
            let Some(index) = self.reserve(1) else {
                break;
            };
            self.overflow.pop_front();
            self.write_body(index, &packet);
            self.publish(index, packet.header());
            self.ring(index);
            moved += 1;
        }
        moved
    }

    pub(crate) fn can_refill(&self) -> bool {
        let active = self.state == QueueState::Active;
        active && !self.overflow.is_empty() && self.pending() < self.size()
    }

    /// The header becomes INVALID; the body stays in memory.
    pub(crate) fn consume(&mut self) {
        let slot = self.slot(self.read);
        *slot = slot.with_header(1);
        self.read += 1;
    }

    /// The queue stops for good, and what it holds is dropped; what ran is the caller's.
    pub(crate) fn stop(&mut self, state: QueueState) {
        if (self.state as u8) < state as u8 {
            self.state = state;
        }
        while self.read < self.write {
            let waits = packet::read(&self.packet(self.read)) != Meaning::Invalid;
            self.dropped += u64::from(waits);
            self.consume();
        }
        self.dropped += self.overflow.len() as u64;
        self.overflow.clear();
        self.running.clear();
    }

    /// Why the next packet can't be launched, if it can't.
    pub(crate) fn why(&self, signals: &Signals) -> Option<Why> {
        if self.state != QueueState::Active {
            return Some(Why::Stopped);
        }
        let packet = self.packet(self.read);
        let meaning = packet::read(&packet);
        if self.read >= self.rung || meaning == Meaning::Invalid {
            let empty = self.pending() == 0;
            return Some(if empty { Why::Empty } else { Why::Unpublished });
        }
        if packet::barrier_bit(&packet) && !self.running.is_empty() {
            return Some(Why::Earlier);
        }
        let met = |signal: &hsa_signal_t| signals.value(*signal) == 0;
        match meaning {
            Meaning::Kernel { .. } if self.running.len() >= self.most_running => Some(Why::Full),
            // One that is null is met for AND, and not met for OR.
            Meaning::And(named) => {
                let all = named.iter().all(|signal| signal.is_null() || met(signal));
                (!all).then_some(Why::All)
            }
            Meaning::Or(named) => {
                let any = named.iter().any(|signal| !signal.is_null() && met(signal));
                (!any).then_some(Why::Any)
            }
            _ => None,
        }
    }

    /// The GPU says the same of everything that can be asked.
    pub(crate) fn agree(&self) -> Checked {
        let (real, id) = (&self.real, self.real.id());
        // Not the doorbell: what is launched, and what is not, tells of that.
        let indices = (real.read_index(), real.write_index());
        let should = (self.read, self.write);
        ensure(indices == should, Rule::Counts, || {
            format!("{id} has its read and write index at {indices:?}, not {should:?}")
        })?;
        let counts = (
            real.state(),
            real.running(),
            real.overflowing(),
            real.dropped(),
            real.foreign(),
        );
        let should = (
            self.state,
            self.running.len(),
            self.overflow.len(),
            self.dropped,
            self.foreign,
        );
        ensure(counts == should, Rule::Counts, || {
            format!(
                "{id} has state, running, overflowing, dropped and foreign of {counts:?}, \
                 not {should:?}"
            )
        })
    }
}
