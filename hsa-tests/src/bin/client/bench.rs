//! The runtime with a profiler in it, and the checks that every scenario ends with.

use crate::Policy;
use anyhow::{Context, Result, ensure};
use harness::BoxError;
use hsa_serializer::Ticket;
use hsa_sys::{
    AqlPacket, hsa_barrier_and_packet_t, hsa_queue_error_callback_t, hsa_signal_t, hsa_status_t,
};
use hsa_tests::Kernels;
use hsa_tests::app::{App, AppQueue};
use hsa_tests::calls;
use hsa_tests::hsa::Hsa;
use hsa_tests::lifecycle::Lifecycle;
use hsa_tests::profiler::{Left, Profiler};
use hsa_tests::setup::{Fault, Make, QueueRequest, Setup};
use hsa_tests::tally::Live;
use hsa_tests::watchdog::{stage, step};
use hsa_tests::witness::{Counts, Witness};
use serde::Serialize;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// A completion signal that many kernels share starts here.
const MANY: i64 = 1 << 40;

/// What the command line says for every scenario.
pub(crate) struct Options<S> {
    pub(crate) make: Make<S>,
    pub(crate) policy: Policy,
    pub(crate) tail: bool,
    pub(crate) fault: Option<Fault>,
    pub(crate) seed: u64,
}

/// The runtime with a profiler in it.
pub(crate) struct Bench<S: Lifecycle> {
    pub(crate) app: App,
    pub(crate) profiler: Profiler<S>,
    pub(crate) witness: Witness,
    /// Kernels that the profiler has not met: of queues from before it came.
    pub(crate) strangers: u64,
    /// Whether a serialized kernel must have run alone: not where everything was let through.
    pub(crate) exclusive: bool,
    before: Counts,
    policy: Policy,
}

/// What a scenario ends with.
#[derive(Debug, Serialize)]
pub(crate) struct Ending {
    pub(crate) kernels: Kernels,
    pub(crate) transitions: u64,
    barriers_live_most: u64,
    pub(crate) retired_after_drain: u64,
    /// New signals whose handle an earlier one had.
    pub(crate) recycled: u64,
    /// Signals that were alive when the serializers had finished.
    live: Live,
    /// Handlers that ran when nobody waited for them any more.
    late_handlers: u64,
    pub(crate) witness: Counts,
}

/// Any error of a serializer, for `?`.
pub(crate) fn said(error: BoxError) -> anyhow::Error {
    anyhow::anyhow!(error)
}

impl<S: Lifecycle> Bench<S> {
    /// Starts the runtime and a profiler.
    pub(crate) fn start(options: &Options<S>) -> Result<Self> {
        let app = App::start()?;
        let profiler = Profiler::new(Setup {
            hsa: app.saved()?,
            make: options.make.clone(),
            tail: options.tail,
            fault: options.fault,
        });
        let witness = Witness::find()?;
        Ok(Self {
            before: witness.counts()?,
            app,
            profiler,
            witness,
            strangers: 0,
            exclusive: true,
            policy: options.policy,
        })
    }

    /// Makes a queue that is intercepted.
    pub(crate) fn queue(&self, gpu: usize, size: u32) -> Result<Worked, hsa_status_t> {
        // SAFETY: there is no callback.
        unsafe { self.queue_with(gpu, size, None, std::ptr::null_mut()) }
    }

    /// The same with an error callback.
    ///
    /// # Safety
    /// The callback can be called with the data while the queue lives.
    pub(crate) unsafe fn queue_with(
        &self,
        gpu: usize,
        size: u32,
        callback: Option<hsa_queue_error_callback_t>,
        data: *mut c_void,
    ) -> Result<Worked, hsa_status_t> {
        let request = QueueRequest {
            callback,
            data,
            ..QueueRequest::new(self.app.gpus[gpu], size)
        };
        // SAFETY: the caller's promise.
        let queue = unsafe { self.profiler.create_queue(request) }?;
        // SAFETY: it lives until `Bench::destroy`.
        Worked::over(self.app.hsa, unsafe { AppQueue::new(self.app.hsa, queue) })
    }

    /// Inactivates a queue, whatever is under way.
    pub(crate) fn inactivate(&self, queue: &Worked) -> Result<()> {
        // SAFETY: it lives.
        unsafe { self.profiler.inactivate_queue(queue.queue.raw()) }.context("hsa_queue_inactivate")
    }

    /// Destroys a queue, at once, whatever is under way.
    pub(crate) fn destroy(&self, queue: Worked) -> Result<()> {
        // SAFETY: it lives, and nobody else has it.
        unsafe { self.profiler.destroy_queue(queue.queue.raw()) }.context("hsa_queue_destroy")?;
        self.app.hsa.destroy_signal(queue.done)?;
        step();
        Ok(())
    }

    /// What the emulated GPU has counted since the start.
    pub(crate) fn counts(&self) -> Result<Counts> {
        Ok(self.witness.counts()?.since(&self.before))
    }

    /// Turns serialization on or off, for all agents.
    pub(crate) fn set(&self, on: bool) -> Result<()> {
        self.profiler.set(on).map_err(said)?;
        Ok(())
    }

    /// Waits until every kernel of these queues has completed, exactly once; the watchdog ends it if
    /// that does not happen. By then the serializer must have been told of all of them.
    pub(crate) fn settle(&self, queues: &[Worked]) -> Result<()> {
        for queue in queues {
            queue.wait();
        }
        let mut kernels = self.profiler.kernels();
        // Of a queue that is gone, the last handler may still be running, on a machine that is busy.
        let gone = kernels.abandoned > 0;
        let deadline = Instant::now() + Duration::from_secs(if gone { 20 } else { 0 });
        while !kernels.accounted_for() && Instant::now() < deadline {
            thread::sleep(Duration::from_micros(100));
            kernels = self.profiler.kernels();
        }
        ensure!(
            kernels.accounted_for(),
            "the application knows of all kernels before the serializer does: {kernels:?}"
        );
        thread::sleep(Duration::from_millis(5));
        for queue in queues {
            ensure!(
                queue.in_flight() == 0,
                "{} kernels more have completed than were submitted",
                -queue.in_flight()
            );
        }
        Ok(())
    }

    /// Destroys the queues and ends the profiler, and checks what must be so at every end. The
    /// runtime is handed back.
    pub(crate) fn finish(self, queues: Vec<Worked>) -> Result<(App, Ending)> {
        stage("the end");
        self.settle(&queues)?;
        for queue in queues {
            self.destroy(queue)?;
        }
        self.end()
    }

    /// Ends the profiler, and checks what must be so at every end. The runtime is handed back.
    pub(crate) fn end(self) -> Result<(App, Ending)> {
        let (kernels, transitions) = (self.profiler.kernels(), self.profiler.transitions());
        let barriers_live_most = self.profiler.barriers_live_most();
        let retired_after_drain = self.profiler.retired_after_drain();
        let recycled = self.profiler.tally().recycled();
        let left = self.profiler.finish(Duration::from_secs(20))?;
        let reports = self.profiler.tally().reports();
        let witness = self.witness.counts()?.since(&self.before);
        let ending = Ending {
            kernels,
            transitions,
            barriers_live_most,
            retired_after_drain,
            recycled,
            live: left.serializers,
            late_handlers: calls::late(),
            witness,
        };
        // The yardstick never destroys its `ready` signals, and has no end.
        if self.policy == Policy::Crate {
            ending.check(&left, &reports)?;
            ending.check_kernels(self.strangers, self.exclusive)?;
        }
        Ok((self.app, ending))
    }
}

impl Ending {
    fn check(&self, left: &Left, reports: &[String]) -> Result<()> {
        ensure!(reports.is_empty(), "the serializer reports: {reports:?}");
        ensure!(
            self.live.ready + self.live.gpu_only == 0,
            "signals outlive their serializers: {:?}",
            self.live
        );
        ensure!(left.all.total() == 0, "signals are left: {:?}", left.all);
        ensure!(
            left.calls == 0,
            "serializers that had finished called the runtime {} times",
            left.calls
        );
        ensure!(Ticket::lost() == 0, "{} tickets are lost", Ticket::lost());
        Ok(())
    }

    fn check_kernels(&self, strangers: u64, exclusive: bool) -> Result<()> {
        let (w, k) = (&self.witness, &self.kernels);
        ensure!(w.stale_packets == 0, "stale packets: {w:?}");
        // The runtime's own queues run no kernels here, so whatever ran beside one counts.
        ensure!(
            w.overlaps + w.beside == 0 || !exclusive,
            "serialized kernels overlap: {w:?}"
        );
        // Of a queue that was destroyed some kernels may have been started, and ended. What is passed
        // on as it is may belong to a queue that has stopped.
        let kernels = k.kernels + k.unseen + strangers;
        ensure!(
            w.kernels_ended <= kernels && w.kernels_ended + k.abandoned + k.passed_on >= kernels,
            "kernels are missing, or were run twice: {w:?} {k:?}"
        );
        ensure!(
            w.kernels_started == w.kernels_ended + w.kernels_lost,
            "kernels run on: {w:?}"
        );
        ensure!(
            w.gated <= k.serialized && w.gated + k.abandoned >= k.serialized,
            "serialized kernels without their gate: {w:?} {k:?}"
        );
        Ok(())
    }
}

/// A queue, the completion signal that all of its kernels share, and how many it was given.
pub(crate) struct Worked {
    pub(crate) queue: AppQueue,
    done: hsa_signal_t,
    submitted: AtomicI64,
    hsa: Hsa,
}

impl Worked {
    /// A queue that has had nothing to do yet.
    pub(crate) fn over(hsa: Hsa, queue: AppQueue) -> Result<Self, hsa_status_t> {
        Ok(Self {
            queue,
            done: hsa.create_interrupt(MANY)?,
            submitted: AtomicI64::new(0),
            hsa,
        })
    }

    /// The completion signal of its kernels.
    pub(crate) fn done(&self) -> hsa_signal_t {
        self.done
    }

    /// Submits kernels that are made by hand; each completes the queue's signal.
    pub(crate) fn submit(&self, kernels: &[softgpu::Kernel]) {
        let complete = |kernel: &softgpu::Kernel| kernel.completion(self.done).packet();
        let batch: Vec<AqlPacket> = kernels.iter().map(complete).collect();
        self.submitted.fetch_add(batch.len() as i64, SeqCst);
        self.queue.submit(&batch);
    }

    /// Submits a batch of kernels; each completes the queue's signal.
    pub(crate) fn kernels(&self, lasting: impl IntoIterator<Item = u64>) {
        let kernels = lasting.into_iter().map(softgpu::Kernel::lasting);
        self.submit(&kernels.collect::<Vec<_>>());
    }

    /// Kernels that have completed, as the application knows.
    pub(crate) fn completed(&self) -> i64 {
        MANY - self.hsa.load(self.done)
    }

    /// Kernels that have not completed. Less than none if one completed twice.
    pub(crate) fn in_flight(&self) -> i64 {
        // Submitted last: what is submitted meanwhile is under way, and not less than none.
        let completed = self.completed();
        self.submitted.load(SeqCst) - completed
    }

    /// Waits until every kernel has completed.
    pub(crate) fn wait(&self) {
        let mut last = self.in_flight();
        while last > 0 {
            thread::sleep(Duration::from_micros(20));
            let now = self.in_flight();
            if now != last {
                step();
                last = now;
            }
        }
    }

    /// Waits in the runtime until every kernel has completed, at most so long. Whether it has.
    pub(crate) fn wait_for(&self, patience: Duration) -> bool {
        let all = MANY - self.submitted.load(SeqCst);
        let done = self.hsa.wait_below(self.done, all + 1, patience);
        if done {
            step();
        }
        done
    }
}

/// An application's own packet that waits for a signal.
pub(crate) fn wait_packet(signal: hsa_signal_t) -> AqlPacket {
    let mut packet = hsa_barrier_and_packet_t::default();
    packet.dep_signal[0] = signal;
    AqlPacket::from(packet).with_barrier_bit()
}
