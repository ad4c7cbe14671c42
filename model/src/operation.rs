//! What can happen, and how it is drawn.
//!
//! An operation names queues, notices and packets by a number that is taken modulo how many there
//! are, so that nearly every operation of a random list does something.

use std::fmt;

/// One step of the application, the profiler or the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reclaim what is deferred.
    Collect,
    /// Create a queue.
    AddQueue(Option<Failure>),
    /// Dispatch a kernel.
    Dispatch {
        /// On which queue.
        queue: u8,
        /// What the batch looks like.
        shape: Shape,
    },
    /// Dispatch with an array that is too short.
    ShortArray {
        /// On which queue.
        queue: u8,
        /// The array's length, modulo what is enough.
        given: u8,
    },
    /// The application writes a barrier packet that waits for another queue's last kernel.
    Wait {
        /// The queue that waits.
        queue: u8,
        /// The queue whose kernel it waits for.
        on: u8,
    },
    /// The packet processor of one queue makes a step.
    GpuStep {
        /// Of which queue.
        queue: u8,
        /// Which of the steps that it can make.
        choice: u8,
    },
    /// Packet processors make several steps.
    Gpu {
        /// How many.
        steps: u8,
        /// In an order drawn from this.
        seed: u8,
    },
    /// A `ready` handler whose condition holds is called.
    Ready {
        /// Which one.
        choice: u8,
    },
    /// A queue's `ready` handler is called once more, or late, whatever its signal says.
    ReadyAgain {
        /// Of which queue.
        queue: u8,
    },
    /// The completion of a kernel is reported.
    Complete {
        /// Which of those that have not been.
        choice: u8,
    },
    /// The host loses a completion; it will have to destroy the queue.
    Lose {
        /// Which of those that have not been reported.
        choice: u8,
    },
    /// A ticket is used a second time, where that can be told.
    Repeat {
        /// Which ticket.
        choice: u8,
    },
    /// A ticket of another serializer, or of nobody.
    Foreign {
        /// Which.
        choice: u8,
    },
    /// Serialize from now on. For barriers by themselves: arm one.
    Enable(Option<Failure>),
    /// Stop serializing. For barriers by themselves: arm one.
    Disable(Option<Failure>),
    /// Somebody requests that kernels are serialized.
    Request {
        /// Whether the signals of its transition can't be had.
        failure: Option<Failure>,
        /// By hand, without a guard.
        by_hand: bool,
    },
    /// A guard's request ends.
    EndRequest {
        /// Which.
        choice: u8,
        /// It is dropped, which says nothing.
        drops: bool,
    },
    /// A request that was made by hand is given back, or none.
    Release,
    /// The runtime destroys a queue with whatever it holds.
    Destroy {
        /// Which queue.
        queue: u8,
        /// Whether the serializer is told at once.
        say: bool,
    },
    /// The serializer is told of a destroyed queue.
    Say {
        /// Which of those that it does not know of.
        choice: u8,
    },
    /// The serializer is told once more of a queue that is gone.
    SayAgain {
        /// Which queue.
        queue: u8,
    },
    /// The dispatching half of a queue is dropped.
    DropHalf {
        /// Of which queue.
        queue: u8,
    },
    /// For barriers by themselves: ask one whether a queue has drained it.
    Drain {
        /// Which barrier.
        barrier: u8,
        /// Which queue.
        queue: u8,
    },
    /// The application writes a kernel that the serializer is not told of.
    Unseen {
        /// To which queue.
        queue: u8,
        /// Its barrier bit is clear.
        overlaps: bool,
    },
    /// Kernels pass unseen, and a marker is counted and written for them.
    Gap {
        /// On which queue.
        queue: u8,
        /// How many kernels.
        kernels: u8,
        /// Whether the signal of its transition can't be had.
        failure: Option<Failure>,
    },
    /// A cut is made, which is asked after every step from then on who is not through.
    Cut {
        /// Whether its signal can't be had.
        failure: Option<Failure>,
        /// Besides, a drain that does not wait.
        drain: bool,
    },
    /// Time goes on, and somebody looks for what stands still.
    Stalls {
        /// For how long.
        advance: u8,
        /// Whether that is released.
        release: bool,
    },
    /// Begin to shut down.
    Shutdown,
    /// Finish shutting down, as far as that comes while things go on.
    Finish {
        /// How many steps are made meanwhile, at the most.
        steps: u8,
        /// In an order drawn from this.
        seed: u8,
    },
    /// Leave everything as it is.
    Leave,
    /// Let everything through.
    ReleaseAll,
    /// Go on with a new serializer, where this one is shutting down, and keep the old one.
    Fresh,
    /// Go on with another one.
    Switch {
        /// Which.
        choice: u8,
    },
}

/// What the batch of a dispatch looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The kernel's barrier bit is clear (where it is not serialized).
    pub overlaps: bool,
    /// How many of the caller's packets are in front of the kernel.
    pub before: u8,
    /// How many of the caller's packets are behind it.
    pub after: u8,
    /// The kernel does not end before the next dispatch, on another queue, has started: such a
    /// program can't be serialized.
    pub needs_next: bool,
}

/// A runtime call that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// How many calls succeed before.
    pub after: u8,
    /// A signal's creation answers success with handle 0, not an error.
    pub null: bool,
}

/// What is under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The serializer.
    Serializer,
    /// Barriers by themselves.
    BarrierSet,
}

/// How a case ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Everything that was dispatched is let run, in random order; then everything is dropped.
    Quiet,
    /// The same, with a finished shutdown before everything is dropped.
    ShutDown,
    /// Everything is dropped as it stands.
    Abrupt,
}

/// Where a case starts and how it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// What is under test.
    pub kind: Kind,
    /// The transition epoch and the queues' count at the start.
    pub start: (u32, u64),
    /// How it ends.
    pub end: End,
    /// Whether misuse lets everything through.
    pub releases: bool,
    /// What the order of the end is drawn from.
    pub seed: u8,
}

/// A list of operations with its start and end.
#[derive(Clone, PartialEq, Eq)]
pub struct Case {
    /// Where it starts and how it ends.
    pub setup: Setup,
    /// What happens.
    pub operations: Vec<Operation>,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.setup)?;
        for (i, operation) in self.operations.iter().enumerate() {
            write!(f, "\n  {i:3} {operation:?}")?;
        }
        Ok(())
    }
}

/// Starts close to where something wraps: the epoch, the 32 bits of a dispatch's number and the
/// sign of their difference.
const STARTS: [(u32, u64); 8] = [
    (0, 0),
    (0, 0),
    (u32::MAX - 3, 0),
    (u32::MAX - 1, (1 << 32) - 2),
    (0, (1 << 32) - 4),
    (u32::MAX - 5, (1 << 31) - 3),
    (u32::MAX - 1, (1 << 40) - 3),
    ((1 << 31) - 2, (1 << 33) - 5),
];

impl Setup {
    /// The setup that two numbers stand for.
    #[must_use]
    pub fn of(choice: u8, seed: u8) -> Self {
        Self {
            kind: if choice & 0b11 == 3 {
                Kind::BarrierSet
            } else {
                Kind::Serializer
            },
            start: STARTS[usize::from(choice >> 2 & 0b111)],
            end: match choice >> 5 {
                7 => End::Abrupt,
                4..=6 => End::ShutDown,
                _ => End::Quiet,
            },
            releases: seed & 0b11 == 3,
            seed,
        }
    }
}

impl Failure {
    fn of(a: u8) -> Option<Self> {
        Some(Self {
            after: a % 4,
            null: a & 64 != 0,
        })
    }
}

impl Shape {
    fn of(b: u8) -> Self {
        Self {
            overlaps: b & 1 != 0,
            before: u8::from(b & 0b1110 == 0b1110),
            after: u8::from(b & 0b11_0000 == 0b11_0000),
            needs_next: b % 13 == 5,
        }
    }
}

impl Operation {
    /// The operation that three numbers stand for. The ranges are the weights.
    #[must_use]
    pub fn of(kind: u8, a: u8, b: u8) -> Self {
        match kind {
            0..=3 => Self::Collect,
            4..=12 => Self::AddQueue(None),
            13..=15 => Self::AddQueue(Failure::of(a)),
            16..=60 => Self::Dispatch {
                queue: a,
                shape: Shape::of(b),
            },
            61..=62 => Self::ShortArray { queue: a, given: b },
            63..=68 => Self::Wait { queue: a, on: b },
            69..=108 => Self::GpuStep {
                queue: a,
                choice: b,
            },
            109..=127 => Self::Gpu {
                steps: a % 16 + 1,
                seed: b,
            },
            128..=131 => Self::Unseen {
                queue: a,
                overlaps: b & 1 != 0,
            },
            132..=136 => Self::Gap {
                queue: a,
                kernels: b >> 2 & 0b11,
                failure: Failure::of(b >> 4).filter(|_| b & 0b11 == 3),
            },
            137..=140 => Self::Cut {
                failure: Failure::of(a).filter(|_| a & 1 != 0),
                drain: b & 1 != 0,
            },
            141..=151 => Self::Stalls {
                advance: a % 8,
                release: b & 1 != 0,
            },
            152..=176 => Self::Ready { choice: a },
            177..=179 => Self::ReadyAgain { queue: a },
            180..=207 => Self::Complete { choice: a },
            208 => Self::Lose { choice: a },
            209..=210 => Self::Repeat { choice: a },
            211 => Self::Foreign { choice: a },
            // Fewer requests than ends, or nothing would ever turn it off.
            212..=226 if matches!(b % 8, 1 | 2) => Self::Request {
                failure: Failure::of(a).filter(|_| kind > 223),
                by_hand: b % 8 == 1,
            },
            227..=239 if matches!(b % 8, 1..=3) => Self::EndRequest {
                choice: a,
                drops: b & 8 != 0,
            },
            227..=239 if matches!(b % 8, 4 | 5) => Self::Release,
            212..=223 => Self::Enable(None),
            224..=226 => Self::Enable(Failure::of(a)),
            227..=237 => Self::Disable(None),
            238..=239 => Self::Disable(Failure::of(a)),
            240..=242 => Self::Destroy {
                queue: a,
                say: b % 3 != 0,
            },
            243..=244 => Self::Say { choice: a },
            245 => Self::SayAgain { queue: a },
            246..=247 => Self::DropHalf { queue: a },
            248..=250 => Self::Drain {
                barrier: a,
                queue: b,
            },
            251..=253 => Self::Fresh,
            254 => Self::Switch { choice: a },
            255 => match a {
                0..=63 => Self::Shutdown,
                64..=159 => Self::Finish { steps: b, seed: a },
                160..=191 => Self::Leave,
                192..=223 => Self::ReleaseAll,
                _ => Self::Collect,
            },
        }
    }
}

#[cfg(feature = "arbitrary")]
mod from_bytes {
    use super::{Case, Operation, Setup};
    use arbitrary::{Arbitrary, Result, Unstructured};

    impl<'a> Arbitrary<'a> for Operation {
        fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
            let [kind, a, b] = u.arbitrary()?;
            Ok(Self::of(kind, a, b))
        }
    }

    impl<'a> Arbitrary<'a> for Setup {
        fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
            let [choice, seed] = u.arbitrary()?;
            Ok(Self::of(choice, seed))
        }
    }

    impl<'a> Arbitrary<'a> for Case {
        fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
            Ok(Self {
                setup: u.arbitrary()?,
                operations: u.arbitrary_iter()?.collect::<Result<_>>()?,
            })
        }
    }
}
