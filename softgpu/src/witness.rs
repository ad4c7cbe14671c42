//! The checks of what ran beside what.
//!
//! They know only what the packet processors did and when, and what the host says around its own
//! calls: that an `enable` or `disable` begins and has returned. When a dispatch began and ended is
//! told by [`Queue::submit`](crate::Queue::submit), around the call of the interceptor. Kernels
//! that no interceptor saw are outside the promise and are only counted.

use crate::period::Periods;
use crate::violation::{Counts, KernelView, QueueId, Violation, Violations};
use hsa_sys::hsa_agent_t;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

#[derive(Debug)]
struct Log {
    periods: Periods,
    /// The kernels that run now, of those that an interceptor saw.
    running: Vec<KernelView>,
    /// When they ran, in the order in which they started; nothing if it is not asked for.
    kept: Option<Vec<RanKernel>>,
    /// The newest mode of which a kernel has started, as a period's floor.
    newest: u64,
    stats: KernelStats,
}

#[derive(Debug)]
struct AgentWitness {
    agent: hsa_agent_t,
    begun: AtomicU64,
    ended: AtomicU64,
    log: Mutex<Log>,
}

/// Kernels of one agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelStats {
    /// Started.
    pub started: u64,
    /// Ended, well or badly.
    pub ended: u64,
    /// Lost with their queue while they ran.
    pub abandoned: u64,
    /// Of those started, not seen by an interceptor.
    pub unseen: u64,
    /// The most that ran at a time, of those seen.
    pub most_running: u64,
}

/// When a kernel ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RanKernel {
    /// Its queue.
    pub queue: QueueId,
    /// The index of its packet in that queue.
    pub packet: u64,
    /// The number that it was given in [`Kernel::id`](crate::Kernel::id).
    pub id: u32,
    /// When it started.
    pub started: u64,
    /// When it ended; `None` if it has not, or was lost with its queue.
    pub ended: Option<u64>,
}

/// The checks; one for the whole machine.
#[derive(Debug)]
pub struct Witness {
    agents: Box<[AgentWitness]>,
    violations: Arc<Violations>,
}

impl Witness {
    pub(crate) fn new(
        agents: &[hsa_agent_t],
        violations: Arc<Violations>,
        keep_kernels: bool,
    ) -> Self {
        let agent = |agent: &hsa_agent_t| AgentWitness {
            agent: *agent,
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            log: Mutex::new(Log {
                periods: Periods::new(),
                running: Vec::new(),
                kept: keep_kernels.then(Vec::new),
                newest: 0,
                stats: KernelStats::default(),
            }),
        };
        Self {
            agents: agents.iter().map(agent).collect(),
            violations,
        }
    }

    fn of(&self, agent: hsa_agent_t) -> &AgentWitness {
        self.agents
            .iter()
            .find(|witness| witness.agent == agent)
            .unwrap_or_else(|| panic!("{agent:?} is no agent of this machine"))
    }

    /// The host is about to call `enable`.
    pub fn enable_begin(&self, agent: hsa_agent_t) {
        self.begins(agent);
    }

    /// `enable` has returned and the agent is enabled.
    pub fn enable_end(&self, agent: hsa_agent_t) {
        self.ended(agent, Some(true));
    }

    /// The host is about to call `disable`.
    pub fn disable_begin(&self, agent: hsa_agent_t) {
        self.begins(agent);
    }

    /// `disable` has returned and the agent is disabled.
    pub fn disable_end(&self, agent: hsa_agent_t) {
        self.ended(agent, Some(false));
    }

    /// The `enable` or `disable` that had begun returned an error: it did not happen.
    pub fn transition_failed(&self, agent: hsa_agent_t) {
        self.ended(agent, None);
    }

    fn begins(&self, agent: hsa_agent_t) {
        let witness = self.of(agent);
        let mut log = witness.log.lock();
        log.periods.transition_begins();
        witness.begun.store(log.periods.begun(), SeqCst);
    }

    fn ended(&self, agent: hsa_agent_t, wanted: Option<bool>) {
        let witness = self.of(agent);
        let mut log = witness.log.lock();
        log.periods.transition_ended(wanted);
        witness.ended.store(log.periods.ended(), SeqCst);
        witness.begun.store(log.periods.begun(), SeqCst);
    }

    /// The earliest period that a dispatch which begins now may belong to.
    pub(crate) fn dispatch_begins(&self, agent: hsa_agent_t) -> u64 {
        self.of(agent).ended.load(SeqCst)
    }

    /// The latest period that a dispatch which ends now may belong to.
    pub(crate) fn dispatch_ended(&self, agent: hsa_agent_t) -> u64 {
        self.of(agent).begun.load(SeqCst)
    }

    /// A kernel starts; `seen` says whether an interceptor saw it.
    pub(crate) fn started(&self, agent: hsa_agent_t, kernel: KernelView, seen: bool) {
        let mut log = self.of(agent).log.lock();
        log.stats.started += 1;
        if !seen {
            log.stats.unseen += 1;
            return;
        }
        let mut beside = false;
        for running in &log.running {
            if log.periods.may_overlap(running.periods, kernel.periods) {
                continue;
            }
            beside = true;
            let older =
                |a: &KernelView, b: &KernelView| a.periods.1 < log.periods.floor(b.periods.0);
            let (running, started) = (running.clone(), kernel.clone());
            let modes = older(&running, &started) || older(&started, &running);
            self.violations.add(if modes {
                Violation::ModeOverlap {
                    agent,
                    running,
                    started,
                }
            } else {
                Violation::Overlap {
                    agent,
                    running,
                    started,
                }
            });
        }
        if kernel.periods.1 < log.newest && !beside {
            self.violations.add(Violation::OldAfterNew {
                agent,
                started: kernel.clone(),
                newer: log.newest,
            });
        }
        log.newest = log.newest.max(log.periods.floor(kernel.periods.0));
        if let Some(kept) = &mut log.kept {
            kept.push(RanKernel {
                queue: kernel.queue,
                packet: kernel.packet,
                id: kernel.id,
                started: kernel.started,
                ended: None,
            });
        }
        log.running.push(kernel);
        log.stats.most_running = log.stats.most_running.max(log.running.len() as u64);
    }

    /// A kernel ended then, or was lost with its queue.
    pub(crate) fn finished(
        &self,
        agent: hsa_agent_t,
        queue: QueueId,
        packet: u64,
        ended: Option<u64>,
    ) {
        let mut log = self.of(agent).log.lock();
        if ended.is_some() {
            log.stats.ended += 1;
        } else {
            log.stats.abandoned += 1;
        }
        // The kernels that run are among the last that have started.
        let mut kept = log.kept.iter_mut().flatten().rev();
        if let Some(kernel) = kept.find(|k| (k.queue, k.packet) == (queue, packet)) {
            kernel.ended = ended;
        }
        let place = log
            .running
            .iter()
            .position(|kernel| kernel.queue == queue && kernel.packet == packet);
        if let Some(place) = place {
            log.running.swap_remove(place);
        }
    }

    /// An agent's kernels, counted.
    #[must_use]
    pub fn kernels(&self, agent: hsa_agent_t) -> KernelStats {
        self.of(agent).log.lock().stats
    }

    /// When an agent's kernels ran, of those that an interceptor saw, in the order in which they
    /// started; nothing unless [`Config::keep_kernels`](crate::Config::keep_kernels) asks for it.
    #[must_use]
    pub fn kept(&self, agent: hsa_agent_t) -> Vec<RanKernel> {
        let log = self.of(agent).log.lock();
        log.kept.clone().unwrap_or_default()
    }

    /// How often the agent's mode was seen to change.
    #[must_use]
    pub fn periods(&self, agent: hsa_agent_t) -> u64 {
        self.of(agent).log.lock().periods.ended()
    }

    /// What must not have happened; at most the first thousand.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        self.violations.list()
    }

    /// How often each kind of violation was seen.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.violations.counts()
    }

    /// Panics and prints what was found, if anything was.
    ///
    /// # Panics
    /// If there is a violation.
    #[track_caller]
    pub fn assert_clean(&self) {
        let list = self.violations();
        let text: Vec<String> = list.iter().take(20).map(ToString::to_string).collect();
        assert!(
            list.is_empty(),
            "{} violations, {:?}\n{}",
            self.counts().total(),
            self.counts(),
            text.join("\n")
        );
    }
}
