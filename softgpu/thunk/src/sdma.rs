//! A copy engine's queue: the packets that the runtime writes for a gfx9 GPU's SDMA.
//!
//! Copies and fills are really done, by the host's processor; fences, polls, atomics and time stamps
//! act on memory; a trap raises an event. The two indices count bytes and only go up.

use crate::clock;
use crate::engine::Surroundings;
use crate::signals::{Signal, describe_signal};
use hsa_sys::{amd_signal_t, hsa_signal_t};
use std::fmt::Write;
use std::mem::offset_of;
use std::sync::atomic::{
    AtomicI64, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Release},
};

/// Packets that are taken between two looks at the other queues.
const BATCH: usize = 64;
const WORD: u64 = 4;

/// Operations, in the low byte of the first word.
mod op {
    pub(super) const NOP: u32 = 0;
    pub(super) const COPY: u32 = 1;
    pub(super) const FENCE: u32 = 5;
    pub(super) const TRAP: u32 = 6;
    pub(super) const POLL: u32 = 8;
    pub(super) const ATOMIC: u32 = 10;
    pub(super) const FILL: u32 = 11;
    pub(super) const TIMESTAMP: u32 = 13;
}

/// The only atomic operation that the runtime uses: a 64-bit addition.
const ATOMIC_ADD_64: u32 = 47;
/// A poll of memory, as opposed to one of a register.
const POLL_MEMORY: u32 = 1 << 31;

/// The two indices, which the engine keeps and the runtime is told the addresses of.
#[derive(Debug, Default)]
pub(crate) struct Indices {
    pub(crate) read: AtomicU64,
    pub(crate) write: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct SdmaQueue {
    pub(crate) id: u64,
    pub(crate) node: u32,
    ring: usize,
    ring_bytes: u64,
    pub(crate) indices: Box<Indices>,
    /// Rung besides the write index, and not read.
    pub(crate) doorbell: &'static AtomicI64,
    /// A packet that it does not know: it goes no further, as the hardware would.
    stopped: Option<u32>,
}

/// What a packet did.
enum Step {
    /// So many words are taken.
    Took(u64),
    /// It waits.
    Waits,
    /// It is none that is known.
    Unknown,
}

impl SdmaQueue {
    pub(crate) fn new(
        id: u64,
        node: u32,
        ring: usize,
        ring_bytes: u64,
        doorbell: &'static AtomicI64,
    ) -> Self {
        Self {
            id,
            node,
            ring,
            ring_bytes,
            indices: Box::default(),
            doorbell,
            stopped: None,
        }
    }

    /// Takes what can be; whether there was anything.
    pub(crate) fn pass(&mut self, around: &Surroundings<'_>) -> bool {
        if self.stopped.is_some() || !around.held.contains(self.ring, self.ring_bytes as usize) {
            return false;
        }
        let mut went = false;
        for _ in 0..BATCH {
            let read = self.indices.read.load(Acquire);
            let write = self.indices.write.load(Acquire);
            if read >= write {
                break;
            }
            match self.step(read, around) {
                Step::Took(words) => {
                    self.indices.read.store(read + words * WORD, Release);
                    went = true;
                }
                Step::Waits => break,
                Step::Unknown => {
                    let header = self.word(read, 0);
                    eprintln!(
                        "softgpu: copy engine {}: unknown packet {header:#x}",
                        self.id
                    );
                    self.stopped = Some(header);
                    break;
                }
            }
        }
        went
    }

    /// Whether it has packets.
    pub(crate) fn is_busy(&self) -> bool {
        self.indices.read.load(Acquire) < self.indices.write.load(Acquire)
    }

    /// A word of the packet at a read index.
    fn word(&self, read: u64, n: u64) -> u32 {
        let offset = (read + n * WORD) % self.ring_bytes;
        // SAFETY: within the ring, which is mapped for the whole pass, and aligned; what stands
        // below the write index is not written any more.
        unsafe { *((self.ring as u64 + offset) as *const u32) }
    }

    fn long(&self, read: u64, n: u64) -> u64 {
        u64::from(self.word(read, n)) | u64::from(self.word(read, n + 1)) << 32
    }

    fn step(&self, read: u64, around: &Surroundings<'_>) -> Step {
        let header = self.word(read, 0);
        let sub_op = header >> 8 & 0xff;
        match header & 0xff {
            // Since 6.0 it can stand for several words.
            op::NOP => Step::Took(1 + u64::from(header >> 16 & 0x3fff)),
            op::COPY if sub_op == 0 => {
                let bytes = u64::from(self.word(read, 1) & 0x3fff_ffff) + 1;
                let (from, to) = (self.long(read, 3), self.long(read, 5));
                // SAFETY: the runtime's contract: both ranges are the application's, who keeps them
                // until the copy's signal says that it is over. They may overlap.
                unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes as usize) };
                around.device.witness.count(|counts| counts.copies += 1);
                Step::Took(7)
            }
            op::FILL => {
                let to = self.long(read, 1) as *mut u32;
                let words = u64::from(self.word(read, 4) & 0x3fff_ffff) / WORD + 1;
                let value = self.word(read, 3);
                for n in 0..words as usize {
                    // SAFETY: as for a copy; fills are of whole aligned words.
                    unsafe { to.add(n).write_unaligned(value) };
                }
                around.device.witness.count(|counts| counts.copies += 1);
                Step::Took(5)
            }
            op::FENCE => {
                let address = self.long(read, 1);
                let value = self.word(read, 3);
                if around.writable(address, 4) {
                    // SAFETY: allocated while the map is held; checked for alignment, too.
                    unsafe { &*(address as *const AtomicU32) }.store(value, Release);
                } else {
                    // A mailbox is the thunk's own.
                    around.device.events.write_mailbox(address, value);
                }
                Step::Took(4)
            }
            op::TRAP => {
                around.raise_id(self.word(read, 1) & 0x0fff_ffff);
                Step::Took(2)
            }
            op::POLL => {
                if header & POLL_MEMORY != 0 && !self.met(read, header, around) {
                    return Step::Waits;
                }
                Step::Took(6)
            }
            op::ATOMIC if header >> 25 == ATOMIC_ADD_64 => {
                let address = self.long(read, 1);
                if around.writable(address, 8) {
                    // SAFETY: as for a fence.
                    unsafe { &*(address as *const AtomicU64) }
                        .fetch_add(self.long(read, 3), AcqRel);
                }
                Step::Took(8)
            }
            op::TIMESTAMP => {
                let address = self.long(read, 1);
                if around.writable(address, 8) {
                    // SAFETY: as for a fence.
                    unsafe { &*(address as *const AtomicU64) }
                        .store(clock::gpu_ticks(clock::now()), Release);
                }
                Step::Took(3)
            }
            _ => Step::Unknown,
        }
    }

    /// Whether what a poll waits for has come.
    fn met(&self, read: u64, header: u32, around: &Surroundings<'_>) -> bool {
        let address = self.long(read, 1);
        let (wanted, mask) = (self.word(read, 3), self.word(read, 4));
        if !around.writable(address, 4) {
            return false;
        }
        // SAFETY: as for a fence.
        let found = unsafe { &*(address as *const AtomicU32) }.load(Acquire) & mask;
        match header >> 28 & 7 {
            1 => found < wanted,
            2 => found <= wanted,
            3 => found == wanted,
            4 => found != wanted,
            5 => found >= wanted,
            6 => found > wanted,
            _ => true,
        }
    }

    /// Where it is, and what it waits for, as text.
    pub(crate) fn describe(&self, around: &Surroundings<'_>, text: &mut String) {
        let (read, write) = (
            self.indices.read.load(Acquire),
            self.indices.write.load(Acquire),
        );
        let _ = write!(
            text,
            "copy engine {} of node {}: read {read}, written {write} bytes",
            self.id, self.node
        );
        if let Some(header) = self.stopped {
            let _ = write!(text, ", stopped at an unknown packet {header:#x}");
        }
        text.push('\n');
        if around.held.contains(self.ring, self.ring_bytes as usize) {
            // A write index beyond the ring's end is garbage.
            let last = write.min(read.saturating_add(self.ring_bytes));
            self.describe_packets(read, last, around, text);
        }
    }

    /// What it waits for at its head, and whom that holds up behind it.
    fn describe_packets(
        &self,
        mut read: u64,
        write: u64,
        around: &Surroundings<'_>,
        text: &mut String,
    ) {
        // What the runtime has polled and subtracted from is a signal's value.
        let signal = |at| hsa_signal_t {
            handle: self
                .long(at, 1)
                .wrapping_sub(offset_of!(amd_signal_t, value) as u64),
        };
        while read < write {
            let header = self.word(read, 0);
            let words = match header & 0xff {
                op::NOP => 1 + u64::from(header >> 16 & 0x3fff),
                op::COPY => 7,
                op::FILL => 5,
                op::FENCE => 4,
                op::TRAP => 2,
                op::TIMESTAMP => 3,
                op::POLL => {
                    // The high word of a value is polled as well, and a register: nothing to tell.
                    if Signal::at(signal(read), around.held).is_some() {
                        let described = describe_signal(signal(read), None, around.held);
                        let _ = writeln!(text, "  {read}: waits for {described}");
                    }
                    6
                }
                op::ATOMIC => {
                    let _ = writeln!(text, "  {read}: completes {:#x}", signal(read).handle);
                    8
                }
                _ => return,
            };
            read += words * WORD;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::settings::Settings;
    use std::cell::RefCell;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    /// What is said of a queue whose write index is garbage, and whose ring is full of NOPs.
    fn describe_garbage() -> String {
        const BYTES: u64 = 4_096;
        static DOORBELL: AtomicI64 = AtomicI64::new(0);
        let device = Device::new(Settings::default());
        let ring = device.memory.allocate(BYTES, 1, 0, 0).unwrap();
        let queue = SdmaQueue::new(1, 1, ring, BYTES, &DOORBELL);
        queue.indices.write.store(1 << 62, Release);
        let held = device.memory.hold();
        let around = Surroundings {
            device: &device,
            held: &held,
            late: &RefCell::default(),
        };
        let mut text = String::new();
        queue.describe(&around, &mut text);
        text
    }

    #[test]
    fn no_more_than_a_ring_is_described() {
        let (tell, told) = mpsc::channel();
        thread::spawn(move || tell.send(describe_garbage()));
        let text = told.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(text.starts_with("copy engine 1 of node 1"), "{text}");
    }
}
