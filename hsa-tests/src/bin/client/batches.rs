//! Batches as long as the ring, submitted with one ring of the doorbell, in both modes and across
//! transitions; and backlogs of several of them.

use crate::bench::{Bench, Options};
use anyhow::Result;
use hsa_tests::lifecycle::Lifecycle;
use hsa_tests::watchdog::step;
use serde_json::{Value, json};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Rounds for each ring.
    #[arg(long, default_value_t = 4)]
    rounds: u64,
}

pub(crate) fn run<S: Lifecycle>(a: &Arguments, options: &Options<S>) -> Result<Value> {
    let bench = Bench::start(options)?;
    let (mut batches, mut longest) = (0, 0);
    let mut queues = Vec::new();
    for ring in [64, 256] {
        let queue = bench.queue(0, ring)?;
        let asked = u64::from(ring);
        // The ring is longer than was asked for; an application may use all of it.
        let lengths = [
            1,
            asked - 1,
            asked,
            queue.queue.size() - 1,
            queue.queue.size(),
        ];
        for round in 0..a.rounds {
            bench.set(round % 2 == 0)?;
            for length in lengths {
                queue.kernels((0..length).map(|n| n % 4 * 500));
                // Behind a batch that may not have been launched yet.
                bench.set(length % 2 == 0)?;
                queue.kernels((0..length).map(|_| 0));
                queue.wait();
                step();
                batches += 2;
                longest = longest.max(length);
            }
        }
        queues.push(queue);
    }
    let (app, ending) = bench.finish(queues)?;
    app.stop()?;
    let mut line = json!(ending);
    line["batches"] = json!(batches);
    line["longest"] = json!(longest);
    Ok(line)
}
