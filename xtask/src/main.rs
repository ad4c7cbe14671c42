//! The project's own commands: `cargo xtask --help`.

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;
use xtask::sanitize::{self, Lane};
use xtask::softgpu::{self, Runtime};
use xtask::{bench_check, build, capi, fuzz, trixie};

#[derive(Parser)]
#[command(about = "The project's own commands")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything that the README calls the tests; stops at the first failure.
    Test,
    /// The loom models and their negative controls, as a table.
    Loom {
        /// With smaller bounds where a model takes long.
        #[arg(long)]
        quick: bool,
        /// Only the models whose name contains this.
        model: Option<String>,
    },
    /// The crate's real code under random schedules, and the negative controls.
    Shuttle {
        /// How many schedules, of all scenarios together.
        #[arg(long)]
        schedules: Option<usize>,
    },
    /// The fuzz targets, each for some seconds, from the committed seeds; a finding is a failure.
    ///
    /// Needs the nightly toolchain and cargo-fuzz.
    Fuzz {
        /// How long each target runs.
        #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
        seconds: u32,
        /// Only this target.
        target: Option<String>,
    },
    /// The performance targets beside what they are here, in less than three minutes.
    ///
    /// Exit code 0 where all are met, 1 where one is missed, 3 where none is and a figure was too noisy
    /// to say anything, however often it was measured.
    BenchCheck {
        /// Only the targets in whose line this occurs.
        #[arg(long, conflicts_with = "write")]
        only: Option<String>,
        /// Measures everything else too, and writes the tables and pictures of BENCHMARKS.md and
        /// README.md: some minutes more.
        #[arg(long)]
        write: bool,
    },
    /// The tests, the stress and the examples under ThreadSanitizer, AddressSanitizer and LeakSanitizer.
    ///
    /// By the nightly toolchain, which has to be installed. Before anything else each has to report
    /// faults that are planted.
    Sanitize {
        /// Only this one.
        #[arg(value_enum)]
        lane: Option<Lane>,
        /// Fewer of everything: some minutes each.
        #[arg(long)]
        quick: bool,
    },
    /// The C interface as its users get it: what docs/embedding.md says, run in a clean directory; the headers
    /// as C99, C11, C++17 and C++20; the examples under sanitizers and Valgrind; by CMake and by cargo-c.
    ///
    /// What is not installed is skipped aloud, and fails where CI is set.
    Capi,
    /// Runs a program on AMD's real HSA runtime over the emulated GPU; its exit code is passed on.
    ///
    /// The emulated GPU also reads SOFTGPU_REPORT (a file that gets who waits for whom, when the
    /// program ends or stands still), SOFTGPU_FAULTS and others: see softgpu/thunk/README.md. Where
    /// this command itself fails, its exit code is 125.
    Softgpu {
        /// Which version of the runtime.
        #[arg(long, value_enum, default_value = "installed")]
        runtime: Runtime,
        /// How many GPUs [default: SOFTGPU_GPUS, or 1]
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
        gpus: Option<u32>,
        /// How many nanoseconds a kernel lasts that doesn't say it itself [default: SOFTGPU_KERNEL_NS,
        /// or 10000]
        #[arg(long)]
        kernel_ns: Option<u64>,
        /// The program, and its arguments. With `--runtime trixie` it has to be a binary: what it
        /// starts in turn does not run on the emulated GPU.
        #[arg(last = true, required = true, value_name = "PROGRAM [ARGUMENTS]")]
        program: Vec<OsString>,
    },
    /// Makes target/trixie (or HSA_TRIXIE_DIR): Debian trixie's version of AMD's runtime, as a tree
    /// of files, in which `softgpu --runtime trixie` runs programs.
    ///
    /// It comes from the mirror that this machine's apt uses, or HSA_TRIXIE_MIRROR; 60 MB.
    Trixie {
        /// Anew, even if it is there.
        #[arg(long)]
        force: bool,
    },
}

/// A step of a task: what it is called, and the command.
struct Step {
    name: &'static str,
    command: Command,
}

fn cargo(name: &'static str, arguments: &[&str]) -> Step {
    let mut command = build::cargo();
    command.args(arguments);
    Step { name, command }
}

/// A step under a model checker: with its cfgs, and a target directory of its own, so that neither
/// it nor an ordinary build has to start anew.
fn checker(name: &'static str, package: &str, cfgs: &str, directory: &str) -> Step {
    let mut step = cargo(
        name,
        &[
            "test",
            "--quiet",
            "--package",
            package,
            "--release",
            "--target-dir",
            directory,
        ],
    );
    let flags = env::var("RUSTFLAGS").unwrap_or_default();
    step.command.env("RUSTFLAGS", format!("{flags} {cfgs}"));
    step
}

fn loom(quick: bool, model: Option<&str>) -> Step {
    let cfgs = "--cfg crossbeam_loom --cfg hsa_serializer_loom";
    let mut step = checker("loom", "loom-tests", cfgs, "target/loom");
    step.command.args(["--test", "models"]);
    if let Some(model) = model {
        step.command.args(["--", model]);
    }
    if quick {
        step.command.env("LOOM_TESTS_QUICK", "1");
    }
    step
}

fn shuttle(schedules: Option<usize>) -> Step {
    let cfgs = "--cfg hsa_serializer_shuttle";
    let mut step = checker("shuttle", "shuttle-tests", cfgs, "target/shuttle");
    step.command.args(["--test", "schedules"]);
    if let Some(n) = schedules {
        step.command.env("SHUTTLE_SCHEDULES", n.to_string());
    }
    step
}

fn run(steps: Vec<Step>) -> Result<()> {
    let start = Instant::now();
    let names: Vec<_> = steps.iter().map(|s| s.name).collect();
    for mut step in steps {
        println!("== {}", step.name);
        let status = step
            .command
            .status()
            .with_context(|| format!("{} can't be started", step.name))?;
        if !status.success() {
            bail!(
                "{} failed ({status}); what comes after it was not run",
                step.name
            );
        }
    }
    let seconds = start.elapsed().as_secs();
    println!("== passed in {seconds} s: {}", names.join(", "));
    Ok(())
}

/// Becomes the program, so that its exit code, and signals to it, are its own.
fn on_softgpu(
    runtime: Runtime,
    gpus: Option<u32>,
    kernel_ns: Option<u64>,
    program: &[OsString],
) -> Result<()> {
    let Some((program, arguments)) = program.split_first() else {
        bail!("no program is given");
    };
    let program = find(Path::new(program))?;
    runtime.check()?;
    if runtime == Runtime::Trixie {
        is_binary(&program)?;
    }
    softgpu::thunk()?;
    let mut command = runtime.command(&program);
    if let Some(gpus) = gpus {
        command.env("SOFTGPU_GPUS", gpus.to_string());
    }
    if let Some(ns) = kernel_ns {
        command.env("SOFTGPU_KERNEL_NS", ns.to_string());
    }
    let error = command.args(arguments).exec();
    Err(error).with_context(|| format!("{} can't be started", program.display()))
}

/// As a shell finds it. A dynamic loader, which runs it in the tree, does not search.
fn find(program: &Path) -> Result<PathBuf> {
    if program.components().count() > 1 {
        if !program.is_file() {
            bail!("there is no program {}", program.display());
        }
        return Ok(program.to_owned());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|p| p.is_file())
        .with_context(|| format!("there is no program {} in PATH", program.display()))
}

/// The tree's dynamic loader is given the program itself.
fn is_binary(program: &Path) -> Result<()> {
    let start = std::fs::read(program).with_context(|| format!("{}", program.display()))?;
    ensure!(
        start.starts_with(b"\x7fELF"),
        "{} is no binary; --runtime trixie runs nothing else",
        program.display()
    );
    Ok(())
}

/// The exit code where the program itself was not run, as `env` has it.
const NOT_RUN: u8 = 125;

fn main() -> ExitCode {
    let task = Arguments::parse().task;
    let failure = match task {
        Task::Softgpu { .. } => ExitCode::from(NOT_RUN),
        _ => ExitCode::FAILURE,
    };
    // Not returned from `main`: that would print a backtrace of this program, where one is asked
    // for, behind the failure's own.
    match perform(task) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("== FAILED: {e:#}");
            failure
        }
    }
}

fn perform(task: Task) -> Result<ExitCode> {
    match task {
        Task::Test => run(vec![
            cargo("workspace tests", &["test", "--workspace", "--quiet"]),
            shuttle(None),
            loom(true, None),
        ])?,
        Task::Loom { quick, model } => run(vec![loom(quick, model.as_deref())])?,
        Task::Shuttle { schedules } => run(vec![shuttle(schedules)])?,
        Task::Fuzz { seconds, target } => fuzz::run(seconds, target.as_deref())?,
        Task::Capi => capi::run()?,
        Task::BenchCheck { only, write } => return bench_check::run(only.as_deref(), write),
        Task::Sanitize { lane, quick } => {
            let lanes = lane.map_or(Lane::ALL.to_vec(), |lane| vec![lane]);
            for lane in lanes {
                sanitize::run(lane, quick)?;
            }
        }
        Task::Softgpu {
            runtime,
            gpus,
            kernel_ns,
            program,
        } => on_softgpu(runtime, gpus, kernel_ns, &program)?,
        Task::Trixie { force } => trixie::Tree::locate()?.make(force)?,
    }
    Ok(ExitCode::SUCCESS)
}
