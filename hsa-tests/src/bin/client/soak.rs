//! Full rate for long: memory and signals stay flat, while handles are recycled.

use crate::bench::{Bench, Options};
use crate::drive::{self, Rate};
use anyhow::{Context, Result, ensure};
use hsa_tests::lifecycle::Lifecycle;
use hsa_tests::tally::Live;
use serde::Serialize;
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(long, default_value_t = 5.0, value_parser = crate::seconds)]
    seconds: f64,
    /// The pause between two toggles, in microseconds.
    #[arg(long, default_value_t = 3_000)]
    toggle_us: u64,
    #[arg(long, default_value_t = 4, value_parser = crate::some)]
    queues: usize,
    #[arg(long, default_value_t = 2)]
    threads: u64,
    /// How many samples are taken.
    #[arg(long, default_value_t = 40)]
    samples: u32,
}

/// What was seen at one moment.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    seconds: f64,
    live: Live,
    /// Resident memory, in KiB.
    rss: u64,
    recycled: u64,
    kernels: u64,
    transitions: u64,
}

pub(crate) fn run<S: Lifecycle>(a: &Arguments, options: &Options<S>) -> Result<Value> {
    let bench = Bench::start(options)?;
    let queues = (0..a.queues)
        .map(|_| bench.queue(0, 128))
        .collect::<Result<Vec<_>, _>>()?;
    let rate = Rate {
        in_flight: 24,
        longest: 10_000,
        seed: options.seed,
    };
    let pause = Duration::from_micros(a.toggle_us);
    let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    let samples = thread::scope(|scope| {
        let (bench, queues, stop, seen) = (&bench, &queues[..], &stop, &seen);
        for n in 0..a.threads {
            scope.spawn(move || drive::submit(queues, rate, n, stop));
        }
        scope.spawn(move || drive::toggle(bench, 0, pause, stop));
        scope.spawn(move || drive::watch(queues, seen, stop));
        let start = Instant::now();
        let samples = (1..=a.samples)
            .map(|n| {
                let at = Duration::from_secs_f64(a.seconds * f64::from(n) / f64::from(a.samples));
                thread::sleep(at.saturating_sub(start.elapsed()));
                sample(bench, seen, start)
            })
            .collect::<Result<Vec<_>>>();
        stop.store(true, SeqCst);
        samples
    })?;
    let flat = flat(&samples)?;
    let (app, ending) = bench.finish(queues)?;
    app.stop()?;
    let mut line = json!(ending);
    line["samples"] = json!(samples);
    line["flat"] = flat;
    Ok(line)
}

fn sample<S: Lifecycle>(bench: &Bench<S>, seen: &AtomicU64, start: Instant) -> Result<Sample> {
    let statm = fs::read_to_string("/proc/self/statm").context("/proc/self/statm")?;
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    let pages: u64 = pages.context("/proc/self/statm has no second number")?;
    let tally = bench.profiler.tally();
    Ok(Sample {
        seconds: start.elapsed().as_secs_f64(),
        live: tally.live(),
        rss: pages * 4,
        recycled: tally.recycled(),
        kernels: seen.load(SeqCst),
        transitions: bench.profiler.transitions(),
    })
}

/// The second half must not have more of anything than the first, past its first quarter, had. Medians
/// are compared, since what is under way at the moment of a sample varies.
fn flat(samples: &[Sample]) -> Result<Value> {
    let half = samples.len() / 2;
    let (first, second) = (&samples[half / 4..half], &samples[half..]);
    let median = |part: &[Sample], of: fn(&Sample) -> u64| {
        let mut values: Vec<u64> = part.iter().map(of).collect();
        values.sort_unstable();
        values
            .get(values.len() / 2)
            .copied()
            .context("too few samples")
    };
    let compare = |of| anyhow::Ok((median(first, of)?, median(second, of)?));
    let (signals, rss) = (compare(|s| s.live.total())?, compare(|s| s.rss)?);
    ensure!(
        signals.1 <= signals.0 + 12,
        "live signals grow: {} in the first half, {} in the second",
        signals.0,
        signals.1
    );
    ensure!(
        rss.1 <= rss.0 + rss.0 / 20 + 1_024,
        "memory grows: {} KiB in the first half, {} KiB in the second",
        rss.0,
        rss.1
    );
    let last = samples.last().context("no samples")?;
    ensure!(last.recycled > 0, "no handle was recycled");
    Ok(json!({ "signals": signals, "rss_kib": rss, "recycled": last.recycled }))
}
