//! What the checks found, and how often.

use hsa_sys::{hsa_agent_t, hsa_signal_t};
use parking_lot::Mutex;
use std::fmt;

/// A queue's name in reports and calls; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueId(pub u64);

impl fmt::Display for QueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "q{}", self.0)
    }
}

/// A kernel as the packet processor saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelView {
    /// The queue that it ran on.
    pub queue: QueueId,
    /// The index of its packet in that queue.
    pub packet: u64,
    /// The number that it was given in [`Kernel::id`](crate::Kernel::id).
    pub id: u32,
    /// When it started.
    pub started: u64,
    /// The first and the last period that its dispatch may belong to; equal where it is certain.
    /// Periods count an agent's transitions: period 0 is the time before the first.
    pub periods: (u64, u64),
}

impl fmt::Display for KernelView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "kernel {} ({} packet {}, started at {} ns, period ",
            self.id, self.queue, self.packet, self.started
        )?;
        match self.periods {
            (first, last) if first == last => write!(f, "{first})"),
            (first, last) => write!(f, "{first} to {last})"),
        }
    }
}

/// Something that must not happen, seen to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// Two kernels that must be serialized ran at the same time on one agent.
    Overlap {
        /// The agent.
        agent: hsa_agent_t,
        /// The kernel that was running.
        running: KernelView,
        /// The kernel that started.
        started: KernelView,
    },
    /// A kernel of a newer mode ran beside one of an older mode.
    ModeOverlap {
        /// The agent.
        agent: hsa_agent_t,
        /// The kernel that was running.
        running: KernelView,
        /// The kernel that started.
        started: KernelView,
    },
    /// A kernel of an older mode started after one of a newer mode had run.
    OldAfterNew {
        /// The agent.
        agent: hsa_agent_t,
        /// The kernel of the older mode.
        started: KernelView,
        /// The period of a kernel that had started before.
        newer: u64,
    },
    /// A packet refers to a signal that was destroyed, or created again, since it was written.
    StalePacket {
        /// The packet's queue.
        queue: QueueId,
        /// Its index.
        packet: u64,
        /// The signal.
        signal: hsa_signal_t,
        /// The signal's generation when the packet was written; 0 if it was not alive then.
        written: u64,
        /// Its generation when the processor looked.
        found: u64,
        /// Whether it was alive then.
        alive: bool,
    },
    /// A call or a packet used a signal that was not alive.
    TouchedDestroyed {
        /// The signal.
        signal: hsa_signal_t,
        /// What was done to it.
        operation: &'static str,
        /// Its generation.
        generation: u64,
    },
    /// A signal was destroyed that was not alive.
    DestroyedTwice {
        /// The signal.
        signal: hsa_signal_t,
    },
    /// A handle that was never given out.
    UnknownSignal {
        /// The handle.
        signal: hsa_signal_t,
        /// What was to be done to it.
        operation: &'static str,
    },
    /// An interceptor added a barrier packet without fences of system scope.
    WeakFences {
        /// The queue.
        queue: QueueId,
        /// The packet's header.
        header: u16,
    },
    /// A handler was registered with a signal that was created for the GPU alone.
    HandlerOnGpuSignal {
        /// The signal.
        signal: hsa_signal_t,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlap {
                agent,
                running,
                started,
            } => write!(
                f,
                "agent {:#x}: overlap while enabled: {started} beside {running}",
                agent.handle
            ),
            Self::ModeOverlap {
                agent,
                running,
                started,
            } => write!(
                f,
                "agent {:#x}: overlap of two modes: {started} beside {running}",
                agent.handle
            ),
            Self::OldAfterNew {
                agent,
                started,
                newer,
            } => write!(
                f,
                "agent {:#x}: {started} of an older mode after one of period {newer}",
                agent.handle
            ),
            Self::StalePacket {
                queue,
                packet,
                signal,
                written,
                found,
                alive,
            } => write!(
                f,
                "{queue} packet {packet}: signal {:#x} was of generation {written} when the \
                 packet was written, is of generation {found} and {}",
                signal.handle,
                if *alive { "alive" } else { "destroyed" }
            ),
            Self::TouchedDestroyed {
                signal,
                operation,
                generation,
            } => write!(
                f,
                "{operation} of the destroyed signal {:#x} (generation {generation})",
                signal.handle
            ),
            Self::DestroyedTwice { signal } => {
                write!(f, "signal {:#x} destroyed twice", signal.handle)
            }
            Self::UnknownSignal { signal, operation } => {
                write!(f, "{operation} of {:#x}, which is no signal", signal.handle)
            }
            Self::WeakFences { queue, header } => write!(
                f,
                "{queue}: a barrier packet was added with weak fences (header {header:#x})"
            ),
            Self::HandlerOnGpuSignal { signal } => write!(
                f,
                "handler registered with signal {:#x}, which has no event for the host",
                signal.handle
            ),
        }
    }
}

/// How often each kind was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// [`Violation::Overlap`].
    pub overlaps: u64,
    /// [`Violation::ModeOverlap`].
    pub mode_overlaps: u64,
    /// [`Violation::OldAfterNew`].
    pub old_after_new: u64,
    /// [`Violation::StalePacket`].
    pub stale_packets: u64,
    /// [`Violation::TouchedDestroyed`].
    pub touched_destroyed: u64,
    /// [`Violation::DestroyedTwice`].
    pub destroyed_twice: u64,
    /// [`Violation::UnknownSignal`].
    pub unknown_signals: u64,
    /// [`Violation::WeakFences`].
    pub weak_fences: u64,
    /// [`Violation::HandlerOnGpuSignal`].
    pub handlers_on_gpu_signals: u64,
}

impl Counts {
    /// All of them together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.overlaps
            + self.mode_overlaps
            + self.old_after_new
            + self.stale_packets
            + self.touched_destroyed
            + self.destroyed_twice
            + self.unknown_signals
            + self.weak_fences
            + self.handlers_on_gpu_signals
    }

    fn of(&mut self, violation: &Violation) -> &mut u64 {
        match violation {
            Violation::Overlap { .. } => &mut self.overlaps,
            Violation::ModeOverlap { .. } => &mut self.mode_overlaps,
            Violation::OldAfterNew { .. } => &mut self.old_after_new,
            Violation::StalePacket { .. } => &mut self.stale_packets,
            Violation::TouchedDestroyed { .. } => &mut self.touched_destroyed,
            Violation::DestroyedTwice { .. } => &mut self.destroyed_twice,
            Violation::UnknownSignal { .. } => &mut self.unknown_signals,
            Violation::WeakFences { .. } => &mut self.weak_fences,
            Violation::HandlerOnGpuSignal { .. } => &mut self.handlers_on_gpu_signals,
        }
    }
}

/// So many are kept in full; the rest is only counted.
const KEPT: usize = 1_000;

/// Where everybody reports to.
#[derive(Debug, Default)]
pub(crate) struct Violations(Mutex<(Vec<Violation>, Counts)>);

impl Violations {
    pub(crate) fn add(&self, violation: Violation) {
        let mut all = self.0.lock();
        *all.1.of(&violation) += 1;
        if all.0.len() < KEPT {
            all.0.push(violation);
        }
    }

    pub(crate) fn list(&self) -> Vec<Violation> {
        self.0.lock().0.clone()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.0.lock().1
    }
}
