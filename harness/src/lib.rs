//! A small profiler that puts a serializer on the emulated GPU.
//!
//! It does what a profiler does and nothing else: it intercepts every queue, dispatches through a
//! [`Serializing`] (the crate, or the yardstick), injects what that says, hears of completions on
//! the GPU's handler threads, and turns serialization on and off. The emulated GPU's witness checks
//! what comes of it. The same profiler runs in virtual time and on real threads.
//!
//! ```
//! use harness::{Load, crate_serializer};
//!
//! let load = Load { kernels: 200, toggles: 20, ..Load::default() };
//! let run = harness::run_virtual(&load, crate_serializer, &|_| {}).map_err(|e| println!("{e}")).unwrap();
//! assert_eq!(run.violations.total(), 0);
//! assert_eq!(run.counters.transitions, 20);
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `serializing` | the calls that a profiler makes of a serializer |
//! | `crate_side`, `locked_side` | the two that there are |
//! | `runtime` | the crate's `Runtime` over the emulated GPU's signals |
//! | `batch` | the packets of one kernel, in order |
//! | `flights` | kernels under way; completion signals and their pool |
//! | `profiler` | the profiler |
//! | `load`, `run_threads`, `run_virtual` | an application with queues, threads and many kernels |

mod batch;
mod crate_side;
mod flights;
mod load;
mod locked_side;
mod profiler;
mod run_threads;
mod run_virtual;
mod runtime;
mod serializing;

pub use batch::Around;
pub use crate_side::crate_serializer;
pub use flights::WaitTimes;
pub use load::{Failed, Load, RanKernel, Run};
pub use locked_side::{LockedSerializer, LockedTicket, drained_serializer, eager_serializer};
pub use profiler::{Instrument, Profiler};
pub use run_threads::run_threaded;
pub use run_virtual::run_virtual;
pub use runtime::{Reports, SoftRuntime};
pub use serializing::{BoxError, Counters, Dispatched, Serializing};

use std::sync::{Mutex, MutexGuard};

/// A test that fails under a lock says so itself; the others go on.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
