//! A tool that a user loads into any program that uses HSA or HIP (`HSA_TOOLS_LIB`): it serializes every
//! kernel, and writes down when each ran. For authors of profilers it is the reference of how
//! `hsa-serializer` is embedded; `docs/tool.md` is for who runs it.
//!
//! # How it goes through a kernel's life
//! | step | module |
//! |---|---|
//! | the runtime starts, and hands its tables over: functions in them are replaced | [`load`], `hooks` |
//! | code is loaded: kernels' names are kept by their addresses | `names` |
//! | a queue is created: an intercept queue is made in its stead, with a longer ring | `queues`, `book` |
//! | a kernel is submitted: packets of the serializer's are put in front of it, and its completion signal is replaced | `interceptor` |
//! | it ends: the serializer is told, it is written down, then the application is told | `flights`, [`calls`], `order` |
//! | somebody pauses or resumes | `switch`, [`exports`] |
//! | the runtime is shut down, or the process ends | [`load`], `session`, `process`, [`gate`] |
//!
//! What is gathered on the way: `trace` (the CSV), `overlaps`, `summary`. `profiler` is what all of it
//! shares between the runtime's start and its end, [`hsa`] the runtime's functions, `settings` the
//! environment, `stalls` the thread that looks for what stands still, `looking` its clock, `signals` keeps the process's away.
//!
//! # Locks
//! | lock | held across |
//! |---|---|
//! | the switch, then the profiler's request | a transition |
//! | `queues::CREATING` | the runtime's creating a queue |
//! | a completion signal's own; a queue's order | loads and stores of signals |
//! | the trace's | a write to the file |
//!
//! All others are held for a look. [`load`]'s functions are called under the runtime's own lock, which its
//! `hsa_init` and `hsa_shut_down` take: nothing of ours calls these. The thread that ends the process takes
//! no lock. None is held across `hsa_queue_destroy`, which waits for the handlers' thread. The runtime calls
//! an interceptor under the queue's own lock; the locks that it takes there are held by nobody who waits for
//! a queue.

#[macro_use]
mod say;

mod book;
pub mod calls;
pub mod exports;
mod flights;
pub mod gate;
mod hooks;
pub mod hsa;
mod interceptor;
pub mod load;
mod looking;
mod names;
mod order;
mod overlaps;
mod process;
mod profiler;
mod queues;
mod session;
mod settings;
mod signals;
mod stalls;
mod summary;
mod switch;
mod trace;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A thread that fails under a lock says so itself; the others go on.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
