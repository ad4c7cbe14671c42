//! The three programs. Each comes to its end by itself, and by nobody who serializes it.

use harness::{BoxError, Profiler, Serializing};
use hsa_sys::{AqlPacket, FenceScope, PacketType, header, hsa_barrier_and_packet_t, hsa_signal_t};
use softgpu::{Gpu, Kernel, Queue, QueueConfig, SignalKind};
use std::time::{Duration, Instant};

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Case {
    /// Two kernels, each of which spins until the other one has started.
    Token,
    /// A kernel in flight at a transition spins until one has ended that is dispatched after it.
    Transition,
    /// The same through a copy engine, which takes its copies in order.
    Copies,
}

impl Case {
    pub(crate) const ALL: [Self; 3] = [Self::Token, Self::Transition, Self::Copies];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Transition => "transition",
            Self::Copies => "copies",
        }
    }

    pub(crate) fn in_short(self) -> &'static str {
        match self {
            Self::Token => "two kernels that need each other",
            Self::Transition => "a kernel in flight at a transition needs one from after it",
            Self::Copies => "the same through a copy engine, which takes its copies in order",
        }
    }

    /// What the kernel that all wait for waits for, of the other queue.
    pub(crate) fn needs(self) -> &'static str {
        match self {
            Self::Token => "its kernel spins until that one has started",
            Self::Transition => "its kernel spins until that one has ended",
            Self::Copies => {
                "its kernel spins until a copy has ended, behind the copy of what that one computes"
            }
        }
    }

    /// Who needs whom. The queues have the numbers that the crate gives them.
    pub(crate) fn story(self) -> &'static str {
        match self {
            Self::Token => {
                "the kernel of queue 0 spins until that of queue 1 has started, and the other way \
                 round"
            }
            Self::Transition => {
                "the kernel of queue 0 is in flight at the transition, and spins until that of \
                 queue 1\nhas ended, which is dispatched after it"
            }
            Self::Copies => {
                "the kernel of queue 0 is in flight at the transition, and spins until the copy \
                 engine's\nsecond copy has ended; the first one waits for the kernel of queue 1, \
                 which is dispatched\nafter the transition, though its copy is enqueued before it"
            }
        }
    }
}

/// Longer than it takes to launch a kernel, on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A program that was started.
pub(crate) struct Program {
    gpu: Gpu,
    pub(crate) queues: [Queue; 2],
    /// What each queue's kernel stores as soon as it has started. An emulated kernel stores at its
    /// end alone, so [`Program::first_stores`] does it in its place.
    started: Option<[hsa_signal_t; 2]>,
}

impl Program {
    /// Starts it; `resume` is what turns serialization on.
    pub(crate) fn start<S: Serializing>(
        case: Case,
        profiler: &Profiler<S>,
        resume: impl FnOnce() -> Result<(), BoxError>,
    ) -> Result<Self, BoxError> {
        let gpu = profiler.gpu().clone();
        let queue = || profiler.create_queue(QueueConfig::default());
        let mut program = Self {
            queues: [queue()?, queue()?],
            started: None,
            gpu,
        };
        match case {
            Case::Token => program.token(resume)?,
            Case::Transition => program.transition(resume)?,
            Case::Copies => program.copies(profiler, resume)?,
        }
        Ok(program)
    }

    fn token(&mut self, resume: impl FnOnce() -> Result<(), BoxError>) -> Result<(), BoxError> {
        resume()?;
        let started = [
            self.signal("kernel 0 has started")?,
            self.signal("kernel 1 has started")?,
        ];
        self.started = Some(started);
        self.submit(0, Kernel::until(started[1]))?;
        self.submit(1, Kernel::until(started[0]))
    }

    fn transition(
        &mut self,
        resume: impl FnOnce() -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        let written = self.signal("kernel 1 has written")?;
        self.submit(0, Kernel::until(written))?;
        self.wait_until_it_runs()?;
        resume()?;
        self.submit(1, Kernel::lasting(10_000).writes(written, 0))
    }

    fn copies<S: Serializing>(
        &mut self,
        profiler: &Profiler<S>,
        resume: impl FnOnce() -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        let computed = self.signal("kernel 1 has ended")?;
        let copied = self.signal("copy 2 has ended")?;
        self.submit(0, Kernel::until(copied))?;
        self.wait_until_it_runs()?;
        // A queue plays the engine. Nobody intercepts it, as nobody intercepts the runtime's own.
        let agent = profiler.gpu().agent(0);
        let engine = self.gpu.create_queue(agent, QueueConfig::default())?;
        let copy = Kernel::lasting(5_000).barrier();
        // The copy of what kernel 1 computes is here before the kernel itself: the thread that has
        // rung the kernel's doorbell believes it under way, while it still waits to be intercepted
        // behind a packet that another thread of the same queue has reserved and not written.
        engine.submit(&[
            wait_for(computed),
            copy.id(101).packet(),
            copy.id(102).completion(copied).packet(),
        ])?;
        resume()?;
        self.submit(1, Kernel::lasting(10_000).completion(computed))
    }

    fn signal(&self, label: &'static str) -> Result<hsa_signal_t, BoxError> {
        let signals = self.gpu.signals();
        Ok(signals.create_labelled(1, SignalKind::Interrupt, label)?)
    }

    fn submit(&self, queue: usize, kernel: Kernel) -> Result<(), BoxError> {
        Ok(self.queues[queue].submit(&[kernel.id(queue as u32).packet()])?)
    }

    fn wait_until_it_runs(&self) -> Result<(), BoxError> {
        let end = Instant::now() + PATIENCE;
        while self.queues[0].running() == 0 {
            if Instant::now() > end {
                return Err("the kernel of queue 0 does not start".into());
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(())
    }

    /// Stores what kernels that have started would have stored then.
    pub(crate) fn first_stores(&self) {
        for (queue, started) in self.queues.iter().zip(self.started.iter().flatten()) {
            // A kernel is the last packet of its queue.
            if queue.read_index() == queue.write_index() {
                self.gpu.signals().store(*started, 0);
            }
        }
    }

    /// Kernels as any program has them, on both queues.
    pub(crate) fn go_on(&self, kernels: u32) -> Result<(), BoxError> {
        for n in 0..kernels {
            let kernel = Kernel::lasting(50_000).id(200 + n);
            self.queues[n as usize % 2].submit(&[kernel.packet()])?;
        }
        Ok(())
    }
}

/// What a copy engine does before a copy that depends on a signal.
fn wait_for(signal: hsa_signal_t) -> AqlPacket {
    let none = FenceScope::None;
    let mut dep_signal = [hsa_signal_t::NULL; 5];
    dep_signal[0] = signal;
    hsa_barrier_and_packet_t {
        header: header(PacketType::BarrierAnd, false, none, none),
        dep_signal,
        ..Default::default()
    }
    .into()
}
