//! The runtime initialized and shut down again and again, and shut down under live queues.

use crate::bench::{Bench, Ending, Options, Worked};
use anyhow::{Context, Result, ensure};
use hsa_tests::app::App;
use hsa_tests::interpose;
use hsa_tests::lifecycle::Lifecycle;
use hsa_tests::watchdog::step;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How often.
    #[arg(long, default_value_t = 20)]
    rounds: u64,
}

pub(crate) fn run<S: Lifecycle>(a: &Arguments, options: &Options<S>) -> Result<Value> {
    let (mut kernels, mut transitions) = (0, 0);
    for round in 0..a.rounds {
        let ending = one_round(options, round).with_context(|| format!("round {round}"))?;
        kernels += ending.kernels.kernels;
        transitions += ending.transitions;
    }
    Ok(json!({ "rounds": a.rounds, "kernels": kernels, "transitions": transitions }))
}

/// Everything anew: the runtime, the profiler, its serializers.
fn one_round<S: Lifecycle>(options: &Options<S>, round: u64) -> Result<Ending> {
    let bench = Bench::start(options)?;
    // A user more and a user less: nothing happens.
    let nested = App::start()?;
    nested.stop()?;
    let queues = [bench.queue(0, 64)?, bench.queue(0, 64)?];
    for n in 0..10 {
        for queue in &queues {
            queue.kernels([1_000; 3]);
        }
        bench.set((n + round) % 2 == 0)?;
    }
    bench.settle(&queues)?;
    let (app, ending) = bench.finish(Vec::from(queues))?;
    app.stop()?;
    step();
    Ok(ending)
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LiveArguments {
    /// How often.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Queues that are alive.
    #[arg(long, default_value_t = 3, value_parser = crate::some)]
    queues: usize,
}

pub(crate) fn run_live<S: Lifecycle>(a: &LiveArguments, options: &Options<S>) -> Result<Value> {
    let mut under_way = 0;
    for round in 0..a.rounds {
        let bench = Bench::start(options)?;
        let queues = (0..a.queues)
            .map(|_| bench.queue(0, 64))
            .collect::<Result<Vec<_>, _>>()?;
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for on in [true, false].into_iter().cycle() {
                    if stop.load(SeqCst) {
                        break;
                    }
                    bench.set(on).expect("signals are to be had");
                    thread::sleep(Duration::from_micros(300));
                }
            });
            for n in 0..40 {
                let queue = &queues[n % queues.len()];
                queue.kernels([20_000, 200_000]);
                thread::sleep(Duration::from_micros(100));
            }
            // Kernels that will be running, and others behind them.
            queues.iter().for_each(|q| q.kernels([1_000_000_000, 0]));
            thread::sleep(Duration::from_millis(1));
            stop.store(true, SeqCst);
        });
        let left: i64 = queues.iter().map(Worked::in_flight).sum();
        ensure!(left > 0, "no kernel was under way");
        under_way += left;
        ensure!(bench.profiler.let_go(), "somebody still calls the runtime");
        let calls = interpose::calls();
        bench.app.stop()?;
        // Whatever still runs has to leave the runtime alone, and so has who does not know yet: he gets
        // an error.
        thread::sleep(Duration::from_millis(20));
        let toggled = [false, true].map(|on| bench.profiler.set(on));
        // SAFETY: the runtime was shut down.
        unsafe { bench.profiler.free_queues() };
        drop(bench.profiler);
        ensure!(
            interpose::calls() == calls,
            "the runtime was called after it had been shut down"
        );
        ensure!(
            toggled.iter().any(Result::is_err),
            "it can still be toggled"
        );
        step();
        // A runtime that comes after it is none the wiser.
        one_round(options, round)?;
    }
    Ok(json!({ "rounds": a.rounds, "under_way": under_way }))
}
