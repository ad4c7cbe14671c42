//! The serializer on AMD's real HSA runtime, over an emulated GPU.
//!
//! The runtime runs unmodified; under it, in place of the library that talks to the kernel driver, is
//! the emulated GPU of `softgpu/thunk`. Kernels are not executed, a dispatch lasts for a time. So
//! what is tested here is what a profiler does with the runtime: real signals and the handles that
//! they share, real intercept queues, the runtime's own asynchronous thread, its shutting down.
//!
//! Two things live here. A small *profiler*, which is generic over the serializer (the crate, or the
//! yardstick under locks) and has the shape of the one in `harness`. And the tools of the test
//! *applications*, which are the scenarios of the program `client`; each runs as a process of its
//! own, on each version of the runtime (`tests/rust.rs`).
//!
//! | module | holds |
//! |---|---|
//! | [`hsa`], `hsa_app` | the runtime's functions as calls that answer a `Result`: a profiler's, and the others |
//! | [`calls`] | what asynchronous handlers are registered with: numbers, never pointers |
//! | [`gate`] | the way to the runtime, which can be closed for good |
//! | [`interpose`], [`tally`] | those functions counted, and made to fail |
//! | [`host`] | the yardstick's `Runtime`; the crate has its own |
//! | [`setup`] | what a profiler is made of, and what it is asked for |
//! | [`lifecycle`] | what a profiler asks of a serializer at the end, and after a gap |
//! | [`profiler`], `queues` | the profiler: its serializers, on and off; its queues |
//! | `interceptor`, `flights`, `shared`, `order` | a kernel's way out, its completion signal, its end, and in which order the application hears of it |
//! | [`app`] | what an application does: start the runtime, submit, wait |
//! | [`witness`] | what the emulated GPU has seen, asked past the runtime |
//! | [`stalls`], `looking` | a host's thread that looks for stalls, and its clock |
//! | [`watchdog`] | ends a process that stands still, and says who waits for whom |
//!
//! Five of these files are those of the tool that users load (`tool/`): [`calls`], [`gate`], [`hsa`], `looking`
//! and `order`. They are not a library of its own, since whoever links the tool would export its `OnLoad`.

pub mod app;
#[path = "../../tool/src/calls.rs"]
pub mod calls;
mod flights;
#[path = "../../tool/src/gate.rs"]
pub mod gate;
pub mod host;
#[path = "../../tool/src/hsa.rs"]
pub mod hsa;
mod hsa_app;
mod interceptor;
pub mod interpose;
pub mod lifecycle;
#[path = "../../tool/src/looking.rs"]
mod looking;
#[path = "../../tool/src/order.rs"]
mod order;
pub mod profiler;
mod queues;
pub mod setup;
mod shared;
pub mod stalls;
pub mod tally;
pub mod watchdog;
pub mod witness;

pub use shared::Kernels;

use std::sync::{Mutex, MutexGuard};

/// A thread that fails under a lock says so itself; the others go on.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
