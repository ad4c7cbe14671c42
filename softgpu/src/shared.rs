//! What all parts of one emulated machine share.

use crate::clock::Clock;
use crate::dice::Dice;
use crate::fault::Faults;
use crate::signal::SignalPool;
use crate::violation::Violations;
use crate::wake::Wakers;
use crate::witness::Witness;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Arc<Clock>,
    pub(crate) dice: Arc<Dice>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) violations: Arc<Violations>,
    pub(crate) wakers: Arc<Wakers>,
    pub(crate) signals: Arc<SignalPool>,
    pub(crate) witness: Witness,
    /// Goes up with every submit, launch, end and call, so that a standstill can be seen.
    progress: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        clock: Arc<Clock>,
        dice: Arc<Dice>,
        faults: Arc<Faults>,
        violations: Arc<Violations>,
        wakers: Arc<Wakers>,
        signals: Arc<SignalPool>,
        witness: Witness,
    ) -> Self {
        Self {
            clock,
            dice,
            faults,
            violations,
            wakers,
            signals,
            witness,
            progress: AtomicU64::new(0),
        }
    }

    pub(crate) fn progressed(&self) {
        self.progress.fetch_add(1, SeqCst);
    }

    pub(crate) fn progress(&self) -> u64 {
        self.progress.load(SeqCst)
    }
}
