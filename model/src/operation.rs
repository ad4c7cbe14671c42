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
    /// Begin to shut down.
    Shutdown,
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
            end: if choice >> 5 == 7 {
                End::Abrupt
            } else {
                End::Quiet
            },
            seed,
        }
    }
}

impl Failure {
    fn of(a: u8) -> Option<Self> {
        Some(Self {
            after: a % 3,
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
        }
    }
}

impl Operation {
    /// The operation that three numbers stand for. The ranges are the weights.
    #[must_use]
    pub fn of(kind: u8, a: u8, b: u8) -> Self {
        match kind {
            0..=5 => Self::Collect,
            6..=14 => Self::AddQueue(None),
            15..=17 => Self::AddQueue(Failure::of(a)),
            18..=67 => Self::Dispatch {
                queue: a,
                shape: Shape::of(b),
            },
            68..=70 => Self::ShortArray { queue: a, given: b },
            71..=76 => Self::Wait { queue: a, on: b },
            77..=126 => Self::GpuStep {
                queue: a,
                choice: b,
            },
            127..=145 => Self::Gpu {
                steps: a % 16 + 1,
                seed: b,
            },
            146..=173 => Self::Ready { choice: a },
            174..=177 => Self::ReadyAgain { queue: a },
            178..=207 => Self::Complete { choice: a },
            208 => Self::Lose { choice: a },
            209..=210 => Self::Repeat { choice: a },
            211 => Self::Foreign { choice: a },
            212..=223 => Self::Enable(None),
            224..=226 => Self::Enable(Failure::of(a)),
            227..=237 => Self::Disable(None),
            238..=240 => Self::Disable(Failure::of(a)),
            241..=243 => Self::Destroy {
                queue: a,
                say: b % 3 != 0,
            },
            244..=246 => Self::Say { choice: a },
            247 => Self::SayAgain { queue: a },
            248..=250 => Self::DropHalf { queue: a },
            251..=254 => Self::Drain {
                barrier: a,
                queue: b,
            },
            255 if a < 64 => Self::Shutdown,
            255 => Self::Collect,
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
