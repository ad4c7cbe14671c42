//! The emulated GPU for programs in C and C++; what each function does is said in `include/softgpu.h`.
//!
//! | module | holds |
//! |---|---|
//! | `machine` | the machine, its checks |
//! | `signal` | signals and their handlers |
//! | `queue` | queues, interceptors, kernels |
//! | `border` | what keeps panics in, and what takes pointers |
#![allow(
    clippy::missing_safety_doc,
    missing_docs,
    reason = "what functions do, and what their pointers have to be, is said in the header"
)]
#![allow(non_camel_case_types, reason = "the names are C's")]

mod border;
mod machine;
mod queue;
mod signal;

pub use machine::*;
pub use queue::*;
pub use signal::*;
