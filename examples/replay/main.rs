//! Replays a real kernel trace in virtual time, as it was and serialized.
//!
//! ```text
//! cargo run --release --example replay -- TRACE [--pause-every MS] [--seed N] [--trace OUT.json] [--svg OUT.svg]
//! ```
//!
//! The trace is rocprofv3's kernel-trace CSV, or a Chrome trace as PyTorch's profiler writes it. An
//! emulated GPU gets a queue for each of the trace's, and a small profiler puts this crate's
//! serializer on it, one for each agent. Each kernel is submitted when it started in the trace and
//! runs for as long as it did.
//!
//! | module | holds |
//! |---|---|
//! | `cli` | the arguments, and what goes wrong |
//! | `plan` | the trace, as an application would submit it |
//! | `machine` | one replay on the emulated GPU |
//! | `times` | busy time, overlap, makespan |
//! | `waits` | how long kernels waited, and for what |
//! | `report` | the tables |
//! | `draw` | the replays as timelines |
//! | `drawings`, `output` | the files that these are drawn into |

mod cli;
mod draw;
#[path = "../common/drawings.rs"]
mod drawings;
mod machine;
#[path = "../common/output.rs"]
mod output;
mod plan;
mod report;
mod times;
mod waits;

use std::io::{stderr, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(std::env::args_os(), &mut stdout(), &mut stderr()).into()
}
