//! What was broken.

use crate::operation::Operation;
use std::fmt;

/// The rule that was broken. The numbers are those of the design's invariants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// 1: a dispatch that has to wait for a barrier carries its transition packet, once in its
    /// queue, and no other does; the gates are there while serialized, and well-formed.
    Packets,
    /// 2: a barrier clears once, after its last counted dispatch and not before, and then at once.
    Clears,
    /// 3: a signal is destroyed once.
    DestroyedTwice,
    /// 3: no signal is destroyed or handed out again under a packet, a live queue or a handler.
    DestroyedUnderUse,
    /// 4: no kernel of a new mode overlaps one of an older mode.
    ModesOverlap,
    /// 4: no two serialized kernels overlap.
    KernelsOverlap,
    /// 5: a ready queue is granted as soon as nobody holds the token, first come first served.
    TokenLost,
    /// 5: the token is held by one queue at a time, which waits for it.
    TokenDoubled,
    /// 5, 6, 10: what was dispatched on a live queue runs.
    Stuck,
    /// 8: an error leaves everything as it was.
    ErrorChangedState,
    /// 9: barriers are bounded by what is in flight.
    TooManyBarriers,
    /// 7, 9: nothing is left when everything was dropped or has been shut down, nor anybody who
    /// could call the runtime.
    Leak,
    /// 7: after a shutdown has finished, or everything was left as it is, the runtime is not called.
    CalledAfterEnd,
    /// 10: what stands still for longer than it may is named, with what it waits for and who waits
    /// for it, and nothing else is; and the first of it is released where that is wanted.
    Stalls,
    /// 2, 10: what is cleared by force is cleared oldest first; everything is let through when
    /// somebody says so, and not otherwise.
    Forces,
    /// A cut names who was in flight and is not through, and waits for nobody else.
    Cut,
    /// A call's answer is not the right one.
    Answer,
    /// The statistics do not add up.
    Statistics,
    /// A report that nothing called for, or none where one was due.
    Reports,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::Packets,
        Self::Clears,
        Self::DestroyedTwice,
        Self::DestroyedUnderUse,
        Self::ModesOverlap,
        Self::KernelsOverlap,
        Self::TokenLost,
        Self::TokenDoubled,
        Self::Stuck,
        Self::ErrorChangedState,
        Self::TooManyBarriers,
        Self::Leak,
        Self::CalledAfterEnd,
        Self::Stalls,
        Self::Forces,
        Self::Cut,
        Self::Answer,
        Self::Statistics,
        Self::Reports,
    ];
}

/// A rule that was broken, and how.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// How.
    pub text: String,
    /// The step, counted from 0, and its operation; none at the end of the case.
    pub step: Option<(usize, Operation)>,
}

impl Violation {
    pub(crate) fn new(rule: Rule, text: impl Into<String>) -> Self {
        Self {
            rule,
            text: text.into(),
            step: None,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Some((i, operation)) => write!(f, "step {i} ({operation:?}): ")?,
            None => f.write_str("at the end: ")?,
        }
        write!(f, "{:?}: {}", self.rule, self.text)
    }
}

impl std::error::Error for Violation {}

pub(crate) type Checked<T = ()> = Result<T, Violation>;

/// The violation, unless it holds.
pub(crate) fn ensure(holds: bool, rule: Rule, text: impl FnOnce() -> String) -> Checked {
    if holds {
        Ok(())
    } else {
        Err(Violation::new(rule, text()))
    }
}
