//! The profiler: it intercepts queues, hears of completions and toggles.

use crate::batch::{self, Around};
use crate::flights::{CompletionPool, Flight, Flights, WaitTimes, Waits};
use crate::lock;
use crate::runtime::{Reports, SoftRuntime};
use crate::serializing::{BoxError, Counters, Serializing};
use hsa_serializer::{Handler, QueueId};
use hsa_sys::{AqlPacket, PacketType, SignalCondition, hsa_agent_t, hsa_signal_t, hsa_status_t};
use softgpu::{Gpu, Kernel, Queue, QueueConfig};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

/// Says which packets of the profiler's own go around a serialized kernel.
pub type Instrument = Box<dyn Fn(&AqlPacket) -> Around + Send + Sync>;

/// What interceptors, handlers and the profiler share.
struct Core<S: Serializing> {
    serializer: Arc<S>,
    gpu: Gpu,
    pool: CompletionPool,
    instrument: Option<Instrument>,
    serialized: Waits,
    unserialized: Waits,
    /// Kernels that were passed on as they were.
    passed_on: AtomicU64,
}

/// A queue that is intercepted.
struct Watched<S: Serializing> {
    id: QueueId,
    flights: Flights<S::Ticket>,
}

/// A profiler of one agent.
///
/// Its interceptors and handlers hold the machine's handle, until the queues are destroyed or the
/// machine is shut down.
pub struct Profiler<S: Serializing> {
    core: Arc<Core<S>>,
    agent: hsa_agent_t,
    reports: Reports,
    queues: Mutex<HashMap<softgpu::QueueId, Arc<Watched<S>>>>,
    /// The witness checks exactly what is toggled one at a time.
    toggles: Mutex<()>,
}

impl<S: Serializing> fmt::Debug for Profiler<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profiler")
            .field("agent", &self.agent)
            .field("queues", &lock(&self.queues).len())
            .finish_non_exhaustive()
    }
}

impl<S: Serializing> Profiler<S> {
    /// A profiler of this agent, with the serializer that `make` makes.
    pub fn new(gpu: &Gpu, agent: hsa_agent_t, make: impl FnOnce(SoftRuntime) -> S) -> Self {
        Self::build(gpu, agent, make, None)
    }

    /// One that puts packets of its own around serialized kernels.
    pub fn instrumented(
        gpu: &Gpu,
        agent: hsa_agent_t,
        make: impl FnOnce(SoftRuntime) -> S,
        instrument: Instrument,
    ) -> Self {
        Self::build(gpu, agent, make, Some(instrument))
    }

    fn build(
        gpu: &Gpu,
        agent: hsa_agent_t,
        make: impl FnOnce(SoftRuntime) -> S,
        instrument: Option<Instrument>,
    ) -> Self {
        let reports = Reports::default();
        let serializer = Arc::new_cyclic(|weak: &Weak<S>| {
            let weak = weak.clone();
            let on_ready = move |queue| match weak.upgrade() {
                Some(serializer) => serializer.ready(queue),
                None => Handler::Drop,
            };
            make(SoftRuntime::new(gpu, on_ready, reports.clone()))
        });
        Self {
            core: Arc::new(Core {
                serializer,
                gpu: gpu.clone(),
                pool: CompletionPool::new(gpu.signals().clone()),
                instrument,
                serialized: Waits::default(),
                unserialized: Waits::default(),
                passed_on: AtomicU64::new(0),
            }),
            agent,
            reports,
            queues: Mutex::default(),
            toggles: Mutex::new(()),
        }
    }

    /// The serializer.
    #[must_use]
    pub fn serializer(&self) -> &S {
        &self.core.serializer
    }

    /// The machine.
    #[must_use]
    pub fn gpu(&self) -> &Gpu {
        &self.core.gpu
    }

    /// Creates so many completion signals ahead of their use, so that creating them does not take
    /// the handles that transitions give back.
    pub fn reserve(&self, signals: usize) {
        self.core.pool.reserve(signals);
    }

    /// Makes a queue of the agent and intercepts it. `config` may have an error callback, which is
    /// called after the profiler has dealt with the error; an interceptor in it is replaced.
    ///
    /// # Errors
    /// What the serializer or the machine said.
    pub fn create_queue(&self, mut config: QueueConfig) -> Result<Queue, BoxError> {
        let half = self.core.serializer.add_queue()?;
        let watched = Arc::new(Watched::<S> {
            id: S::id(&half),
            flights: Flights::new(),
        });
        let mut interceptor = Interceptor {
            core: self.core.clone(),
            watched: watched.clone(),
            half,
        };
        config.interceptor = Some(Box::new(move |given, out| {
            interceptor.intercept(given, out);
        }));
        // Weak: the machine keeps the callback for as long as somebody has a handle of the queue.
        let (core, gone) = (Arc::downgrade(&self.core), watched.clone());
        let mut next = config.on_error.take();
        config.on_error = Some(Box::new(move |queue, status: hsa_status_t| {
            if let Some(core) = core.upgrade() {
                core.queue_gone(&gone);
            }
            if let Some(next) = &mut next {
                next(queue, status);
            }
        }));
        match self.core.gpu.create_queue(self.agent, config) {
            Ok(queue) => {
                lock(&self.queues).insert(queue.id(), watched);
                Ok(queue)
            }
            Err(status) => {
                self.core.queue_gone(&watched);
                Err(status.into())
            }
        }
    }

    /// Destroys a queue, then tells the serializer.
    ///
    /// # Errors
    /// What the machine said.
    pub fn destroy_queue(&self, queue: &Queue) -> Result<(), hsa_status_t> {
        self.core.gpu.destroy_queue(queue)?;
        let watched = lock(&self.queues).remove(&queue.id());
        if let Some(watched) = watched {
            self.core.queue_gone(&watched);
            self.core.destroy_left(&watched);
        }
        Ok(())
    }

    /// Inactivates a queue, then tells the serializer.
    ///
    /// # Errors
    /// What the machine said.
    pub fn inactivate_queue(&self, queue: &Queue) -> Result<(), hsa_status_t> {
        self.core.gpu.inactivate_queue(queue)?;
        let watched = lock(&self.queues).get(&queue.id()).cloned();
        if let Some(watched) = watched {
            self.core.queue_gone(&watched);
        }
        Ok(())
    }

    /// The serializer's name of a queue.
    #[must_use]
    pub fn id_of(&self, queue: &Queue) -> Option<QueueId> {
        lock(&self.queues)
            .get(&queue.id())
            .map(|watched| watched.id)
    }

    /// Turns serialization on. Whether that is a change.
    ///
    /// # Errors
    /// What the serializer said.
    pub fn enable(&self) -> Result<bool, BoxError> {
        let _one_at_a_time = lock(&self.toggles);
        let witness = self.core.gpu.witness();
        witness.enable_begin(self.agent);
        let outcome = self.core.serializer.enable();
        match &outcome {
            Ok(_) => witness.enable_end(self.agent),
            Err(_) => witness.transition_failed(self.agent),
        }
        outcome
    }

    /// Turns serialization off. Whether that is a change.
    ///
    /// # Errors
    /// What the serializer said.
    pub fn disable(&self) -> Result<bool, BoxError> {
        let _one_at_a_time = lock(&self.toggles);
        let witness = self.core.gpu.witness();
        witness.disable_begin(self.agent);
        let outcome = self.core.serializer.disable();
        match &outcome {
            Ok(_) => witness.disable_end(self.agent),
            Err(_) => witness.transition_failed(self.agent),
        }
        outcome
    }

    /// Kernels that were dispatched through the serializer and whose end was not heard of yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let queues = lock(&self.queues);
        queues.values().map(|watched| watched.flights.len()).sum()
    }

    /// Kernels that were passed on as they were, because no signal could be had for them or the
    /// serializer turned them away.
    #[must_use]
    pub fn passed_on(&self) -> u64 {
        self.core.passed_on.load(Relaxed)
    }

    /// How long serialized kernels waited, and unserialized ones.
    #[must_use]
    pub fn waits(&self) -> (WaitTimes, WaitTimes) {
        (self.core.serialized.read(), self.core.unserialized.read())
    }

    /// What the serializer has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.core.serializer.counters()
    }

    /// What the serializer has reported.
    #[must_use]
    pub fn reports(&self) -> &Reports {
        &self.reports
    }
}

impl<S: Serializing> Core<S> {
    /// The handler of a completion signal.
    fn completed(&self, watched: &Watched<S>, number: u64, value: i64) {
        let Some(flight) = watched.flights.end(number) else {
            return;
        };
        self.serializer.complete(flight.ticket);
        let waited = self.gpu.now().saturating_sub(flight.submitted);
        let waits = if flight.serialized {
            &self.serialized
        } else {
            &self.unserialized
        };
        waits.add(waited.saturating_sub(flight.lasts));
        self.pool.give(flight.signal);
        self.forward(flight.forward, value);
    }

    /// Tells the application, as the packet processor would have.
    fn forward(&self, signal: hsa_signal_t, value: i64) {
        if signal.is_null() {
            return;
        }
        if value < 0 {
            self.gpu.signals().store(signal, value);
        } else {
            self.gpu.signals().subtract(signal, 1);
        }
    }

    /// Destroys the completion signals of a destroyed queue's kernels that never ran.
    fn destroy_left(&self, watched: &Watched<S>) {
        for signal in watched.flights.take_left() {
            // It is alive, and nobody else's.
            let _ = self.gpu.signals().destroy(signal);
        }
    }

    /// The queue executes nothing any more.
    fn queue_gone(&self, watched: &Watched<S>) {
        let Some(tickets) = watched.flights.close() else {
            return;
        };
        self.serializer.queue_destroyed(watched.id);
        for ticket in tickets {
            self.serializer.abandon(ticket);
        }
    }
}

struct Interceptor<S: Serializing> {
    core: Arc<Core<S>>,
    watched: Arc<Watched<S>>,
    half: S::Queue,
}

impl<S: Serializing> Interceptor<S> {
    fn intercept(&mut self, given: &[AqlPacket], out: &mut Vec<AqlPacket>) {
        for packet in given {
            if packet.packet_type() == Some(PacketType::KernelDispatch) {
                self.kernel(packet, out);
            } else {
                out.push(*packet);
            }
        }
    }

    fn kernel(&mut self, kernel: &AqlPacket, out: &mut Vec<AqlPacket>) {
        let core = &self.core;
        // What can fail comes before the dispatch.
        let Some(signal) = core.pool.take() else {
            core.passed_on.fetch_add(1, Relaxed);
            out.push(*kernel);
            return;
        };
        let Some(dispatched) = core.serializer.dispatch(&mut self.half, out) else {
            core.pool.give(signal);
            core.passed_on.fetch_add(1, Relaxed);
            out.push(*kernel);
            return;
        };
        let serialized = dispatched.serialized;
        let around = match &core.instrument {
            Some(instrument) if serialized => instrument(kernel),
            _ => Around::default(),
        };
        batch::push(out, kernel, &around, serialized, signal);
        let flight = Flight {
            ticket: dispatched.ticket,
            signal,
            forward: kernel.completion_signal(),
            submitted: core.gpu.now(),
            lasts: lasts(kernel),
            serialized,
        };
        let listen = |number| self.listen(signal, number);
        if let Err(ticket) = self.watched.flights.start(flight, listen) {
            // The queue was destroyed within this very call: its packets will be dropped, and
            // nobody looks for what is left of it any more.
            core.serializer.abandon(ticket);
            core.destroy_left(&self.watched);
        }
    }

    fn listen(&self, signal: hsa_signal_t, number: u64) {
        let (core, watched) = (self.core.clone(), self.watched.clone());
        let handler = Box::new(move |value| {
            core.completed(&watched, number, value);
            false
        });
        self.core
            .gpu
            .signals()
            .on_signal(signal, SignalCondition::Lt, 1, handler)
            .expect("the pool's signals are alive");
    }
}

/// How long the kernel runs by itself, where that is known.
fn lasts(packet: &AqlPacket) -> u64 {
    Kernel::of(packet)
        .and_then(|k| k.nanoseconds())
        .unwrap_or(0)
}
