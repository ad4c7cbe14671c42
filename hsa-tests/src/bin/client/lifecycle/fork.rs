//! The process forks under load. A child has a copy of everything and none of the threads: it can do and
//! drop what it likes, nothing of it reaches the runtime, and it ends at once. The parent's work goes on.

use crate::bench::{Bench, Options};
use crate::drive::{self, Rate};
use anyhow::{Result, bail, ensure};
use hsa_tests::interpose;
use hsa_tests::profiler::Profiler;
use hsa_tests::setup::Ours;
use hsa_tests::watchdog::step;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How often it forks.
    #[arg(long, default_value_t = 60)]
    forks: u64,
}

/// A child that has not ended by then hangs.
const PROMPT: Duration = Duration::from_secs(5);

pub(crate) fn run(a: &Arguments, options: &Options<Ours>) -> Result<Value> {
    let bench = Bench::start(options)?;
    let queues = [
        bench.queue(0, 64)?,
        bench.queue(0, 64)?,
        bench.queue(0, 64)?,
    ];
    let rate = Rate {
        in_flight: 12,
        longest: 10_000,
        seed: options.seed,
    };
    let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut slowest, pause) = (Duration::ZERO, Duration::from_micros(200));
    let outcome = thread::scope(|scope| {
        for n in 0..2 {
            let (queues, stop) = (&queues, &stop);
            scope.spawn(move || drive::submit(queues, rate, n, stop));
        }
        scope.spawn(|| drive::toggle(&bench, 0, pause, &stop));
        scope.spawn(|| drive::watch(&queues, &seen, &stop));
        let outcome = (0..a.forks).try_for_each(|n| -> Result<()> {
            thread::sleep(Duration::from_micros(n % 7 * 300));
            let took = fork(&bench.profiler, n)?;
            slowest = slowest.max(took);
            step();
            Ok(())
        });
        stop.store(true, SeqCst);
        outcome
    });
    outcome?;
    bench.settle(&queues)?;
    let (app, ending) = bench.finish(Vec::from(queues))?;
    app.stop()?;
    let mut line = json!(ending);
    line["forks"] = json!(a.forks);
    line["slowest_ms"] = json!(slowest.as_millis());
    Ok(line)
}

/// Forks, and waits for the child. How long that took.
fn fork(profiler: &Profiler<Ours>, n: u64) -> Result<Duration> {
    let start = Instant::now();
    // SAFETY: the child does nothing that needs another thread: see `child`.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => bail!("fork: {}", std::io::Error::last_os_error()),
        0 => child(profiler, n),
        _ => {}
    }
    let mut status = 0;
    loop {
        // SAFETY: `status` is its place.
        let ended = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        ensure!(ended != -1, "waitpid: {}", std::io::Error::last_os_error());
        if ended == pid {
            break;
        }
        if start.elapsed() > PROMPT {
            // SAFETY: our own child, which was not waited for.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            bail!("child {n} hangs");
        }
        thread::sleep(Duration::from_micros(200));
    }
    ensure!(
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        "child {n} ended with status {status:#x}: {}",
        MEANS
    );
    Ok(start.elapsed())
}

/// What a child's exit code means.
const MEANS: &str = "0x400: it could enable; 0x500: it called the runtime";

/// The child: it says and drops everything, and ends in one of two ways. It prints nothing: others may
/// have held the lock of that.
fn child(profiler: &Profiler<Ours>, n: u64) -> ! {
    let calls = interpose::calls();
    let mut code = 0;
    if n % 3 > 0 {
        // The list is guarded by a lock of ours, and nobody may be there to release it.
        for serializer in profiler.try_serializers() {
            if n % 3 == 1 {
                if serializer.enable().is_ok() {
                    code = 4;
                }
                serializer.begin_shutdown();
                let _ = serializer.finish_shutdown(Duration::ZERO);
                serializer.release_all();
            }
            serializer.collect();
            drop(serializer);
        }
    }
    if interpose::calls() != calls {
        code = 5;
    }
    // SAFETY: they have no requirements.
    unsafe {
        if n % 2 == 0 {
            libc::exit(code)
        }
        libc::_exit(code)
    }
}
