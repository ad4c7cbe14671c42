//! Both phases of the shutdown, in four surroundings: under load; with a kernel that does not end; with
//! a handlers' thread that hangs; and with a runtime that is gone already.

use super::on_handlers_thread;
use crate::bench::{Bench, Options, Worked, wait_packet};
use crate::drive::{self, Rate};
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use hsa_serializer::{DrainError, Remaining, ShutdownError};
use hsa_sys::{AqlPacket, hsa_signal_t};
use hsa_tests::interpose;
use hsa_tests::setup::Ours;
use hsa_tests::watchdog::{stage, step};
use serde_json::{Value, json};
use softgpu::Kernel;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "load")]
    kind: Kind,
    #[arg(long, default_value_t = 6)]
    rounds: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Threads submit, toggle and make queues.
    Load,
    /// A kernel does not end.
    Late,
    /// The handlers' thread hangs.
    Hung,
    /// The runtime was shut down before.
    Gone,
}

/// Longer than a shutdown takes that can be finished.
const LONG: Duration = Duration::from_secs(10);

/// How long one is waited for that can't.
const SHORT: Duration = Duration::from_millis(30);

pub(crate) fn run(a: &Arguments, options: &Options<Ours>) -> Result<Value> {
    let (mut loaded, mut vanished) = (Vec::new(), 0);
    for round in 0..a.rounds {
        let bench = Bench::start(options)?;
        match a.kind {
            Kind::Load => {
                let (ended, queues) = under_load(bench, options.seed + round)?;
                loaded.push(ended);
                vanished += queues;
            }
            Kind::Late => too_long(bench, round % 2 == 0)?,
            Kind::Hung => hung(bench, round % 2 == 0)?,
            Kind::Gone => gone(bench)?,
        }
        step();
    }
    let sum = |of: fn(&hsa_tests::Kernels) -> u64| loaded.iter().map(of).sum::<u64>();
    Ok(json!({
        "rounds": a.rounds,
        "dispatched": sum(|k| k.dispatched),
        "passed_on": sum(|k| k.passed_on),
        "vanished": vanished,
    }))
}

/// Signals of serializers that are alive, by what was asked of the runtime.
fn of_serializers(bench: &Bench<Ours>) -> u64 {
    let live = bench.profiler.tally().live();
    live.ready + live.gpu_only
}

/// What a shutdown that has to time out has left.
fn remaining(bench: &Bench<Ours>) -> Result<Remaining> {
    let start = Instant::now();
    let outcome = bench.profiler.finish_shutdown(SHORT);
    let took = start.elapsed();
    ensure!(took >= SHORT && took < LONG, "it took {took:?}");
    match outcome {
        Err(ShutdownError::TimedOut(remaining)) => Ok(remaining),
        other => bail!("it has ended: {other:?}"),
    }
}

/// Threads submit, toggle, and make queues that they destroy at once; in the middle of it the serializer
/// is shut down, and they go on. How many queues were destroyed right at their kernels' end.
fn under_load(mut bench: Bench<Ours>, seed: u64) -> Result<(hsa_tests::Kernels, u64)> {
    stage("under load");
    // What is passed on runs beside what is still granted.
    bench.exclusive = false;
    let queues = [
        bench.queue(0, 64)?,
        bench.queue(0, 64)?,
        bench.queue(0, 64)?,
    ];
    let rate = Rate {
        in_flight: 12,
        longest: 20_000,
        seed,
    };
    let (stop, seen, vanished, strangers) = (
        AtomicBool::new(false),
        AtomicU64::new(0),
        AtomicU64::new(0),
        AtomicU64::new(0),
    );
    let outcome = thread::scope(|scope| {
        for n in 0..2 {
            let (queues, stop) = (&queues, &stop);
            scope.spawn(move || drive::submit(queues, rate, n, stop));
        }
        scope.spawn(|| drive::watch(&queues, &seen, &stop));
        scope.spawn(|| {
            // Until the end has begun.
            for on in [true, false].into_iter().cycle() {
                if bench.set(on).is_err() || stop.load(SeqCst) {
                    break;
                }
                thread::sleep(Duration::from_micros(300));
            }
        });
        let vanishing = scope.spawn(|| -> Result<()> {
            while !stop.load(SeqCst) {
                let n = vanished.fetch_add(1, SeqCst);
                let kernels = vanish(&bench, n)?;
                strangers.fetch_add(kernels, SeqCst);
            }
            Ok(())
        });
        let outcome = shut_down(&bench, Duration::from_millis(20 + seed % 5 * 7));
        stop.store(true, SeqCst);
        vanishing
            .join()
            .expect("a failing thread ends the process")?;
        outcome
    });
    outcome?;
    bench.strangers = strangers.into_inner();
    bench.settle(&queues)?;
    let (app, ending) = bench.finish(Vec::from(queues))?;
    ensure!(ending.kernels.passed_on > 0, "nothing came afterwards");
    app.stop()?;
    Ok((ending.kernels, vanished.into_inner()))
}

fn shut_down(bench: &Bench<Ours>, after: Duration) -> Result<()> {
    thread::sleep(after);
    // The handlers' thread may begin it, and is refused the rest: it would wait for itself.
    bench.profiler.expect_end();
    let serializers = bench.profiler.serializers();
    let refused = on_handlers_thread(&bench.app.hsa, move || {
        let finish = serializers.iter().map(|s| s.finish_shutdown(LONG));
        finish.collect::<Vec<_>>()
    })?;
    let all = refused
        .iter()
        .all(|outcome| *outcome == Err(ShutdownError::OnHandlerThread));
    ensure!(all, "in a handler: {refused:?}");
    // By several threads.
    let [here, there] = thread::scope(|scope| {
        let there = scope.spawn(|| bench.profiler.finish_shutdown(LONG));
        let here = bench.profiler.finish_shutdown(LONG);
        [
            here,
            there.join().expect("a failing thread ends the process"),
        ]
    });
    let calls = interpose::calls();
    here.and(there)?;
    let live = of_serializers(bench);
    ensure!(live == 0, "{live} signals are left");
    // Everybody else goes on.
    let before = bench.profiler.kernels();
    while bench.profiler.kernels().kernels < before.kernels + 50 {
        thread::sleep(Duration::from_micros(100));
    }
    let calls = interpose::calls() - calls;
    ensure!(
        calls == 0,
        "the runtime was called {calls} times afterwards"
    );
    let dispatched = bench.profiler.kernels().dispatched - before.dispatched;
    ensure!(
        dispatched == 0,
        "{dispatched} kernels were dispatched afterwards"
    );
    Ok(())
}

/// A queue that goes the moment its work has ended, by its kernels' own signal, or by that of a packet
/// behind them, of which its application may hear before the profiler has heard of the kernels. How many
/// kernels the profiler did not see.
fn vanish(bench: &Bench<Ours>, n: u64) -> Result<u64> {
    let queue = bench.queue(0, 64)?;
    let stranger = !bench.profiler.intercepts(queue.queue.raw());
    let kernels = 1 + n % 3;
    queue.kernels((0..kernels).map(|_| 500));
    if n % 2 == 0 {
        while queue.in_flight() > 0 {
            std::hint::spin_loop();
        }
    } else {
        let hsa = bench.app.hsa;
        let over = hsa.create_interrupt(1)?;
        let behind = wait_packet(hsa_signal_t::NULL).with_completion_signal(over);
        queue.queue.submit(&[behind]);
        while hsa.load(over) > 0 {
            std::hint::spin_loop();
        }
        bench.destroy(queue)?;
        hsa.destroy_signal(over)?;
        return Ok(if stranger { kernels } else { 0 });
    }
    bench.destroy(queue)?;
    Ok(if stranger { kernels } else { 0 })
}

/// A kernel does not end in time. When it has, so does the shutdown, and of all signals that the
/// serializer has ever had none exists.
fn too_long(bench: Bench<Ours>, on: bool) -> Result<()> {
    stage("a kernel that does not end");
    // Nobody makes a signal after this but serializers, so it is theirs whose handles come back.
    let go = bench.app.hsa.create_interrupt(1)?;
    bench.profiler.reserve(16)?;
    let queues = [bench.queue(0, 64)?, bench.queue(0, 64)?];
    // Its thread is known before it has called a handler of a serializer.
    let serializers = bench.profiler.serializers();
    let drained = on_handlers_thread(&bench.app.hsa, move || {
        let drain = serializers.iter().map(|s| s.drain(SHORT));
        drain.collect::<Vec<_>>()
    })?;
    let refused = drained == [Err(DrainError::OnHandlerThread)];
    ensure!(refused, "in a handler: {drained:?}");
    for n in 0..10 {
        bench.set(n % 2 == 0)?;
        queues.iter().for_each(|queue| queue.kernels([1_000; 3]));
    }
    bench.settle(&queues)?;
    bench.set(on)?;
    let stuck: &[AqlPacket] = &[Kernel::until(go).packet()];
    queues[0].queue.submit(stuck);
    queues[0].kernels([0, 0]);
    if !on {
        queues[0].wait();
    }
    let remaining = remaining(&bench)?;
    let ids = bench.profiler.queue_ids();
    let [(id, in_flight)] = remaining.queues[..] else {
        bail!("one queue is stuck, and not {remaining}");
    };
    // The others run beside it, or wait for it.
    let expected = if on { 3 } else { 1 };
    ensure!(ids.contains(&id) && in_flight == expected, "{remaining}");
    bench.app.hsa.store(go, 0);
    bench.profiler.finish_shutdown(LONG)?;
    let live = of_serializers(&bench);
    ensure!(live == 0, "{live} signals are left");
    let (tally, hsa) = (bench.profiler.tally(), bench.app.hsa);
    for signal in tally.handles() {
        // SAFETY: there was one.
        let exists = unsafe { hsa.exists(signal) };
        ensure!(
            exists == tally.is_alive(signal.handle),
            "a signal of handle {:#x} exists: {exists}",
            signal.handle
        );
    }
    // Ours is the only one: it lives until the profiler ends, and then nobody has it.
    ensure!(tally.live().completion > 0, "there are no others");
    bench.settle(&queues)?;
    queues.iter().for_each(|queue| queue.kernels([1_000; 3]));
    bench.app.hsa.destroy_signal(go)?;
    let (app, _) = bench.finish(Vec::from(queues))?;
    app.stop()?;
    Ok(())
}

/// The handlers' thread hangs in a handler: the shutdown comes back in time. What is left is left then,
/// or is done when the thread goes on.
fn hung(bench: Bench<Ours>, comes_back: bool) -> Result<()> {
    stage("handlers that hang");
    let queues = [bench.queue(0, 64)?, bench.queue(0, 64)?];
    bench.set(true)?;
    queues.iter().for_each(|queue| queue.kernels([1_000; 3]));
    bench.settle(&queues)?;
    // Whether it does, and whether it is to go on.
    let hangs = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let hung = hangs.clone();
    let hsa = bench.app.hsa;
    let left = thread::scope(|scope| {
        let handler = scope.spawn(move || {
            on_handlers_thread(&hsa, move || {
                hung[0].store(true, SeqCst);
                wait_for(&hung[1]);
            })
        });
        wait_for(&hangs[0]);
        // Its kernels, or at the least the last calls of its handlers, wait for that thread.
        queues[0].kernels([1_000; 3]);
        bench.set(false)?;
        queues[1].kernels([1_000; 3]);
        let left = remaining(&bench).and_then(|_| remaining(&bench));
        if !comes_back {
            bench.profiler.let_go();
        }
        hangs[1].store(true, SeqCst);
        handler.join().expect("a failing thread ends the process")?;
        left
    })?;
    ensure!(left.handlers > 0, "no handler is left: {left}");
    if comes_back {
        bench.profiler.finish_shutdown(LONG)?;
        let (app, _) = bench.finish(Vec::from(queues))?;
        app.stop()?;
        return Ok(());
    }
    let calls = interpose::calls();
    bench.app.stop()?;
    // SAFETY: the runtime was shut down.
    unsafe { bench.profiler.free_queues() };
    drop(bench.profiler);
    let calls = interpose::calls() - calls;
    ensure!(
        calls == 0,
        "the runtime was called {calls} times afterwards"
    );
    Ok(())
}

fn wait_for(flag: &AtomicBool) {
    while !flag.load(SeqCst) {
        thread::sleep(Duration::from_micros(100));
    }
}

/// The runtime is shut down first, under live queues with work in them.
fn gone(bench: Bench<Ours>) -> Result<()> {
    stage("a runtime that is gone");
    let queues = [bench.queue(0, 64)?, bench.queue(0, 64)?];
    for n in 0..4 {
        bench.set(n % 2 == 0)?;
        queues.iter().for_each(|queue| queue.kernels([100_000; 4]));
        thread::sleep(Duration::from_micros(300));
    }
    queues[0].kernels([1_000_000_000, 0]);
    let left: i64 = queues.iter().map(Worked::in_flight).sum();
    ensure!(left > 0, "no kernel was under way");
    let serializers = bench.profiler.serializers();
    bench.app.stop()?;
    let calls = interpose::calls();
    ensure!(bench.profiler.let_go(), "somebody still calls the runtime");
    for serializer in &serializers {
        ensure!(serializer.enable().is_err(), "it can still be toggled");
        let finished = serializer.finish_shutdown(SHORT);
        finished.context("there is nothing to wait for")?;
    }
    // The last handles go.
    // SAFETY: the runtime was shut down.
    unsafe { bench.profiler.free_queues() };
    drop((bench.profiler, serializers));
    let calls = interpose::calls() - calls;
    ensure!(
        calls == 0,
        "the runtime was called after it had been shut down: {calls} times"
    );
    Ok(())
}
