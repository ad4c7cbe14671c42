//! The serializer's real code under random schedules that preempt between its atomics.
//!
//! Empty without `--cfg hsa_serializer_shuttle`, which `cargo xtask shuttle` gives. Applications
//! dispatch on their queues, somebody toggles, packet processors run the packets, and handlers
//! report; `Gpu` checks what the kernels do to each other and what becomes of the signals. Each
//! scenario is run again without the guards that it depends on, when it has to fail.

#[cfg(hsa_serializer_shuttle)]
mod gpu;
#[cfg(hsa_serializer_shuttle)]
mod process;
#[cfg(hsa_serializer_shuttle)]
mod scenario;
#[cfg(hsa_serializer_shuttle)]
mod signals;

#[cfg(hsa_serializer_shuttle)]
pub use gpu::Gpu;
#[cfg(hsa_serializer_shuttle)]
pub use process::Process;
#[cfg(hsa_serializer_shuttle)]
pub use scenario::{Scenario, Subject};
