//! The performance targets, measured by `measure` in a release build.

use crate::build::{artifact, workspace};
use anyhow::{Context, Result};
use std::process::{Command, ExitCode};

/// Measures the targets, all of them or those in whose line `only` occurs; the exit code says whether
/// they are met. With `write` the documents' tables and pictures are written as well.
///
/// # Errors
/// Where it can't be built or started.
pub fn run(only: Option<&str>, write: bool) -> Result<ExitCode> {
    let mut command = Command::new(artifact("measure", "bench-check")?);
    if let Some(only) = only {
        command.args(["--only", only]);
    }
    if write {
        command.arg("--write").arg(workspace());
    }
    let status = command.status().context("it can't be started")?;
    // Ended by a signal: not measured.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
