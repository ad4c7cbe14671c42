//! Threads that submit as fast as the queues take it, and threads that toggle.

use crate::bench::{Bench, Worked, wait_packet};
use hsa_sys::hsa_signal_t;
use hsa_tests::lifecycle::Lifecycle;
use hsa_tests::watchdog::step;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// What the submitting threads do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// They hold back while a queue has so many kernels under way.
    pub(crate) in_flight: i64,
    /// The longest kernel, in nanoseconds.
    pub(crate) longest: u64,
    pub(crate) seed: u64,
}

/// Submits batches of a few kernels to these queues in turn, with a barrier packet of the
/// application's own now and then, until told to stop.
pub(crate) fn submit(queues: &[Worked], rate: Rate, thread: u64, stop: &AtomicBool) {
    let mut rng = fastrand::Rng::with_seed(rate.seed ^ thread << 32);
    while !stop.load(SeqCst) {
        let mut submitted = false;
        for queue in queues {
            if queue.in_flight() >= rate.in_flight {
                continue;
            }
            let few = rng.usize(1..=4);
            queue.kernels((0..few).map(|_| rng.u64(0..=rate.longest)));
            if rng.u8(0..16) == 0 {
                queue.queue.submit(&[wait_packet(hsa_signal_t::NULL)]);
            }
            submitted = true;
        }
        if !submitted {
            thread::sleep(Duration::from_micros(20));
        }
    }
}

/// Toggles the serializer of one agent until told to stop, pausing in between. How often it did.
pub(crate) fn toggle<S: Lifecycle>(
    bench: &Bench<S>,
    gpu: usize,
    pause: Duration,
    stop: &AtomicBool,
) -> u64 {
    let agent = bench.app.gpus[gpu];
    let serializer = bench.profiler.serializer(agent).expect("it is not on");
    let mut toggles = 0;
    while !stop.load(SeqCst) {
        let outcome = match toggles % 2 {
            0 => serializer.enable(),
            _ => serializer.disable(),
        };
        if let Err(e) = outcome {
            panic!("toggle {toggles}: {e}");
        }
        toggles += 1;
        if pause.is_zero() {
            thread::yield_now();
        } else {
            thread::sleep(pause);
        }
    }
    toggles
}

/// Tells the watchdog whenever kernels have completed, until told to stop. How many had.
pub(crate) fn watch(queues: &[Worked], seen: &AtomicU64, stop: &AtomicBool) {
    while !stop.load(SeqCst) {
        let completed = queues.iter().map(|q| q.completed() as u64).sum();
        if seen.swap(completed, SeqCst) != completed {
            step();
        }
        thread::sleep(Duration::from_millis(10));
    }
}
