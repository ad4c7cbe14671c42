//! The fuzz targets of `fuzz/`, each for a while, from the committed seeds.

use crate::build::workspace;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// An input that takes longer is a finding, in seconds.
const HANGS: u32 = 20;

/// Targets whose inputs leave something in memory for good, and how many inputs one process runs of them: each
/// serializer that a C program ever had keeps its place.
const IN_PARTS: &[(&str, u32)] = &[("c_abi", 20_000)];

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
        let end = Instant::now() + Duration::from_secs(seconds.into());
        let part = IN_PARTS.iter().find(|(name, _)| name == target);
        loop {
            // Of no time at all the fuzzer makes no end.
            let left = end
                .saturating_duration_since(Instant::now())
                .as_secs()
                .max(1);
            fuzz(target, [&corpus, &seeds], left, part.map(|(_, runs)| *runs))?;
            if part.is_none() || Instant::now() >= end {
                break;
            }
        }
    }
    Ok(())
}

/// Runs one process of a target, for so many seconds or inputs; a finding is a failure.
fn fuzz(target: &str, corpora: [&PathBuf; 2], seconds: u64, runs: Option<u32>) -> Result<()> {
    let at_most = runs.map(|runs| format!("-runs={runs}"));
    let status = nightly()
        .args(["fuzz", "run", target])
        .args(corpora)
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={HANGS}"))
        .args(at_most)
        .args([
            "-max_len=4096",
            "-rss_limit_mb=2048",
            "-print_final_stats=1",
            "-verbosity=0",
        ])
        // What is kept for good is no leak, and being asked about it after each input takes most of the time.
        .args(runs.is_some().then_some("-detect_leaks=0"))
        .status()
        .context("rustup can't be started")?;
    if !status.success() {
        bail!(
            "{target} failed ({status}); if that was an input, it is in fuzz/artifacts/{target}: \
             mend what it shows, and commit it to fuzz/findings/{target}"
        );
    }
    Ok(())
}
