//! Full rate on several agents, queues and threads, while a thread for each agent toggles.

use crate::bench::{Bench, Options, Worked};
use crate::drive::{self, Rate};
use anyhow::{Result, ensure};
use hsa_tests::lifecycle::Lifecycle;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Queues of each agent.
    #[arg(long, default_value_t = 3, value_parser = crate::some)]
    queues: usize,
    /// Agents (SOFTGPU_GPUS says how many there are).
    #[arg(long, default_value_t = 1, value_parser = crate::some)]
    agents: usize,
    /// Submitting threads of each agent.
    #[arg(long, default_value_t = 2)]
    threads: u64,
    #[arg(long, default_value_t = 2.0, value_parser = crate::seconds)]
    seconds: f64,
    /// The pause between two toggles, in microseconds; 0: none.
    #[arg(long, default_value_t = 500)]
    toggle_us: u64,
    /// Kernels under way in each queue.
    #[arg(long, default_value_t = 24)]
    in_flight: i64,
    /// The longest kernel, in nanoseconds.
    #[arg(long, default_value_t = 20_000)]
    longest_ns: u64,
    /// Packets in each ring.
    #[arg(long, default_value_t = 64)]
    ring: u32,
}

pub(crate) fn run<S: Lifecycle>(a: &Arguments, options: &Options<S>) -> Result<Value> {
    let bench = Bench::start(options)?;
    ensure!(
        bench.app.gpus.len() >= a.agents,
        "there are {} agents: SOFTGPU_GPUS",
        bench.app.gpus.len()
    );
    let queues = (0..a.agents)
        .map(|gpu| {
            (0..a.queues)
                .map(|_| bench.queue(gpu, a.ring))
                .collect::<Result<Vec<Worked>, _>>()
        })
        .collect::<Result<Vec<_>, _>>()?;
    let rate = Rate {
        in_flight: a.in_flight,
        longest: a.longest_ns,
        seed: options.seed,
    };
    let pause = Duration::from_micros(a.toggle_us);
    let (stop, toggles) = (AtomicBool::new(false), AtomicU64::new(0));
    let seen = AtomicU64::new(0);
    thread::scope(|scope| {
        for (gpu, queues) in queues.iter().enumerate() {
            let (stop, toggles, bench, seen) = (&stop, &toggles, &bench, &seen);
            for n in 0..a.threads {
                let thread = gpu as u64 * a.threads + n;
                scope.spawn(move || drive::submit(queues, rate, thread, stop));
            }
            scope.spawn(move || {
                toggles.fetch_add(drive::toggle(bench, gpu, pause, stop), SeqCst);
            });
            scope.spawn(move || drive::watch(queues, seen, stop));
        }
        thread::sleep(Duration::from_secs_f64(a.seconds));
        stop.store(true, SeqCst);
    });
    let queues: Vec<Worked> = queues.into_iter().flatten().collect();
    let (app, ending) = bench.finish(queues)?;
    app.stop()?;
    let mut line = json!(ending);
    line["toggles"] = json!(toggles.load(SeqCst));
    Ok(line)
}
