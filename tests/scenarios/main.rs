//! The lines of docs/scenarios.md that are about a transition, the token, a queue or a signal, each
//! test named after its line, on the emulated GPU: in virtual time over many seeds, and on threads
//! where threads are the point.
//!
//! Each ends by destroying everything, and then nothing may be left: no violation, no report, no
//! barrier, no signal. Lines that need no GPU are in `tests/serializer.rs` and `tests/seed.rs`;
//! lines 34 and 56 are also beside the code that makes the packets.
//!
//! Not here:
//!
//! | line | where it is |
//! |---|---|
//! | 10, 11, 12, 19, and what requests, agents and the limit add to 20, 32, 38, 39 | `tests/insight` |
//! | 17, 18, 37, 46, 55, 70, 71, 72, 77, 78, 80, stalls, and what a shutdown adds to others | `tests/lifecycle` |
//! | 59 | `xtask/tests/scenarios.rs`: nothing waits for any of several signals |
//! | 62 | `hsa-tests/tests/tool.rs`: nothing here publishes packets |
//! | 75 | `hsa-tests/tests/tool.rs`, and docs/embedding.md: unloading |
//! | 82 | the dependency's lower bound, in `Cargo.toml` |
//! | 83 | timed, in BENCHMARKS.md |

#[path = "../common/mod.rs"]
mod common;

use common::{spy, stage};

mod agents;
mod late;
mod queues;
mod rings;
mod signals;
mod soak;
mod token;
mod transitions;
