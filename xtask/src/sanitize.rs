//! The tests, the stress and the examples under sanitizers.
//!
//! A lane is one sanitizer: everything is built for it by the nightly toolchain, in a directory of its
//! own, and run. First come faults that are planted, each of which it has to report, and the same
//! programs without them, which it has to pass: a lane that reports nothing proves nothing else.
//!
//! | module | holds |
//! |---|---|
//! | `lane` | each sanitizer's flags, options and words |
//! | `plan` | what is run, and what is left out and why |
//! | `std_order` | what the thread lane has to be told of the standard library |

mod lane;
mod plan;
mod std_order;

pub use lane::Lane;

use crate::build;
use crate::process::{self, Outcome};
use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::{Artifact, Message};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// No program takes longer.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// Runs one lane; fails at a fault that is not caught, or at the end if anything was reported.
///
/// # Errors
/// That, or what could not be built.
pub fn run(lane: Lane, quick: bool) -> Result<()> {
    let start = Instant::now();
    let programs = Programs::build(lane, quick)?;
    println!("built in {} s", start.elapsed().as_secs());
    planted(lane, &programs)?;
    let tests = programs.0.iter().filter(|p| p.is_test);
    let mut jobs: Vec<_> = tests
        .flat_map(|program| Job::tests(program, lane))
        .collect();
    for (name, arguments) in plan::programs(quick)? {
        jobs.push(Job {
            program: programs.plain(name)?,
            arguments,
            looks_for_leaks: true,
        });
    }
    println!("{:<34} {:>7} {:>6}", "program", "seconds", "tests");
    let mut failed = Vec::new();
    for job in jobs {
        let left_out = plan::left_out_of(&job.program.name, lane, quick);
        if left_out.iter().any(|l| l.test.is_none()) {
            continue;
        }
        let mut command = job.command(lane);
        command.envs(plan::environment(quick));
        for test in left_out.iter().filter_map(|l| l.test) {
            command.args(["--skip", test]);
        }
        let outcome = process::run(command, PATIENCE);
        let (passed, filtered) = counts(&outcome.stdout);
        let seconds = outcome.took.as_secs_f64();
        println!("{:<34} {seconds:>7.1} {passed:>6}", job.name());
        if !outcome.succeeded() || lane::reported(&outcome) {
            println!("{outcome}");
            failed.push(job.name());
        } else if job.program.is_test && passed == 0 {
            println!("no test of it has run");
            failed.push(job.name());
        } else if filtered < left_out.len() as u64 {
            println!("of what is left out of it, something is not there");
            failed.push(job.name());
        }
    }
    for left_out in plan::left_out(lane, quick) {
        println!("left out: {left_out}");
    }
    ensure!(
        failed.is_empty(),
        "under the {lane} sanitizer: {}",
        failed.join(", ")
    );
    Ok(())
}

/// The faults that the lane has to catch, and their twins.
fn planted(lane: Lane, programs: &Programs) -> Result<()> {
    for (fault, report) in lane.faults() {
        let run = |arguments: &[&str]| -> Result<Outcome> {
            let mut command = programs.plain("planted")?.command(lane);
            command.args(arguments);
            Ok(process::run(command, PATIENCE))
        };
        let caught = run(&[fault])?;
        if caught.succeeded() || !caught.stderr.contains(report) {
            bail!("the planted {fault} was not caught: {caught}");
        }
        let twin = run(&[fault, "--mended"])?;
        if !twin.succeeded() || lane::reported(&twin) {
            bail!("without the fault, {fault} was reported all the same: {twin}");
        }
        println!("caught: {fault}, by \"{report}\"; not without the fault");
    }
    Ok(())
}

/// Of libtest: the tests that passed, and those that were filtered out.
fn counts(stdout: &str) -> (u64, u64) {
    let mut sums = (0, 0);
    for line in stdout
        .lines()
        .filter(|line| line.starts_with("test result:"))
    {
        for part in line.split(';') {
            let words: Vec<_> = part.split_whitespace().collect();
            let number = |back: usize| {
                let at = words.len().checked_sub(back)?;
                words[at].parse::<u64>().ok()
            };
            if part.ends_with("passed") {
                sums.0 += number(2).unwrap_or(0);
            } else if part.ends_with("filtered out") {
                sums.1 += number(3).unwrap_or(0);
            }
        }
    }
    sums
}

/// A program that was built.
struct Program {
    package: String,
    name: String,
    is_test: bool,
    file: PathBuf,
    directory: PathBuf,
}

impl Program {
    /// The program that cargo has built, if it is one.
    fn of(artifact: Artifact) -> Option<Self> {
        let directory = artifact.manifest_path.parent()?;
        // The root's is the core.
        let package = match directory == build::workspace() {
            true => "core",
            false => directory.file_name()?,
        };
        Some(Self {
            package: package.to_owned(),
            name: artifact.target.name,
            is_test: artifact.profile.test,
            file: artifact.executable?.into(),
            directory: directory.into(),
        })
    }

    fn command(&self, lane: Lane) -> Command {
        let mut command = Command::new(&self.file);
        command.current_dir(&self.directory).envs(lane.options());
        command
    }
}

/// A program with its arguments.
struct Job<'a> {
    program: &'a Program,
    arguments: Vec<String>,
    looks_for_leaks: bool,
}

impl<'a> Job<'a> {
    /// All tests of a program; those that leave something on purpose by themselves.
    fn tests(program: &'a Program, lane: Lane) -> Vec<Self> {
        let mut leaving = plan::LEAVING.to_vec();
        leaving.retain(|(name, _)| lane.finds_leaks() && *name == program.name);
        let job = |arguments: &[&str], looks_for_leaks| Self {
            program,
            arguments: arguments.iter().map(|word| word.to_string()).collect(),
            looks_for_leaks,
        };
        let others: Vec<_> = leaving
            .iter()
            .flat_map(|(_, tests)| ["--skip", tests])
            .collect();
        let mut all = vec![job(&others, true)];
        all.extend(leaving.iter().map(|(_, tests)| job(&[tests], false)));
        all
    }

    fn command(&self, lane: Lane) -> Command {
        let mut command = self.program.command(lane);
        command.args(&self.arguments);
        if !self.looks_for_leaks {
            command.envs([
                ("ASAN_OPTIONS", "detect_leaks=0"),
                ("LSAN_OPTIONS", "detect_leaks=0"),
            ]);
        }
        command
    }

    fn name(&self) -> String {
        let Program {
            package,
            name,
            is_test,
            ..
        } = self.program;
        if *is_test {
            let leaks = if self.looks_for_leaks {
                ""
            } else {
                ", leaving"
            };
            return format!("{package}, {name}{leaks}");
        }
        let mut words = vec![name.as_str()];
        // Of a path, the file.
        let arguments = self.arguments.iter();
        words.extend(arguments.map(|word| word.rsplit('/').next().unwrap_or(word)));
        words.join(" ")
    }
}

struct Programs(Vec<Program>);

impl Programs {
    fn build(lane: Lane, quick: bool) -> Result<Self> {
        let directory = lane.directory()?;
        let flags = lane.flags(&directory)?;
        println!(
            "building for the {lane} sanitizer in {}",
            directory.display()
        );
        let mut programs = Vec::new();
        for arguments in plan::built(lane, quick)? {
            let mut command = lane::nightly("cargo");
            command
                .args(arguments)
                .args(["--quiet", "--target", lane::TARGET, "--target-dir"])
                .arg(&directory)
                .arg("--message-format=json-render-diagnostics")
                .env("RUSTFLAGS", &flags)
                .envs(lane::PROFILE)
                .stdin(Stdio::null())
                .stderr(Stdio::inherit());
            let output = command.output().context("rustup can't be started")?;
            ensure!(
                output.status.success(),
                "it could not be built ({})",
                output.status
            );
            for message in Message::parse_stream(&output.stdout[..]) {
                if let Message::CompilerArtifact(artifact) = message.context("cargo's messages")? {
                    programs.extend(Program::of(artifact));
                }
            }
        }
        // A test's build also names the programs that it may start.
        programs.sort_by(|a, b| a.file.cmp(&b.file));
        programs.dedup_by(|a, b| a.file == b.file);
        Ok(Self(programs))
    }

    /// A program that is no test.
    fn plain(&self, name: &str) -> Result<&Program> {
        let found = self.0.iter().find(|p| !p.is_test && p.name == name);
        found.with_context(|| format!("there is no program {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::counts;

    #[test]
    fn what_libtest_counts() {
        let stdout = "test result: ok. 14 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; \
            finished in 0.10s\nelse\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; \
            0 filtered out; finished in 0.00s\n";
        assert_eq!(counts(stdout), (16, 3));
    }
}
