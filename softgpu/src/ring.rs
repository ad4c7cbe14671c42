//! A queue's ring: slots, write index, read index, doorbell.
//!
//! A producer reserves slots by the write index, writes the packets' bodies, publishes each by its
//! header and rings the doorbell. The processor consumes, in order, published slots at or below the
//! doorbell; it makes a consumed slot's header INVALID before the read index frees it. Nobody reads
//! a slot after its header was published, except for the processor.

use hsa_sys::{AqlPacket, PacketType};
use parking_lot::Mutex;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};

/// What the emulator remembers of a packet beside its 64 bytes, for its checks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meta {
    /// Generations, at the time of writing, of the five dependencies and the completion signal.
    pub(crate) generations: [u64; 6],
    /// The periods that the dispatch may belong to; `None` where no interceptor saw it.
    pub(crate) periods: Option<(u64, u64)>,
    /// Whether a stale signal of this packet was reported.
    pub(crate) told: bool,
}

#[derive(Debug)]
struct Slot {
    words: [AtomicU64; 8],
    meta: Mutex<Meta>,
}

#[derive(Debug)]
pub(crate) struct Ring {
    slots: Box<[Slot]>,
    write: AtomicU64,
    read: AtomicU64,
    /// One more than the highest index that was rung.
    doorbell: AtomicU64,
}

impl Ring {
    pub(crate) fn new(size: usize) -> Self {
        let slot = |_| Slot {
            words: AqlPacket::INVALID.words().map(AtomicU64::new),
            meta: Mutex::default(),
        };
        Self {
            slots: (0..size).map(slot).collect(),
            write: AtomicU64::new(0),
            read: AtomicU64::new(0),
            doorbell: AtomicU64::new(0),
        }
    }

    fn slot(&self, index: u64) -> &Slot {
        &self.slots[index as usize & (self.slots.len() - 1)]
    }

    pub(crate) fn size(&self) -> u64 {
        self.slots.len() as u64
    }

    pub(crate) fn write_index(&self) -> u64 {
        self.write.load(SeqCst)
    }

    pub(crate) fn read_index(&self) -> u64 {
        self.read.load(SeqCst)
    }

    pub(crate) fn doorbell(&self) -> u64 {
        self.doorbell.load(SeqCst)
    }

    /// The first of `n` slots that now belong to the caller; `None` if so many are not free.
    pub(crate) fn reserve(&self, n: u64) -> Option<u64> {
        let mut write = self.write.load(SeqCst);
        loop {
            let end = write.checked_add(n)?;
            // The processor may be ahead, where a producer published slots that it never reserved.
            if end.saturating_sub(self.read.load(SeqCst)) > self.size() {
                return None;
            }
            match self.write.compare_exchange(write, end, SeqCst, SeqCst) {
                Ok(first) => return Some(first),
                Err(now) => write = now,
            }
        }
    }

    /// Slots that could be reserved now.
    pub(crate) fn free(&self) -> u64 {
        let read = self.read.load(SeqCst);
        self.size() - self.write.load(SeqCst).saturating_sub(read)
    }

    /// Writes all but the header, which stays INVALID.
    pub(crate) fn write_body(&self, index: u64, packet: &AqlPacket, meta: Meta) {
        let slot = self.slot(index);
        *slot.meta.lock() = meta;
        let unpublished = packet.with_header(PacketType::Invalid as u16);
        for (word, value) in slot.words.iter().zip(unpublished.words()) {
            word.store(value, Relaxed);
        }
    }

    /// Makes a written slot visible to the processor.
    pub(crate) fn publish(&self, index: u64, header: u16) {
        let first = &self.slot(index).words[0];
        let body = first.load(Relaxed) & !0xffff;
        first.store(body | u64::from(header), Release);
    }

    /// Tells the processor of everything up to and including `index`.
    pub(crate) fn ring_doorbell(&self, index: u64) {
        self.doorbell.fetch_max(index.saturating_add(1), SeqCst);
    }

    /// The packet at `index`, whose header may be INVALID.
    pub(crate) fn packet(&self, index: u64) -> AqlPacket {
        let words = &self.slot(index).words;
        // The header first: it publishes the others.
        let first = words[0].load(Acquire);
        AqlPacket::from_words(std::array::from_fn(|i| {
            if i == 0 {
                first
            } else {
                words[i].load(Relaxed)
            }
        }))
    }

    pub(crate) fn meta(&self, index: u64) -> parking_lot::MutexGuard<'_, Meta> {
        self.slot(index).meta.lock()
    }

    /// Gives the slot at the read index back.
    pub(crate) fn consume(&self) {
        let index = self.read.load(SeqCst);
        self.slot(index).words[0].store(PacketType::Invalid as u64, Release);
        self.read.store(index + 1, SeqCst);
    }

    /// Whether the processor has a packet to look at: published, and rung for.
    pub(crate) fn has_packet(&self) -> bool {
        let index = self.read.load(SeqCst);
        index < self.doorbell.load(SeqCst)
            && self.slot(index).words[0].load(Acquire) & 0xff != PacketType::Invalid as u64
    }
}
