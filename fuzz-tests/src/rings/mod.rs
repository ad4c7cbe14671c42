//! Arbitrary rings, packets, doorbells and signals into the emulated GPU, in virtual time.
//!
//! A [`Case`] is a list of [`Operation`]s of a host that may do anything with its queues: write any
//! packet into any slot, publish and ring in any order, for indices that are behind, ahead or past
//! the ring, store to signals, destroy them and queues under way. [`run`] carries them out on a
//! [`softgpu::VirtualGpu`] and keeps a shadow of it: plain rings, signals and lists of kernels that
//! run, written from what HSA and the emulator's documentation say and sharing no code with it. The
//! GPU chooses what happens next; the shadow says of each step whether it was allowed, follows it,
//! and must then agree with the GPU on every index and every signal's value. When the GPU says that
//! nothing can go on, the shadow must find the same, and for the same reasons.
//!
//! | module | holds |
//! |---|---|
//! | `operation`, `packet` | the operations and packets, drawn from bytes |
//! | `queue`, `signals` | the shadow |
//! | `host`, `producer` | what the host does, with rings and with all else |
//! | `steps`, `settle` | what the GPU did, and what is left when nothing can go on |
//! | `mutant` | plants a fault in the GPU, to see that its rule fires |
//! | `violation`, `tally` | what was wrong, and what was exercised |

mod host;
mod mutant;
mod operation;
mod packet;
mod producer;
mod queue;
mod settle;
mod signals;
mod steps;
mod tally;
mod violation;

pub use host::{run, run_with};
pub use mutant::Mutant;
pub use operation::{At, Case, Operation, RECORD, SETUP};
pub use packet::{Blueprint, Signal};
pub use tally::Tally;
pub use violation::{Rule, Violation};
