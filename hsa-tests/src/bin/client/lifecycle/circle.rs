//! Programs that serialization deadlocks, each on two queues: without a release they stand still, with
//! one they finish, and everything is exact again afterwards.

use crate::bench::{Bench, Options, Worked, wait_packet};
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use hsa_serializer::StallPolicy;
use hsa_sys::{HSA_DEVICE_TYPE_CPU, hsa_agent_t, hsa_signal_t};
use hsa_tests::hsa::Hsa;
use hsa_tests::setup::Ours;
use hsa_tests::stalls::{self, Found};
use hsa_tests::watchdog::{self, step};
use serde_json::{Value, json};
use softgpu::Kernel;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "copy")]
    kind: Kind,
    #[arg(long, default_value_t = 2)]
    rounds: u64,
    /// What stands still for so many milliseconds is a stall.
    #[arg(long, default_value_t = 250)]
    stalls_ms: u64,
    /// Stalls are named, and not released.
    #[arg(long)]
    report: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// HIP's: a copy is enqueued before the kernel that it waits for has been intercepted.
    Copy,
    /// A kernel holds the token and waits for one that waits for the token.
    Holder,
    /// A kernel in flight waits for one behind the transition.
    Transition,
}

pub(crate) fn run(a: &Arguments, options: &Options<Ours>) -> Result<Value> {
    let mut bench = Bench::start(options)?;
    // A release costs that.
    bench.exclusive = false;
    let found = Arc::new(Mutex::new(Found::default()));
    let seen = found.clone();
    watchdog::when_stuck(move || json!({ "stalls": *lock(&seen) }));
    let queues = [bench.queue(0, 64)?, bench.queue(0, 64)?];
    let policy = if a.report {
        StallPolicy::Report
    } else {
        StallPolicy::Release
    };
    let stop = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        let (bench, queues, stop, found) = (&bench, &queues, &stop, &*found);
        let after = Duration::from_millis(a.stalls_ms);
        let serializers = move || bench.profiler.serializers();
        scope.spawn(move || stalls::watch(serializers, after, policy, stop, found));
        let outcome = (0..a.rounds).try_for_each(|_| -> Result<()> {
            let before = lock(found).released();
            one(a.kind, bench, queues)?;
            let released = lock(found).released() - before;
            ensure!(released > 0, "it has finished by itself");
            exact(bench, queues, found)
        });
        stop.store(true, SeqCst);
        outcome
    });
    outcome?;
    let found = lock(&found).clone();
    let (barriers, holders) = (found.barriers, found.holders);
    let expected = match a.kind {
        Kind::Holder => holders,
        Kind::Copy | Kind::Transition => barriers,
    };
    ensure!(
        expected >= a.rounds,
        "not what stood still was released: {found:?}"
    );
    let ids = bench.profiler.queue_ids();
    ensure!(
        ids.iter().all(|id| found.named.contains(id)),
        "both queues are stuck, and not {:?}",
        found.named
    );
    let losses = bench.profiler.serializers().iter().fold((0, 0), |sum, s| {
        let statistics = s.statistics();
        (sum.0 + statistics.forced, sum.1 + statistics.overtaken)
    });
    ensure!(
        losses.0 >= barriers && losses.1 == holders,
        "the serializer has counted {losses:?}"
    );
    let (app, ending) = bench.finish(Vec::from(queues))?;
    app.stop()?;
    let mut line = json!(ending);
    line["stalls"] = json!(found);
    Ok(line)
}

fn lock(found: &Mutex<Found>) -> std::sync::MutexGuard<'_, Found> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

fn one(kind: Kind, bench: &Bench<Ours>, queues: &[Worked; 2]) -> Result<()> {
    let hsa = bench.app.hsa;
    bench.set(kind == Kind::Holder)?;
    let signals = (0..4)
        .map(|_| hsa.create_interrupt(1))
        .collect::<Result<Vec<_>, _>>()?;
    if kind == Kind::Copy {
        let cpu = hsa.agents(HSA_DEVICE_TYPE_CPU)?;
        let cpu = *cpu.first().context("there is a CPU")?;
        copy(bench, queues, [cpu, bench.app.gpus[0]], &signals)?;
    } else {
        let [first, second] = queues;
        let before = bench.witness.counts()?.kernels_started;
        first.submit(&[Kernel::until(signals[0])]);
        while bench.witness.counts()?.kernels_started == before {
            thread::sleep(Duration::from_micros(50));
        }
        bench.set(true)?;
        second.submit(&[Kernel::lasting(1_000).writes(signals[0], 0)]);
    }
    queues.iter().for_each(Worked::wait);
    if kind == Kind::Copy {
        signals.iter().for_each(|signal| wait(&hsa, *signal));
    }
    for signal in signals {
        hsa.destroy_signal(signal)?;
    }
    step();
    Ok(())
}

/// Two threads of HIP share the first queue. One has reserved a packet and was interrupted; the other
/// one's kernel stands behind that, and HIP believes it to be on its way: its copy is enqueued. Behind
/// that one, in the same engine, is a copy that a kernel of the second queue waits for, which is in
/// flight when the mode changes. Then the first thread goes on.
fn copy(
    bench: &Bench<Ours>,
    [first, second]: &[Worked; 2],
    [cpu, gpu]: [hsa_agent_t; 2],
    signals: &[hsa_signal_t],
) -> Result<()> {
    const BYTES: usize = 256;
    let hsa = &bench.app.hsa;
    let [kernels, kernel, one, other] = signals else {
        unreachable!("four signals")
    };
    let (from, mut to) = ([7_u8; BYTES], [[0_u8; BYTES]; 2]);
    let queue = first.queue;
    let (interrupted, behind) = (queue.reserve(1), queue.reserve(1));
    let lasting = |completion| Kernel::lasting(1_000).completion(completion).packet();
    queue.publish(behind, &[lasting(*kernel)]);
    queue.ring(behind);
    let [there, elsewhere] = to.each_mut().map(|to| to.as_mut_ptr().cast());
    let source = (from.as_ptr().cast(), cpu);
    // SAFETY: both are waited for below, and nobody accesses the memory before.
    unsafe {
        hsa.copy((there, gpu), source, BYTES, *kernel, *one)?;
        hsa.copy((elsewhere, gpu), source, BYTES, hsa_signal_t::NULL, *other)?;
    }
    second.queue.submit(&[wait_packet(*other)]);
    second.kernels([1_000]);
    bench.set(true)?;
    queue.publish(interrupted, &[lasting(*kernels)]);
    queue.ring(interrupted);
    for signal in signals {
        wait(hsa, *signal);
    }
    ensure!(to == [from; 2], "not all was copied");
    Ok(())
}

/// Until it is 0: the watchdog sees to it that this has an end.
fn wait(hsa: &Hsa, signal: hsa_signal_t) {
    while hsa.load(signal) > 0 {
        thread::sleep(Duration::from_micros(50));
    }
}

/// No kernel runs beside one that it must not run beside, over a few more transitions; unless the machine
/// is so slow that they pass for stalls.
fn exact(bench: &Bench<Ours>, queues: &[Worked; 2], found: &Mutex<Found>) -> Result<()> {
    let (before, released) = (bench.counts()?, lock(found).released());
    for on in [false, true, true, false, true] {
        bench.set(on)?;
        queues.iter().for_each(|queue| queue.kernels([20_000; 4]));
    }
    queues.iter().for_each(Worked::wait);
    let after = bench.counts()?;
    let overlaps = |counts: hsa_tests::witness::Counts| counts.overlaps + counts.beside;
    ensure!(
        overlaps(after) == overlaps(before) || lock(found).released() > released,
        "kernels overlap after the release: {after:?}"
    );
    ensure!(after.gated >= before.gated + 8, "nothing was serialized");
    Ok(())
}
