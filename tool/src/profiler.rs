//! What interceptors, handlers and the functions in the tables share.

use crate::book::Book;
use crate::flights::{End, Flight, Pool, Slot, Watched};
use crate::gate::Gate;
use crate::hsa::Hsa;
use crate::lock;
use crate::names::Names;
use crate::overlaps::Overlaps;
use crate::queues::Entry;
use crate::summary::Figures;
use crate::trace::{Dispatched, Times, Trace};
use hsa_serializer::hsa::HsaRuntime;
use hsa_serializer::{AgentError, Agents, AgentsRequest, Builder};
use hsa_sys::{
    HSA_AMD_AGENT_INFO_DRIVER_NODE_ID, HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, hsa_agent_t,
    hsa_executable_t, hsa_queue_t, hsa_signal_t, hsa_signal_value_t,
};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A GPU whose kernels are serialized.
#[derive(Debug)]
pub(crate) struct Gpu {
    pub(crate) agent: hsa_agent_t,
    /// Its name in the trace.
    name: String,
    overlaps: Mutex<Overlaps>,
}

/// Kernels, counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) kernels: AtomicU64,
    pub(crate) serialized: AtomicU64,
    /// Passed on as they were: no signal was left, or the serializer had ended.
    pub(crate) passed_on: AtomicU64,
    pub(crate) ended: AtomicU64,
    /// Went with their queues.
    pub(crate) lost: AtomicU64,
    /// Ended, and nobody knows when they ran.
    pub(crate) untimed: AtomicU64,
    /// For how many nanoseconds serialized ones ran.
    pub(crate) ran: AtomicU64,
}

pub(crate) struct Profiler {
    pub(crate) hsa: Hsa,
    /// Whoever is about to call the runtime enters.
    pub(crate) gate: Gate,
    /// A serializer for each GPU, made at its first queue.
    pub(crate) agents: Agents<HsaRuntime>,
    pub(crate) gpus: Vec<Gpu>,
    pub(crate) pool: Pool,
    pub(crate) queues: Mutex<Book<Entry>>,
    pub(crate) names: Names,
    pub(crate) counts: Counts,
    pub(crate) trace: Arc<Trace>,
    /// What keeps kernels serialized, while they are.
    request: Mutex<Option<AgentsRequest<HsaRuntime>>>,
    /// Ticks of the system clock in a second.
    frequency: u64,
}

impl Profiler {
    /// A profiler of these GPUs, paused.
    pub(crate) fn new(hsa: Hsa, gpus: &[hsa_agent_t], trace: Arc<Trace>) -> Arc<Self> {
        let make = move |agent| {
            let agent = hsa_agent_t { handle: agent };
            // SAFETY: the serializer finishes its shutdown, or is left, before the runtime is shut down.
            let runtime = unsafe { HsaRuntime::new(*hsa.api(), agent) };
            let runtime = runtime.expect("the runtime has listed it among the GPUs");
            let runtime = runtime.with_reports(|report| say!("{report}"));
            runtime.serializer(Builder::default().agent(agent.handle))
        };
        Arc::new_cyclic(|own| Self {
            hsa,
            gate: Gate::default(),
            agents: Agents::new(make),
            gpus: gpus.iter().map(|gpu| Gpu::new(&hsa, *gpu)).collect(),
            pool: Pool::new(hsa, own.clone()),
            queues: Mutex::default(),
            names: Names::default(),
            counts: Counts::default(),
            trace,
            request: Mutex::new(None),
            frequency: frequency(&hsa),
        })
    }

    /// The place of a GPU, if its kernels are to be serialized.
    pub(crate) fn gpu(&self, agent: hsa_agent_t) -> Option<usize> {
        self.gpus.iter().position(|gpu| gpu.agent == agent)
    }

    /// Whether it intercepts that queue.
    pub(crate) fn intercepts(&self, queue: *mut hsa_queue_t) -> bool {
        lock(&self.queues).get(queue as usize).is_some()
    }

    /// Takes the names of kernels whose code was loaded. Without them the trace has addresses.
    ///
    /// # Safety
    /// Nobody destroys the executable meanwhile.
    pub(crate) unsafe fn take_names(&self, executable: hsa_executable_t) {
        for gpu in &self.gpus {
            // SAFETY: the caller's promise.
            let _ = unsafe { self.names.take(&self.hsa, executable, gpu.agent) };
        }
    }

    /// Serializes, or no longer.
    pub(crate) fn serialize(&self, on: bool) -> Result<(), AgentError> {
        let mut request = lock(&self.request);
        if !on {
            *request = None;
        } else if request.is_none() {
            *request = Some(self.agents.request_all()?);
        }
        Ok(())
    }

    /// A kernel, or a marker, has ended. First the serializer is told, so that the next kernel is let go;
    /// last the application, which may destroy the queue, or end the process, the moment it knows.
    pub(crate) fn ended(&self, flight: Flight, slot: &Arc<Slot>, value: hsa_signal_value_t) {
        let queue = flight.queue;
        if let Some(ticket) = flight.ticket
            && let Err(e) = queue.serializer.complete(ticket)
        {
            say!("{e}");
        }
        if let Some(dispatched) = &flight.dispatched {
            self.write_down(&queue, slot.signal, dispatched);
            // Last: the end of the process counts only what it has found in the trace.
            self.counts.ended.fetch_add(1, Relaxed);
        }
        let end = End {
            slot: slot.clone(),
            forward: flight.forward,
            value,
        };
        let order = &queue.order;
        order.ended(flight.number, flight.barrier, end, |end| self.tell(end));
    }

    /// A kernel that has ended badly may have left no times; then the runtime would make some up.
    fn write_down(&self, queue: &Watched, signal: hsa_signal_t, dispatched: &Dispatched) {
        let gpu = &self.gpus[queue.gpu];
        let ticks = self.hsa.ticks(signal);
        let times = ticks.and_then(|_| self.times(gpu, signal));
        let (Some([start, end]), Some(times)) = (ticks, times) else {
            self.counts.untimed.fetch_add(1, Relaxed);
            return;
        };
        // By the GPU's own clock: the runtime corrects its conversion now and then, so that converted times
        // of two kernels may seem to overlap.
        lock(&gpu.overlaps).add(start, end, dispatched.serialized);
        if dispatched.serialized {
            self.counts.ran.fetch_add(times.end - times.start, Relaxed);
        }
        self.trace.write(&gpu.name, queue.number, dispatched, times);
    }

    /// When the kernel ran that has completed the signal, by the system's clock.
    fn times(&self, gpu: &Gpu, signal: hsa_signal_t) -> Option<Times> {
        let times = self.hsa.times(gpu.agent, signal).ok()?;
        let nanoseconds = |ticks: u64| {
            let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.frequency);
            u64::try_from(ns).unwrap_or(u64::MAX)
        };
        (times.start <= times.end).then(|| Times {
            start: nanoseconds(times.start),
            end: nanoseconds(times.end),
        })
    }

    /// Tells the application of an end, as the packet processor would have, and gives the slot back.
    fn tell(&self, end: End) {
        let signal = end.forward;
        if !signal.is_null() {
            if self.hsa.ticks(end.slot.signal).is_some() {
                // Who asks when the kernel ran asks with this signal.
                self.hsa.copy_times(end.slot.signal, signal);
            }
            if end.value < 0 {
                self.hsa.store(signal, end.value);
            } else {
                self.hsa.subtract(signal, 1);
            }
        }
        self.pool.give(end.slot);
    }

    /// It will never end.
    pub(crate) fn lost(&self, flight: &Flight) {
        let kernels = u64::from(flight.dispatched.is_some());
        self.counts.lost.fetch_add(kernels, Relaxed);
    }

    /// The queue executes nothing any more.
    pub(crate) fn queue_gone(&self, watched: &Arc<Watched>) {
        if watched.closed.swap(true, SeqCst) {
            return;
        }
        let left = self.pool.close(watched);
        // Unknown where the serializer has given it up, at the end.
        let _ = watched.serializer.queue_destroyed(watched.id);
        watched.order.finish(|end| self.tell(end));
        for (slot, flight) in left {
            self.lost(&flight);
            flight.abandon();
            lock(&watched.left).push(slot);
        }
    }

    /// Ends everything; nothing calls the runtime afterwards, and interceptors pass packets on as they
    /// are. What is under way is waited for, for so long.
    pub(crate) fn end(&self, patience: Duration) -> Figures {
        // While the serializers still know.
        let mut figures = self.of_serializers();
        let finished = self.finish(patience);
        for (_, serializer) in self.agents.iter() {
            serializer.leave();
        }
        // A handler may still be telling the application of its last kernel.
        let alone = self.gate.close(Duration::from_secs(1));
        if finished && alone {
            self.pool.destroy();
        }
        self.trace.flush();
        figures.add(&self.of_kernels());
        figures
    }

    /// What there is to say when the process ends. Nothing else changes: what runs after us, as destructors of
    /// the application's do, may go on with kernels, and wait for them. Their rows are written out one by one.
    pub(crate) fn so_far(&self) -> Figures {
        let mut figures = self.of_serializers();
        self.trace.flush_from_now_on();
        figures.add(&self.of_kernels());
        figures
    }

    fn of_serializers(&self) -> Figures {
        let mut figures = Figures {
            gpus: self.gpus.len() as u64,
            ..Figures::default()
        };
        for (_, serializer) in self.agents.iter() {
            figures.add(&Figures::from(&serializer.statistics()));
        }
        figures
    }

    fn of_kernels(&self) -> Figures {
        let mut figures = Figures::from(&self.counts);
        for gpu in &self.gpus {
            figures.overlaps += std::mem::take(&mut *lock(&gpu.overlaps)).finish();
        }
        figures
    }

    /// Shuts the serializers down. False where they are not through in time, for the work that the
    /// application has left in its queues: that is the runtime's, then.
    fn finish(&self, patience: Duration) -> bool {
        for (_, serializer) in self.agents.iter() {
            serializer.begin_shutdown();
        }
        let deadline = Instant::now() + patience;
        self.agents.iter().all(|(_, serializer)| {
            let left = deadline.saturating_duration_since(Instant::now());
            serializer.finish_shutdown(left).is_ok()
        })
    }
}

impl Gpu {
    fn new(hsa: &Hsa, agent: hsa_agent_t) -> Self {
        // The number that rocprofv3 has, too.
        let node: u32 = hsa
            .info(agent, HSA_AMD_AGENT_INFO_DRIVER_NODE_ID)
            .unwrap_or_default();
        Self {
            agent,
            name: format!("Agent {node}"),
            overlaps: Mutex::default(),
        }
    }
}

fn frequency(hsa: &Hsa) -> u64 {
    let mut frequency = 0_u64;
    let ask = hsa.api().hsa_system_get_info;
    // SAFETY: the runtime is initialized; this attribute has 64 bits.
    let known = unsafe {
        ask(
            HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY,
            (&raw mut frequency).cast(),
        )
    };
    // AMD's clock counts nanoseconds.
    if known.ok().is_err() || frequency == 0 {
        return 1_000_000_000;
    }
    frequency
}
