//! The fault that the crate exists to end, step by step.
//!
//! Both queues are held by a packet of the application's own. B's kernel is in flight when a transition
//! makes barrier T1, so A's next kernel gets T1's packet, which does not execute: A is held. B is let
//! go, its kernel ends, T1 clears. Whoever destroys T1's signal now gives its handle to the next barrier, T2,
//! which waits for A's kernel, which waits in A for a signal of that handle: for ever.

use crate::bench::{Bench, Options, wait_packet};
use anyhow::Result;
use hsa_tests::lifecycle::Lifecycle;
use hsa_tests::watchdog;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// Transitions of one round: T1, T2, and two more while A is held.
const TRANSITIONS: u64 = 4;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How many transitions.
    #[arg(long, default_value_t = 2_000)]
    toggles: u64,
    /// How long A may be blocked once it is not held any more, in milliseconds.
    #[arg(long, default_value_t = 2_000)]
    blocked_ms: u64,
}

/// What is known of the round under way.
#[derive(Debug, Default)]
struct Round {
    number: AtomicU64,
    /// The handle of T1's signal.
    first: AtomicU64,
    /// The handle that T2's signal had, if it was T1's and A's packet for T1 had not executed.
    recycled: AtomicU64,
}

impl Round {
    fn say(&self) -> Value {
        let recycled = self.recycled.load(SeqCst);
        json!({
            "round": self.number.load(SeqCst),
            "first_handle": format!("{:#x}", self.first.load(SeqCst)),
            "recycled_handle": (recycled != 0).then(|| format!("{recycled:#x}")),
            "blocked": true,
        })
    }
}

pub(crate) fn run<S: Lifecycle>(arguments: &Arguments, options: &Options<S>) -> Result<Value> {
    let bench = Bench::start(options)?;
    // Created now, so that they do not take the handles that barriers give back.
    bench.profiler.reserve(16)?;
    let (hold_a, hold_b) = (
        bench.app.hsa.create_interrupt(0)?,
        bench.app.hsa.create_interrupt(0)?,
    );
    let (a, b) = (bench.queue(0, 64)?, bench.queue(0, 64)?);
    let round = Arc::new(Round::default());
    let stuck = round.clone();
    watchdog::when_stuck(move || stuck.say());
    let blocked = Duration::from_millis(arguments.blocked_ms);
    let tally = bench.profiler.tally();
    let (mut rounds, mut recycled) = (0, 0);
    let mut on = false;
    let mut toggle = || {
        on = !on;
        bench.set(on)
    };
    while rounds * TRANSITIONS < arguments.toggles {
        round.number.store(rounds, SeqCst);
        round.recycled.store(0, SeqCst);
        for (queue, hold) in [(&a, hold_a), (&b, hold_b)] {
            bench.app.hsa.store(hold, 1);
            queue.queue.submit(&[wait_packet(hold)]);
        }
        b.kernels([1_000]);
        toggle()?;
        let first = tally.last_gpu_only();
        let times = tally.times(first);
        round.first.store(first, SeqCst);
        a.kernels([1_000]);
        bench.app.hsa.store(hold_b, 0);
        b.wait();
        // T1 has cleared. A's packet for it has not executed.
        b.kernels([1_000]);
        toggle()?;
        if tally.times(first) > times {
            round.recycled.store(first, SeqCst);
        }
        b.kernels([1_000]);
        toggle()?;
        toggle()?;
        // A serializer may have had a signal in reserve for the first of these toggles, but not for all.
        recycled += u64::from(tally.times(first) > times);
        bench.app.hsa.store(hold_a, 0);
        if !a.wait_for(blocked) || !b.wait_for(blocked) {
            watchdog::stuck("seed");
        }
        rounds += 1;
    }
    for hold in [hold_a, hold_b] {
        bench.app.hsa.destroy_signal(hold)?;
    }
    let (app, ending) = bench.finish(vec![a, b])?;
    app.stop()?;
    let mut line = json!(ending);
    line["rounds"] = json!(rounds);
    line["recycled_under_a_packet"] = json!(recycled);
    Ok(line)
}
