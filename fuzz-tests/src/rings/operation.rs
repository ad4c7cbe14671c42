//! What the host can do, and how it is drawn.
//!
//! Queues and signals are named by a number that is taken modulo how many there are, so that nearly
//! every operation does something. One is drawn from a record of fixed size: an input that loses or
//! doubles a record keeps the meaning of the others, whoever mutates or shrinks it.

use super::packet::{Blueprint, Signal};
use arbitrary::{Arbitrary, Result, Unstructured};
use std::fmt;

/// Bytes of a case's setup.
pub const SETUP: usize = 2;
/// Bytes of an operation.
pub const RECORD: usize = 16;
/// Operations of a case, at most: what comes after them is not looked at.
const OPERATIONS: usize = 256;

/// An index of a ring, by what it is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(pub u8);

impl At {
    /// The index, for a ring of this size with these indices.
    pub(crate) fn resolve(self, size: u64, read: u64, write: u64, rung: u64) -> u64 {
        let base = [read, write, rung, 0][usize::from(self.0 & 3)];
        match self.0 >> 2 & 0b1111 {
            0..=3 => base,
            4..=5 => base.wrapping_add(1),
            6..=7 => base.wrapping_sub(1),
            8 => base.wrapping_add(2),
            9 => base.wrapping_sub(2),
            10 => base.wrapping_add(size),
            11 => base.wrapping_sub(size),
            12 => base.wrapping_add(size - 1),
            13 => base.wrapping_add(size * 3 + 1),
            14 => base.wrapping_add(1 << 32),
            _ => base.wrapping_add(1 << 63),
        }
    }
}

/// One thing that the host does, or lets happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reserve a slot, write the packet, publish it and ring for it, as a producer should.
    Put(u8, Blueprint),
    /// Give the queue so many copies of a packet, more perhaps than the ring holds.
    Submit(u8, Blueprint, u8),
    /// Reserve slots.
    Reserve(u8, u64),
    /// Write a packet's body into a slot, whoever owns that.
    Write(u8, At, Blueprint),
    /// Publish a slot by a header, whether or not it was written.
    Publish(u8, At, u16),
    /// Ring the doorbell.
    Ring(u8, At),
    /// Change one word of a slot in place.
    Poke(u8, At, u8, u64),
    /// So many things happen on the GPU.
    Steps(u8),
    /// Things happen for so many nanoseconds.
    For(u64),
    /// Everything happens that can.
    Settle,
    /// The host stores to a signal.
    Store(Signal, i64),
    /// The host subtracts from one.
    Subtract(Signal, i64),
    /// The host exchanges one's value.
    Exchange(Signal, i64, i64),
    /// Create a signal.
    CreateSignal(i64, bool),
    /// Destroy one, which may have gone already or never have been.
    DestroySignal(Signal),
    /// Register a handler, with the condition and how often it asks to be called again.
    Listen(Signal, u8, i64, u8),
    /// Create a queue of so many slots.
    CreateQueue {
        /// As the queue's creator asks.
        slots: usize,
        /// So many kernels at a time; 0 is the default.
        most_running: usize,
        /// An interceptor sees its packets, and passes them on.
        intercepted: bool,
    },
    /// Destroy a queue, which may be gone already.
    DestroyQueue(u8),
    /// Inactivate one.
    InactivateQueue(u8),
    /// Inject faults into how handlers are called.
    Faults(u8, u64),
    /// The host says that the agent's mode changes.
    Toggle,
}

const SIZES: [usize; 16] = [
    1,
    2,
    4,
    8,
    1,
    2,
    4,
    8,
    16,
    64,
    0,
    3,
    12,
    1 << 18,
    1 << 63,
    usize::MAX,
];
const TIMES: [u64; 8] = [0, 1, 10, 1_000, 50_000, 1 << 40, u64::MAX - 1, u64::MAX];
const VALUES: [i64; 8] = [0, 0, 1, 1, 2, -1, i64::MIN, i64::MAX];
const COUNTS: [u64; 8] = [0, 1, 1, 2, 3, 8, 1 << 32, u64::MAX];

fn pick<T: Copy>(table: &[T], choice: u8) -> T {
    table[usize::from(choice) % table.len()]
}

fn value(choice: u8) -> i64 {
    if choice < 192 {
        pick(&VALUES, choice)
    } else {
        i64::from(choice as i8)
    }
}

impl Operation {
    /// The operation that a record stands for. The ranges are the weights.
    #[must_use]
    pub fn of(record: &[u8; RECORD]) -> Self {
        let [kind, a, b, rest @ ..] = record;
        let (a, b) = (*a, *b);
        let blueprint = Blueprint::of(rest);
        match kind {
            0..=65 => Self::Put(a, blueprint),
            66..=80 => Self::Submit(a, blueprint, b % 24),
            81..=86 => Self::Reserve(a, pick(&COUNTS, b)),
            87..=96 => Self::Write(a, At(b), blueprint),
            97..=106 => Self::Publish(a, At(b), blueprint.header),
            107..=120 => Self::Ring(a, At(b)),
            121..=127 => {
                let [word, bytes @ ..] = rest;
                let bytes: [u8; 8] = std::array::from_fn(|i| bytes[i]);
                Self::Poke(a, At(b), word % 8, u64::from_le_bytes(bytes))
            }
            128..=175 => Self::Steps(a % 16 + 1),
            176..=181 => Self::For(pick(&TIMES, a)),
            182..=189 => Self::Settle,
            190..=199 => Self::Store(Signal(a), value(b)),
            200..=203 => Self::Subtract(Signal(a), value(b)),
            204..=206 => Self::Exchange(Signal(a), value(b), value(rest[0])),
            207..=217 => Self::CreateSignal(value(b), a & 1 != 0),
            218..=224 => Self::DestroySignal(Signal(a)),
            225..=232 => Self::CreateQueue {
                slots: pick(&SIZES, a),
                most_running: usize::from(b % 4),
                intercepted: b & 64 != 0,
            },
            233..=237 => Self::DestroyQueue(a),
            238..=239 => Self::InactivateQueue(a),
            240..=246 => Self::Listen(Signal(a), b, value(rest[0]), rest[1] % 4),
            247..=249 => Self::Faults(a, pick(&TIMES, b)),
            250..=251 => Self::Toggle,
            252..=255 => Self::Steps(a),
        }
    }
}

/// A list of operations, and what the GPU's own choices are drawn from.
#[derive(Clone, PartialEq, Eq)]
pub struct Case {
    /// The seed of the GPU's choices.
    pub seed: u8,
    /// Time goes on only when nothing else can happen.
    pub punctual: bool,
    /// Slots of the two queues that there are at the start.
    pub slots: [usize; 2],
    /// What the host does.
    pub operations: Vec<Operation>,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}, punctual: {}, queues of {:?} slots",
            self.seed, self.punctual, self.slots
        )?;
        for (i, operation) in self.operations.iter().enumerate() {
            write!(f, "\n  {i:3} {operation:?}")?;
        }
        Ok(())
    }
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let [seed, flags]: [u8; SETUP] = u.arbitrary()?;
        let mut operations = Vec::new();
        while !u.is_empty() && operations.len() < OPERATIONS {
            operations.push(Operation::of(&u.arbitrary()?));
        }
        Ok(Self {
            seed,
            punctual: flags & 1 != 0,
            slots: [flags >> 1, flags >> 4].map(|choice| 1 << (choice & 0b111)),
            operations,
        })
    }
}
