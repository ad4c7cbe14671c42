//! The lines of SCENARIOS.md that belong to what is built, each test named after its line, on the
//! emulated GPU: in virtual time over many seeds, and on threads where threads are the point.
//!
//! Each ends by destroying everything, and then nothing may be left: no violation, no report, no
//! barrier, no signal. Lines that need no GPU are in `tests/serializer.rs` and `tests/seed.rs`;
//! lines 34 and 56 are also beside the code that makes the packets.
//!
//! Not here:
//!
//! | line | where it will be |
//! |---|---|
//! | 10, 11, 12, 19 | requests, counted for each agent |
//! | 17, 18, 70 | `drain` with a deadline |
//! | 37, 71 | the second phase of shutting down |
//! | 46 | a cooperative queue is the host's to count: the C ABI's tool |
//! | 55 | attach and gap |
//! | 59 | contract: nothing here waits for any of several signals |
//! | 62 | the tool: it is who writes packets into rings |
//! | 72, 75, 77, 78, 80 | the C ABI: exit, unloading, the loader, signals of the system |
//! | 82 | the dependency's lower bound, in `Cargo.toml` |
//! | 83 | a benchmark |
//! | stalls (DESIGN.md) | their own policy, with what it releases |

mod agents;
mod late;
mod queues;
mod rings;
mod signals;
mod soak;
mod spy;
mod stage;
mod token;
mod transitions;
