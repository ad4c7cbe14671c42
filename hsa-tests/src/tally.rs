//! What a profiler counts of its signals.

use crate::lock;
use hsa_serializer::Report;
use hsa_sys::hsa_signal_t;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What kind of signal of ours it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Packet processors alone wait for it: a barrier's, or a queue's `block`.
    GpuOnly,
    /// A queue's `ready`: it takes a kernel event.
    Ready,
    /// The completion of a group, told to the profiler: it takes a kernel event.
    Completion,
}

const KINDS: usize = 3;

/// How many signals of ours are alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Live {
    /// Barriers', and one `block` for each queue.
    pub gpu_only: u64,
    /// Queues' `ready`.
    pub ready: u64,
    /// Completion signals.
    pub completion: u64,
}

impl Live {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.gpu_only + self.ready + self.completion
    }

    /// Those that take one of the kernel driver's events.
    #[must_use]
    pub fn interrupt(&self) -> u64 {
        self.ready + self.completion
    }
}

/// What was counted. Every serializer of a profiler shares one.
#[derive(Debug, Default)]
pub struct Tally {
    created: [AtomicU64; KINDS],
    destroyed: [AtomicU64; KINDS],
    recycled: AtomicU64,
    /// How many signals of ours each handle has been.
    times: Mutex<HashMap<u64, u64>>,
    /// The kinds of those that are alive.
    kinds: Mutex<HashMap<u64, Kind>>,
    last_gpu_only: AtomicU64,
    reports: Mutex<Vec<Report>>,
}

impl Tally {
    /// A signal was made.
    pub fn created(&self, kind: Kind, signal: hsa_signal_t) {
        self.created[kind as usize].fetch_add(1, Relaxed);
        if kind == Kind::GpuOnly {
            self.last_gpu_only.store(signal.handle, Relaxed);
        }
        lock(&self.kinds).insert(signal.handle, kind);
        let mut times = lock(&self.times);
        let times = times.entry(signal.handle).or_default();
        *times += 1;
        if *times > 1 {
            self.recycled.fetch_add(1, Relaxed);
        }
    }

    /// A signal is about to be destroyed; afterwards its handle may be given out again.
    pub fn destroyed(&self, signal: hsa_signal_t) {
        if let Some(kind) = lock(&self.kinds).remove(&signal.handle) {
            self.destroyed[kind as usize].fetch_add(1, Relaxed);
        }
    }

    /// How many are alive.
    #[must_use]
    pub fn live(&self) -> Live {
        let of = |kind: Kind| {
            // Destroyed first: what is created meanwhile counts as alive, never as less than none.
            let destroyed = self.destroyed[kind as usize].load(Relaxed);
            let created = self.created[kind as usize].load(Relaxed);
            created.saturating_sub(destroyed)
        };
        Live {
            gpu_only: of(Kind::GpuOnly),
            ready: of(Kind::Ready),
            completion: of(Kind::Completion),
        }
    }

    /// How often a new signal had a handle that an earlier one of ours had had.
    #[must_use]
    pub fn recycled(&self) -> u64 {
        self.recycled.load(Relaxed)
    }

    /// How many signals of ours a handle has been so far.
    #[must_use]
    pub fn times(&self, handle: u64) -> u64 {
        lock(&self.times).get(&handle).copied().unwrap_or(0)
    }

    /// Whether a signal of this handle is ours, and alive.
    #[must_use]
    pub fn is_alive(&self, handle: u64) -> bool {
        lock(&self.kinds).contains_key(&handle)
    }

    /// Every handle that a signal of ours ever had.
    #[must_use]
    pub fn handles(&self) -> Vec<hsa_signal_t> {
        let times = lock(&self.times);
        times
            .keys()
            .map(|&handle| hsa_signal_t { handle })
            .collect()
    }

    /// The handle of the GPU-only signal that was made last.
    #[must_use]
    pub fn last_gpu_only(&self) -> u64 {
        self.last_gpu_only.load(Relaxed)
    }

    /// Keeps a report.
    pub fn report(&self, report: Report) {
        lock(&self.reports).push(report);
    }

    /// What was reported, as text.
    #[must_use]
    pub fn reports(&self) -> Vec<String> {
        lock(&self.reports).iter().map(Report::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_that_comes_again_is_recycled_whatever_it_was_for() {
        let tally = Tally::default();
        let signal = hsa_signal_t { handle: 7 };
        tally.created(Kind::GpuOnly, signal);
        assert_eq!((tally.recycled(), tally.live().gpu_only), (0, 1));
        tally.destroyed(signal);
        // It is not ours any more.
        tally.destroyed(signal);
        assert_eq!(tally.live().gpu_only, 0);
        tally.created(Kind::Completion, signal);
        assert_eq!((tally.recycled(), tally.last_gpu_only()), (1, 7));
        assert_eq!((tally.times(7), tally.times(8)), (2, 0));
        assert_eq!(tally.handles(), [signal]);
        assert!(tally.is_alive(7));
        assert_eq!((tally.live().total(), tally.live().interrupt()), (1, 1));
    }
}
