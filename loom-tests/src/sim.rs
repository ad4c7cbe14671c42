//! A runtime of eight signals, and the packets that refer to them.
//!
//! Values are loom's atomics, so every order of two accesses to one signal is explored. What is
//! only for checking (is it alive, who refers to it) is in a table of the standard library's, which
//! loom does not see: it changes together with an access that loom does see.
//!
//! A breach is recorded and raised at the end of the execution, when all threads are back: a panic
//! in the middle of one would be hidden by what it leaves behind.

use hsa_serializer::{AqlPacket, QueueId, Report, Runtime, SignalKind, hsa_signal_t, hsa_status_t};
use loom::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

const SIGNALS: usize = 8;

/// The runtime. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Sim(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    values: [AtomicI64; SIGNALS],
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    slots: [Slot; SIGNALS],
    /// Given out again last in, first out, as HSA does.
    free: Vec<usize>,
    made: usize,
    breach: Option<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    alive: bool,
    barrier: bool,
    /// Which of the signals that had this handle it is.
    life: u32,
    /// Packets that refer to it and have not executed.
    packets: u32,
}

/// A barrier packet that was written to a queue.
#[derive(Debug)]
pub struct Packet {
    slot: usize,
    life: u32,
    counts_down: bool,
}

fn slot(signal: hsa_signal_t) -> usize {
    usize::try_from(signal.handle).expect("a handle of ours") - 1
}

impl Sim {
    /// No signals yet. Within a model only.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Inner {
            values: std::array::from_fn(|_| AtomicI64::new(0)),
            table: Mutex::default(),
        }))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().expect("nobody panics with the table")
    }

    /// Records a breach; the first one counts.
    pub fn breach(&self, what: impl Into<String>) {
        self.table().breach.get_or_insert(what.into());
    }

    /// Records a breach unless it holds.
    pub fn expect(&self, holds: bool, what: &str) {
        if !holds {
            self.breach(what);
        }
    }

    /// Raises what was recorded.
    ///
    /// # Panics
    /// If something was.
    pub fn raise(&self) {
        let breach = self.table().breach.take();
        if let Some(what) = breach {
            panic!("{what}");
        }
    }

    /// The signal's latest value.
    #[must_use]
    pub fn value(&self, signal: hsa_signal_t) -> i64 {
        self.0.values[slot(signal)].fetch_add(0, Ordering::AcqRel)
    }

    /// Writes a barrier packet to a queue: it refers to its signal until it is run or lost.
    ///
    /// # Panics
    /// If it is not a barrier packet.
    pub fn write(&self, packet: &AqlPacket) -> Packet {
        let signal = packet.dependencies().expect("a barrier packet")[0];
        let slot = slot(signal);
        let mut table = self.table();
        let entry = &mut table.slots[slot];
        entry.packets += 1;
        let (life, alive) = (entry.life, entry.alive);
        drop(table);
        self.expect(alive, "a packet was handed out for a destroyed signal");
        Packet {
            slot,
            life,
            counts_down: !packet.completion_signal().is_null(),
        }
    }

    /// Whether the packet processor can run it.
    #[must_use]
    pub fn can_run(&self, packet: &Packet) -> bool {
        self.0.values[packet.slot].fetch_add(0, Ordering::AcqRel) == 0
    }

    /// The packet processor runs it.
    pub fn run(&self, packet: Packet) {
        self.expect(self.can_run(&packet), "a packet waits for ever");
        if packet.counts_down {
            self.0.values[packet.slot].fetch_sub(1, Ordering::AcqRel);
        }
        self.lose(packet);
    }

    /// The packet's queue was destroyed with it.
    pub fn lose(&self, packet: Packet) {
        let mut table = self.table();
        let entry = &mut table.slots[packet.slot];
        entry.packets -= 1;
        let same = entry.life == packet.life;
        drop(table);
        self.expect(same, "a signal was destroyed under an unexecuted packet");
    }

    /// The end of a model: nothing was breached, every signal is destroyed, and the serializer's
    /// shared state is gone.
    ///
    /// # Panics
    /// If that is not so.
    pub fn finish(self) {
        let alive = self.table().slots.iter().filter(|s| s.alive).count();
        self.expect(alive == 0, "a signal was left");
        self.expect(Arc::strong_count(&self.0) == 1, "the shared state was left");
        self.raise();
    }
}

impl Default for Sim {
    fn default() -> Self {
        Self::new()
    }
}

impl Runtime for Sim {
    fn create_signal(&self, kind: SignalKind, initial: i64) -> Result<hsa_signal_t, hsa_status_t> {
        let mut table = self.table();
        let slot = table.free.pop().unwrap_or_else(|| {
            table.made += 1;
            table.made - 1
        });
        assert!(slot < SIGNALS, "a model of more signals than there are");
        let entry = &mut table.slots[slot];
        entry.alive = true;
        entry.barrier = kind == SignalKind::Barrier;
        entry.life += 1;
        drop(table);
        self.0.values[slot].swap(initial, Ordering::Relaxed);
        Ok(hsa_signal_t {
            handle: slot as u64 + 1,
        })
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        let slot = slot(signal);
        // Changes nothing: it is there for loom to see that the order against stores matters.
        self.0.values[slot].fetch_add(0, Ordering::Relaxed);
        let mut table = self.table();
        let entry = &mut table.slots[slot];
        let (alive, packets) = (entry.alive, entry.packets);
        entry.alive = false;
        table.free.push(slot);
        drop(table);
        self.expect(alive, "a signal was destroyed twice");
        self.expect(
            packets == 0,
            "a signal was destroyed under an unexecuted packet",
        );
        Ok(())
    }

    fn store(&self, signal: hsa_signal_t, value: i64) {
        let slot = slot(signal);
        let before = self.0.values[slot].swap(value, Ordering::Release);
        let entry = self.table().slots[slot];
        self.expect(entry.alive, "a destroyed signal was stored to");
        self.expect(!entry.barrier || before == 1, "a barrier was cleared twice");
    }

    fn compare_exchange(&self, signal: hsa_signal_t, expected: i64, desired: i64) -> i64 {
        let slot = slot(signal);
        let seen = self.0.values[slot]
            .compare_exchange(expected, desired, Ordering::AcqRel, Ordering::Acquire)
            .unwrap_or_else(|seen| seen);
        let alive = self.table().slots[slot].alive;
        self.expect(alive, "a destroyed signal was read");
        seen
    }

    fn watch_ready(&self, _: hsa_signal_t, _: QueueId) -> Result<(), hsa_status_t> {
        Ok(())
    }

    fn report(&self, report: Report) {
        self.breach(format!("reported: {report}"));
    }
}
