//! A runtime of nine signals, and the packets that refer to them.
//!
//! Values are loom's atomics, so every order of two accesses to one signal is explored. What is
//! only for checking (is it alive, who refers to it) is in a table of the standard library's, which
//! loom does not see: it changes together with an access that loom does see.
//!
//! A breach is recorded and raised at the end of the execution, when all threads are back: a panic
//! in the middle of one would be hidden by what it leaves behind.

use hsa_serializer::{
    AqlPacket, Event, Observer, QueueId, Report, Runtime, SignalKind, hsa_signal_t, hsa_status_t,
};
use loom::sync::atomic::{AtomicI64, Ordering};
use loom::thread::ThreadId;
use std::sync::{Arc, Mutex, MutexGuard};

const SIGNALS: usize = 9;

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
    /// Queues whose `ready` signal has a handler.
    watched: Vec<(QueueId, hsa_signal_t)>,
    made: usize,
    /// Who may not call any more.
    over: Over,
    /// The host does what it should not, and is told.
    misused: bool,
    /// Reports that it was given, and how many it was told were lost.
    reports: (u64, u64),
    breach: Option<String>,
    /// The queues that there are, for who looks at grants.
    queues: Vec<QueueId>,
}

/// For whom the runtime is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Over {
    #[default]
    Nobody,
    Thread(ThreadId),
    Everybody,
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

/// A barrier packet that was written to a queue. It waits for its signal, or for the escape signal
/// where there is one.
#[derive(Debug)]
pub struct Packet {
    signal: Reference,
    escape: Option<Reference>,
    counts_down: bool,
}

/// A packet's reference to a signal.
#[derive(Clone, Copy, Debug)]
struct Reference {
    slot: usize,
    life: u32,
}

impl Packet {
    fn references(&self) -> impl Iterator<Item = Reference> {
        std::iter::once(self.signal).chain(self.escape)
    }
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

    /// Writes a barrier packet to a queue: it refers to its signals until it is run or lost.
    ///
    /// # Panics
    /// If it is not a barrier packet.
    pub fn write(&self, packet: &AqlPacket) -> Packet {
        let [signal, escape, ..] = packet.dependencies().expect("a barrier packet");
        Packet {
            signal: self.refer(signal),
            escape: (!escape.is_null()).then(|| self.refer(escape)),
            counts_down: !packet.completion_signal().is_null(),
        }
    }

    fn refer(&self, signal: hsa_signal_t) -> Reference {
        let slot = slot(signal);
        let mut table = self.table();
        let entry = &mut table.slots[slot];
        entry.packets += 1;
        let (life, alive) = (entry.life, entry.alive);
        drop(table);
        self.expect(alive, "a packet was handed out for a destroyed signal");
        Reference { slot, life }
    }

    /// Whether the packet processor can run it: one of its signals is 0.
    #[must_use]
    pub fn can_run(&self, packet: &Packet) -> bool {
        let is_met = |r: Reference| self.0.values[r.slot].fetch_add(0, Ordering::AcqRel) == 0;
        packet.references().any(is_met)
    }

    /// The packet processor runs it.
    pub fn run(&self, packet: Packet) {
        self.expect(self.can_run(&packet), "a packet waits for ever");
        if packet.counts_down {
            self.0.values[packet.signal.slot].fetch_sub(1, Ordering::AcqRel);
        }
        self.lose(packet);
    }

    /// The packet's queue was destroyed with it.
    pub fn lose(&self, packet: Packet) {
        let mut table = self.table();
        let mut same = true;
        for Reference { slot, life } in packet.references() {
            let entry = &mut table.slots[slot];
            entry.packets -= 1;
            same &= entry.life == life;
        }
        drop(table);
        self.expect(same, "a signal was destroyed under an unexecuted packet");
    }

    /// This model's host does what it should not: what it is told is no breach.
    pub fn is_misused(&self) {
        self.table().misused = true;
    }

    /// Reports that the host was given, and how many it was told were lost.
    #[must_use]
    pub fn reports(&self) -> (u64, u64) {
        self.table().reports
    }

    /// A queue whose handler the runtime has to call: its `ready` signal is -1.
    #[must_use]
    pub fn fired(&self) -> Option<QueueId> {
        let watched = self.table().watched.clone();
        let mut fired = watched.into_iter().filter(|(_, s)| self.value(*s) == -1);
        fired.next().map(|(id, _)| id)
    }

    /// That queue's handler said Drop.
    pub fn unwatch(&self, queue: QueueId) {
        self.table().watched.retain(|(id, _)| *id != queue);
    }

    /// The runtime is over: who calls it from now on, or is in a call, breaches that.
    pub fn is_over(&self) {
        self.end(Over::Everybody);
    }

    /// The runtime is over for this thread, while others may be in a call.
    pub fn is_over_for_me(&self) {
        self.end(Over::Thread(loom::thread::current().id()));
    }

    fn end(&self, over: Over) {
        self.table().over = over;
        // For loom to see that the order against every call matters.
        for value in &self.0.values {
            value.fetch_add(0, Ordering::Relaxed);
        }
    }

    /// Called by each of the runtime's functions after its step that loom sees.
    fn called(&self) {
        let over = match self.table().over {
            Over::Nobody => false,
            Over::Thread(id) => id == loom::thread::current().id(),
            Over::Everybody => true,
        };
        self.expect(!over, "the runtime was called after its end");
    }

    /// The end of a model: nothing was breached, every signal is destroyed, and the serializer's
    /// shared state is gone.
    ///
    /// # Panics
    /// If that is not so.
    pub fn finish(self) {
        let alive = self.table().slots.iter().filter(|s| s.alive).count();
        self.expect(alive == 0, "a signal was left");
        self.finish_left();
    }

    /// The same where signals may be left.
    ///
    /// # Panics
    /// As for [`finish`](Self::finish).
    pub fn finish_left(self) {
        self.expect(Arc::strong_count(&self.0) == 1, "the shared state was left");
        self.raise();
    }
}

impl Default for Sim {
    fn default() -> Self {
        Self::new()
    }
}

impl Sim {
    /// From here on a grant to any other queue is a breach.
    pub fn grants_are_to(&self, queues: [QueueId; 2]) {
        self.table().queues = queues.to_vec();
    }
}

impl Observer for Sim {
    fn event(&self, event: Event) {
        let queues = self.table().queues.clone();
        if let Event::Granted { queue, .. } = event {
            let known = queues.is_empty() || queues.contains(&queue);
            self.expect(known, "a queue was granted that there is not");
        }
    }
}

impl Runtime for Sim {
    fn observer(&self) -> Option<&dyn Observer> {
        Some(self)
    }

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
        self.called();
        Ok(hsa_signal_t {
            handle: slot as u64 + 1,
        })
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        let slot = slot(signal);
        // Changes nothing: it is there for loom to see that the order against stores matters.
        self.0.values[slot].fetch_add(0, Ordering::Relaxed);
        self.called();
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
        self.called();
        let entry = self.table().slots[slot];
        self.expect(entry.alive, "a destroyed signal was stored to");
        self.expect(!entry.barrier || before == 1, "a barrier was cleared twice");
    }

    fn compare_exchange(&self, signal: hsa_signal_t, expected: i64, desired: i64) -> i64 {
        let slot = slot(signal);
        let seen = self.0.values[slot]
            .compare_exchange(expected, desired, Ordering::AcqRel, Ordering::Acquire)
            .unwrap_or_else(|seen| seen);
        self.called();
        let alive = self.table().slots[slot].alive;
        self.expect(alive, "a destroyed signal was read");
        seen
    }

    fn watch_ready(&self, ready: hsa_signal_t, id: QueueId) -> Result<(), hsa_status_t> {
        self.called();
        self.table().watched.push((id, ready));
        Ok(())
    }

    fn report(&self, report: Report) {
        let mut table = self.table();
        match report {
            Report::Dropped(n) => table.reports.1 += n,
            _ => table.reports.0 += 1,
        }
        let misused = table.misused;
        drop(table);
        self.expect(
            report != Report::Dropped(0),
            "none was lost, and that was reported",
        );
        if !misused {
            self.breach(format!("reported: {report}"));
        }
    }
}
