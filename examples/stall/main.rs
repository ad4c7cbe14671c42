//! A program that can't be serialized: under a serializer it hangs. Here it is named, and released.
//!
//! ```text
//! cargo run --release --example stall
//! cargo run --release --example stall -- --case token --serializer locked
//! cargo run --release --example stall -- --case token --policy release
//! cargo run --release --example stall -- --svg OUT.svg
//! ```
//!
//! Three programs, on an emulated GPU: two kernels that need each other; a kernel that was in flight
//! at a transition and needs one from behind it; and the same through a copy engine that takes its
//! copies in order (`docs/integrating.md`, "Programs that serializing deadlocks").
//!
//! What it exits with stands in `--help`.
//!
//! | module | holds |
//! |---|---|
//! | `cli` | the arguments, and which runs follow from them |
//! | `program` | the three programs |
//! | `run` | one run of one of them, under a serializer or none |
//! | `text` | what is printed of it |
//! | `output` | the file that a picture of it goes into |

mod cli;
#[path = "../common/output.rs"]
mod output;
mod program;
mod run;
mod text;

use std::io::{stderr, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(std::env::args_os(), &mut stdout(), &mut stderr()).into()
}
