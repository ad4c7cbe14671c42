//! An emulated GPU behind the name `libhsakmt.so.1`.
//!
//! AMD's HSA runtime reaches the kernel's driver through this one library. Put in front of the real
//! one it makes the unmodified runtime, and what stands on it, run on a machine without a GPU:
//! signals, asynchronous handlers, queues, interceptors, tools, copies, and HIP's memory, streams
//! and events. Kernels are not executed; they last for a time. The README says more.
//!
//! | module | holds |
//! |---|---|
//! | `abi` | the thunk's functions |
//! | `device`, `settings` | the one machine of a process; the environment |
//! | `topology`, `memory`, `events`, `clock` | what a driver has |
//! | `engine` | the thread that plays all hardware |
//! | `aql`, `sdma` | a queue of packets; a copy engine |
//! | `signals`, `witness` | the checks |
//! | `faults`, `control` | faults; what a program under test may ask |
#![allow(non_snake_case, reason = "the functions' names are those of hsakmt.h")]

mod abi;
mod aql;
mod clock;
mod control;
mod device;
mod engine;
mod events;
mod faults;
mod memory;
mod sdma;
mod settings;
mod signals;
mod topology;
mod types;
mod witness;
