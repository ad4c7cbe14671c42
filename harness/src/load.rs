//! An application: queues, threads that submit kernels, somebody who toggles.

use crate::flights::WaitTimes;
use crate::profiler::Profiler;
use crate::serializing::{BoxError, Counters, Serializing};
use hsa_serializer::{QueueId, Report};
use hsa_sys::AqlPacket;
use softgpu::{Config, Counts, Gpu, Kernel, KernelStats, Queue, SignalStats, Stuck, Violation};
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

/// What the application does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// How many queues it has.
    pub queues: usize,
    /// How many threads submit to them, where threads are real.
    pub threads: usize,
    /// How many kernels it submits in all.
    pub kernels: u64,
    /// How often serialization is turned on or off meanwhile, evenly spread.
    pub toggles: u64,
    /// It holds back while so many kernels are under way.
    pub most_in_flight: usize,
    /// The longest kernel, in nanoseconds.
    pub longest: u64,
    /// Every choice comes from it; where threads are real, only the load's own.
    pub seed: u64,
    /// Nothing may stand still for so long, where threads are real.
    pub patience: Duration,
    /// Whether [`Run::ran`] is wanted.
    pub keep_kernels: bool,
}

impl Default for Load {
    /// 4 queues, 2 threads, 2,000 kernels of up to 20 us, 200 toggles, 64 kernels under way.
    fn default() -> Self {
        Self {
            queues: 4,
            threads: 2,
            kernels: 2_000,
            toggles: 200,
            most_in_flight: 64,
            longest: 20_000,
            seed: 1,
            patience: Duration::from_millis(500),
            keep_kernels: false,
        }
    }
}

impl Load {
    pub(crate) fn config(&self) -> Config {
        Config {
            keep_kernels: self.keep_kernels,
            ..Config::seed(self.seed)
        }
    }

    /// So many kernels may be under way: each thread may add a batch to what it looked at.
    pub(crate) fn most_at_once(&self) -> usize {
        self.most_in_flight + 3 * self.threads
    }

    /// The next batch: one kernel, or a few. They may overlap where nobody serializes them.
    pub(crate) fn batch(&self, rng: &mut fastrand::Rng, first: u64) -> Vec<AqlPacket> {
        let most = (self.kernels - first).min(3);
        (0..rng.u64(1..=most))
            .map(|n| {
                let lasts = rng.u64(self.longest / 4..=self.longest);
                let kernel = Kernel::lasting(lasts).id((first + n) as u32);
                kernel.packet()
            })
            .collect()
    }

    /// How many toggles are due once so many kernels were submitted.
    pub(crate) fn toggles_due(&self, kernels: u64) -> u64 {
        let due = u128::from(kernels) * u128::from(self.toggles) / u128::from(self.kernels.max(1));
        due as u64
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Run {
    /// What the serializer did.
    pub counters: Counters,
    /// The kernels, as the packet processors saw them.
    pub kernels: KernelStats,
    /// The signals.
    pub signals: SignalStats,
    /// What must not have happened, counted.
    pub violations: Counts,
    /// The first thousand of them.
    pub examples: Vec<Violation>,
    /// What the serializer reported.
    pub reports: Vec<Report>,
    /// Kernels that went past the serializer.
    pub passed_on: u64,
    /// Waits of serialized kernels.
    pub serialized: WaitTimes,
    /// Waits of the others.
    pub unserialized: WaitTimes,
    /// How long it took, by the machine's clock.
    pub took: Duration,
    /// Where time is virtual, a hash of all that happened.
    pub trace: Option<u64>,
    /// The queues, in the order in which they were made.
    pub queues: Vec<QueueId>,
    /// When each kernel ran, in the order in which they started, if [`Load::keep_kernels`] asks for it.
    pub ran: Vec<RanKernel>,
}

/// When a kernel of the load ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RanKernel {
    /// Its queue.
    pub queue: QueueId,
    /// Which of its queue's dispatches it was, from 0.
    pub dispatch: u64,
    /// Which of the load's kernels it was, from 0.
    pub number: u32,
    /// When it started, by the machine's clock.
    pub started: Duration,
    /// When it ended; `None` if it had not.
    pub ended: Option<Duration>,
}

impl Run {
    pub(crate) fn read<S: Serializing>(
        gpu: &Gpu,
        profiler: &Profiler<S>,
        queues: &[Queue],
        trace: Option<u64>,
    ) -> Self {
        let (serialized, unserialized) = profiler.waits();
        Self {
            counters: profiler.counters(),
            kernels: gpu.witness().kernels(gpu.agent(0)),
            signals: gpu.signals().stats(),
            violations: gpu.witness().counts(),
            examples: gpu.witness().violations(),
            reports: profiler.reports().list(),
            passed_on: profiler.passed_on(),
            serialized,
            unserialized,
            took: Duration::from_nanos(gpu.now()),
            trace,
            queues: queues.iter().filter_map(|q| profiler.id_of(q)).collect(),
            ran: ran(gpu, profiler, queues),
        }
    }

    /// The name of a counter that is zero, so that the run has tested nothing. `drains` says
    /// whether this serializer keeps barriers until they are drained.
    #[must_use]
    pub fn untested(&self, drains: bool) -> Option<&'static str> {
        let c = &self.counters;
        [
            (
                "transitions that counted somebody",
                c.transitions_that_counted,
            ),
            ("tags handed out", c.tags),
            ("handles recycled", self.signals.recycled),
            (
                "retired after their drain",
                c.retired_after_drain + u64::from(!drains),
            ),
            (
                "grants that waited for the token (two queues at the least)",
                c.grants_contended,
            ),
        ]
        .into_iter()
        .find_map(|(name, count)| (count == 0).then_some(name))
    }
}

/// When the kernels ran, by the serializer's names of their queues.
fn ran<S: Serializing>(gpu: &Gpu, profiler: &Profiler<S>, queues: &[Queue]) -> Vec<RanKernel> {
    let ids = queues
        .iter()
        .filter_map(|q| Some((q.id(), (profiler.id_of(q)?, 0))));
    let mut ids: HashMap<_, _> = ids.collect();
    let ran = gpu.witness().kept(gpu.agent(0)).into_iter();
    let ran = ran.filter_map(|kernel| {
        let (queue, dispatched) = ids.get_mut(&kernel.queue)?;
        // A queue's packets start in order.
        let dispatch = *dispatched;
        *dispatched += 1;
        Some(RanKernel {
            queue: *queue,
            dispatch,
            number: kernel.id,
            started: Duration::from_nanos(kernel.started),
            ended: kernel.ended.map(Duration::from_nanos),
        })
    });
    ran.collect()
}

/// Why it did not come to an end.
#[derive(Debug)]
pub enum Failed {
    /// It stands still: who waits for whom, and what had come of it until then.
    Stuck(Box<(Stuck, Run)>),
    /// A call failed.
    Error(BoxError),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stuck(stuck) => write!(
                f,
                "stuck after {} transitions, {}",
                stuck.1.counters.transitions, stuck.0
            ),
            Self::Error(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Failed {}

impl From<BoxError> for Failed {
    fn from(error: BoxError) -> Self {
        Self::Error(error)
    }
}

pub(crate) fn toggle<S: Serializing>(profiler: &Profiler<S>, n: u64) -> Result<(), BoxError> {
    if n % 2 == 0 {
        profiler.enable()?;
    } else {
        profiler.disable()?;
    }
    Ok(())
}
