//! The process ends, with work in its queues in every state, and nobody has said anything to the
//! profiler. What its exit code says is what is tested.

use super::release::Waiting;
use crate::bench::{Bench, Options, Worked};
use crate::drive::{self, Rate};
use anyhow::{Result, ensure};
use clap::ValueEnum;
use hsa_tests::interpose;
use hsa_tests::setup::Ours;
use serde_json::{Value, json};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Who ends it.
    #[arg(long, value_enum, default_value = "main")]
    by: By,
    /// The runtime is shut down before, under live queues, by an application that knows of no profiler.
    #[arg(long)]
    shut_down: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// The main thread, while others submit and toggle.
    Main,
    /// Another thread, while the main one waits in the runtime.
    Thread,
}

/// Calls of the runtime when it had been shut down; `u64::MAX` before.
static CALLS: AtomicU64 = AtomicU64::new(u64::MAX);

/// Runs after everything else that is registered for the end, and after the main thread's locals went.
extern "C" fn at_the_very_end() {
    let calls = CALLS.load(SeqCst);
    if calls != u64::MAX && calls != interpose::calls() {
        eprintln!("the runtime was called after it had been shut down");
        // SAFETY: it has no requirements.
        unsafe { libc::_exit(1) };
    }
}

pub(crate) fn run(a: &Arguments, options: &Options<Ours>) -> Result<Value> {
    // Before the runtime is loaded, which registers functions of its own.
    // SAFETY: the function is this program's.
    let registered = unsafe { libc::atexit(at_the_very_end) };
    ensure!(registered == 0, "atexit");
    let bench = Bench::start(options)?;
    let busy = [bench.queue(0, 64)?, bench.queue(0, 64)?];
    if options.seed % 2 == 1 {
        // Everything waits; else everything flows.
        Waiting::start(&bench)?;
    }
    // All of it lives until the process ends, and nothing is dropped.
    let (bench, busy) = (&*Box::leak(Box::new(bench)), &*Box::leak(Box::new(busy)));
    static STOP: AtomicBool = AtomicBool::new(false);
    let threads = work(bench, busy, options.seed, &STOP);
    thread::sleep(Duration::from_millis(5 + options.seed % 10));
    while bench.profiler.kernels().serialized == 0 {
        thread::sleep(Duration::from_micros(100));
    }
    if a.shut_down {
        STOP.store(true, SeqCst);
        // Threads that have used the serializer end when the runtime is gone.
        let parked = threads.len();
        ensure!(parked > 0, "nobody has used it");
        shut_down(bench)?;
        threads.iter().for_each(|thread| thread.thread().unpark());
        for thread in threads {
            thread.join().expect("a failing thread ends the process");
        }
    }
    println!(
        "{}",
        json!({ "scenario": "exit", "ok": true, "serialized": bench.profiler.kernels().serialized })
    );
    match a.by {
        By::Main => process::exit(0),
        By::Thread => {
            thread::spawn(|| process::exit(0));
            loop {
                if a.shut_down {
                    thread::park();
                } else {
                    let _ = busy[0].wait_for(Duration::from_secs(60));
                }
            }
        }
    }
}

/// Threads that submit and toggle until told to stop, and then end when they are unparked.
fn work(
    bench: &'static Bench<Ours>,
    busy: &'static [Worked; 2],
    seed: u64,
    stop: &'static AtomicBool,
) -> Vec<thread::JoinHandle<()>> {
    let rate = Rate {
        in_flight: 12,
        longest: 10_000,
        seed,
    };
    let submit = move || {
        drive::submit(busy, rate, 0, stop);
        thread::park();
    };
    let toggle = move || {
        drive::toggle(bench, 0, Duration::from_micros(200), stop);
        thread::park();
    };
    vec![thread::spawn(submit), thread::spawn(toggle)]
}

/// What an application does at its end that knows of no profiler.
fn shut_down(bench: &Bench<Ours>) -> Result<()> {
    // Whoever was told to stop has.
    thread::sleep(Duration::from_millis(5));
    // SAFETY: whoever calls it breaks that, which is what is looked for.
    unsafe { bench.app.shut_down() }?;
    CALLS.store(interpose::calls(), SeqCst);
    Ok(())
}
