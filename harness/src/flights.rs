//! Kernels under way, and the completion signals that tell of their end.

use crate::lock;
use hsa_sys::hsa_signal_t;
use softgpu::{SignalKind, SignalPool};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Completion signals, used again and again: creating one costs an event of the kernel driver.
#[derive(Debug)]
pub(crate) struct CompletionPool {
    signals: Arc<SignalPool>,
    free: Mutex<Vec<hsa_signal_t>>,
}

impl CompletionPool {
    pub(crate) fn new(signals: Arc<SignalPool>) -> Self {
        Self {
            signals,
            free: Mutex::default(),
        }
    }

    /// A signal of value 1; `None` if the runtime has none left.
    pub(crate) fn take(&self) -> Option<hsa_signal_t> {
        let free = lock(&self.free).pop();
        if let Some(signal) = free {
            self.signals.store(signal, 1);
            return Some(signal);
        }
        self.create()
    }

    fn create(&self) -> Option<hsa_signal_t> {
        let interrupt = SignalKind::Interrupt;
        let created = self.signals.create_labelled(1, interrupt, "completion");
        created.ok().filter(|signal| !signal.is_null())
    }

    /// Creates signals ahead of their use, as far as the runtime has them.
    pub(crate) fn reserve(&self, signals: usize) {
        let created = (0..signals).map_while(|_| self.create());
        created.for_each(|signal| self.give(signal));
    }

    pub(crate) fn give(&self, signal: hsa_signal_t) {
        lock(&self.free).push(signal);
    }
}

impl Drop for CompletionPool {
    fn drop(&mut self) {
        for signal in std::mem::take(&mut *lock(&self.free)) {
            // It is alive, and nobody else's.
            let _ = self.signals.destroy(signal);
        }
    }
}

/// A kernel under way.
#[derive(Debug)]
pub(crate) struct Flight<T> {
    pub(crate) ticket: T,
    pub(crate) signal: hsa_signal_t,
    /// The application's own completion signal.
    pub(crate) forward: hsa_signal_t,
    pub(crate) submitted: u64,
    pub(crate) lasts: u64,
    pub(crate) serialized: bool,
}

#[derive(Debug)]
struct Inner<T> {
    /// In order, so that what becomes of them is the same for the same seed.
    under_way: BTreeMap<u64, Flight<T>>,
    next: u64,
    closed: bool,
    /// Signals of kernels that never complete; packets of the queue may still refer to them.
    left: Vec<hsa_signal_t>,
}

/// The kernels under way of one queue. Each has a number that is never used again, by which a
/// handler finds it exactly once, however late or often it is called.
#[derive(Debug)]
pub(crate) struct Flights<T>(Mutex<Inner<T>>);

impl<T> Flights<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Inner {
            under_way: BTreeMap::new(),
            next: 0,
            closed: false,
            left: Vec::new(),
        }))
    }

    /// Adds a kernel, and has its completion listened for by its number; gives the ticket back if
    /// the queue is gone.
    ///
    /// Both under one lock: in between, the queue might be destroyed, and the signal with it.
    pub(crate) fn start(&self, flight: Flight<T>, listen: impl FnOnce(u64)) -> Result<(), T> {
        let mut inner = lock(&self.0);
        if inner.closed {
            inner.left.push(flight.signal);
            return Err(flight.ticket);
        }
        let number = inner.next;
        inner.next += 1;
        inner.under_way.insert(number, flight);
        listen(number);
        Ok(())
    }

    /// Takes a kernel out, once.
    pub(crate) fn end(&self, number: u64) -> Option<Flight<T>> {
        lock(&self.0).under_way.remove(&number)
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.0).under_way.len()
    }

    /// The queue is gone: the tickets of what never completes. `None` if it was closed before.
    pub(crate) fn close(&self) -> Option<Vec<T>> {
        let mut inner = lock(&self.0);
        if std::mem::replace(&mut inner.closed, true) {
            return None;
        }
        let flights = std::mem::take(&mut inner.under_way);
        let left = flights.values().map(|flight| flight.signal);
        inner.left = left.collect();
        Some(flights.into_values().map(|flight| flight.ticket).collect())
    }

    /// The signals that nobody will ever touch again, once the queue's packets are gone.
    pub(crate) fn take_left(&self) -> Vec<hsa_signal_t> {
        std::mem::take(&mut lock(&self.0).left)
    }
}

/// How long kernels waited: from being submitted to their end being heard of, less the time that
/// they run by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitTimes {
    /// How many kernels.
    pub kernels: u64,
    /// The mean.
    pub mean: Duration,
    /// The longest.
    pub worst: Duration,
}

/// Where waits are added up.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    kernels: AtomicU64,
    total: AtomicU64,
    worst: AtomicU64,
}

impl Waits {
    pub(crate) fn add(&self, nanoseconds: u64) {
        self.kernels.fetch_add(1, Relaxed);
        self.total.fetch_add(nanoseconds, Relaxed);
        self.worst.fetch_max(nanoseconds, Relaxed);
    }

    pub(crate) fn read(&self) -> WaitTimes {
        let kernels = self.kernels.load(Relaxed);
        WaitTimes {
            kernels,
            mean: Duration::from_nanos(self.total.load(Relaxed) / kernels.max(1)),
            worst: Duration::from_nanos(self.worst.load(Relaxed)),
        }
    }
}
