//! A runtime whose signals are atomics: what is measured is the serializer, not HSA.

use crossbeam_utils::CachePadded;
use hsa_serializer::{QueueId, Report, Runtime, SignalKind, hsa_signal_t, hsa_status_t};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Signals in a table, a cache line (pair) each. Clones share the table.
#[derive(Clone)]
pub struct Signals(Arc<Table>);

struct Table {
    values: Box<[CachePadded<AtomicI64>]>,
    /// Last in, first out, as HSA gives handles out.
    free: Mutex<Vec<u64>>,
    /// How many times a signal was written, if that is counted.
    writes: Option<AtomicU64>,
    noted: Option<Noted>,
}

/// When a 0 was stored last, if that is noted.
struct Noted {
    base: Instant,
    /// Nanoseconds after `base`.
    at: AtomicU64,
}

impl Default for Noted {
    fn default() -> Self {
        Self {
            base: Instant::now(),
            at: AtomicU64::new(0),
        }
    }
}

impl Signals {
    /// Room for so many signals at once.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self::build(room, None, None)
    }

    /// The same, with its writes counted.
    #[must_use]
    pub fn counting(room: usize) -> Self {
        Self::build(room, Some(AtomicU64::new(0)), None)
    }

    /// The same, noting when a 0 was stored last: a grant.
    #[must_use]
    pub fn noting(room: usize) -> Self {
        Self::build(room, None, Some(Noted::default()))
    }

    fn build(room: usize, writes: Option<AtomicU64>, noted: Option<Noted>) -> Self {
        Self(Arc::new(Table {
            values: (0..room).map(|_| CachePadded::default()).collect(),
            // Handles start at 1: 0 is the null handle.
            free: Mutex::new((1..=room as u64).rev().collect()),
            writes,
            noted,
        }))
    }

    /// Where it is noted, how long after `start` the last 0 was stored.
    #[must_use]
    pub fn granted_after(&self, start: Instant) -> Option<Duration> {
        let noted = self.0.noted.as_ref()?;
        let at = Duration::from_nanos(noted.at.load(Ordering::Relaxed));
        at.checked_sub(start - noted.base)
    }

    fn cell(&self, signal: hsa_signal_t) -> &AtomicI64 {
        &self.0.values[signal.handle as usize - 1]
    }

    /// A signal's value.
    #[must_use]
    pub fn value(&self, signal: hsa_signal_t) -> i64 {
        self.cell(signal).load(Ordering::Acquire)
    }

    /// What the packet processor does to the completion signal of a packet that has executed.
    pub fn execute(&self, signal: hsa_signal_t) {
        self.cell(signal).fetch_sub(1, Ordering::AcqRel);
    }

    /// Stores and exchanges so far, where they are counted.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.0
            .writes
            .as_ref()
            .map_or(0, |w| w.load(Ordering::Relaxed))
    }

    fn count(&self) {
        if let Some(writes) = &self.0.writes {
            writes.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Runtime for Signals {
    fn create_signal(&self, _: SignalKind, initial: i64) -> Result<hsa_signal_t, hsa_status_t> {
        let free = self.0.free.lock().pop();
        let handle = free.ok_or(hsa_status_t::ERROR_OUT_OF_RESOURCES)?;
        let signal = hsa_signal_t { handle };
        self.cell(signal).store(initial, Ordering::Relaxed);
        Ok(signal)
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        self.0.free.lock().push(signal.handle);
        Ok(())
    }

    fn store(&self, signal: hsa_signal_t, value: i64) {
        self.count();
        self.cell(signal).store(value, Ordering::Release);
        if let Some(noted) = self.0.noted.as_ref().filter(|_| value == 0) {
            let at = noted.base.elapsed().as_nanos() as u64;
            noted.at.store(at, Ordering::Relaxed);
        }
    }

    fn compare_exchange(&self, signal: hsa_signal_t, expected: i64, desired: i64) -> i64 {
        self.count();
        self.cell(signal)
            .compare_exchange(expected, desired, Ordering::AcqRel, Ordering::Acquire)
            .unwrap_or_else(|seen| seen)
    }

    fn watch_ready(&self, _: hsa_signal_t, _: QueueId) -> Result<(), hsa_status_t> {
        Ok(())
    }

    fn report(&self, report: Report) {
        // Many a shape ends with kernels in flight.
        if !matches!(
            report,
            Report::TaggedAtDestruction { .. } | Report::Dropped(_)
        ) {
            panic!("what is measured is not what was meant: {report}");
        }
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals")
            .field("room", &self.0.values.len())
            .finish_non_exhaustive()
    }
}
