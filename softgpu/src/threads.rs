//! Real threads: one for each queue's packet processor, some for handlers.
//!
//! A processor that has nothing to do yields for a while, then sleeps until a doorbell, a write of
//! a signal that it waits for, or its next kernel's end wakes it.

use crate::clock::Clock;
use crate::gpu::{Config, Gpu};
use crate::kernel::Runs;
use crate::processor::Blocked;
use crate::queue::Inner;
use crate::report::Stuck;
use crate::wake::Waker;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Idle rounds that only yield.
const YIELDS: u32 = 16;
/// Packets that are processed between two looks at whether to end.
const BATCH: usize = 64;
/// A sleep takes about this much longer than asked, so shorter waits yield.
const SLEEP_COSTS: u64 = 60_000;
/// A sleeper looks around after so long in any case.
const LONGEST_SLEEP: Duration = Duration::from_millis(2);

/// A machine that runs by itself, on real threads and in real time.
///
/// Dropping it destroys all queues and ends all threads.
#[derive(Debug)]
pub struct ThreadedGpu {
    gpu: Gpu,
    handlers: Vec<JoinHandle<()>>,
}

impl Deref for ThreadedGpu {
    type Target = Gpu;

    fn deref(&self) -> &Gpu {
        &self.gpu
    }
}

impl ThreadedGpu {
    /// Starts a machine.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let gpu = Gpu::new(&config, Clock::new_real());
        let handlers = (0..config.handler_threads.max(1))
            .map(|n| {
                let signals = gpu.signals().clone();
                spawn(format!("handlers-{n}"), move || {
                    signals.handlers.serve(&signals);
                })
            })
            .collect();
        Self { gpu, handlers }
    }

    /// The machine's handle, to be cloned.
    #[must_use]
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Waits until everything that was submitted has ended and no handler is due.
    ///
    /// # Errors
    /// Who waits for whom, as soon as nothing can go on by itself and nobody did anything for
    /// 50 ms, or when the time is over.
    ///
    /// # Panics
    /// If a handler did.
    pub fn wait_idle(&self, timeout: Duration) -> Result<(), Stuck> {
        let end = Instant::now() + timeout;
        let grace = Duration::from_millis(50);
        let mut seen = (self.progress(), Instant::now());
        loop {
            let gone = self.handlers.iter().any(JoinHandle::is_finished);
            assert!(!gone, "a handler panicked");
            if self.is_idle() {
                return Ok(());
            }
            let progress = self.progress();
            if progress != seen.0 {
                seen = (progress, Instant::now());
            }
            let still = seen.1.elapsed() >= grace && self.stands_still();
            if still || Instant::now() >= end {
                return Err(self.describe());
            }
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// Whether something is pending, nothing can go on by itself, and nothing did for `since`.
    ///
    /// For a watchdog: only host threads could still move it.
    #[must_use]
    pub fn is_stuck(&self, since: Duration) -> bool {
        let end = Instant::now() + since;
        let progress = self.progress();
        loop {
            if self.is_idle() || self.progress() != progress || !self.stands_still() {
                return false;
            }
            if Instant::now() >= end {
                return true;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// A number that goes up with all that happens.
    #[must_use]
    pub fn progress(&self) -> u64 {
        self.shared().progress() + self.gpu.handlers().calls
    }

    /// Destroys all queues and ends all threads.
    ///
    /// # Panics
    /// If a handler did.
    pub fn finish(mut self) {
        for outcome in self.end_all() {
            if let Err(panic) = outcome {
                std::panic::resume_unwind(panic);
            }
        }
    }

    fn end_all(&mut self) -> Vec<thread::Result<()>> {
        self.gpu.shut_down();
        let handlers = self.handlers.drain(..);
        // The last handle may go inside a handler, whose thread can't wait for itself.
        handlers
            .filter(|handler| handler.thread().id() != thread::current().id())
            .map(JoinHandle::join)
            .collect()
    }
}

impl Drop for ThreadedGpu {
    fn drop(&mut self) {
        self.end_all();
    }
}

fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    thread::Builder::new()
        .name(name)
        .spawn(run)
        .expect("the system gives a thread")
}

/// Starts a queue's processor.
pub(crate) fn run(queue: &Arc<Inner>) {
    let inner = queue.clone();
    let thread = spawn(format!("processor-{}", queue.id), move || process(&inner));
    *queue.thread.lock() = Some(thread);
}

/// Ends a queue's processor and waits for that.
pub(crate) fn end(queue: &Inner) {
    queue.ends.store(true, SeqCst);
    if let Some(waker) = queue.waker.get() {
        waker.wake();
    }
    let thread = queue.thread.lock().take();
    if let Some(thread) = thread {
        thread.join().expect("a processor does not panic");
    }
}

fn process(queue: &Inner) {
    let waker = Arc::new(Waker::new());
    let wakers = &queue.shared.wakers;
    let number = wakers.add(waker.clone());
    // Set once, here.
    let _ = queue.waker.set(waker.clone());
    let mut idle = 0;
    while !queue.ends.load(SeqCst) {
        if pass(queue) {
            idle = 0;
            continue;
        }
        idle += 1;
        if idle < YIELDS {
            thread::yield_now();
            continue;
        }
        waker.set_parked(true);
        let next = arrange_wake(queue, number);
        // Looked once more after the announcement: who wrote before it is seen now, who writes
        // after it wakes us.
        if !pass(queue) && !queue.ends.load(SeqCst) {
            let now = queue.shared.clock.now();
            match next.map(|deadline| deadline.saturating_sub(now)) {
                Some(left) if left < SLEEP_COSTS => thread::yield_now(),
                Some(left) => {
                    let left = Duration::from_nanos(left - SLEEP_COSTS / 2);
                    thread::park_timeout(left.min(LONGEST_SLEEP));
                }
                None => thread::park_timeout(LONGEST_SLEEP),
            }
        }
        waker.set_parked(false);
    }
    wakers.remove(number);
}

/// Asks to be woken by the signals that are waited for; when the next kernel ends.
fn arrange_wake(queue: &Inner, number: u32) -> Option<u64> {
    let processor = queue.processor.lock();
    let signals = &queue.shared.signals;
    if let Some(Blocked::Signals(_, deps)) = queue.blocked(&processor) {
        deps.iter().for_each(|dep| signals.sleep_for(*dep, number));
    }
    for kernel in processor.running() {
        if let Runs::Until(signal) = kernel.runs {
            signals.sleep_for(signal, number);
        }
    }
    processor.next_deadline(queue.shared.clock.now())
}

/// Ends and launches what can be; whether there was anything.
fn pass(queue: &Inner) -> bool {
    let mut went = queue.can_refill() && queue.refill() > 0;
    let mut processor = queue.processor.lock();
    for _ in 0..BATCH {
        let now = queue.shared.clock.now();
        while let Some(place) = processor.due(queue, now) {
            queue.end(&mut processor, place);
            went = true;
        }
        if queue.blocked(&processor).is_some() {
            break;
        }
        processor.launch(queue, queue.ring.read_index());
        queue.shared.progressed();
        went = true;
    }
    went
}
