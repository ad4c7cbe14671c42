//! Queues that are destroyed at every awkward moment, while other queues work on.

use crate::bench::{Bench, Options, Worked, wait_packet};
use crate::drive::{self, Rate};
use anyhow::{Result, ensure};
use hsa_sys::hsa_signal_t;
use hsa_tests::lifecycle::Lifecycle;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How many queues are created and destroyed.
    #[arg(long, default_value_t = 300)]
    queues: u64,
    /// Queues that work on meanwhile.
    #[arg(long, default_value_t = 2)]
    steady: usize,
    /// A thread toggles all the time, with such a pause in microseconds. Then a queue is at most on its way
    /// to the moment at which it is destroyed.
    #[arg(long, default_value_t = 0)]
    toggle_us: u64,
    /// How long the moments are waited for, in microseconds.
    #[arg(long, default_value_t = 1_000)]
    pace_us: u64,
}

/// When a queue is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// It never had a packet.
    Unused,
    /// Its kernel runs, others wait behind it.
    Pending,
    /// Its application has just heard of its kernel's completion.
    Completed,
    /// Its kernel is serialized, and another queue holds the token.
    Waiting,
    /// It holds the token.
    Holding,
    /// It has a transition packet that has not executed.
    Tagged,
    /// It was inactivated with work in it a while ago.
    Inactivated,
    /// Its application has just heard of the end of its own packet behind its kernels, of which nobody
    /// else hears; the profiler may not have heard of the kernels.
    Behind,
}

const MOMENTS: [Moment; 8] = [
    Moment::Unused,
    Moment::Pending,
    Moment::Completed,
    Moment::Waiting,
    Moment::Holding,
    Moment::Tagged,
    Moment::Inactivated,
    Moment::Behind,
];

pub(crate) fn run<S: Lifecycle>(a: &Arguments, options: &Options<S>) -> Result<Value> {
    let bench = Bench::start(options)?;
    let steady = (0..a.steady)
        .map(|_| bench.queue(0, 64))
        .collect::<Result<Vec<_>, _>>()?;
    let hold = bench.app.hsa.create_interrupt(1)?;
    let rate = Rate {
        in_flight: 12,
        longest: 10_000,
        seed: options.seed,
    };
    let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    let (toggled, pace) = (a.toggle_us > 0, Duration::from_micros(a.pace_us));
    let mut destroyed_with_work = 0;
    let outcome = thread::scope(|scope| {
        scope.spawn(|| drive::submit(&steady, rate, 0, &stop));
        scope.spawn(|| drive::watch(&steady, &seen, &stop));
        if toggled {
            let pause = Duration::from_micros(a.toggle_us);
            let (bench, stop) = (&bench, &stop);
            scope.spawn(move || drive::toggle(bench, 0, pause, stop));
        }
        let outcome = (0..a.queues).try_for_each(|n| -> Result<()> {
            let moment = MOMENTS[n as usize % MOMENTS.len()];
            if !toggled {
                bench.set(n / MOMENTS.len() as u64 % 2 == 0 || moment == Moment::Waiting)?;
            }
            let queue = bench.queue(0, 64)?;
            until(moment, pace, &bench, &queue, &steady, hold)?;
            destroyed_with_work += u64::from(queue.in_flight() > 0);
            bench.destroy(queue)?;
            // The others go on: the token was not lost.
            let before = completed(&steady);
            while completed(&steady) < before + 4 {
                thread::sleep(Duration::from_micros(50));
            }
            Ok(())
        });
        stop.store(true, SeqCst);
        outcome
    });
    outcome?;
    bench.set(true)?;
    steady.iter().for_each(|queue| queue.kernels([1_000; 4]));
    bench.settle(&steady)?;
    bench.app.hsa.destroy_signal(hold)?;
    let (app, ending) = bench.finish(steady)?;
    app.stop()?;
    let with_work = MOMENTS.len() as u64 - 3;
    ensure!(
        destroyed_with_work * MOMENTS.len() as u64 >= a.queues * with_work * 9 / 10,
        "only {destroyed_with_work} queues were destroyed with work in them"
    );
    let mut line = json!(ending);
    line["destroyed"] = json!(a.queues);
    line["destroyed_with_work"] = json!(destroyed_with_work);
    Ok(line)
}

fn completed(queues: &[Worked]) -> i64 {
    queues.iter().map(Worked::completed).sum()
}

/// Brings a queue to the moment at which it is to be destroyed.
fn until<S: Lifecycle>(
    moment: Moment,
    pace: Duration,
    bench: &Bench<S>,
    queue: &Worked,
    steady: &[Worked],
    hold: hsa_signal_t,
) -> Result<()> {
    match moment {
        Moment::Unused => {}
        Moment::Pending => queue.kernels([500_000_000, 0, 0]),
        Moment::Completed => {
            queue.kernels([1_000]);
            while queue.in_flight() > 0 {
                std::hint::spin_loop();
            }
        }
        Moment::Waiting => {
            let holder = &steady[0];
            holder.kernels([pace.as_nanos() as u64 * 4]);
            queue.kernels([500_000_000]);
            thread::sleep(pace * 2);
        }
        Moment::Holding => {
            queue.kernels([500_000_000, 0]);
            thread::sleep(pace * 4);
        }
        Moment::Behind => {
            let hsa = bench.app.hsa;
            let over = hsa.create_interrupt(1)?;
            queue.kernels([1_000, 2_000]);
            let behind = wait_packet(hsa_signal_t::NULL).with_completion_signal(over);
            queue.queue.submit(&[behind]);
            while hsa.load(over) > 0 {
                std::hint::spin_loop();
            }
            hsa.destroy_signal(over)?;
        }
        Moment::Inactivated => {
            queue.kernels([500_000_000, 0]);
            thread::sleep(pace * 2);
            bench.inactivate(queue)?;
            let before = completed(steady);
            while completed(steady) < before + 4 {
                thread::sleep(Duration::from_micros(50));
            }
        }
        Moment::Tagged => {
            queue.queue.submit(&[wait_packet(hold)]);
            steady[0].kernels([500_000]);
            let on = bench.profiler.transitions() % 2 == 0;
            bench.set(on)?;
            queue.kernels([0]);
            steady[0].kernels([0]);
            // The barrier clears meanwhile, and another one follows it.
            thread::sleep(pace * 2);
            bench.set(!on)?;
        }
    }
    Ok(())
}
