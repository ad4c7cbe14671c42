//! What the runtime's handlers do, and that the serializer can live with it: they are called late,
//! again and again, and for signals that are gone.

use crate::bench::{Bench, Options, Worked, said};
use crate::drive::{self, Rate};
use anyhow::{Result, ensure};
use hsa_serializer::{Handler, QueueId};
use hsa_sys::SignalCondition;
use hsa_tests::calls::{self, CallId};
use hsa_tests::hsa::Hsa;
use hsa_tests::lifecycle::Lifecycle;
use hsa_tests::watchdog::{stage, step};
use serde_json::{Value, json};
use softgpu::Kernel;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How many signals are destroyed under their handler.
    #[arg(long, default_value_t = 200)]
    signals: u64,
    /// How many `ready` calls are made that nobody's signal asked for.
    #[arg(long, default_value_t = 20_000)]
    spurious: u64,
    /// How many kernels are submitted by the handler of the one before.
    #[arg(long, default_value_t = 300)]
    chained: u64,
}

pub(crate) fn run<S: Lifecycle>(a: &Arguments, options: &Options<S>) -> Result<Value> {
    let bench = Bench::start(options)?;
    stage("level-triggered");
    let again = level_triggered(&bench.app.hsa)?;
    stage("destroyed signals");
    let swept = destroyed(&bench.app.hsa, a.signals)?;
    stage("spurious calls");
    let kept = spurious(&bench, a.spurious, options.seed)?;
    stage("chained kernels");
    let chained = chain(&bench, a.chained)?;
    stage("removed queues");
    let dropped = after_removal(&bench)?;
    let (app, ending) = bench.finish(Vec::new())?;
    app.stop()?;
    let mut line = json!(ending);
    line["called_again"] = json!(again);
    line["called_after_destruction"] = json!(swept);
    line["spurious_kept"] = json!(kept);
    line["chained"] = json!(chained);
    line["dropped"] = json!(dropped);
    Ok(line)
}

/// A handler that stays while its condition holds is called again at once; it is not called once it
/// has said that it goes.
fn level_triggered(hsa: &Hsa) -> Result<u64> {
    let signal = hsa.create_interrupt(1)?;
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let call = CallId::of(Arc::new(move |_| counted.fetch_add(1, SeqCst) < 9));
    hsa.on_signal(signal, SignalCondition::Lt, 1, call)?;
    hsa.store(signal, 0);
    while calls.load(SeqCst) < 10 {
        thread::sleep(Duration::from_micros(100));
    }
    thread::sleep(Duration::from_millis(5));
    let calls = calls.load(SeqCst);
    ensure!(
        calls == 10,
        "called {calls} times, of which the tenth was to be the last"
    );
    hsa.destroy_signal(signal)?;
    step();
    Ok(calls)
}

/// Signals that are destroyed under a registered handler, every other one satisfied just before. How
/// often the handler was called all the same; the runtime's version decides.
fn destroyed(hsa: &Hsa, signals: u64) -> Result<u64> {
    let calls = Arc::new(AtomicU64::new(0));
    for n in 0..signals {
        let signal = hsa.create_interrupt(1)?;
        let counted = calls.clone();
        let call = CallId::of(Arc::new(move |_| {
            counted.fetch_add(1, SeqCst);
            false
        }));
        hsa.on_signal(signal, SignalCondition::Lt, 1, call)?;
        if n % 2 == 0 {
            hsa.store(signal, 0);
        }
        hsa.destroy_signal(signal)?;
        call.forget();
    }
    thread::sleep(Duration::from_millis(5));
    step();
    Ok(calls.load(SeqCst))
}

/// While serialized kernels run, `ready` is said of both queues again and again by a thread that
/// nobody asked to. It must change nothing.
fn spurious<S: Lifecycle>(bench: &Bench<S>, calls: u64, seed: u64) -> Result<u64> {
    let queues = [bench.queue(0, 64)?, bench.queue(0, 64)?];
    let ids = bench.profiler.queue_ids();
    let serializer = bench.profiler.serializer(bench.app.gpus[0]).map_err(said)?;
    bench.set(true)?;
    let rate = Rate {
        in_flight: 12,
        longest: 10_000,
        seed,
    };
    let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    let kept = thread::scope(|scope| {
        scope.spawn(|| drive::submit(&queues, rate, 0, &stop));
        scope.spawn(|| drive::watch(&queues, &seen, &stop));
        let kept = (0..calls)
            .map(|n| ids[n as usize % ids.len()])
            .filter(|id| {
                thread::yield_now();
                serializer.ready(*id).keep()
            })
            .count() as u64;
        stop.store(true, SeqCst);
        kept
    });
    ensure!(
        kept == calls,
        "{} calls of live queues said Drop",
        calls - kept
    );
    bench.settle(&queues)?;
    for queue in queues {
        bench.destroy(queue)?;
    }
    Ok(kept)
}

/// An application that submits its next kernel in the handler of the last one's completion, which is
/// also where serialization is turned on and off: interceptor and transitions run on the runtime's own
/// thread.
fn chain<S: Lifecycle>(bench: &Bench<S>, kernels: u64) -> Result<u64> {
    let queue = bench.queue(0, 64)?;
    let hsa = bench.app.hsa;
    let ended = hsa.create_interrupt(1)?;
    let serializer = bench.profiler.serializer(bench.app.gpus[0]).map_err(said)?;
    let done = Arc::new(AtomicU64::new(0));
    let counted = done.clone();
    let next = Kernel::lasting(1_000).completion(ended).packet();
    let submit = queue.queue;
    let call = CallId::of(Arc::new(move |_| {
        let n = counted.fetch_add(1, SeqCst) + 1;
        step();
        if n == kernels {
            return false;
        }
        hsa.store(ended, 1);
        if n % 3 == 0 {
            let outcome = match n % 2 {
                0 => serializer.enable(),
                _ => serializer.disable(),
            };
            outcome.expect("signals are to be had");
        }
        submit.submit(&[next]);
        true
    }));
    hsa.on_signal(ended, SignalCondition::Lt, 1, call)?;
    queue.queue.submit(&[next]);
    while done.load(SeqCst) < kernels {
        thread::sleep(Duration::from_micros(100));
    }
    bench.destroy(queue)?;
    hsa.destroy_signal(ended)?;
    Ok(done.load(SeqCst))
}

/// Of queues that are gone `ready` says Drop, for ever, although others have their place by now; the
/// runtime's own handler has gone by then.
fn after_removal<S: Lifecycle>(bench: &Bench<S>) -> Result<u64> {
    let serializer = bench.profiler.serializer(bench.app.gpus[0]).map_err(said)?;
    let mut gone: Vec<QueueId> = Vec::new();
    let mut dropped = 0;
    for _ in 0..20 {
        let queue: Worked = bench.queue(0, 64)?;
        let id = bench.profiler.queue_ids()[0];
        queue.kernels([1_000]);
        queue.wait();
        bench.destroy(queue)?;
        gone.push(id);
        for id in &gone {
            ensure!(serializer.ready(*id) == Handler::Drop, "{id} is gone");
            dropped += 1;
        }
    }
    while bench.profiler.tally().live().ready > 0 {
        bench.profiler.collect();
        thread::sleep(Duration::from_micros(100));
    }
    step();
    let late = calls::late();
    thread::sleep(Duration::from_millis(5));
    ensure!(
        calls::late() == late,
        "handlers of queues that are gone are called on and on"
    );
    Ok(dropped)
}
