//! The lines of SCENARIOS.md that belong to what is built, each test named after its line, on the
//! emulated GPU: in virtual time over many seeds, and on threads where threads are the point.
//!
//! Each ends by destroying everything, and then nothing may be left: no violation, no report, no
//! barrier, no signal. Lines that need no GPU are in `tests/serializer.rs` and `tests/seed.rs`;
//! lines 34 and 56 are also beside the code that makes the packets.
//!
//! Not here:
//!
//! | line | where it is, or will be |
//! |---|---|
//! | 10, 11, 12, 19, and what requests, agents and the limit add to 20, 32, 38, 39 | `tests/insight` |
//! | 17, 18, 37, 46, 55, 70, 71, 72, 77, 78, 80, stalls (DESIGN.md), and what a shutdown adds to others | `tests/lifecycle` |
//! | 59 | contract: nothing here waits for any of several signals |
//! | 62 | the tool: it is who writes packets into rings |
//! | 75 | the C ABI: unloading |
//! | 82 | the dependency's lower bound, in `Cargo.toml` |
//! | 83 | a benchmark |

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
