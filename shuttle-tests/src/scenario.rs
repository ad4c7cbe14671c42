//! A scenario: many schedules of one process, and the same without its guards.

use crate::process::Process;
use hsa_serializer::{Statistics, Step, remove_guard};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use std::fmt;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Steps of one schedule after which it is taken for endless.
const MAX_STEPS: usize = 200_000;
/// Schedules of all scenarios, unless the environment says otherwise.
const SCHEDULES: usize = 100_000;
/// Changes of priority in a schedule that is not altogether random.
const DEPTH: usize = 3;

/// Where the schedules of controls start.
const SEED: u64 = 1;

/// A counter's name, and how to read it.
pub type Subject = (&'static str, fn(&Statistics) -> u64);

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// What the table calls it.
    pub name: &'static str,
    /// Its part of all schedules, in hundredths.
    pub share: usize,
    /// What happens.
    pub process: Process,
    /// Counters that have to be above 0 at the end, or the scenario has missed its subject.
    pub subjects: &'static [Subject],
    /// Guards, and the beginnings of what may be said when the guard is gone.
    pub controls: &'static [(Step, &'static [&'static str])],
}

impl Scenario {
    /// Runs the scenario, which must hold, and then without each guard, when it must fail for that
    /// guard's reason. Prints a line for each.
    ///
    /// # Panics
    /// If the scenario fails, misses its subject, or a control does not fail.
    pub fn check(&self) {
        let all = std::env::var("SHUTTLE_SCHEDULES").map_or(SCHEDULES, |n| {
            n.parse().expect("SHUTTLE_SCHEDULES is a number")
        });
        let schedules = (all * self.share).div_ceil(100);
        let totals: Arc<[AtomicU64]> = self.subjects.iter().map(|_| AtomicU64::new(0)).collect();
        let (ran, seconds, failed) = self.explore(None, schedules, &totals);
        let counts: Vec<_> = std::iter::zip(self.subjects, totals.iter())
            .map(|((name, _), n)| format!("{name} {}", n.load(Ordering::Relaxed)))
            .collect();
        say(format_args!(
            "{:<30} {ran:>7} schedules {seconds:>6.1} s  {}",
            self.name,
            counts.join(", ")
        ));
        if let Some(message) = failed {
            panic!("{} fails in schedule {ran}: {message}", self.name);
        }
        for ((name, _), n) in std::iter::zip(self.subjects, totals.iter()) {
            assert!(
                n.load(Ordering::Relaxed) > 0,
                "{} never saw {name}",
                self.name
            );
        }
        for (step, expected) in self.controls {
            let (ran, seconds, failed) = self.explore(Some(*step), SCHEDULES, &totals);
            let said = failed.unwrap_or_else(|| "NOT CAUGHT".into());
            say(format_args!(
                "{:<30} {ran:>7} schedules {seconds:>6.1} s  without {step:?}: {said}",
                self.name
            ));
            assert!(
                expected.iter().any(|e| said.starts_with(e)),
                "{} without {step:?} must fail with one of {expected:?}; it says: {said}",
                self.name
            );
        }
    }

    /// Schedules begun, seconds, and how it failed.
    fn explore(
        &self,
        without: Option<Step>,
        schedules: usize,
        totals: &Arc<[AtomicU64]>,
    ) -> (usize, f64, Option<String>) {
        let ran = Arc::new(AtomicUsize::new(0));
        let said = Arc::new(Mutex::new(None));
        let start = Instant::now();
        remove_guard(without);
        let random = schedules.div_ceil(2);
        let failed = [random, schedules - random]
            .into_iter()
            .enumerate()
            .any(|(i, n)| {
                let (this, ran, totals) = (*self, ran.clone(), totals.clone());
                let run = move || {
                    ran.fetch_add(1, Ordering::Relaxed);
                    let statistics = this.process.run();
                    for ((_, read), total) in std::iter::zip(this.subjects, totals.iter()) {
                        total.fetch_add(read(&statistics), Ordering::Relaxed);
                    }
                };
                let config = config(without.is_some());
                // What must hold is tried on new schedules each time; what must fail, on the same.
                let outcome = catch_unwind(AssertUnwindSafe(|| match (i, without) {
                    (0, None) => Runner::new(PctScheduler::new(DEPTH, n), config).run(run),
                    (0, _) => {
                        let scheduler = PctScheduler::new_from_seed(SEED, DEPTH, n);
                        Runner::new(scheduler, config).run(run)
                    }
                    (_, None) => Runner::new(RandomScheduler::new(n), config).run(run),
                    _ => Runner::new(RandomScheduler::new_from_seed(SEED, n), config).run(run),
                }));
                outcome.is_err_and(|payload| {
                    let message = payload
                        .downcast_ref::<String>()
                        .cloned()
                        .or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                    *said.lock().expect("nobody panics with it") = message;
                    true
                })
            });
        remove_guard(None);
        let said = said.lock().expect("nobody panics with it").take();
        let failed = failed.then(|| said.unwrap_or_else(|| "a panic without a message".into()));
        let seconds = start.elapsed().as_secs_f64();
        (ran.load(Ordering::Relaxed), seconds, failed)
    }
}

/// Prints a line past the test harness, which keeps everything else for tests that fail: the
/// panics of controls, which are meant to be, would read like failures.
fn say(line: fmt::Arguments<'_>) {
    let written = writeln!(io::stdout(), "{line}");
    written.expect("standard output can be written to");
}

fn config(must_fail: bool) -> Config {
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(MAX_STEPS);
    config.silence_warnings = true;
    if must_fail {
        config.failure_persistence = FailurePersistence::None;
    }
    config
}
