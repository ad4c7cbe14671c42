//! The project's own commands: `cargo xtask --help`.

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use std::env;
use std::process::{Command, ExitCode};
use std::time::Instant;

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
}

/// A step of a task: what it is called, and the command.
struct Step {
    name: &'static str,
    command: Command,
}

fn cargo(name: &'static str, arguments: &[&str]) -> Step {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
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

fn main() -> ExitCode {
    // Not returned from `main`: that would print a backtrace of this program, where one is asked
    // for, behind the failure's own.
    match perform(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("== FAILED: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn perform(task: Task) -> Result<()> {
    match task {
        Task::Test => run(vec![
            cargo("workspace tests", &["test", "--workspace", "--quiet"]),
            shuttle(None),
            loom(true, None),
        ]),
        Task::Loom { quick, model } => run(vec![loom(quick, model.as_deref())]),
        Task::Shuttle { schedules } => run(vec![shuttle(schedules)]),
    }
}
