//! The kill switch, thrown while kernels wait in every state, and in every second round the host hears
//! of nothing any more: the packets have to get through by themselves.

use super::on_handlers_thread;
use crate::bench::{Bench, Options, Worked};
use anyhow::{Result, ensure};
use hsa_sys::hsa_signal_t;
use hsa_tests::setup::Ours;
use hsa_tests::watchdog::{stage, step};
use serde_json::{Value, json};
use softgpu::Kernel;
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(long, default_value_t = 8)]
    rounds: u64,
}

/// Kernels in each queue.
const EACH: u64 = 4;

/// Longer than what was let through takes.
const PROMPT: Duration = Duration::from_secs(2);

pub(crate) fn run(a: &Arguments, options: &Options<Ours>) -> Result<Value> {
    let (mut kernels, mut serialized, mut passed_on, mut alone) = (0, 0, 0, 0);
    for round in 0..a.rounds {
        let bench = Bench::start(options)?;
        let (ended, by_themselves) = one_round(bench, round)?;
        alone += u64::from(by_themselves);
        kernels += ended.kernels;
        serialized += ended.serialized;
        passed_on += ended.passed_on;
        step();
    }
    Ok(json!({
        "rounds": a.rounds,
        "kernels": kernels,
        "serialized": serialized,
        "passed_on": passed_on,
        "alone": alone,
    }))
}

/// Queues, and what their kernels wait for.
pub(super) struct Waiting {
    /// Holds the token, with a kernel that ends when we say so.
    granted: Worked,
    go: hsa_signal_t,
    /// Wait for the token: at their gates, or on their way there.
    ready: [Worked; 2],
    /// Wait for a transition, to run unserialized.
    tagged: Worked,
    /// Waits for a later transition, with gates behind its packet.
    tagged_gated: Worked,
}

impl Waiting {
    pub(super) fn start(bench: &Bench<Ours>) -> Result<Self> {
        let go = bench.app.hsa.create_interrupt(1)?;
        let queue = || bench.queue(0, 64);
        let waiting = Self {
            granted: queue()?,
            go,
            ready: [queue()?, queue()?],
            tagged: queue()?,
            tagged_gated: queue()?,
        };
        bench.set(true)?;
        let holds = [Kernel::until(go)];
        let behind = [Kernel::lasting(1_000); EACH as usize - 1];
        waiting.granted.submit(&[&holds[..], &behind].concat());
        while bench.counts()?.kernels_started == 0 {
            thread::sleep(Duration::from_micros(50));
        }
        waiting.ready.iter().for_each(four);
        bench.set(false)?;
        four(&waiting.tagged);
        bench.set(true)?;
        four(&waiting.tagged_gated);
        Ok(waiting)
    }

    fn all(self) -> Vec<Worked> {
        let [first, second] = self.ready;
        vec![self.granted, first, second, self.tagged, self.tagged_gated]
    }
}

fn four(queue: &Worked) {
    queue.kernels([1_000; EACH as usize]);
}

/// Whether the packets got through by themselves, beside what was counted.
fn one_round(mut bench: Bench<Ours>, round: u64) -> Result<(hsa_tests::Kernels, bool)> {
    // What is let through runs side by side.
    bench.exclusive = false;
    let (deaf, settled) = (round % 2 == 1, round % 4 < 2);
    let waiting = Waiting::start(&bench)?;
    let ended = || anyhow::Ok(bench.counts()?.kernels_ended);
    if settled {
        // All have come as far as they can. Else it is anybody's guess.
        thread::sleep(Duration::from_millis(5));
        ensure!(ended()? == 0, "{} kernels did not wait", ended()?);
    }
    bench.witness.set_deaf(deaf)?;
    stage("released");
    release(&bench, deaf || settled)?;
    let all = 5 * EACH;
    eventually(&bench, all - EACH)?;
    bench.app.hsa.store(waiting.go, 0);
    eventually(&bench, all)?;
    // Its thread may have been awake all the same.
    let alone = deaf && bench.profiler.kernels().reported == 0;
    if deaf {
        bench.witness.set_deaf(false)?;
        // It looks at all signals when it is woken.
        on_handlers_thread(&bench.app.hsa, || ())?;
    }
    let go = waiting.go;
    let queues = waiting.all();
    bench.settle(&queues)?;
    // From now on kernels are passed on as they are.
    let before = bench.profiler.kernels().dispatched;
    queues.iter().for_each(four);
    bench.settle(&queues)?;
    ensure!(
        bench.profiler.kernels().dispatched == before,
        "a kernel went through the serializer"
    );
    bench.app.hsa.destroy_signal(go)?;
    let (app, ending) = bench.finish(queues)?;
    ensure!(ending.witness.overlaps > 0, "nothing ran side by side");
    app.stop()?;
    Ok((ending.kernels, alone))
}

/// Throws the switch, here or in a handler.
fn release(bench: &Bench<Ours>, here: bool) -> Result<()> {
    let serializers = bench.profiler.serializers();
    let throw = move || serializers.iter().for_each(|s| s.release_all());
    if here {
        throw();
        return Ok(());
    }
    on_handlers_thread(&bench.app.hsa, throw)
}

/// Waits until so many kernels have run, by the emulated GPU's count.
fn eventually(bench: &Bench<Ours>, kernels: u64) -> Result<()> {
    let deadline = Instant::now() + PROMPT;
    loop {
        let ended = bench.counts()?.kernels_ended;
        if ended == kernels {
            return Ok(());
        }
        ensure!(
            ended < kernels && Instant::now() < deadline,
            "{ended} kernels have ended, of {kernels} that were let through:\n{}",
            bench.witness.describe()
        );
        thread::sleep(Duration::from_micros(100));
    }
}
