//! A table of signals whose destroyed handles are handed out again, last in first out.

use hsa_serializer::SignalKind;
use hsa_sys::hsa_signal_t;

/// One creation of a signal: a handle can be many in its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Signal {
    pub(crate) handle: u64,
    pub(crate) generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    value: i64,
    generation: u32,
    alive: bool,
    kind: SignalKind,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Signals {
    entries: Vec<Entry>,
    free: Vec<usize>,
    pub(crate) recycled: u64,
}

/// Handles look like addresses.
const STEP: u64 = 64;

fn place(handle: u64) -> usize {
    (handle / STEP).wrapping_sub(1) as usize
}

impl Signals {
    pub(crate) fn create(&mut self, kind: SignalKind, value: i64) -> hsa_signal_t {
        let entry = Entry {
            value,
            generation: 0,
            alive: true,
            kind,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.recycled += 1;
                let generation = self.entries[index].generation + 1;
                self.entries[index] = Entry {
                    generation,
                    ..entry
                };
                index
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        hsa_signal_t {
            handle: (index as u64 + 1) * STEP,
        }
    }

    /// False where it was not alive.
    pub(crate) fn destroy(&mut self, signal: hsa_signal_t) -> bool {
        let index = place(signal.handle);
        match self.entries.get_mut(index) {
            Some(entry) if entry.alive => {
                entry.alive = false;
                self.free.push(index);
                true
            }
            _ => false,
        }
    }

    /// The signal that a handle stands for now, with its kind; none if it was destroyed.
    pub(crate) fn now(&self, handle: hsa_signal_t) -> Option<(Signal, SignalKind)> {
        let entry = self.entries.get(place(handle.handle))?;
        let signal = Signal {
            handle: handle.handle,
            generation: entry.generation,
        };
        entry.alive.then_some((signal, entry.kind))
    }

    /// The value of that very signal, if it is still there.
    pub(crate) fn value_of(&self, signal: Signal) -> Option<i64> {
        let entry = self.entries.get(place(signal.handle))?;
        (entry.alive && entry.generation == signal.generation).then_some(entry.value)
    }

    /// What the hardware would read, dead or alive.
    pub(crate) fn value(&self, handle: hsa_signal_t) -> i64 {
        self.entries
            .get(place(handle.handle))
            .map_or(0, |entry| entry.value)
    }

    pub(crate) fn set(&mut self, handle: hsa_signal_t, value: i64) {
        if let Some(entry) = self.entries.get_mut(place(handle.handle)) {
            entry.value = value;
        }
    }

    pub(crate) fn live(&self) -> usize {
        self.entries.iter().filter(|e| e.alive).count()
    }

    pub(crate) fn live_but(&self, kind: SignalKind) -> usize {
        self.live() - self.live_of(kind) as usize
    }

    pub(crate) fn live_of(&self, kind: SignalKind) -> u64 {
        let of_kind = |e: &&Entry| e.alive && e.kind == kind;
        self.entries.iter().filter(of_kind).count() as u64
    }
}
