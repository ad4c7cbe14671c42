//! Who waits for whom.

use crate::gpu::Gpu;
use crate::history::Event;
use crate::kernel::{Kernel, Runs};
use crate::processor::Blocked;
use crate::queue::{Inner, QueueState};
use crate::violation::QueueId;
use hsa_sys::{PacketType, SignalCondition, hsa_agent_t, hsa_signal_t};
use std::fmt;

/// A signal that somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalView {
    /// Its handle.
    pub signal: hsa_signal_t,
    /// Its value.
    pub value: i64,
    /// What it was created for.
    pub label: String,
    /// Whether it is alive.
    pub alive: bool,
    /// The last events of its handle.
    pub history: Vec<Event>,
    /// Packets and kernels that would write it (the queue, the packet's index), where they wait or
    /// run.
    pub written_by: Vec<(QueueId, u64)>,
}

/// What somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waits {
    /// A barrier-AND or barrier-OR, for these signals.
    Barrier(PacketType, Vec<SignalView>),
    /// A packet with the barrier bit, for so many earlier kernels of its queue.
    Earlier(usize),
    /// A kernel, for one of so many that run.
    Full(usize),
    /// A slot that was reserved and never published or rung for.
    Unpublished,
    /// A kernel that runs until this signal is written.
    KernelUntil(SignalView),
    /// A kernel that never ends.
    KernelForever,
    /// A kernel that is still running, until its time is over.
    KernelRunning,
    /// A packet of a queue that was stopped by a fault.
    Stopped,
    /// A packet that waits for nothing: its turn has not come.
    Nothing,
}

/// One packet or kernel that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Its agent.
    pub agent: hsa_agent_t,
    /// Its queue.
    pub queue: QueueId,
    /// The packet's index.
    pub packet: u64,
    /// The kernel's number, if it is a kernel.
    pub kernel: Option<u32>,
    /// What it waits for.
    pub waits: Waits,
    /// How many packets wait behind it.
    pub behind: u64,
}

/// Everybody who waits, as seen at one moment; its `Display` prints it all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// When.
    pub now: u64,
    /// The head of each queue that has packets, and every kernel that runs.
    pub waits: Vec<Wait>,
    /// Handlers that wait for a signal, with the condition and its value.
    pub handlers: Vec<(SignalView, SignalCondition, i64)>,
    /// Handlers that are registered beyond those listed.
    pub more_handlers: usize,
}

impl Stuck {
    /// Whether nothing is left but kernels that never end.
    #[must_use]
    pub fn only_endless(&self) -> bool {
        let endless = |wait: &Wait| wait.waits == Waits::KernelForever;
        !self.waits.is_empty() && self.waits.iter().all(endless)
    }
}

/// So many waiting handlers are listed.
const LISTED_HANDLERS: usize = 16;

impl Gpu {
    /// Whether nothing is pending: no packet of an active queue, no kernel, no handler that is due.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        // Handlers last: one that ended before we looked at the queues may have submitted.
        self.list().iter().all(|queue| is_idle(queue)) && !self.shared().signals.handlers.busy()
    }

    /// Whether nothing can go on unless the host does something.
    #[must_use]
    pub fn stands_still(&self) -> bool {
        let now = self.now();
        let still = |queue: &Inner| {
            let processor = queue.processor.lock();
            let ends =
                (0..processor.running().len()).any(|place| processor.may_end(queue, place, now));
            queue.blocked(&processor).is_some()
                && !ends
                && processor.next_deadline(now).is_none()
                && !queue.can_refill()
        };
        self.list().iter().all(|queue| still(queue)) && !self.shared().signals.handlers.busy()
    }

    /// Who waits for whom, now.
    #[must_use]
    pub fn describe(&self) -> Stuck {
        let mut waits = Vec::new();
        for queue in self.list().iter() {
            self.kernels_of(queue, &mut waits);
            self.head_of(queue, &mut waits);
        }
        let mut handlers = self.shared().signals.handlers.waiting();
        let more_handlers = handlers.len().saturating_sub(LISTED_HANDLERS);
        handlers.truncate(LISTED_HANDLERS);
        Stuck {
            now: self.now(),
            waits,
            handlers: handlers
                .into_iter()
                .map(|(signal, condition, compare)| (self.view(signal), condition, compare))
                .collect(),
            more_handlers,
        }
    }

    fn kernels_of(&self, queue: &Inner, waits: &mut Vec<Wait>) {
        let running: Vec<_> = {
            let processor = queue.processor.lock();
            let kernels = processor.running().iter();
            kernels.map(|k| (k.packet, k.id, k.runs)).collect()
        };
        for (packet, id, runs) in running {
            waits.push(Wait {
                agent: queue.agent,
                queue: queue.id,
                packet,
                kernel: Some(id),
                waits: match runs {
                    Runs::For(_) => Waits::KernelRunning,
                    Runs::Until(signal) => Waits::KernelUntil(self.view(signal)),
                    Runs::Forever => Waits::KernelForever,
                },
                behind: 0,
            });
        }
    }

    fn head_of(&self, queue: &Inner, waits: &mut Vec<Wait>) {
        let blocked = queue.blocked(&queue.processor.lock());
        let index = queue.ring.read_index();
        let pending = queue.ring.write_index().saturating_sub(index);
        if pending == 0 {
            return;
        }
        let behind =
            pending - 1 + queue.overflowing.load(std::sync::atomic::Ordering::SeqCst) as u64;
        let kernel = Kernel::of(&queue.ring.packet(index)).map(|kernel| kernel.parts().0);
        waits.push(Wait {
            agent: queue.agent,
            queue: queue.id,
            packet: index,
            kernel,
            waits: match blocked {
                Some(Blocked::Signals(kind, deps)) => {
                    Waits::Barrier(kind, deps.into_iter().map(|dep| self.view(dep)).collect())
                }
                Some(Blocked::Earlier(n)) => Waits::Earlier(n),
                Some(Blocked::Full(n)) => Waits::Full(n),
                Some(Blocked::Unpublished) => Waits::Unpublished,
                Some(Blocked::Stopped) => Waits::Stopped,
                Some(Blocked::Empty) | None => Waits::Nothing,
            },
            behind,
        });
    }

    fn view(&self, signal: hsa_signal_t) -> SignalView {
        let signals = self.signals();
        let mut written_by = Vec::new();
        for queue in self.list().iter() {
            let running = queue.processor.lock();
            let writers = running.running().iter().filter(|k| k.signals(signal));
            written_by.extend(writers.map(|k| (queue.id, k.packet)));
            drop(running);
            for index in queue.ring.read_index()..queue.ring.write_index() {
                let packet = queue.ring.packet(index);
                let stores = Kernel::of(&packet).and_then(|kernel| kernel.parts().3);
                if packet.completion_signal() == signal || stores.is_some_and(|s| s.0 == signal) {
                    written_by.push((queue.id, index));
                }
            }
        }
        SignalView {
            signal,
            value: signals.peek(signal),
            label: signals.label(signal),
            alive: signals.is_alive(signal),
            history: signals.history(signal),
            written_by,
        }
    }
}

fn is_idle(queue: &Inner) -> bool {
    if queue.state() != QueueState::Active {
        return true;
    }
    queue.processor.lock().running().is_empty()
        && queue.ring.read_index() >= queue.ring.write_index()
        && queue.overflowing.load(std::sync::atomic::Ordering::SeqCst) == 0
}

impl fmt::Display for SignalView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "signal {:#x}", self.signal.handle)?;
        if !self.label.is_empty() {
            write!(f, " ({})", self.label)?;
        }
        write!(f, " = {}", self.value)?;
        if !self.alive {
            write!(f, ", which is destroyed")?;
        }
        match self.written_by.as_slice() {
            [] => write!(f, ", which no packet would write")?,
            writers => {
                write!(f, ", to be written by")?;
                for (queue, packet) in writers.iter().take(4) {
                    write!(f, " {queue} packet {packet};")?;
                }
                if writers.len() > 4 {
                    write!(f, " and {} more", writers.len() - 4)?;
                }
            }
        }
        for event in &self.history {
            write!(f, "\n      {event}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Barrier(kind, signals) => {
                write!(f, "{kind:?} waits for")?;
                signals
                    .iter()
                    .try_for_each(|signal| write!(f, "\n    {signal}"))
            }
            Self::Earlier(n) => write!(f, "waits for {n} earlier kernels of its queue"),
            Self::Full(n) => write!(f, "waits for one of {n} kernels to end"),
            Self::Unpublished => f.write_str("was reserved and is not published or rung for"),
            Self::KernelUntil(signal) => write!(f, "runs until\n    {signal}"),
            Self::KernelForever => f.write_str("runs for ever"),
            Self::KernelRunning => f.write_str("runs"),
            Self::Stopped => f.write_str("stands in a queue that was stopped"),
            Self::Nothing => f.write_str("could be launched"),
        }
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "at {} ns:", self.now)?;
        for wait in &self.waits {
            let (agent, queue, packet) = (wait.agent.handle, wait.queue, wait.packet);
            write!(f, "  agent {agent:#x} {queue} packet {packet}")?;
            if let Some(id) = wait.kernel {
                write!(f, " (kernel {id})")?;
            }
            write!(f, " {}", wait.waits)?;
            if wait.behind > 0 {
                write!(f, "\n    and {} packets wait behind it", wait.behind)?;
            }
            writeln!(f)?;
        }
        for (signal, condition, compare) in &self.handlers {
            writeln!(
                f,
                "  a handler waits ({condition:?} {compare}) for\n    {signal}"
            )?;
        }
        if self.more_handlers > 0 {
            writeln!(f, "  and {} more handlers", self.more_handlers)?;
        }
        Ok(())
    }
}

impl std::error::Error for Stuck {}
