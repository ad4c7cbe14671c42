//! All models and their controls, each in a process of its own, as a table.

use crate::check::{Explored, FAILED, HELD};
use crate::limits::{COUNTED, EARLY, ENDLESS, ORDERS};
use std::process::{Command, ExitCode, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// In a child: the model's name, the guard to take away (or nothing), and the bound.
const CHILD: &str = "LOOM_TESTS_CHILD";
/// Explores the smaller bounds.
const QUICK: &str = "LOOM_TESTS_QUICK";

struct Job {
    model: &'static dyn Explored,
    /// The guard that is gone, and what must be said.
    control: Option<(String, &'static str)>,
    bound: usize,
}

/// Runs the models whose names contain the first argument, and fails on any gap.
///
/// # Panics
/// If a child process can't be started.
#[must_use]
pub fn main(models: &[&'static dyn Explored]) -> ExitCode {
    if let Ok(child) = std::env::var(CHILD) {
        run_child(models, &child);
    }
    let filter = std::env::args()
        .skip(1)
        .find(|a| !a.starts_with('-'))
        .unwrap_or_default();
    let quick = std::env::var_os(QUICK).is_some();
    let mut jobs = Vec::new();
    for model in models.iter().filter(|m| m.name().contains(&filter)) {
        let bound = model.bound(quick);
        let controls = model.controls().into_iter().map(Some);
        for control in std::iter::once(None).chain(controls) {
            jobs.push(Job {
                model: *model,
                control,
                bound,
            });
        }
    }
    println!(
        "{:<34} {:>5} {:>10} {:>7}  {:<22} caught by",
        "model", "bound", "executions", "seconds", "without"
    );
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(early_ends()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(failure) = job.run() {
                        failures.lock().expect("no worker panics").push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no worker panics");
    for failure in &failures {
        println!("  GAP: {failure}");
    }
    println!(
        "loom: {} models, {} controls, {} gaps, {:.0} s",
        jobs.iter().filter(|j| j.control.is_none()).count(),
        jobs.iter().filter(|j| j.control.is_some()).count(),
        failures.len(),
        start.elapsed().as_secs_f64()
    );
    ExitCode::from(u8::from(!failures.is_empty() || jobs.is_empty()))
}

fn run_child(models: &[&'static dyn Explored], child: &str) -> ! {
    let mut parts = child.split('|');
    let mut part = || parts.next().expect("three parts");
    let (name, without, bound) = (part(), part(), part());
    let limits: [&dyn Explored; 2] = [&ENDLESS, &COUNTED];
    let model = models
        .iter()
        .copied()
        .chain(limits)
        .find(|m| m.name() == name)
        .expect("a model of that name");
    model.explore_and_exit(without, bound.parse().expect("a number"));
}

/// What a child process said of its exploration.
struct Said {
    how: String,
    executions: String,
    message: String,
    output: Output,
}

/// Explores a model in a process of its own, and prints what came of it.
fn explore(
    model: &dyn Explored,
    without: &str,
    bound: usize,
    environment: &[(&str, &str)],
) -> Said {
    let name = model.name();
    let start = Instant::now();
    let output = Command::new(std::env::current_exe().expect("this program has a path"))
        .env(CHILD, format!("{name}|{without}|{bound}"))
        .envs(environment.iter().copied())
        .output()
        .expect("a child process");
    let seconds = start.elapsed().as_secs_f64();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let mut said = stdout.lines().last().unwrap_or_default().splitn(3, '|');
    let mut part = || said.next().unwrap_or_default().to_owned();
    let (how, executions, message) = (part(), part(), part());
    println!("{name:<34} {bound:>5} {executions:>10} {seconds:>7.1}  {without:<22} {message}");
    Said {
        how,
        executions,
        message,
        output,
    }
}

/// Ways in which an exploration would end early without failing.
fn early_ends() -> Vec<String> {
    let mut failures = Vec::new();
    let endless = explore(&ENDLESS, "", ENDLESS.bound, &[]);
    if endless.how != FAILED || !endless.message.contains("maximum number of branches") {
        failures.push(format!("an endless execution: {}", endless.message));
    }
    let [free, hurried] = [&[][..], &EARLY].map(|environment| {
        let said = explore(&COUNTED, "", COUNTED.bound, environment);
        (said.how, said.executions.parse().unwrap_or(0))
    });
    if free.1 < ORDERS || free != hurried {
        failures.push(format!("not all executions: {free:?}, {hurried:?}"));
    }
    failures
}

impl Job {
    fn run(&self) -> Result<(), String> {
        let name = self.model.name();
        let without = self.control.as_ref().map_or("", |(step, _)| step);
        let said = explore(self.model, without, self.bound, &[]);
        let message = &said.message;
        match (&self.control, said.how.as_str()) {
            (None, HELD) if said.executions == "1" => Err(format!("{name} explores nothing")),
            (None, HELD) => Ok(()),
            (None, FAILED) => Err(format!("{name} fails: {message}")),
            (Some((_, expected)), FAILED) if message.contains(*expected) => Ok(()),
            (Some((step, expected)), FAILED) => Err(format!(
                "{name} without {step} fails for another reason than {expected:?}: {message}"
            )),
            (Some((step, _)), HELD) => Err(format!("{name} holds without {step}")),
            _ => Err(format!(
                "{name}: the child ended with {}: {}",
                said.output.status,
                String::from_utf8_lossy(&said.output.stderr)
            )),
        }
    }
}
