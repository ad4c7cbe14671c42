//! The job, end to end: an application with several queues and threads, and a profiler that is
//! resumed and paused while kernels are in flight, on an emulated GPU whose witness checks what
//! comes of it.
//!
//! ```text
//! cargo run --release --example pause_resume
//! cargo run --release --example pause_resume -- --retire eager
//! cargo run --release --example pause_resume -- --trace OUT.json --svg OUT.svg
//! ```
//!
//! What it exits with stands in `--help`.
//!
//! | module | holds |
//! |---|---|
//! | `cli` | the arguments, the runs, and what is printed of them |
//! | `draw` | the runs as timelines |
//! | `drawings`, `output` | the files that these are drawn into |

mod cli;
mod draw;
#[path = "../common/drawings.rs"]
mod drawings;
#[path = "../common/output.rs"]
mod output;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(std::env::args_os()).into()
}
