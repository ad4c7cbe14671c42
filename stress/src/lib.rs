//! Beginnings, ends, and everything that goes wrong between, at random, on threads, for as long as is
//! asked for.
//!
//! Queues come and go in every state; kernels fault; programs stall, and a thread of the host's releases
//! them; transitions follow each other while the first one's barrier stands; handlers are late, and come
//! twice; a thread sits pinned, and others come and go; drains have deadlines; work passes unseen;
//! serializers are shut down, or let everything go, in whatever they are at, and a fresh one takes over
//! the same queues with what is in them; last handles go on handlers' threads; the process forks. It is
//! a sequence of rounds, each with a machine of its own and an end after which nothing may be left. What
//! the machine's witness saw has to be a loss of exclusiveness that the serializer counted and told,
//! kernel by kernel.
//!
//! The program `stress` runs it, and so does the test `lifecycle_soak`.
//!
//! | module | holds |
//! |---|---|
//! | `rounds` | one round after another, and the judgement of all |
//! | `round` | one round, its end, and what is checked then |
//! | `acts` | what its threads do |
//! | `succession` | what the profiler calls: one serializer after another |
//! | `reign`, `runtime` | one of them, and what it calls |
//! | `records` | what the host knows of each kernel, and the judgement of what the witness saw |
//! | `forks`, `pinned` | forks; a thread that stays pinned |
//! | `tally`, `memory` | how often each thing was done; what the process occupies |
#![cfg(target_os = "linux")]

mod acts;
mod forks;
mod memory;
// The tests of the core have it, too.
#[path = "../../tests/lifecycle/pinned.rs"]
mod pinned;
mod records;
mod reign;
mod round;
mod rounds;
mod runtime;
mod succession;
mod tally;

pub use rounds::{Options, Progress, Report, run};

use std::sync::{Mutex, MutexGuard};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
