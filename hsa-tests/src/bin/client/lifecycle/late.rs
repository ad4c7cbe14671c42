//! What was put off while a thread was pinned, and that nobody has come back to: threads that end when
//! the runtime is gone do not do it.
//!
//! A thread that ends gives its handle of the reclamation domain back and is pinned once more for that;
//! every 128th pin of a thread goes on to what is due. So these threads are pinned about as often before.

use crate::bench::{Bench, Options};
use anyhow::{Context, Result, ensure};
use hsa_tests::interpose;
use hsa_tests::setup::Ours;
use hsa_tests::watchdog::step;
use serde_json::{Value, json};
use softgpu::Kernel;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(long, default_value_t = 60)]
    threads: usize,
}

pub(crate) fn run(a: &Arguments, options: &Options<Ours>) -> Result<Value> {
    let bench = Bench::start(options)?;
    let go = bench.app.hsa.create_interrupt(1)?;
    let queue = bench.queue(0, 64)?;
    let [id] = bench.profiler.queue_ids()[..] else {
        unreachable!("one queue")
    };
    let serializers = bench.profiler.serializers();
    let serializer = serializers.first().context("the serializer of the queue")?;
    bench.set(true)?;
    let (pinned, gone) = (Barrier::new(a.threads + 1), Barrier::new(a.threads + 1));
    let (put_off, calls) = thread::scope(|scope| {
        for n in 0..a.threads {
            let pins = 124 + n % 6;
            let (pinned, gone) = (&pinned, &gone);
            scope.spawn(move || {
                for _ in 0..pins {
                    let _ = serializer.ready(id);
                }
                pinned.wait();
                gone.wait();
            });
        }
        pinned.wait();
        queue.submit(&[Kernel::until(go)]);
        while bench.counts()?.kernels_started == 0 {
            thread::sleep(Duration::from_micros(50));
        }
        // The handlers' thread stops within the completion, pinned, and does not come back to what is put
        // off meanwhile.
        interpose::hold(true);
        bench.app.hsa.store(go, 0);
        while !interpose::is_held() {
            thread::sleep(Duration::from_micros(50));
        }
        for on in [false, true, false, true] {
            bench.set(on)?;
        }
        interpose::hold(false);
        while !bench.profiler.kernels().accounted_for() {
            thread::sleep(Duration::from_micros(50));
        }
        let put_off = serializer.statistics().reclaim_pending;
        // SAFETY: whoever calls it breaks that, which is what is looked for.
        unsafe { bench.app.shut_down() }?;
        let calls = interpose::calls();
        gone.wait();
        step();
        anyhow::Ok((put_off, calls))
    })?;
    ensure!(put_off > 0, "nothing was put off");
    let calls = interpose::calls() - calls;
    ensure!(
        calls == 0,
        "the runtime was called after it had been shut down: {calls} times"
    );
    // Nothing is dropped: the process ends.
    std::mem::forget((bench, serializers));
    Ok(json!({ "put_off": put_off }))
}
