//! Kernels that end badly, and queues that stop because of a fault.

use crate::bench::{Bench, Options, Worked, wait_packet};
use anyhow::{Result, ensure};
use hsa_sys::{hsa_queue_t, hsa_status_t};
use hsa_tests::lifecycle::Lifecycle;
use hsa_tests::watchdog::step;
use serde_json::{Value, json};
use softgpu::{Ends, Kernel};
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How many queues stop.
    #[arg(long, default_value_t = 20)]
    queues: u64,
}

/// What the application's error callback was told.
#[derive(Debug, Default)]
struct Told {
    status: AtomicU32,
    queue: AtomicPtr<hsa_queue_t>,
}

unsafe extern "C" fn on_error(status: hsa_status_t, queue: *mut hsa_queue_t, told: *mut c_void) {
    // SAFETY: `told` was registered with the queue, and outlives it.
    let told = unsafe { &*told.cast::<Told>() };
    told.queue.store(queue, SeqCst);
    told.status.store(status.0, SeqCst);
}

pub(crate) fn run<S: Lifecycle>(a: &Arguments, options: &Options<S>) -> Result<Value> {
    let bench = Bench::start(options)?;
    let steady = [bench.queue(0, 64)?, bench.queue(0, 64)?];
    badly(&bench, &steady[0])?;
    for n in 0..a.queues {
        bench.set(n % 2 == 0)?;
        stop_one(&bench, &steady)?;
        step();
    }
    let (app, ending) = bench.finish(Vec::from(steady))?;
    app.stop()?;
    let mut line = json!(ending);
    line["stopped"] = json!(a.queues);
    Ok(line)
}

/// A kernel that ends badly has ended: its application is told the same value, and the next ones run.
fn badly<S: Lifecycle>(bench: &Bench<S>, queue: &Worked) -> Result<()> {
    for on in [false, true] {
        bench.set(on)?;
        let own = bench.app.hsa.create_interrupt(1)?;
        let bad = Kernel::lasting(1_000).ends(Ends::Badly(-3)).completion(own);
        queue.queue.submit(&[bad.packet()]);
        queue.kernels([1_000]);
        queue.wait();
        ensure!(
            bench.app.hsa.load(own) == -3,
            "told {}",
            bench.app.hsa.load(own)
        );
        bench.app.hsa.destroy_signal(own)?;
    }
    Ok(())
}

/// A queue with transition packets in it stops; the others go on, and it can be destroyed.
fn stop_one<S: Lifecycle>(bench: &Bench<S>, steady: &[Worked]) -> Result<()> {
    let told = Told::default();
    let data = (&raw const told).cast_mut().cast();
    // SAFETY: `told` lives until the queue is destroyed.
    let queue = unsafe { bench.queue_with(0, 64, Some(on_error), data) }?;
    let hold = bench.app.hsa.create_interrupt(1)?;
    // Held, so that the transition's packet stands behind the fault when it comes.
    queue.queue.submit(&[wait_packet(hold)]);
    steady[0].kernels([300_000]);
    let on = bench.profiler.transitions() % 2 == 0;
    bench.set(on)?;
    queue.submit(&[Kernel::lasting(1_000).ends(Ends::Fault)]);
    queue.kernels([0, 0]);
    bench.set(!on)?;
    queue.kernels([0]);
    bench.app.hsa.store(hold, 0);
    while told.status.load(SeqCst) == 0 {
        thread::sleep(Duration::from_micros(100));
    }
    let named = told.queue.load(SeqCst);
    ensure!(
        named == queue.queue.raw(),
        "the callback names another queue"
    );
    for queue in steady {
        queue.kernels([1_000; 4]);
        queue.wait();
    }
    // It may be used until it is destroyed; nothing comes of it.
    queue.kernels([0]);
    bench.destroy(queue)?;
    bench.app.hsa.destroy_signal(hold)?;
    Ok(())
}
