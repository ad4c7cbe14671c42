//! All models and their controls, each in a process of its own, as a table.

use crate::check::{FAILED, HELD, Model};
use hsa_serializer::Step;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// In a child: the model's name, the guard to take away (or nothing), and the bound.
const CHILD: &str = "LOOM_TESTS_CHILD";
/// Explores the smaller bounds.
const QUICK: &str = "LOOM_TESTS_QUICK";

struct Job {
    model: &'static Model,
    control: Option<(Step, &'static str)>,
    bound: usize,
}

/// Runs the models whose names contain the first argument, and fails on any gap.
///
/// # Panics
/// If a child process can't be started.
#[must_use]
pub fn main(models: &[&'static Model]) -> ExitCode {
    if let Ok(child) = std::env::var(CHILD) {
        run_child(models, &child);
    }
    let filter = std::env::args()
        .skip(1)
        .find(|a| !a.starts_with('-'))
        .unwrap_or_default();
    let quick = std::env::var_os(QUICK).is_some();
    let mut jobs = Vec::new();
    for model in models.iter().filter(|m| m.name.contains(&filter)) {
        let bound = if quick { model.quick } else { model.bound };
        let controls = model.controls.iter().map(|c| Some(*c));
        for control in std::iter::once(None).chain(controls) {
            jobs.push(Job {
                model,
                control,
                bound,
            });
        }
    }
    println!(
        "{:<34} {:>5} {:>10} {:>7}  {:<22} caught by",
        "model", "bound", "executions", "seconds", "without"
    );
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(failure) = job.run() {
                        println!("  GAP: {failure}");
                        failures.lock().expect("no worker panics").push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no worker panics");
    println!(
        "loom: {} models, {} controls, {} gaps, {:.0} s",
        jobs.iter().filter(|j| j.control.is_none()).count(),
        jobs.iter().filter(|j| j.control.is_some()).count(),
        failures.len(),
        start.elapsed().as_secs_f64()
    );
    ExitCode::from(u8::from(!failures.is_empty() || jobs.is_empty()))
}

fn run_child(models: &[&'static Model], child: &str) -> ! {
    let mut parts = child.split('|');
    let mut part = || parts.next().expect("three parts");
    let (name, without, bound) = (part(), part(), part());
    let model = models
        .iter()
        .find(|m| m.name == name)
        .expect("a model of that name");
    let step = model
        .controls
        .iter()
        .map(|(step, _)| *step)
        .find(|step| format!("{step:?}") == without);
    model.explore_and_exit(step, bound.parse().expect("a number"));
}

impl Job {
    fn run(&self) -> Result<(), String> {
        let name = self.model.name;
        let without = self
            .control
            .map_or(String::new(), |(s, _)| format!("{s:?}"));
        let start = Instant::now();
        let output = Command::new(std::env::current_exe().expect("this program has a path"))
            .env(CHILD, format!("{name}|{without}|{}", self.bound))
            .output()
            .expect("a child process");
        let seconds = start.elapsed().as_secs_f64();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let mut said = stdout.lines().last().unwrap_or_default().splitn(3, '|');
        let mut part = || said.next().unwrap_or_default();
        let (how, executions, message) = (part(), part(), part());
        println!(
            "{name:<34} {:>5} {executions:>10} {seconds:>7.1}  {without:<22} {message}",
            self.bound
        );
        match (self.control, how) {
            (None, HELD) => Ok(()),
            (None, FAILED) => Err(format!("{name} fails: {message}")),
            (Some((_, expected)), FAILED) if message.contains(expected) => Ok(()),
            (Some((step, expected)), FAILED) => Err(format!(
                "{name} without {step:?} fails for another reason than {expected:?}: {message}"
            )),
            (Some((step, _)), HELD) => Err(format!("{name} holds without {step:?}")),
            _ => Err(format!(
                "{name}: the child ended with {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }
}
