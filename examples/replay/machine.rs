//! One replay on the emulated GPU.

use crate::plan::{Plan, Planned};
use harness::{BoxError, Profiler, SoftRuntime, crate_serializer};
use hsa_serializer::{Event, QueueId as SerializerQueue, Serializer, Statistics};
use hsa_serializer_inspect::timeline::Log;
use softgpu::{Config, Kernel, Queue, QueueConfig, QueueId, Step, VirtualGpu};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// When serialization is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    AsItWas,
    Serialized,
    /// On and off every so many nanoseconds, off at first.
    Toggled(u64),
}

/// What the packet processor did with a kernel, and with the packets in front of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ran {
    /// When the packet before all of these was launched.
    pub(crate) before: u64,
    /// When its transition packet was launched, if it had one.
    pub(crate) transition: Option<u64>,
    /// When it was ready and asked for the token, and when it had it, if it was serialized.
    pub(crate) token: Option<(u64, u64)>,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// What came of a replay.
#[derive(Debug)]
pub(crate) struct Replay {
    /// As the plan has them.
    pub(crate) ran: Vec<Ran>,
    /// By agent.
    pub(crate) statistics: Vec<Statistics>,
    /// What the serializers did, by agent.
    pub(crate) events: Vec<Vec<(Duration, Event)>>,
    /// The serializers' names of the queues.
    pub(crate) queues: Vec<SerializerQueue>,
    /// What must not have happened.
    pub(crate) problems: Vec<String>,
}

/// So many handlers called in a row, all of which ask to be called again, are a standstill.
const SPINNING: u32 = 10_000;
/// So many violations are listed.
const LISTED: usize = 20;

/// What was seen of a queue.
#[derive(Debug, Default)]
struct Seen {
    /// When each packet was launched.
    launched: Vec<u64>,
    /// The packets that were kernels, with their ends.
    ended: Vec<(u64, u64)>,
}

struct Machine {
    gpu: VirtualGpu,
    profilers: Vec<Profiler<Serializer<SoftRuntime>>>,
    logs: Vec<Arc<Log>>,
    queues: Vec<Queue>,
    index_of: HashMap<QueueId, usize>,
    seen: Vec<Seen>,
    ended: usize,
    spinning: u32,
    enabled: bool,
    every: Option<u64>,
    next_toggle: Option<u64>,
}

/// Replays the plan.
///
/// # Errors
/// Who waits for whom, if it stands still; a call that failed.
pub(crate) fn replay(plan: &Plan, mode: Mode, seed: u64) -> Result<Replay, BoxError> {
    let mut machine = Machine::new(plan, mode, seed)?;
    for (kernel, number) in plan.kernels.iter().zip(0..) {
        machine.go_on_until(kernel.at)?;
        machine.submit(kernel, number)?;
    }
    machine.finish(plan.kernels.len())?;
    let problems = machine.problems();
    let statistics = machine.profilers.iter();
    let statistics = statistics.map(|p| p.serializer().statistics()).collect();
    let events = machine.logs.iter().map(|log| log.take()).collect();
    let queues = machine.named();
    let ran = machine.tell(plan)?;
    machine.destroy_queues()?;
    Ok(Replay {
        ran,
        statistics,
        events,
        queues,
        problems,
    })
}

impl Machine {
    fn new(plan: &Plan, mode: Mode, seed: u64) -> Result<Self, BoxError> {
        // Enough that no kernel is turned away, however many are behind: each has a completion
        // signal and may keep a barrier, each queue has two signals.
        let signals = 2 * (plan.kernels.len() + plan.agent_of.len()) + 1_024;
        let gpu = VirtualGpu::new(Config {
            agents: plan.agents,
            signals,
            interrupt_signals: signals as u64,
            punctual: true,
            ..Config::seed(seed)
        });
        let (mut profilers, mut logs) = (Vec::new(), Vec::new());
        for agent in gpu.agents() {
            profilers.push(Profiler::new(gpu.gpu(), *agent, |runtime| {
                let log = Arc::new(Log::new(runtime.clock()));
                logs.push(log.clone());
                crate_serializer(runtime.observed_by(log))
            }));
        }
        let mut queues = Vec::new();
        for agent in &plan.agent_of {
            queues.push(profilers[*agent].create_queue(QueueConfig {
                most_running: usize::MAX,
                check_fences: true,
                ..QueueConfig::default()
            })?);
        }
        let every = match mode {
            Mode::Toggled(every) => Some(every),
            Mode::AsItWas | Mode::Serialized => None,
        };
        let mut machine = Self {
            index_of: queues.iter().map(Queue::id).zip(0..).collect(),
            seen: queues.iter().map(|_| Seen::default()).collect(),
            gpu,
            profilers,
            logs,
            queues,
            ended: 0,
            spinning: 0,
            enabled: false,
            every,
            next_toggle: every,
        };
        if mode == Mode::Serialized {
            machine.toggle()?;
        }
        Ok(machine)
    }

    fn submit(&self, kernel: &Planned, number: u32) -> Result<(), BoxError> {
        let packet = Kernel::lasting(kernel.lasts).id(number).packet();
        let packet = if kernel.barrier {
            packet.with_barrier_bit()
        } else {
            packet
        };
        Ok(self.queues[kernel.queue].submit(&[packet])?)
    }

    fn toggle(&mut self) -> Result<(), BoxError> {
        self.enabled = !self.enabled;
        for profiler in &self.profilers {
            if self.enabled {
                profiler.enable()?;
            } else {
                profiler.disable()?;
            }
        }
        if let (Some(next), Some(every)) = (&mut self.next_toggle, self.every) {
            *next = next.saturating_add(every);
        }
        Ok(())
    }

    /// Lets all happen that is due by then, toggles included.
    fn go_on_until(&mut self, when: u64) -> Result<(), BoxError> {
        loop {
            let toggle = self.next_toggle.filter(|next| *next <= when);
            while let Some(step) = self.gpu.step_until(toggle.unwrap_or(when)) {
                self.note(step)?;
            }
            if toggle.is_none() {
                return Ok(());
            }
            self.toggle()?;
        }
    }

    /// Everything is submitted: lets it run to its end.
    fn finish(&mut self, kernels: usize) -> Result<(), BoxError> {
        while !self.is_done(kernels) {
            let step = match self.next_toggle {
                Some(next) => self.gpu.step_until(next),
                None => self.gpu.step(),
            };
            match step {
                Some(step) => self.note(step)?,
                // Toggling is not what it should need to go on.
                None if self.gpu.stands_still() => return Err(self.gpu.describe().into()),
                None => self.toggle()?,
            }
        }
        Ok(())
    }

    fn is_done(&self, kernels: usize) -> bool {
        self.ended == kernels && self.profilers.iter().all(|p| p.in_flight() == 0)
    }

    fn note(&mut self, step: Step) -> Result<(), BoxError> {
        let now = self.gpu.now();
        self.spinning = match step {
            Step::Called { kept: true, .. } => self.spinning + 1,
            _ => 0,
        };
        if self.spinning > SPINNING {
            return Err(self.gpu.describe().into());
        }
        match step {
            // Packets are launched in order, from 0.
            Step::Launched { queue, .. } => {
                self.seen[self.index_of[&queue]].launched.push(now);
            }
            Step::Ended { queue, packet } => {
                self.seen[self.index_of[&queue]].ended.push((packet, now));
                self.ended += 1;
            }
            _ => {}
        }
        Ok(())
    }

    fn problems(&self) -> Vec<String> {
        let witness = self.gpu.witness();
        let violations = witness.violations();
        let mut problems: Vec<_> = violations
            .iter()
            .take(LISTED)
            .map(|v| v.to_string())
            .collect();
        let total = witness.counts().total();
        if total > problems.len() as u64 {
            problems.push(format!("{total} violations in all"));
        }
        for profiler in &self.profilers {
            let reports = profiler.reports().list();
            problems.extend(reports.iter().take(LISTED).map(|report| report.to_string()));
            let passed_on = profiler.passed_on();
            if passed_on > 0 {
                problems.push(format!("{passed_on} kernels went past the serializer"));
            }
        }
        problems
    }

    /// What became of each kernel of the plan.
    ///
    /// # Errors
    /// If the packets in front of a kernel are not what a dispatch injects.
    fn tell(&mut self, plan: &Plan) -> Result<Vec<Ran>, BoxError> {
        let mut queues = Vec::new();
        for (n, seen) in self.seen.iter_mut().enumerate() {
            seen.ended.sort_unstable();
            let ran = seen.tell().map_err(|e| format!("queue {n}: {e}"))?;
            queues.push(ran.into_iter());
        }
        // The kernels of a queue are launched in the order in which they were submitted.
        let ran = plan
            .kernels
            .iter()
            .map(|kernel| queues[kernel.queue].next());
        Ok(ran.collect::<Option<_>>().ok_or("a kernel did not run")?)
    }

    /// The serializers' names of the queues.
    fn named(&self) -> Vec<SerializerQueue> {
        let queues = self.queues.iter();
        let named = queues.filter_map(|q| self.profilers.iter().find_map(|p| p.id_of(q)));
        named.collect()
    }

    fn destroy_queues(&self) -> Result<(), BoxError> {
        for profiler in &self.profilers {
            for queue in &self.queues {
                if profiler.id_of(queue).is_some() {
                    profiler.destroy_queue(queue)?;
                }
            }
        }
        Ok(())
    }
}

impl Seen {
    /// What each packet was follows from how many stand in front of a kernel: none; a transition
    /// packet; "I am ready" and "it is my turn"; or all three.
    fn tell(&self) -> Result<Vec<Ran>, String> {
        let mut next = 0;
        let mut told = Vec::new();
        for (packet, end) in &self.ended {
            let kernel = *packet as usize;
            let at = |packet: usize| self.launched[packet];
            let (transition, token) = match kernel - next {
                0 => (None, None),
                1 => (Some(at(next)), None),
                2 => (None, Some((at(next), at(next + 1)))),
                3 => (Some(at(next)), Some((at(next + 1), at(next + 2)))),
                n => return Err(format!("{n} packets in front of packet {kernel}")),
            };
            told.push(Ran {
                before: next.checked_sub(1).map_or(0, at),
                transition,
                token,
                start: at(kernel),
                end: *end,
            });
            next = kernel + 1;
        }
        Ok(told)
    }
}
