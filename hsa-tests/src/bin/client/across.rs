//! Kernels that wait for kernels of another agent: a serializer of one agent must not hold another
//! one's kernels back.

use crate::bench::{Bench, Options, Worked};
use anyhow::Result;
use hsa_tests::lifecycle::Lifecycle;
use hsa_tests::watchdog::step;
use serde_json::{Value, json};
use softgpu::Kernel;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(long, default_value_t = 20)]
    rounds: u64,
}

pub(crate) fn run<S: Lifecycle>(a: &Arguments, options: &Options<S>) -> Result<Value> {
    let bench = Bench::start(options)?;
    let agents = bench.app.gpus.len();
    let hsa = bench.app.hsa;
    let queues = (0..agents)
        .map(|gpu| bench.queue(gpu, 64))
        .collect::<Result<Vec<_>, _>>()?;
    let signals = (0..agents)
        .map(|_| hsa.create_gpu_only(1))
        .collect::<Result<Vec<_>, _>>()?;
    bench.set(true)?;
    for _ in 0..a.rounds {
        signals.iter().for_each(|signal| hsa.store(*signal, 1));
        // Each agent's kernel spins for what the next agent's kernel writes; the last one waits for
        // nobody.
        for (n, queue) in queues.iter().enumerate() {
            let kernel = match signals.get(n + 1) {
                Some(next) => Kernel::until(*next),
                None => Kernel::lasting(1_000),
            };
            queue.submit(&[kernel.writes(signals[n], 0)]);
        }
        queues.iter().for_each(Worked::wait);
        step();
    }
    for signal in signals {
        hsa.destroy_signal(signal)?;
    }
    let (app, ending) = bench.finish(queues)?;
    app.stop()?;
    let mut line = json!(ending);
    line["agents"] = json!(agents);
    Ok(line)
}
