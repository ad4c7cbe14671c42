//! One round after another, and the judgement of all.

use crate::memory::{Occupied, share_a_heap};
use crate::tally::Tally;
use crate::{acts, lock, round};
use softgpu::Gpu;
use std::fmt;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How long a round lets things happen.
const ROUND: Duration = Duration::from_millis(600);
/// No round takes longer to come to its end.
const PATIENCE: Duration = Duration::from_secs(120);

/// A machine that is busy with other things gets to so few rounds in a short time that something may
/// not have come up. So many have to be enough.
const ENOUGH: u64 = 100;

/// What no run may be without, once it has had enough rounds.
const TRIED: [&str; 36] = [
    "bytes of diagnostics",
    "destroyed after a fault",
    "destroyed anyhow",
    "destroyed behind a barrier",
    "destroyed waiting for the token",
    "destroyed while waited for",
    "destroyed with the token",
    "drains",
    "drains timed out",
    "endings on handlers",
    "faults",
    "forced",
    "gaps",
    "grants",
    "handler calls, late",
    "handler calls, repeated",
    "held back by pins",
    "kernels",
    "kills",
    "kills in interceptors",
    "last handles dropped",
    "left",
    "losses seen",
    "nested toggles",
    "overtaken",
    "passed on",
    "pins",
    "programs that may stall",
    "queues",
    "queues handed on",
    "shutdowns finished",
    "superseded",
    "tags",
    "threads that came and went",
    "transitions",
    "unseen",
];

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// No round begins later, but for those that are needed to have tried everything.
    pub seconds: u64,
    /// Of the first round; each has the next one. The threads' timing is nobody's to repeat.
    pub seed: u64,
    /// Threads that submit kernels for as long as a round lasts, beside one for each other thing.
    pub threads: usize,
    /// Whether the process forks.
    pub forks: bool,
    /// Whether it is judged what the process occupies: not under a sanitizer, which keeps what is freed.
    pub memory: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seconds: 20,
            seed: 1,
            threads: 2,
            forks: true,
            memory: true,
        }
    }
}

/// How far it has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Since the beginning.
    pub elapsed: Duration,
    /// Rounds that have ended.
    pub rounds: u64,
    /// Kernels that a serializer has counted in them.
    pub kernels: u64,
}

/// What was done, and what was wrong.
#[derive(Clone, Debug)]
#[must_use]
pub struct Report {
    /// Rounds that have ended well.
    pub rounds: u64,
    /// How often each thing was done, by name.
    pub counters: Vec<(&'static str, u64)>,
    /// Bytes that the process occupied at most, in the first third of the rounds and in the last.
    pub resident: (u64, u64),
    /// What must not be; nothing, if all is well.
    pub failures: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rounds: ", self.rounds)?;
        for (what, n) in &self.counters {
            write!(f, "{what} {n}, ")?;
        }
        let (first, last) = (self.resident.0 >> 10, self.resident.1 >> 10);
        write!(
            f,
            "resident {first} KiB at most in the first third, {last} KiB in the last"
        )?;
        for failure in &self.failures {
            write!(f, "\nFAILED: {failure}")?;
        }
        Ok(())
    }
}

/// Runs rounds until the time is over or one fails.
///
/// From here on all threads of the process allocate from one heap.
pub fn run(options: &Options, mut progress: impl FnMut(Progress)) -> Report {
    share_a_heap();
    let start = Instant::now();
    let (total, mut occupied) = (Tally::default(), Occupied::default());
    let (mut rounds, mut failures) = (0, Vec::new());
    let never = |total: &Tally| -> Vec<_> {
        let forks = options.forks.then_some("forks");
        let tried = TRIED.into_iter().chain(forks);
        tried.filter(|what| total.of(what) == 0).collect()
    };
    let lasts = Duration::from_secs(options.seconds);
    let goes_on = |total: &Tally, rounds| {
        start.elapsed() < lasts || (rounds < ENOUGH && !never(total).is_empty())
    };
    while failures.is_empty() && goes_on(&total, rounds) {
        let seed = options.seed.wrapping_add(rounds);
        match bounded(seed, options) {
            Ok(tally) => {
                total.take(&tally);
                rounds += 1;
            }
            Err(e) => failures.push(format!("round of seed {seed}: {e}")),
        }
        occupied.note();
        progress(Progress {
            elapsed: start.elapsed(),
            rounds,
            kernels: total.of("kernels"),
        });
    }
    if failures.is_empty() {
        failures.extend(
            never(&total)
                .into_iter()
                .map(|what| format!("{what}: never")),
        );
        if options.memory && occupied.grows() {
            failures.push(format!("it grows: {occupied:?}"));
        }
    }
    Report {
        rounds,
        counters: total.list(),
        resident: occupied.thirds(),
        failures,
    }
}

/// One round on a thread of its own; who waits for whom, if it does not come to its end.
fn bounded(seed: u64, options: &Options) -> Result<Tally, String> {
    let probe = Arc::new(Mutex::new(None::<Gpu>));
    let (tell, told) = mpsc::channel();
    let (left, options) = (probe.clone(), options.clone());
    let body = thread::spawn(move || {
        let remember = |gpu: &Gpu| *lock(&left) = Some(gpu.clone());
        let outcome = round::round(seed, ROUND, remember, |round, lasts| {
            acts::all(round, lasts, seed, &options);
        });
        *lock(&left) = None;
        // Nobody listens any more where it came too late.
        let _ = tell.send(outcome);
    });
    match told.recv_timeout(PATIENCE) {
        Ok(outcome) => {
            body.join().expect("it has come to its end");
            outcome
        }
        Err(mpsc::RecvTimeoutError::Timeout) => {
            let gpu = lock(&probe).take();
            let waits = gpu.map(|gpu| gpu.describe().to_string());
            Err(format!("not at its end; {}", waits.unwrap_or_default()))
        }
        // Its own message stands above.
        Err(mpsc::RecvTimeoutError::Disconnected) => Err("a thread panicked".into()),
    }
}
