//! Beginnings, ends, and everything that goes wrong between, at random, on threads, for as long as is
//! asked for: `LIFECYCLE_SOAK_SECONDS=600 cargo test --release --test lifecycle_soak -- --nocapture`.
//!
//! Queues come and go in every state; kernels fault; programs stall, and a thread of the host's releases
//! them; drains have deadlines; work passes unseen; serializers are shut down, or let everything go, in
//! whatever they are at, and a fresh one takes over the same queues with what is in them; last handles go
//! on handlers' threads; threads end; the process forks. It is a sequence of rounds, each with a machine
//! of its own and an end after which nothing may be left. What the machine's witness saw has to be a loss
//! of exclusiveness that the serializer counted and told, kernel by kernel.
//!
//! | module | holds |
//! |---|---|
//! | `round` | one round, its end, and what is checked then |
//! | `acts` | what its threads do |
//! | `succession` | what the profiler calls: one serializer after another |
//! | `reign`, `runtime` | one of them, and what it calls |
//! | `records` | what the host knows of each kernel, and the judgement of what the witness saw |
//! | `forks` | forks |
//! | `tally` | how often each thing was done |
#![cfg(target_os = "linux")]

mod acts;
mod forks;
mod records;
mod reign;
mod round;
mod runtime;
mod succession;
mod tally;

use softgpu::Gpu;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tally::Tally;

/// How long a round lets things happen.
const ROUND: Duration = Duration::from_millis(600);
/// No round takes longer to come to its end.
const PATIENCE: Duration = Duration::from_secs(120);
/// What the process may grow by from the first third of the rounds to the last.
const GROWTH: u64 = 3 << 20;
/// So much of it is used again and again, once a few hundred rounds have filled it.
const FILLED: u64 = 24 << 20;

/// What no run may be without.
const TRIED: [&str; 30] = [
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
    "forks",
    "gaps",
    "grants",
    "kernels",
    "kills",
    "kills in interceptors",
    "last handles dropped",
    "left",
    "losses seen",
    "overtaken",
    "passed on",
    "programs that may stall",
    "queues",
    "queues handed on",
    "shutdowns finished",
    "tags",
    "transitions",
    "unseen",
];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect(name))
}

/// Makes all threads allocate from one heap. Each round makes a hundred threads, and what the C library
/// keeps of as many heaps grows for minutes, and by more than what is looked for.
fn share_a_heap() {
    #[cfg(target_env = "gnu")]
    {
        use std::ffi::c_int;
        unsafe extern "C" {
            fn mallopt(parameter: c_int, value: c_int) -> c_int;
        }
        const M_ARENA_MAX: c_int = -8;
        // SAFETY: it may be called at any time.
        unsafe { mallopt(M_ARENA_MAX, 1) };
    }
}

/// What the process occupies, in bytes.
fn resident() -> u64 {
    const PAGE: u64 = 4_096;
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = text.split_whitespace().nth(1).expect("the second number");
    pages.parse::<u64>().expect("a number") * PAGE
}

/// One round on a thread of its own; who waits for whom, if it does not come to its end.
fn bounded(seed: u64) -> Result<Tally, String> {
    let probe = Arc::new(Mutex::new(None::<Gpu>));
    let (tell, told) = mpsc::channel();
    let left = probe.clone();
    let body = thread::spawn(move || {
        let remember = |gpu: &Gpu| *lock(&left) = Some(gpu.clone());
        let outcome = round::round(seed, ROUND, remember, |round, lasts| {
            acts::all(round, lasts, seed);
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
        Err(mpsc::RecvTimeoutError::Disconnected) => match body.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => Err("it told nothing".into()),
        },
    }
}

#[test]
fn lifecycle_soak() {
    share_a_heap();
    let seconds = number("LIFECYCLE_SOAK_SECONDS", 20);
    let seed = number("LIFECYCLE_SOAK_SEED", 1);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (total, mut occupied) = (Tally::default(), Vec::new());
    while Instant::now() < end {
        let of_round = seed + occupied.len() as u64;
        match bounded(of_round) {
            Ok(tally) => total.take(&tally),
            Err(e) => panic!("LIFECYCLE_SOAK_SEED={of_round}: {e}"),
        }
        occupied.push(resident());
    }
    let third = occupied.len().div_ceil(3);
    let most = |part: &[u64]| part.iter().copied().max().unwrap_or(0);
    let (first, last) = (
        most(&occupied[..third]),
        most(&occupied[occupied.len() - third..]),
    );
    println!(
        "{seconds} s, {} rounds: {}; resident {} KiB at most in the first third, {} KiB in the last",
        occupied.len(),
        total.line(),
        first >> 10,
        last >> 10
    );
    for what in TRIED {
        assert!(total.of(what) > 0, "{what}: never");
    }
    assert!(last < first.max(FILLED) + GROWTH, "it grows: {occupied:?}");
}
