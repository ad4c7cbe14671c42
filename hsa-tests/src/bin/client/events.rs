//! Signals stay few over many transitions; a transition that gets none does not happen.

use crate::bench::{Bench, Options, Worked};
use crate::drive::{self, Rate};
use anyhow::{Result, ensure};
use hsa_tests::interpose::{Failure, Inject, failing};
use hsa_tests::lifecycle::Lifecycle;
use hsa_tests::watchdog::step;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How many transitions.
    #[arg(long, default_value_t = 100_000)]
    toggles: u64,
}

pub(crate) fn run<S: Lifecycle>(a: &Arguments, options: &Options<S>) -> Result<Value> {
    let bench = Bench::start(options)?;
    bench.profiler.reserve(64)?;
    let queues = [bench.queue(0, 64)?, bench.queue(0, 64)?];
    let (start, events) = (
        bench.profiler.tally().live(),
        bench.witness.counts()?.events_live,
    );
    let most = toggle(a, &bench, &queues, options.seed)?;
    let events_after = bench.witness.counts()?.events_live;
    ensure!(
        most <= start.interrupt() + 64,
        "{} interrupt signals, of {} at first",
        most,
        start.interrupt()
    );
    ensure!(
        events_after <= events + 64,
        "{events_after} kernel events, {events} at first"
    );
    bench.settle(&queues)?;
    let failed = fail(&bench, &queues)?;
    let (app, ending) = bench.finish(Vec::from(queues))?;
    app.stop()?;
    let mut line = json!(ending);
    line["interrupt_signals"] = json!(most);
    line["events"] = json!(events_after);
    line["failed_transitions"] = json!(failed);
    Ok(line)
}

/// Toggles at full speed while kernels run. The most interrupt signals that were alive at once.
fn toggle<S: Lifecycle>(
    a: &Arguments,
    bench: &Bench<S>,
    queues: &[Worked],
    seed: u64,
) -> Result<u64> {
    let rate = Rate {
        in_flight: 12,
        longest: 20_000,
        seed,
    };
    let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut most = 0;
    let outcome = thread::scope(|scope| {
        scope.spawn(|| drive::submit(queues, rate, 0, &stop));
        scope.spawn(|| drive::watch(queues, &seen, &stop));
        let outcome = (0..a.toggles).try_for_each(|n| {
            let live = bench.profiler.tally().live();
            most = most.max(live.interrupt());
            if n % 50 == 0 {
                // Kernels run, too.
                thread::sleep(Duration::from_micros(200));
            }
            bench.set(n % 2 == 0)
        });
        stop.store(true, SeqCst);
        outcome
    });
    outcome?;
    Ok(most)
}

/// Every creation fails once in every form. Nothing has happened then, and afterwards it works.
fn fail<S: Lifecycle>(bench: &Bench<S>, queues: &[Worked]) -> Result<u64> {
    let tally = bench.profiler.tally();
    let serializer = bench.profiler.serializer(bench.app.gpus[0]);
    let serializer = serializer.map_err(crate::bench::said)?;
    let mut failed = 0;
    bench.set(false)?;
    for failure in [Failure::Status, Failure::NullHandle] {
        for behind in [false, true] {
            // With a kernel in flight there is something for the transition to count.
            if behind {
                queues[0].kernels([2_000_000]);
            }
            let (live, transitions) = (tally.live(), bench.profiler.transitions());
            let outcome = failing(Inject::Signals(0, failure), || serializer.enable());
            ensure!(outcome.is_err(), "{failure:?}: it was enabled");
            failed += 1;
            ensure!(bench.profiler.transitions() == transitions, "it is counted");
            ensure!(tally.live() == live, "signals are left of it");
            let before = bench.profiler.kernels().serialized;
            queues[1].kernels([0]);
            queues[1].wait();
            let serialized = bench.profiler.kernels().serialized - before;
            ensure!(serialized == 0, "a kernel was serialized");
            // The next one works, and so does the way back.
            serializer.enable().map_err(crate::bench::said)?;
            queues[1].kernels([0]);
            queues[1].wait();
            ensure!(bench.profiler.kernels().serialized == before + 1);
            serializer.disable().map_err(crate::bench::said)?;
            queues.iter().for_each(Worked::wait);
            step();
        }
        // The first signal of a queue, and the second.
        for n in 0..2 {
            let live = tally.live();
            let outcome = failing(Inject::Signals(n, failure), || bench.queue(0, 64));
            ensure!(outcome.is_err(), "a queue without its signals");
            ensure!(tally.live() == live, "signals are left of it");
        }
    }
    let live = tally.live();
    let outcome = failing(Inject::Handlers, || bench.queue(0, 64));
    ensure!(outcome.is_err(), "a queue without its handler");
    ensure!(tally.live() == live, "signals are left of it");
    Ok(failed)
}
