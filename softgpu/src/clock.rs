//! The emulator's only clock: nanoseconds since it was made, virtual or real.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Instant;

/// Nanoseconds since the start; virtual time moves only when it is told to.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    virtual_now: Option<AtomicU64>,
}

impl Clock {
    pub(crate) fn new_virtual() -> Self {
        Self {
            start: Instant::now(),
            virtual_now: Some(AtomicU64::new(0)),
        }
    }

    pub(crate) fn new_real() -> Self {
        Self {
            start: Instant::now(),
            virtual_now: None,
        }
    }

    pub(crate) fn now(&self) -> u64 {
        match &self.virtual_now {
            Some(now) => now.load(SeqCst),
            None => self.start.elapsed().as_nanos() as u64,
        }
    }

    pub(crate) fn is_virtual(&self) -> bool {
        self.virtual_now.is_some()
    }

    /// Moves virtual time forward; real time moves by itself.
    pub(crate) fn advance_to(&self, to: u64) {
        if let Some(now) = &self.virtual_now {
            now.fetch_max(to, SeqCst);
        }
    }
}
