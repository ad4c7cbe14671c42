//! An application that knows of no profiler. The test tool may make one of it (`HSA_TEST_TOOL`).

use crate::bench::Worked;
use anyhow::{Result, ensure};
use hsa_tests::app::App;
use hsa_tests::watchdog::step;
use hsa_tests::witness::Witness;
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(long, default_value_t = 3, value_parser = crate::some)]
    queues: usize,
    /// Kernels of each queue.
    #[arg(long, default_value_t = 400)]
    kernels: u64,
    /// How often the runtime is initialized and shut down.
    #[arg(long, default_value_t = 1)]
    inits: u64,
    /// The runtime is shut down under live queues with work in them.
    #[arg(long)]
    leave_queues: bool,
    /// The program ends without shutting the runtime down, with work in its queues.
    #[arg(long)]
    no_shutdown: bool,
}

pub(crate) fn run(a: &Arguments) -> Result<Value> {
    let (mut kernels, mut waited) = (0, 0);
    let mut witness = None;
    for _ in 0..a.inits {
        let app = App::start()?;
        // A user more, who goes before the work is done.
        let other = App::start()?;
        let queues = (0..a.queues)
            .map(|n| {
                let queue = app.create_queue(app.gpus[n % app.gpus.len()], 64)?;
                Worked::over(app.hsa, queue)
            })
            .collect::<Result<Vec<_>, _>>()?;
        for queue in &queues {
            // SAFETY: it lives.
            unsafe { app.hsa.profile(queue.queue.raw(), true) }?;
        }
        other.stop()?;
        thread::scope(|scope| {
            let workers: Vec<_> = queues
                .iter()
                .enumerate()
                .map(|(n, queue)| {
                    let (app, agent) = (&app, app.gpus[n % app.gpus.len()]);
                    scope.spawn(move || work(queue, a.kernels, || app_times(app, agent, queue)))
                })
                .collect();
            workers.into_iter().try_for_each(|worker| {
                waited += worker.join().expect("a failing thread ends the process")?;
                anyhow::Ok(())
            })
        })?;
        kernels += a.kernels * a.queues as u64;
        witness = Some(Witness::find()?);
        if a.no_shutdown {
            queues.iter().for_each(|q| q.kernels([1_000_000_000, 0]));
            break;
        }
        if a.leave_queues {
            queues.iter().for_each(|q| q.kernels([1_000_000_000, 0]));
            thread::sleep(Duration::from_millis(1));
        } else {
            for queue in queues {
                let done = queue.done();
                queue.queue.destroy()?;
                app.hsa.destroy_signal(done)?;
            }
        }
        app.stop()?;
        step();
    }
    let counts = witness.map(|witness| witness.counts()).transpose()?;
    Ok(json!({ "kernels": kernels, "waited": waited, "witness": counts }))
}

/// Submits kernels, a few at a time, and waits for them. How often it waited.
fn work(queue: &Worked, kernels: u64, times: impl Fn() -> Result<()>) -> Result<u64> {
    let (mut left, mut waited) = (kernels, 0);
    while left > 0 {
        let few = left.min(8);
        queue.kernels((0..few).map(|n| 1_000 + n * 1_000));
        left -= few;
        ensure!(queue.wait_for(Duration::from_secs(60)), "kernels are lost");
        ensure!(queue.in_flight() == 0, "a kernel has completed twice");
        times()?;
        waited += 1;
    }
    Ok(waited)
}

/// Asks when the last kernel ran, as an application does that measures.
fn app_times(app: &App, agent: hsa_sys::hsa_agent_t, queue: &Worked) -> Result<()> {
    let times = app.hsa.times(agent, queue.done())?;
    ensure!(
        times.start != 0 && times.end >= times.start + 900,
        "a kernel of at least a microsecond has run as {times:?}"
    );
    Ok(())
}
