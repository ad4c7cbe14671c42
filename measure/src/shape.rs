//! Something that can be measured.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// An operation, with everything that it needs: does it so many times, and says how long that took
/// without what it had to prepare.
pub struct Shape(Box<dyn FnMut(u64) -> Duration + Send>);

impl Shape {
    /// Of what takes its own time.
    pub fn new(run: impl FnMut(u64) -> Duration + Send + 'static) -> Self {
        Self(Box::new(run))
    }

    /// Of what does it so many times and nothing else.
    pub fn timed(mut run: impl FnMut(u64) + Send + 'static) -> Self {
        Self::new(move |n| {
            let start = Instant::now();
            run(n);
            start.elapsed()
        })
    }

    /// Of what is done `size` times between two preparations: `batch` does that, and says how long
    /// it took.
    pub fn batched(size: u64, mut batch: impl FnMut() -> Duration + Send + 'static) -> Self {
        Self::new(move |n| {
            let batches = n.div_ceil(size).max(1);
            let all: Duration = (0..batches).map(|_| batch()).sum();
            all.mul_f64(n as f64 / (batches * size) as f64)
        })
    }

    /// Does it `n` times.
    pub fn run(&mut self, n: u64) -> Duration {
        (self.0)(n)
    }

    /// The same shape, with something else kept alive.
    #[must_use]
    pub fn keeping(mut self, kept: impl Send + 'static) -> Self {
        Self::new(move |n| {
            let _ = &kept;
            self.run(n)
        })
    }

    /// Two threads at once, each of which does it `n` times; the time is the slower one's.
    pub fn pair(a: impl FnMut(u64) + Send + 'static, b: impl FnMut(u64) + Send + 'static) -> Self {
        Self::prepared_pair(|_| {}, a, b)
    }

    /// The same; `prepare` is called first on the first one's thread, untimed.
    pub fn prepared_pair(
        mut prepare: impl FnMut(u64) + Send + 'static,
        mut a: impl FnMut(u64) + Send + 'static,
        mut b: impl FnMut(u64) + Send + 'static,
    ) -> Self {
        let line = Arc::new(StartLine::default());
        let other = line.clone();
        let first = Worker::spawn(0, move |n| {
            prepare(n);
            line.cross();
            let start = Instant::now();
            a(n);
            start.elapsed()
        });
        let second = Worker::spawn(1, move |n| {
            other.cross();
            let start = Instant::now();
            b(n);
            start.elapsed()
        });
        Self::new(move |n| {
            first.order(n);
            second.order(n);
            first.result().max(second.result())
        })
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shape")
    }
}

/// Lets two threads start at once. They spin: being woken takes longer than much of what is measured.
#[derive(Default)]
struct StartLine(AtomicU64);

impl StartLine {
    fn cross(&self) {
        let came = self.0.fetch_add(1, Ordering::AcqRel);
        let both = came / 2 * 2 + 2;
        let mut spins = 0_u32;
        while self.0.load(Ordering::Acquire) < both {
            spins += 1;
            wait_a_little(spins);
        }
    }
}

/// What stands in a spinning loop: the other thread may not be running at all.
pub(crate) fn wait_a_little(spins: u32) {
    if spins % (1 << 12) == 0 {
        thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

/// A thread that does what it is ordered to, on a core of its own. Spawned outside of what is timed; it
/// ends with this.
struct Worker {
    orders: Option<Sender<u64>>,
    results: Receiver<Duration>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn spawn(which: usize, mut work: impl FnMut(u64) -> Duration + Send + 'static) -> Self {
        let (orders, ordered) = mpsc::channel();
        let (done, results) = mpsc::channel();
        let thread = thread::spawn(move || {
            // Two threads that wait for each other are slow by a thousand times on one core. Where there
            // is but one, nothing can be done.
            let cores = core_affinity::get_core_ids().unwrap_or_default();
            if let Some(core) = cores.get(which) {
                core_affinity::set_for_current(*core);
            }
            while let Ok(n) = ordered.recv() {
                if done.send(work(n)).is_err() {
                    return;
                }
            }
        });
        Self {
            orders: Some(orders),
            results,
            thread: Some(thread),
        }
    }

    fn order(&self, n: u64) {
        let orders = self.orders.as_ref().expect("taken away by drop alone");
        orders.send(n).expect("the thread ends after this");
    }

    fn result(&self) -> Duration {
        self.results.recv().expect("the thread has not panicked")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // No more orders come: the thread ends.
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            // Where it has panicked, that was said.
            let _ = thread.join();
        }
    }
}
