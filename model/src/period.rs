//! One period: what its barrier counts, and how that ends.

use crate::signals::Signal;
use std::collections::BTreeSet;

/// The time between two transitions, and the barrier in front of it.
#[derive(Debug, Default)]
pub(crate) struct Period {
    pub(crate) enabled: bool,
    pub(crate) epoch: u32,
    /// Counted dispatches that still have to be reported.
    pub(crate) counted: BTreeSet<usize>,
    /// The queues that it counted, each with how many dispatches it has to complete.
    pub(crate) targets: Vec<(usize, u64)>,
    /// Its barrier's signal, once that is known.
    pub(crate) signal: Option<Signal>,
    pub(crate) superseded: bool,
    /// Where it was cleared by force: what it still counted then.
    pub(crate) forced: Option<BTreeSet<usize>>,
    /// Queues that dispatched in it.
    pub(crate) users: BTreeSet<usize>,
}

impl Period {
    /// Its barrier holds back.
    pub(crate) fn is_armed(&self) -> bool {
        !self.counted.is_empty() && !self.superseded && self.forced.is_none()
    }

    /// Its barrier has cleared by itself.
    pub(crate) fn has_cleared(&self) -> bool {
        self.counted.is_empty() && !self.superseded && self.forced.is_none()
    }

    /// Whether that dispatch of an earlier period may run beside this one's kernels.
    pub(crate) fn was_let_through(&self, dispatch: usize) -> bool {
        self.forced
            .as_ref()
            .is_some_and(|left| left.contains(&dispatch))
    }
}
