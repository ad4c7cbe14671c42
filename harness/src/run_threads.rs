//! A load on real threads, with a watchdog.

use crate::load::{Failed, Load, Run, toggle};
use crate::profiler::Profiler;
use crate::runtime::SoftRuntime;
use crate::serializing::{BoxError, Serializing};
use softgpu::{Queue, QueueConfig, ThreadedGpu};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// What the application's threads share.
struct Shared<'a, S: Serializing> {
    load: &'a Load,
    profiler: &'a Profiler<S>,
    queues: &'a [Queue],
    /// Kernels that somebody has taken upon himself to submit.
    taken: AtomicU64,
    submitted: AtomicU64,
    /// Somebody failed, or all stand still.
    stop: AtomicBool,
    working: AtomicUsize,
}

/// Runs the load; `progress` is told how many kernels were submitted.
///
/// # Errors
/// Who waits for whom, if it stands still; the error of a call that failed.
///
/// # Panics
/// If a handler or a thread of the application did.
pub fn run_threaded<S: Serializing>(
    load: &Load,
    make: impl FnOnce(SoftRuntime) -> S,
    progress: &dyn Fn(u64),
) -> Result<Run, Failed> {
    let gpu = ThreadedGpu::new(load.config());
    let profiler = Profiler::new(gpu.gpu(), gpu.agent(0), make);
    profiler.reserve(load.most_at_once());
    let queues = (0..load.queues)
        .map(|_| profiler.create_queue(QueueConfig::default()))
        .collect::<Result<Vec<_>, _>>()?;
    let shared = Shared {
        load,
        profiler: &profiler,
        queues: &queues,
        taken: AtomicU64::new(0),
        submitted: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        working: AtomicUsize::new(load.threads + 1),
    };
    let outcome = thread::scope(|scope| {
        let mut workers = vec![scope.spawn(|| shared.work(Shared::toggle))];
        for n in 0..load.threads as u64 {
            let shared = &shared;
            workers.push(scope.spawn(move || shared.work(|shared| shared.submit(n))));
        }
        let stuck = shared.watch(&gpu, progress);
        for worker in workers {
            match worker.join() {
                Ok(outcome) => outcome?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        match stuck {
            Some(waits) => Ok(Err(waits)),
            None => Ok(gpu.wait_idle(load.patience * 20)),
        }
    });
    let outcome = outcome.map_err(Failed::Error)?;
    let run = Run::read(&gpu, &profiler, &queues, None);
    match outcome {
        Err(waits) => Err(Failed::Stuck(Box::new((waits, run)))),
        Ok(()) => {
            drop(profiler);
            gpu.finish();
            Ok(run)
        }
    }
}

impl<S: Serializing> Shared<'_, S> {
    /// One worker's life; whoever fails stops the others.
    fn work(&self, run: impl FnOnce(&Self) -> Result<(), BoxError>) -> Result<(), BoxError> {
        let outcome = run(self);
        if outcome.is_err() {
            self.stop.store(true, SeqCst);
        }
        self.working.fetch_sub(1, SeqCst);
        outcome
    }

    /// Submits batches until all kernels are.
    fn submit(&self, n: u64) -> Result<(), BoxError> {
        let mut rng = fastrand::Rng::with_seed(self.load.seed ^ n << 32);
        while !self.stop.load(SeqCst) {
            if self.profiler.in_flight() >= self.load.most_in_flight {
                thread::sleep(Duration::from_micros(50));
                continue;
            }
            let first = self.taken.fetch_add(3, SeqCst);
            if first >= self.load.kernels {
                break;
            }
            let mut next = first;
            while next < (first + 3).min(self.load.kernels) {
                let mut batch = self.load.batch(&mut rng, next);
                batch.truncate((first + 3 - next) as usize);
                let queue = &self.queues[rng.usize(0..self.queues.len())];
                queue.submit(&batch)?;
                next += batch.len() as u64;
                self.submitted.fetch_add(batch.len() as u64, SeqCst);
            }
        }
        Ok(())
    }

    /// Toggles whenever that is due.
    fn toggle(&self) -> Result<(), BoxError> {
        let mut toggled = 0;
        while toggled < self.load.toggles && !self.stop.load(SeqCst) {
            if toggled < self.load.toggles_due(self.submitted.load(SeqCst)) {
                toggle(self.profiler, toggled)?;
                toggled += 1;
            } else {
                thread::sleep(Duration::from_micros(20));
            }
        }
        Ok(())
    }

    /// Watches until all are through, or nothing moves any more.
    fn watch(&self, gpu: &ThreadedGpu, progress: &dyn Fn(u64)) -> Option<softgpu::Stuck> {
        while self.working.load(SeqCst) > 0 {
            thread::sleep(Duration::from_millis(20));
            progress(self.submitted.load(SeqCst));
            let before = self.submitted.load(SeqCst);
            if gpu.is_stuck(self.load.patience) && self.submitted.load(SeqCst) == before {
                let stuck = gpu.describe();
                self.stop.store(true, SeqCst);
                return Some(stuck);
            }
        }
        progress(self.submitted.load(SeqCst));
        None
    }
}
