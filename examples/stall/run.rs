//! One run of one program, under a serializer or none.

use crate::program::{Case, Program};
use harness::{BoxError, Profiler, Serializing, SoftRuntime, drained_serializer};
use hsa_serializer::{Domain, Serializer, Snapshot, Stall, StallPolicy, StallWatch};
use hsa_sys::hsa_agent_t;
use softgpu::{Config, Stuck, ThreadedGpu};
use std::time::{Duration, Instant};

/// Who serializes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Nobody,
    /// The design under locks, with its fix.
    Locked,
    /// This crate, which looks for what has stood still for so long.
    Crate(StallPolicy, Duration),
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum End {
    Finished,
    /// The time is over: who waits for whom.
    Hangs(Stuck),
    /// What stands still was named, and nobody was to release it: also who waits for whom then.
    Named(Vec<Stall>, Box<Snapshot>),
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) who: Who,
    pub(crate) agent: hsa_agent_t,
    pub(crate) end: End,
    pub(crate) took: Duration,
    /// What was released, in order.
    pub(crate) released: Vec<Stall>,
    /// The losses of exclusiveness that the crate counted.
    pub(crate) cost: Cost,
    /// The most kernels that ran at a time, as the emulated GPU's witness saw them, and how often one
    /// started beside another that it must not run beside.
    pub(crate) most_running: u64,
    pub(crate) overlaps: u64,
    /// What must not have happened.
    pub(crate) problems: Vec<String>,
}

/// Losses of exclusiveness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) forced: u64,
    pub(crate) overtaken: u64,
}

impl Cost {
    pub(crate) fn all(self) -> u64 {
        self.forced + self.overtaken
    }
}

/// How often somebody looks whether it is over, or plays a kernel.
const LOOK: Duration = Duration::from_micros(200);
/// For what nothing holds up, on the busiest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// Kernels that a released program dispatches afterwards.
const AFTERWARDS: u32 = 20;

/// Runs the program for so long at most.
pub(crate) fn run(case: Case, who: Who, limit: Duration) -> Result<Run, BoxError> {
    match who {
        Who::Nobody | Who::Locked => {
            let make = |runtime, _| drained_serializer(runtime);
            run_on(case, who, limit, make, |_| None)
        }
        Who::Crate(policy, after) => run_on(case, who, limit, of_agent, |serializer| {
            Some(Checks::new(serializer, policy, after))
        }),
    }
}

/// A snapshot is to say of which GPU it is.
fn of_agent(runtime: SoftRuntime, agent: hsa_agent_t) -> Serializer<SoftRuntime> {
    let builder = Serializer::<SoftRuntime>::builder().agent(agent.handle);
    builder.domain(Domain::new()).build(runtime)
}

/// The host's looking for stalls, which a profiler has a thread of its own for.
struct Checks<'a> {
    serializer: &'a Serializer<SoftRuntime>,
    watch: StallWatch<SoftRuntime>,
    policy: StallPolicy,
    every: Duration,
    next: Duration,
    released: Vec<Stall>,
}

impl<'a> Checks<'a> {
    fn new(serializer: &'a Serializer<SoftRuntime>, policy: StallPolicy, after: Duration) -> Self {
        Self {
            serializer,
            watch: serializer.watch_stalls(after, policy),
            policy,
            every: after / 8,
            next: Duration::ZERO,
            released: Vec::new(),
        }
    }

    /// What was named, if that is all that is to be done about it.
    fn look(&mut self, now: Duration) -> Option<(Vec<Stall>, Snapshot)> {
        if now < self.next {
            return None;
        }
        self.next = now + self.every;
        let stalls = self.watch.check_stalls(now);
        if self.policy == StallPolicy::Report {
            return (!stalls.is_empty()).then(|| (stalls, self.serializer.snapshot()));
        }
        let released = stalls.into_iter().filter(|stall| stall.released);
        self.released.extend(released);
        None
    }

    fn cost(&self) -> Cost {
        let statistics = self.serializer.statistics();
        Cost {
            forced: statistics.forced,
            overtaken: statistics.overtaken,
        }
    }
}

fn run_on<S: Serializing>(
    case: Case,
    who: Who,
    limit: Duration,
    make: impl FnOnce(SoftRuntime, hsa_agent_t) -> S,
    checks: impl for<'a> FnOnce(&'a S) -> Option<Checks<'a>>,
) -> Result<Run, BoxError> {
    let gpu = ThreadedGpu::new(Config::default());
    let agent = gpu.agent(0);
    let profiler = Profiler::new(gpu.gpu(), agent, |runtime| make(runtime, agent));
    let program = Program::start(case, &profiler, || {
        if who != Who::Nobody {
            profiler.enable()?;
        }
        Ok(())
    })?;
    let mut checks = checks(profiler.serializer());
    let idle = || gpu.is_idle() && profiler.in_flight() == 0;
    let begun = Instant::now();
    let end = loop {
        program.first_stores();
        let now = begun.elapsed();
        if idle() {
            break End::Finished;
        }
        if let Some((named, then)) = checks.as_mut().and_then(|checks| checks.look(now)) {
            break End::Named(named, Box::new(then));
        }
        if now >= limit {
            break End::Hangs(gpu.describe());
        }
        std::thread::sleep(LOOK);
    };
    let took = begun.elapsed();
    let seen = gpu.witness().counts();
    let overlaps = seen.overlaps + seen.mode_overlaps + seen.old_after_new;
    let most_running = gpu.witness().kernels(agent).most_running;
    let cost = checks.as_ref().map(Checks::cost).unwrap_or_default();
    let mut problems: Vec<_> = profiler
        .reports()
        .list()
        .iter()
        .map(ToString::to_string)
        .collect();
    if seen.total() > overlaps || overlaps > 0 && cost == Cost::default() {
        problems.extend(gpu.witness().violations().iter().map(ToString::to_string));
    }
    if let (End::Finished, Some(_)) = (&end, &checks) {
        // What was lost was lost once: from here on kernels run one by one again.
        program.go_on(AFTERWARDS)?;
        gpu.wait_idle(PATIENCE)?;
        if gpu.witness().counts() != seen {
            problems.push("kernels ran side by side also after the release".into());
        }
    }
    let released = checks.map(|checks| checks.released).unwrap_or_default();
    drop(program);
    // What hangs goes with its queues.
    gpu.finish();
    Ok(Run {
        who,
        agent,
        end,
        took,
        released,
        cost,
        most_running,
        overlaps,
        problems,
    })
}
