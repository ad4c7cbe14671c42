//! The machine: agents, queues, signals and checks behind one handle, for both ways to run it.

use crate::clock::Clock;
use crate::dice::Dice;
use crate::fault::Faults;
use crate::handler::HandlerStats;
use crate::queue::{Inner, MOST_SLOTS, Queue, QueueConfig, QueueState};
use crate::shared::Shared;
use crate::signal::SignalPool;
use crate::threads;
use crate::violation::{QueueId, Violations};
use crate::wake::Wakers;
use crate::witness::Witness;
use hsa_sys::{hsa_agent_t, hsa_status_t};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// What to make of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Every choice of order and of fault is drawn from it.
    pub seed: u64,
    /// How many agents there are.
    pub agents: usize,
    /// How many signals there can be.
    pub signals: usize,
    /// How many of them can be interrupt signals.
    pub interrupt_signals: u64,
    /// How many threads call handlers, where threads are real.
    pub handler_threads: usize,
    /// Whether virtual time goes on only when nothing else can happen: kernels then end on time and
    /// handlers come at once. The order of what happens at one moment is still drawn.
    pub punctual: bool,
    /// Whether the [`Witness`](crate::Witness) keeps when each kernel ran.
    pub keep_kernels: bool,
}

impl Default for Config {
    /// Seed 0, one agent, 65,536 signals of which 4,096 may be interrupt signals, one handler
    /// thread, not punctual; kernels are not kept.
    fn default() -> Self {
        Self {
            seed: 0,
            agents: 1,
            signals: 65_536,
            interrupt_signals: 4_096,
            handler_threads: 1,
            punctual: false,
            keep_kernels: false,
        }
    }
}

impl Config {
    /// The default with this seed.
    #[must_use]
    pub fn seed(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }
}

#[derive(Default)]
struct Queues {
    /// Shared, so that looking through them takes no copy.
    list: Arc<Vec<Arc<Inner>>>,
    next: u64,
    next_handle: u64,
    free_handles: Vec<u64>,
}

struct Machine {
    shared: Arc<Shared>,
    agents: Vec<hsa_agent_t>,
    queues: Mutex<Queues>,
}

/// A handle to the machine; clones are the same machine.
///
/// It is what a profiler is written against: it does not show whether time is virtual. A
/// [`VirtualGpu`](crate::VirtualGpu) or a [`ThreadedGpu`](crate::ThreadedGpu) runs it.
#[derive(Clone)]
pub struct Gpu(Arc<Machine>);

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu")
            .field("now", &self.now())
            .field("queues", &self.queues().len())
            .finish_non_exhaustive()
    }
}

impl Gpu {
    pub(crate) fn new(config: &Config, clock: Clock) -> Self {
        let clock = Arc::new(clock);
        let dice = Arc::new(Dice::new(config.seed));
        let faults = Arc::new(Faults::default());
        let violations = Arc::new(Violations::default());
        let wakers = Arc::new(Wakers::default());
        let agents: Vec<_> = (1..=config.agents as u64)
            .map(|n| hsa_agent_t { handle: 0xa000 + n })
            .collect();
        let signals = Arc::new(SignalPool::new(
            config.signals,
            config.interrupt_signals,
            clock.clone(),
            dice.clone(),
            faults.clone(),
            violations.clone(),
            wakers.clone(),
        ));
        let witness = Witness::new(&agents, violations.clone(), config.keep_kernels);
        Self(Arc::new(Machine {
            shared: Arc::new(Shared::new(
                clock, dice, faults, violations, wakers, signals, witness,
            )),
            agents,
            queues: Mutex::default(),
        }))
    }

    /// The agents' handles.
    #[must_use]
    pub fn agents(&self) -> &[hsa_agent_t] {
        &self.0.agents
    }

    /// The handle of agent `n`.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    pub fn agent(&self, n: usize) -> hsa_agent_t {
        self.0.agents[n]
    }

    /// All signals.
    #[must_use]
    pub fn signals(&self) -> &Arc<SignalPool> {
        &self.0.shared.signals
    }

    /// The checks.
    #[must_use]
    pub fn witness(&self) -> &Witness {
        &self.0.shared.witness
    }

    /// The faults to be injected.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.0.shared.faults
    }

    /// Nanoseconds since the start.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.0.shared.clock.now()
    }

    /// How many handlers there are and what became of them.
    #[must_use]
    pub fn handlers(&self) -> HandlerStats {
        self.0.shared.signals.handlers.stats()
    }

    /// Makes a queue of an agent.
    ///
    /// # Errors
    /// `ERROR_INVALID_AGENT` for what is no agent; `ERROR_INVALID_QUEUE_CREATION` where the size is
    /// no power of two, or more than [`MOST_SLOTS`].
    pub fn create_queue(
        &self,
        agent: hsa_agent_t,
        config: QueueConfig,
    ) -> Result<Queue, hsa_status_t> {
        if !self.0.agents.contains(&agent) {
            return Err(hsa_status_t::ERROR_INVALID_AGENT);
        }
        let slots = config.slots;
        if slots != 0 && !slots.is_power_of_two() || slots > MOST_SLOTS {
            return Err(hsa_status_t::ERROR_INVALID_QUEUE_CREATION);
        }
        let mut queues = self.0.queues.lock();
        let same = |queue: &&Arc<Inner>| queue.cooperative && queue.agent == agent;
        if let Some(queue) = queues.list.iter().find(same).filter(|_| config.cooperative) {
            queue.users.fetch_add(1, SeqCst);
            return Ok(Queue(queue.clone()));
        }
        let id = QueueId(queues.next);
        queues.next += 1;
        let handle = queues.free_handles.pop().unwrap_or_else(|| {
            queues.next_handle += 0x1000;
            0x7f60_0000_0000 + queues.next_handle
        });
        let shared = self.0.shared.clone();
        let inner = Arc::new(Inner::new(id, handle, agent, shared, config));
        Arc::make_mut(&mut queues.list).push(inner.clone());
        drop(queues);
        if !self.0.shared.clock.is_virtual() {
            threads::run(&inner);
        }
        Ok(Queue(inner))
    }

    /// Destroys a queue, or one user's share of a cooperative one: what was not launched is dropped, what runs never completes. When it
    /// returns, the queue's processor touches no signal any more.
    ///
    /// # Errors
    /// `ERROR_INVALID_QUEUE` if it was destroyed before.
    pub fn destroy_queue(&self, queue: &Queue) -> Result<(), hsa_status_t> {
        let mut queues = self.0.queues.lock();
        let list = Arc::make_mut(&mut queues.list);
        let Some(place) = list.iter().position(|other| other.id == queue.0.id) else {
            return Err(hsa_status_t::ERROR_INVALID_QUEUE);
        };
        // Under the lock, as its sharing is.
        if queue.0.users.fetch_sub(1, SeqCst) > 1 {
            return Ok(());
        }
        list.remove(place);
        drop(queues);
        queue.0.stop(QueueState::Destroyed);
        threads::end(&queue.0);
        self.0.queues.lock().free_handles.push(queue.0.handle);
        Ok(())
    }

    /// Inactivates a queue: what was not launched is dropped; of the kernels that run, some
    /// complete at once and the others never do, as the seed says. The queue still takes packets,
    /// through its interceptor, and drops them.
    ///
    /// # Errors
    /// `ERROR_INVALID_QUEUE` if it is destroyed.
    pub fn inactivate_queue(&self, queue: &Queue) -> Result<(), hsa_status_t> {
        if queue.state() == QueueState::Destroyed {
            return Err(hsa_status_t::ERROR_INVALID_QUEUE);
        }
        queue.0.stop(QueueState::Inactive);
        Ok(())
    }

    /// The queues that are not destroyed.
    #[must_use]
    pub fn queues(&self) -> Vec<Queue> {
        self.list().iter().cloned().map(Queue).collect()
    }

    /// Destroys all queues and forgets all handlers.
    ///
    /// Closures that hold a handle to the machine keep it alive until then.
    pub fn shut_down(&self) {
        for queue in self.queues() {
            // As often as it is shared, or until somebody else has destroyed it.
            while self.destroy_queue(&queue).is_ok() {}
        }
        self.0.shared.signals.handlers.stop();
    }

    pub(crate) fn list(&self) -> Arc<Vec<Arc<Inner>>> {
        self.0.queues.lock().list.clone()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }
}
