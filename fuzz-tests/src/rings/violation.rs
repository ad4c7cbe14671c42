//! What was wrong.

use super::Operation;
use std::fmt;

/// The rule that the emulated GPU broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A queue launches its packets in the order of their indices, each once.
    Order,
    /// Nothing is launched that was not published and rung for, or of a queue that has stopped.
    Unrung,
    /// A packet with the barrier bit waits for all earlier ones.
    BarrierBit,
    /// A barrier-AND waits for all of its signals, a barrier-OR for one.
    Dependencies,
    /// A queue runs no more kernels at a time than it can hold.
    Full,
    /// A kernel runs for as long as it says, and ends once.
    Ends,
    /// A signal has the value that stores and completions, each counted once, give it.
    Signals,
    /// Indices, states and counts of a queue are what was done to it.
    Counts,
    /// A fault is told once, to the callback of its queue, and nothing else is.
    Errors,
    /// A handler is called while its condition holds, and when it does.
    Handlers,
    /// Time goes forward, and no further than was asked.
    Time,
    /// What can go on does, and all comes to an end.
    Standstill,
    /// A report names who waits, and for what.
    Report,
    /// A call's answer is the right one.
    Answer,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Order,
        Self::Unrung,
        Self::BarrierBit,
        Self::Dependencies,
        Self::Full,
        Self::Ends,
        Self::Signals,
        Self::Counts,
        Self::Errors,
        Self::Handlers,
        Self::Time,
        Self::Standstill,
        Self::Report,
        Self::Answer,
    ];
}

/// A rule that was broken, and how.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// How.
    pub text: String,
    /// The operation, counted from 0; none at the end of the case.
    pub operation: Option<(usize, Operation)>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.operation {
            Some((i, operation)) => write!(f, "operation {i} ({operation:?}): ")?,
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
        return Ok(());
    }
    Err(Violation {
        rule,
        text: text(),
        operation: None,
    })
}
