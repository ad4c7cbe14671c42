//! Random operations on `hsa-serializer`, each checked against a sequential model.
//!
//! A [`Case`] is a list of [`Operation`]s: what the application, the host's profiler and the GPU
//! do, in one order, on one thread. [`run`] carries them out on the real serializer and tells a
//! model of each one. The model was written from the invariants of the design and shares nothing
//! with the serializer but that list: it keeps plain lists of queues, dispatches and periods (the
//! time between two transitions) and asks, at every kernel's start, every store to a signal, every
//! destruction and after every step, whether what happened was allowed.
//!
//! What happens is what the serializer *did*, not what it says: its packets are written into the
//! rings of an emulated GPU (in order, barrier bits, barrier-AND; kernels start and end in separate
//! steps), and its stores go to a signal table that hands destroyed handles out again, last in
//! first out.
//!
//! | module | holds |
//! |---|---|
//! | `operation`, `strategy` | the operations and their generators |
//! | `signals`, `gpu` | the emulated hardware |
//! | `oracle`, `period`, `token`, `exclusion`, `release` | the sequential model |
//! | `world`, `runtime` | the three of them together, and the serializer's way to them |
//! | `lives`, `run` | carrying operations out, on one serializer after the other |
//! | `calls`, `dispatches`, `completions`, `transitions`, `requests`, `cuts`, `gaps` | the operations of everyday |
//! | `stalls`, `lifecycle` | those of the end, and of what never ends |
//! | `check`, `finish` | what is checked after every step, and at the end |
//! | [`Fault`] | plants a fault, to see that its check fires |
//! | [`Tally`] | what a run has exercised |

mod calls;
mod check;
mod completions;
mod cuts;
mod dispatches;
mod exclusion;
mod fault;
mod finish;
mod gaps;
mod gpu;
mod lifecycle;
mod lives;
mod operation;
mod oracle;
mod period;
mod release;
mod requests;
mod run;
mod runtime;
mod signals;
mod stalls;
#[cfg(feature = "proptest")]
mod strategy;
mod subject;
mod tally;
mod token;
mod transitions;
mod violation;
mod world;

pub use fault::Fault;
pub use lives::{run, run_with};
pub use operation::{Case, End, Failure, Kind, Operation, Setup, Shape};
#[cfg(feature = "proptest")]
pub use strategy::cases;
pub use tally::Tally;
pub use violation::{Rule, Violation};
