//! A queue, and the counts that are kept on it.

use crate::lock;
use hsa_serializer::QueueId;
use hsa_sys::hsa_signal_t;
use std::sync::Mutex;

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    started: u64,
    ended: u64,
}

/// A queue, with its two signals and its counts of kernels.
#[derive(Debug)]
pub struct Queue {
    id: QueueId,
    ready: hsa_signal_t,
    block: hsa_signal_t,
    counts: Mutex<Counts>,
}

impl Queue {
    pub(crate) fn new(id: QueueId, ready: hsa_signal_t, block: hsa_signal_t) -> Self {
        Self {
            id,
            ready,
            block,
            counts: Mutex::default(),
        }
    }

    /// Its identity.
    #[must_use]
    pub fn id(&self) -> QueueId {
        self.id
    }

    /// The signal by which it says that its next kernel could run.
    #[must_use]
    pub fn ready(&self) -> hsa_signal_t {
        self.ready
    }

    /// The signal that lets its next kernel run.
    #[must_use]
    pub fn block(&self) -> hsa_signal_t {
        self.block
    }

    /// The first step of a dispatch: the kernel is in flight. How many were started with it.
    pub fn started(&self) -> u64 {
        let mut counts = lock(&self.counts);
        counts.started += 1;
        counts.started
    }

    /// The second step of a completion: the kernel is in flight no longer.
    pub fn ended(&self) {
        lock(&self.counts).ended += 1;
    }

    /// Kernels that were started and have not ended.
    #[must_use]
    pub fn in_flight(&self) -> i64 {
        let counts = lock(&self.counts);
        counts.started as i64 - counts.ended as i64
    }

    /// Kernels that have ended.
    pub(crate) fn completed(&self) -> u64 {
        lock(&self.counts).ended
    }
}
