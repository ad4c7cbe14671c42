//! The packet processor of one queue.
//!
//! It takes packets in order. Kernels run beside one another once launched, and end in any order.
//! A packet with the barrier bit waits until all earlier ones of the queue have completed; a
//! barrier-AND or barrier-OR waits for its signals; nothing behind a packet that waits is launched.
//! It is only ever driven under the queue's processor lock, by steps of virtual time or by the
//! queue's own thread.

use crate::kernel::{Ends, Kernel, Runs};
use crate::queue::QueueState;
use crate::ring::{Meta, Ring};
use crate::shared::Shared;
use crate::violation::{KernelView, QueueId, Violation};
use hsa_sys::{AqlPacket, PacketType, hsa_agent_t, hsa_signal_t};

/// A kernel under way.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) packet: u64,
    pub(crate) id: u32,
    pub(crate) runs: Runs,
    ends: Ends,
    writes: Option<(hsa_signal_t, i32)>,
    pub(crate) completion: hsa_signal_t,
    meta: Meta,
    /// When it may end; `None` where that depends on something else.
    deadline: Option<u64>,
}

impl Running {
    /// Whether its end writes this signal.
    pub(crate) fn signals(&self, signal: hsa_signal_t) -> bool {
        self.completion == signal || self.writes.is_some_and(|(written, _)| written == signal)
    }
}

/// Why the next packet can't be launched now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// The queue does not run any more.
    Stopped,
    /// There is none.
    Empty,
    /// Its slot was reserved, but it was not published or not rung for.
    Unpublished,
    /// It has the barrier bit and this many earlier kernels run.
    Earlier(usize),
    /// As many kernels run as the queue can hold.
    Full(usize),
    /// It waits for these signals: all of them, or for barrier-OR any.
    Signals(PacketType, Vec<hsa_signal_t>),
}

/// What a launch or an end did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Went,
    /// The kernel faulted; its queue is to be stopped.
    Fault,
}

/// The state of one queue's packet processor.
#[derive(Debug)]
pub(crate) struct Processor {
    queue: QueueId,
    agent: hsa_agent_t,
    most_running: usize,
    pub(crate) running: Vec<Running>,
    /// Packets of a type that HSA does not name, or its vendor does.
    pub(crate) foreign: u64,
}

impl Processor {
    pub(crate) fn new(queue: QueueId, agent: hsa_agent_t, most_running: usize) -> Self {
        Self {
            queue,
            agent,
            most_running,
            running: Vec::new(),
            foreign: 0,
        }
    }

    /// Reports, once a packet, a signal that is not the one it was written with.
    fn check(&self, shared: &Shared, packet: &AqlPacket, index: u64, meta: &mut Meta) {
        if meta.told {
            return;
        }
        for (signal, written) in signals(packet).into_iter().zip(meta.generations) {
            if signal.is_null() {
                continue;
            }
            let (found, alive) = shared.signals.generation(signal);
            if !alive || found != written {
                meta.told = true;
                shared.violations.add(Violation::StalePacket {
                    queue: self.queue,
                    packet: index,
                    signal,
                    written,
                    found,
                    alive,
                });
                return;
            }
        }
    }

    /// Whether the packet at the read index could be launched, and if not, why.
    pub(crate) fn blocked(
        &self,
        shared: &Shared,
        ring: &Ring,
        state: QueueState,
    ) -> Option<Blocked> {
        if state != QueueState::Active {
            return Some(Blocked::Stopped);
        }
        if !ring.has_packet() {
            let empty = ring.read_index() >= ring.write_index();
            return Some(if empty {
                Blocked::Empty
            } else {
                Blocked::Unpublished
            });
        }
        let index = ring.read_index();
        let packet = ring.packet(index);
        self.check(shared, &packet, index, &mut ring.meta(index));
        if packet.barrier_bit() && !self.running.is_empty() {
            return Some(Blocked::Earlier(self.running.len()));
        }
        let kind = packet.packet_type();
        if kind == Some(PacketType::KernelDispatch) && self.running.len() >= self.most_running {
            return Some(Blocked::Full(self.running.len()));
        }
        let deps = packet.dependencies()?;
        let met = |signal: &hsa_signal_t| shared.signals.peek(*signal) == 0;
        let named = || deps.into_iter().filter(|signal| !signal.is_null());
        let waits = match kind? {
            PacketType::BarrierAnd => !named().all(|signal| met(&signal)),
            _ => !named().any(|signal| met(&signal)),
        };
        waits.then(|| Blocked::Signals(kind.unwrap_or(PacketType::BarrierAnd), named().collect()))
    }

    /// Launches the packet at the read index, which must not be blocked; gives its index.
    pub(crate) fn launch(&mut self, shared: &Shared, ring: &Ring) -> u64 {
        let index = ring.read_index();
        let packet = ring.packet(index);
        let meta = *ring.meta(index);
        ring.consume();
        if let Some(kernel) = Kernel::of(&packet) {
            self.start(shared, index, &packet, kernel, meta);
        } else {
            let barrier = packet.dependencies().is_some();
            self.foreign += u64::from(!barrier);
            complete(shared, packet.completion_signal(), None);
        }
        index
    }

    fn start(
        &mut self,
        shared: &Shared,
        index: u64,
        packet: &AqlPacket,
        kernel: Kernel,
        meta: Meta,
    ) {
        let (id, runs, ends, writes) = kernel.parts();
        let started = shared.clock.now();
        let view = KernelView {
            queue: self.queue,
            packet: index,
            id,
            started,
            periods: meta.periods.unwrap_or_default(),
        };
        shared
            .witness
            .started(self.agent, view, meta.periods.is_some());
        self.running.push(Running {
            packet: index,
            id,
            runs,
            ends,
            writes,
            completion: packet.completion_signal(),
            meta,
            deadline: match runs {
                Runs::For(nanoseconds) => Some(started.saturating_add(nanoseconds)),
                Runs::Until(_) | Runs::Forever => None,
            },
        });
    }

    /// Whether this kernel could end at this time.
    pub(crate) fn may_end(&self, shared: &Shared, place: usize, now: u64) -> bool {
        let kernel = &self.running[place];
        match kernel.runs {
            Runs::For(_) => kernel.deadline.is_some_and(|deadline| deadline <= now),
            Runs::Until(signal) => shared.signals.peek(signal) < 1,
            Runs::Forever => false,
        }
    }

    /// When the first of the kernels that are still to run may end, later than `now`.
    pub(crate) fn next_deadline(&self, now: u64) -> Option<u64> {
        let deadlines = self.running.iter().filter_map(|kernel| kernel.deadline);
        deadlines.filter(|deadline| *deadline > now).min()
    }

    /// Ends a kernel.
    pub(crate) fn end(&mut self, shared: &Shared, place: usize) -> Outcome {
        let mut kernel = self.running.swap_remove(place);
        if kernel.ends == Ends::Fault {
            self.lose(shared, &kernel);
            return Outcome::Fault;
        }
        if !kernel.completion.is_null() && !kernel.meta.told {
            let (found, alive) = shared.signals.generation(kernel.completion);
            let written = kernel.meta.generations[5];
            if !alive || found != written {
                kernel.meta.told = true;
                shared.violations.add(Violation::StalePacket {
                    queue: self.queue,
                    packet: kernel.packet,
                    signal: kernel.completion,
                    written,
                    found,
                    alive,
                });
            }
        }
        // Before any signal tells that it has ended: whoever hears of it may start the next one.
        shared
            .witness
            .finished(self.agent, self.queue, kernel.packet, false);
        if let Some((signal, value)) = kernel.writes {
            shared.signals.store(signal, i64::from(value));
        }
        let value = match kernel.ends {
            Ends::Badly(value) => Some(i64::from(value)),
            Ends::Well | Ends::Fault => None,
        };
        complete(shared, kernel.completion, value);
        Outcome::Went
    }

    fn lose(&self, shared: &Shared, kernel: &Running) {
        shared
            .witness
            .finished(self.agent, self.queue, kernel.packet, true);
    }

    /// The queue stopped: its kernels never complete.
    pub(crate) fn abandon(&mut self, shared: &Shared) {
        for kernel in std::mem::take(&mut self.running) {
            self.lose(shared, &kernel);
        }
    }

    /// Drops all packets that were not launched; says how many.
    ///
    /// Where they were `executable`, a signal that one of them refers to was due to live until now,
    /// so they are checked, too.
    pub(crate) fn drop_packets(&mut self, shared: &Shared, ring: &Ring, executable: bool) -> u64 {
        let mut dropped = 0;
        while ring.read_index() < ring.write_index() {
            let index = ring.read_index();
            let packet = ring.packet(index);
            if packet.packet_type() != Some(PacketType::Invalid) {
                if executable {
                    self.check(shared, &packet, index, &mut ring.meta(index));
                }
                dropped += 1;
            }
            ring.consume();
        }
        dropped
    }
}

/// The signals that a packet names: five dependencies (null for other than barriers) and the
/// completion signal.
pub(crate) fn signals(packet: &AqlPacket) -> [hsa_signal_t; 6] {
    let deps = packet.dependencies().unwrap_or_default();
    std::array::from_fn(|i| match deps.get(i) {
        Some(signal) => *signal,
        None => packet.completion_signal(),
    })
}

/// Completes a packet: subtracts 1, or stores the value of one that ended badly.
fn complete(shared: &Shared, signal: hsa_signal_t, value: Option<i64>) {
    if signal.is_null() {
        return;
    }
    match value {
        None => shared.signals.subtract(signal, 1),
        Some(value) => shared.signals.store(signal, value),
    }
}
