//! The targets, and how each is measured.

use crate::compare::{self, Effort, Figure};
use crate::yardstick::{self, Load};
use crate::{Shape, bare, c_abi, exact, hot, pairs, rare, serialized};

/// How a target's figure comes about.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// The first as a multiple of the second.
    Ratio(fn() -> Shape, fn() -> Shape),
    /// In nanoseconds.
    Nanoseconds(fn() -> Shape),
    /// The nanoseconds that the first takes more than the second.
    Over(fn() -> Shape, fn() -> Shape),
    /// It is counted.
    Count(fn() -> f64),
}

/// One target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What is measured.
    pub what: &'static str,
    /// What it is set against, or its unit.
    pub against: &'static str,
    /// The most that it may be.
    pub at_most: f64,
    /// How it is measured.
    pub how: How,
    /// It is missed, and `BENCHMARKS.md` says why.
    pub known: bool,
}

impl Target {
    /// The same target, of which it is known that it is missed.
    const fn known(self) -> Self {
        Self {
            known: true,
            ..self
        }
    }

    /// Measures it once.
    #[must_use]
    pub fn measure(&self, effort: Effort) -> Figure {
        match self.how {
            How::Ratio(own, base) => compare::ratio(&mut own(), &mut base(), effort),
            How::Nanoseconds(own) => compare::nanoseconds(&mut own(), effort),
            How::Over(own, base) => compare::difference(&mut own(), &mut base(), effort),
            How::Count(count) => Figure {
                value: count(),
                noise: 0.0,
                nanoseconds: (0.0, None),
            },
        }
    }

    /// Whether it is set against the yardstick.
    #[must_use]
    pub fn is_against_locked(&self) -> bool {
        self.against == LOCKED
    }

    /// Whether it is timed, and not counted.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        !matches!(self.how, How::Count(_))
    }
}

const LIMIT: &str = "x the limit";
const SAME: &str = "x the limit in the same shape";
const LOCKED: &str = "x locked";
const NANOSECONDS: &str = "ns";
const RUST: &str = "ns over the Rust call";

const fn target(what: &'static str, against: &'static str, at_most: f64, how: How) -> Target {
    Target {
        what,
        against,
        at_most,
        how,
        known: false,
    }
}

fn allocations() -> f64 {
    exact::steps()
        .iter()
        .map(|step| step.allocated.times as f64)
        .sum()
}

/// Numbers of queues, among them those for which most is made and not used.
const QUEUES: [usize; 7] = [64, 65, 100, 512, 513, 1024, 1025];

fn bytes_per_queue() -> f64 {
    QUEUES
        .into_iter()
        .map(exact::bytes_per_queue)
        .fold(0.0, f64::max)
}

/// What a barrier takes besides 16 bytes for each queue that it concerns: those that it waits for, and
/// the one that waits for it.
fn bytes_per_barrier() -> f64 {
    [1, 8, 32]
        .into_iter()
        .map(|queues| exact::bytes_per_barrier(512, queues) - 16.0 * (queues + 1) as f64)
        .fold(0.0, f64::max)
}

/// All targets, in the order in which they are told.
pub const TARGETS: [Target; 24] = {
    use How::{Count, Nanoseconds, Over, Ratio};
    [
        target(
            "dispatch + completion, disabled, one thread",
            LIMIT,
            1.15,
            Ratio(hot::no_barrier, bare::limit),
        ),
        target(
            "each of two threads on its own queue",
            SAME,
            1.15,
            Ratio(pairs::own_queues, bare::limit_two_threads),
        ),
        target(
            "dispatcher and completer on two cores",
            SAME,
            1.15,
            Ratio(pairs::two_halves, bare::limit_two_halves),
        )
        .known(),
        target(
            "while a barrier is armed: a queue that it waits for",
            LIMIT,
            1.15,
            Ratio(|| hot::behind_barriers(1), bare::limit),
        ),
        target(
            "while a barrier is armed: dispatches of another queue",
            "x one addition",
            1.15,
            Ratio(hot::armed_dispatch, bare::one_addition),
        ),
        target(
            "while another queue holds a cleared barrier",
            LIMIT,
            1.15,
            Ratio(hot::cleared_barrier_held, bare::limit),
        ),
        target(
            "512 live barriers",
            "x none",
            1.1,
            Ratio(|| hot::behind_barriers(512), || hot::behind_barriers(0)),
        ),
        target(
            "a completion that drains its tag, 512 live barriers",
            "x 8 live barriers",
            2.0,
            Ratio(|| rare::draining(512), || rare::draining(8)),
        ),
        target(
            "first dispatch after a transition, barrier armed",
            NANOSECONDS,
            100.0,
            Nanoseconds(|| rare::first_dispatch(rare::Barrier::Armed)),
        ),
        target(
            "first dispatch after a transition, barrier cleared",
            NANOSECONDS,
            100.0,
            Nanoseconds(|| rare::first_dispatch(rare::Barrier::Cleared)),
        ),
        target(
            "drain_queue, armed: a load and a branch",
            "ns over an empty call",
            1.0,
            Over(rare::drain_armed, bare::empty_call),
        ),
        target(
            "enabled: completion to the next queue's block := 0",
            NANOSECONDS,
            100.0,
            Nanoseconds(serialized::completion_to_grant),
        ),
        target(
            "the same: writes to signals",
            "writes",
            3.0,
            Count(|| exact::writes_per_grant() as f64),
        ),
        target(
            "disabled, one thread",
            LOCKED,
            1.0 / 5.0,
            Ratio(
                || yardstick::disabled(yardstick::of_the_crate),
                || yardstick::disabled(yardstick::locked),
            ),
        ),
        target(
            "disabled, two threads",
            LOCKED,
            1.0 / 30.0,
            Ratio(
                || yardstick::disabled_pair(yardstick::of_the_crate),
                || yardstick::disabled_pair(yardstick::locked),
            ),
        ),
        target(
            "enabled, one thread",
            LOCKED,
            1.0 / 2.0,
            Ratio(
                || yardstick::enabled(yardstick::of_the_crate),
                || yardstick::enabled(yardstick::locked),
            ),
        )
        .known(),
        target(
            "enabled, two threads",
            LOCKED,
            1.0 / 8.0,
            Ratio(
                || yardstick::enabled_pair(yardstick::of_the_crate),
                || yardstick::enabled_pair(yardstick::locked),
            ),
        )
        .known(),
        target(
            "enable + disable, 64 idle queues",
            LOCKED,
            1.0 / 5.0,
            Ratio(
                || yardstick::toggle(yardstick::of_the_crate, 64, Load::Idle),
                || yardstick::toggle(yardstick::locked, 64, Load::Idle),
            ),
        )
        .known(),
        target(
            "C interface: a dispatch",
            RUST,
            2.0,
            Over(c_abi::c_dispatches, c_abi::rust_dispatches),
        )
        // In some processes.
        .known(),
        target(
            "C interface: a completion",
            RUST,
            2.0,
            Over(c_abi::c_completions, c_abi::rust_completions),
        ),
        target("memory: a queue", "bytes", 384.0, Count(bytes_per_queue)),
        target(
            "memory: a barrier, without 16 bytes for each queue it concerns",
            "bytes",
            128.0,
            Count(bytes_per_barrier),
        ),
        target(
            "live barriers, 10,000 toggles behind one long kernel",
            "barriers",
            2.0,
            Count(|| exact::barriers_behind_a_long_kernel(10_000) as f64),
        ),
        target(
            "allocations: dispatch, first dispatch, completion, ready",
            "allocations",
            0.0,
            Count(allocations),
        ),
    ]
};
