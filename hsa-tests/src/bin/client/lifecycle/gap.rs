//! Work that the profiler did not see: while it did not listen, and on queues that others had made and
//! used before it came. One marker stands for it, and what is serialized waits for that.

use crate::bench::{Bench, Options, Worked};
use anyhow::{Context, Result, ensure};
use hsa_sys::{HSA_QUEUE_TYPE_MULTI, hsa_queue_t, hsa_status_t};
use hsa_tests::app::AppQueue;
use hsa_tests::setup::Ours;
use hsa_tests::watchdog::{stage, step};
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Times in which the profiler does not listen; and queues from before it came.
    #[arg(long, default_value_t = 12)]
    rounds: u64,
}

/// Unknown kernels, which run side by side for so long.
const UNKNOWN: [u64; 3] = [2_000_000; 3];

pub(crate) fn run(a: &Arguments, options: &Options<Ours>) -> Result<Value> {
    let mut bench = Bench::start(options)?;
    let [first, second] = [bench.queue(0, 64)?, bench.queue(0, 64)?];
    stage("kernels that pass unseen");
    for round in 0..a.rounds {
        let enabled = round % 2 == 0;
        bench.set(enabled)?;
        bench.profiler.listen(false);
        first.kernels(UNKNOWN);
        bench.profiler.listen(true);
        known(&bench, &first, &second, enabled)?;
    }
    let mut queues = vec![first, second];
    stage("queues from before");
    ordinary(&bench)?;
    for round in 0..a.rounds {
        let enabled = round % 2 == 0;
        bench.set(enabled)?;
        let early = early(&bench)?;
        early.kernels(UNKNOWN);
        bench.strangers += UNKNOWN.len() as u64;
        let queue = early.queue.raw();
        // SAFETY: it lives, and only this thread rings its doorbell.
        let attached = unsafe { bench.profiler.attach_queue(bench.app.gpus[0], queue) };
        attached.context("attaching")?;
        known(&bench, &early, &queues[0], enabled)?;
        if round % 4 == 0 {
            queues.push(early);
        } else {
            bench.destroy(early)?;
        }
    }
    let (app, ending) = bench.finish(queues)?;
    app.stop()?;
    ensure!(
        ending.kernels.markers == 2 * a.rounds,
        "{} markers for {} gaps",
        ending.kernels.markers,
        2 * a.rounds
    );
    Ok(json!(ending))
}

/// The queue's next kernel makes what it holds known; serialized kernels of another one wait for it.
fn known(bench: &Bench<Ours>, unknown: &Worked, other: &Worked, enabled: bool) -> Result<()> {
    unknown.kernels([1_000]);
    if !enabled {
        other.kernels([1_000]);
        bench.set(true)?;
    }
    other.kernels([1_000; 3]);
    unknown.kernels([1_000]);
    let two = [unknown, other];
    while two.iter().any(|queue| queue.in_flight() > 0) {
        thread::sleep(Duration::from_micros(50));
    }
    step();
    Ok(())
}

/// A queue that can be intercepted, and that nobody intercepts.
fn early(bench: &Bench<Ours>) -> Result<Worked> {
    let saved = bench.app.saved()?;
    let create = saved.api().hsa_amd_queue_intercept_create;
    let create = create.context("the runtime has intercept queues")?;
    let (mut queue, null) = (std::ptr::null_mut(), std::ptr::null_mut());
    let (agent, kind) = (bench.app.gpus[0], HSA_QUEUE_TYPE_MULTI);
    // SAFETY: no callback; `queue` is written where the call succeeds.
    unsafe { create(agent, 256, kind, None, null, 0, 0, &raw mut queue) }.ok()?;
    // SAFETY: it was just made.
    Ok(Worked::over(bench.app.hsa, unsafe {
        AppQueue::new(bench.app.hsa, queue)
    })?)
}

/// A queue that the application has made as most do can't be intercepted any more. Nothing has happened
/// to it then.
fn ordinary(bench: &Bench<Ours>) -> Result<()> {
    let mut queue: *mut hsa_queue_t = std::ptr::null_mut();
    let create = bench.app.saved()?.api().hsa_queue_create;
    let (agent, kind) = (bench.app.gpus[0], HSA_QUEUE_TYPE_MULTI);
    // SAFETY: no callback; `queue` is written where the call succeeds.
    unsafe {
        let null = std::ptr::null_mut();
        create(agent, 64, kind, None, null, 0, 0, &raw mut queue)
    }
    .ok()?;
    // SAFETY: it lives, and nobody rings its doorbell.
    let refused = unsafe { bench.profiler.attach_queue(agent, queue) };
    let refusal = hsa_status_t::ERROR_INVALID_QUEUE;
    ensure!(refused == Err(refusal), "it is intercepted: {refused:?}");
    ensure!(!bench.profiler.intercepts(queue), "the profiler keeps it");
    // SAFETY: it lives, and nobody else has it.
    unsafe { (bench.app.hsa.api().hsa_queue_destroy)(queue) }.ok()?;
    Ok(())
}
