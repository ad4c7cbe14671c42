//! The fuzz targets of `fuzz/`, each for a while, from the committed seeds.

use crate::build::workspace;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::process::{Command, Stdio};

/// An input that takes longer is a finding, in seconds.
const HANGS: u32 = 20;

/// Cargo of the nightly toolchain: this command itself was started by another one, which said so to
/// whatever it starts.
fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command
        .args(["run", "nightly", "cargo"])
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .env_remove("RUSTUP_TOOLCHAIN")
        .current_dir(workspace());
    command
}

/// What is missing is said before anything is built.
fn check() -> Result<()> {
    for (arguments, what) in [
        (
            &["--version"][..],
            "the nightly toolchain (rustup toolchain install nightly)",
        ),
        (
            &["fuzz", "--version"][..],
            "cargo-fuzz (cargo install cargo-fuzz --locked)",
        ),
    ] {
        let status = nightly()
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let there = status.is_ok_and(|status| status.success());
        ensure!(there, "fuzzing needs {what}");
    }
    Ok(())
}

/// The targets: each has a file of its name.
fn targets() -> Result<Vec<String>> {
    let directory = workspace().join("fuzz/fuzz_targets");
    let mut targets = Vec::new();
    for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
        let file = entry?.path();
        targets.extend(
            file.file_stem()
                .map(|name| name.to_string_lossy().into_owned()),
        );
    }
    targets.sort();
    ensure!(!targets.is_empty(), "{} is empty", directory.display());
    Ok(targets)
}

/// Runs every target, or the one that is named, for so many seconds; a finding is a failure.
///
/// # Errors
/// If a target is not there, has no seeds, can't be built, or finds something.
pub fn run(seconds: u32, only: Option<&str>) -> Result<()> {
    let mut targets = targets()?;
    if let Some(only) = only {
        ensure!(
            targets.iter().any(|target| target == only),
            "there is no target {only}; there are {}",
            targets.join(", ")
        );
        targets.retain(|target| target == only);
    }
    check()?;
    for target in &targets {
        let seeds = workspace().join("fuzz/seeds").join(target);
        let files = fs::read_dir(&seeds).with_context(|| seeds.display().to_string())?;
        ensure!(files.count() > 0, "{} is empty", seeds.display());
        // What the fuzzer finds new goes to the first directory, which is not committed.
        let corpus = workspace().join("fuzz/corpus").join(target);
        fs::create_dir_all(&corpus).with_context(|| corpus.display().to_string())?;
        println!("== {target}, for {seconds} s");
        let status = nightly()
            .args(["fuzz", "run", target])
            .args([&corpus, &seeds])
            .arg("--")
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-timeout={HANGS}"))
            .args([
                "-max_len=4096",
                "-rss_limit_mb=2048",
                "-print_final_stats=1",
                "-verbosity=0",
            ])
            .status()
            .context("rustup can't be started")?;
        if !status.success() {
            bail!(
                "{target} failed ({status}); if that was an input, it is in fuzz/artifacts/{target}: \
                 mend what it shows, and commit it to fuzz/findings/{target}"
            );
        }
    }
    Ok(())
}
