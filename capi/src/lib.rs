//! The C interface of [`hsa_serializer`]: `include/hsa_serializer.h` is made of this crate, and
//! `include/hsa_serializer.hpp` has C++ classes over it. `docs/embedding.md` says how to use it.
//!
//! # How it is made
//! | | |
//! |---|---|
//! | `handle`, `directory`, `objects` | what a handle is, and where what it names is found: by computing for what is hot, in a map for the rest |
//! | `lease`, `fence` | a queue's dispatching half, which another thread may take away |
//! | `status` | what functions answer; no panic crosses |
//! | `runtime`, `event` | the host's functions, or the runtime's table; who is told |
//! | `serializer`, `agents`, `request`, `domain` | the functions for each |
//! | `queue`, `ticket`, `ready` | the hot ones |
//! | `waiting`, `stall`, `shutdown`, `insight`, `barrier_set`, `version` | the others |
//!
//! # What C may do wrong
//! Handles are numbers that are looked up and given once, so whatever comes in is told from a live one. Outputs
//! are written only on success. What can't be told: a pointer that is not null and points to nothing, and two
//! dispatches of one queue at once (most are noticed).
#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "functions that take callbacks alone are not unsafe to call"
)]

pub mod agents;
pub mod barrier_set;
mod directory;
pub mod domain;
pub mod event;
mod fence;
pub mod handle;
pub mod insight;
mod lease;
mod objects;
pub mod queue;
pub mod ready;
pub mod request;
pub mod runtime;
pub mod serializer;
pub mod shutdown;
pub mod stall;
pub mod status;
mod sync;
pub mod ticket;
pub mod version;
pub mod waiting;
