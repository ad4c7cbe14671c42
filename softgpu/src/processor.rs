//! The packet processor of one queue.
//!
//! It takes packets in order. Kernels run beside one another once launched, and end in any order.
//! A packet with the barrier bit waits until all earlier ones of the queue have completed; a
//! barrier-AND or barrier-OR waits for its signals; nothing behind a packet that waits is launched.
//!
//! It knows rings, signals and time only through a [`Bus`], so that the same processor runs the
//! emulated queues of this crate and the queues that AMD's runtime keeps in real memory. It is
//! driven by its owner, one step at a time, under whatever lock guards it.

use crate::kernel::{Ends, Kernel, Runs};
use hsa_sys::{AqlPacket, PacketType, hsa_signal_t};
use std::fmt;

/// What stands at a ring's read index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// Nothing: the queue does not run any more.
    Stopped,
    /// Nothing: all packets were taken.
    Empty,
    /// A slot that was reserved, but not published or not rung for.
    Unpublished,
    /// The packet of this index.
    Packet(u64),
}

/// A packet, where a processor tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At<'a, M> {
    /// Its index in the queue.
    pub index: u64,
    /// Its 64 bytes.
    pub packet: &'a AqlPacket,
    /// What is remembered of it.
    pub mark: M,
}

/// What a packet processor works on: one queue's ring, the signals, a clock, and the checks.
pub trait Bus {
    /// What is remembered of a packet beside its 64 bytes, until it has ended.
    type Mark: Copy + fmt::Debug;

    /// Nanoseconds since some start.
    fn now(&self) -> u64;

    /// What stands at the read index.
    fn head(&self) -> Head;

    /// The packet at an index that [`head`](Self::head) gave, and its mark.
    fn packet(&self, index: u64) -> (AqlPacket, Self::Mark);

    /// Gives the slot at the read index back: its header becomes INVALID, then the index goes on.
    fn consume(&self);

    /// What the kernel of a dispatch packet does; `None` for any other packet.
    fn kernel(&self, packet: &AqlPacket) -> Option<Kernel>;

    /// The signal that a vendor's packet waits for, where it is of a kind that waits, and still does.
    fn vendor_waits(&self, packet: &AqlPacket) -> Option<hsa_signal_t> {
        let _ = packet;
        None
    }

    /// A signal's value, for a packet that waits for it or a kernel that polls it.
    fn peek(&self, signal: hsa_signal_t) -> i64;

    /// A kernel writes a signal, or stores the value of its bad end.
    fn store(&self, signal: hsa_signal_t, value: i64);

    /// A packet that started at this time has completed: subtracts 1.
    fn complete(&self, signal: hsa_signal_t, started: u64);

    /// The packet at the head is looked at, perhaps not for the first time.
    fn looked_at(&self, at: At<'_, Self::Mark>) {
        let _ = at;
    }

    /// A packet that is no kernel is launched, and over.
    fn passed(&self, at: At<'_, Self::Mark>) {
        let _ = at;
    }

    /// A kernel starts.
    fn started(&self, at: At<'_, Self::Mark>, id: u32, now: u64);

    /// A kernel has ended, and no signal tells of it yet.
    fn finished(&self, at: At<'_, Self::Mark>);

    /// A kernel will never end: its queue has stopped.
    fn lost(&self, index: u64);
}

/// A kernel under way.
#[derive(Debug)]
pub struct Running<M> {
    /// Its packet's index.
    pub packet: u64,
    /// Its number.
    pub id: u32,
    /// How long it runs.
    pub runs: Runs,
    ends: Ends,
    writes: Option<(hsa_signal_t, i32)>,
    copy: AqlPacket,
    mark: M,
    started: u64,
    /// When it may end; `None` where that depends on something else.
    deadline: Option<u64>,
}

impl<M: Copy> Running<M> {
    /// Its packet.
    fn at(&self) -> At<'_, M> {
        At {
            index: self.packet,
            packet: &self.copy,
            mark: self.mark,
        }
    }

    /// Whether its end writes this signal.
    #[must_use]
    pub fn signals(&self, signal: hsa_signal_t) -> bool {
        self.copy.completion_signal() == signal
            || self.writes.is_some_and(|(written, _)| written == signal)
    }
}

/// Why the next packet can't be launched now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocked {
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
    /// It waits for these signals: all of them, or for barrier-OR any; or for a value of the one that
    /// a vendor's packet names.
    Signals(PacketType, Vec<hsa_signal_t>),
}

/// What a launch or an end did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The packet or kernel is over.
    Went,
    /// The kernel faulted; its queue is to be stopped.
    Fault,
}

/// The state of one queue's packet processor.
#[derive(Debug)]
pub struct Processor<M> {
    most_running: usize,
    running: Vec<Running<M>>,
    foreign: u64,
}

impl<M: Copy + fmt::Debug> Processor<M> {
    /// One that runs at most so many kernels at a time.
    #[must_use]
    pub fn new(most_running: usize) -> Self {
        Self {
            most_running,
            running: Vec::new(),
            foreign: 0,
        }
    }

    /// The kernels under way.
    #[must_use]
    pub fn running(&self) -> &[Running<M>] {
        &self.running
    }

    /// Packets that were neither kernels nor barriers.
    #[must_use]
    pub fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Whether the packet at the read index could be launched, and if not, why.
    #[must_use]
    pub fn blocked<B: Bus<Mark = M>>(&self, bus: &B) -> Option<Blocked> {
        let index = match bus.head() {
            Head::Stopped => return Some(Blocked::Stopped),
            Head::Empty => return Some(Blocked::Empty),
            Head::Unpublished => return Some(Blocked::Unpublished),
            Head::Packet(index) => index,
        };
        let (packet, mark) = bus.packet(index);
        bus.looked_at(At {
            index,
            packet: &packet,
            mark,
        });
        if packet.barrier_bit() && !self.running.is_empty() {
            return Some(Blocked::Earlier(self.running.len()));
        }
        let kind = packet.packet_type();
        if kind == Some(PacketType::KernelDispatch) && self.running.len() >= self.most_running {
            return Some(Blocked::Full(self.running.len()));
        }
        let Some(deps) = packet.dependencies() else {
            let waits = bus.vendor_waits(&packet)?;
            return Some(Blocked::Signals(PacketType::VendorSpecific, vec![waits]));
        };
        let met = |signal: &hsa_signal_t| bus.peek(*signal) == 0;
        let named = || deps.into_iter().filter(|signal| !signal.is_null());
        let waits = match kind? {
            PacketType::BarrierAnd => !named().all(|signal| met(&signal)),
            _ => !named().any(|signal| met(&signal)),
        };
        waits.then(|| Blocked::Signals(kind.unwrap_or(PacketType::BarrierAnd), named().collect()))
    }

    /// Launches the packet at this index, which must be the head and not blocked.
    pub fn launch<B: Bus<Mark = M>>(&mut self, bus: &B, index: u64) {
        let (packet, mark) = bus.packet(index);
        bus.consume();
        let at = At {
            index,
            packet: &packet,
            mark,
        };
        let started = bus.now();
        let Some(kernel) = bus.kernel(&packet) else {
            self.foreign += u64::from(packet.dependencies().is_none());
            bus.passed(at);
            if !packet.completion_signal().is_null() {
                bus.complete(packet.completion_signal(), started);
            }
            return;
        };
        let (id, runs, ends, writes) = kernel.parts();
        bus.started(at, id, started);
        self.running.push(Running {
            packet: index,
            id,
            runs,
            ends,
            writes,
            copy: packet,
            mark,
            started,
            deadline: match runs {
                Runs::For(nanoseconds) => Some(started.saturating_add(nanoseconds)),
                Runs::Until(_) | Runs::Forever => None,
            },
        });
    }

    /// Whether this kernel could end at this time.
    #[must_use]
    pub fn may_end<B: Bus<Mark = M>>(&self, bus: &B, place: usize, now: u64) -> bool {
        let kernel = &self.running[place];
        match kernel.runs {
            Runs::For(_) => kernel.deadline.is_some_and(|deadline| deadline <= now),
            Runs::Until(signal) => bus.peek(signal) < 1,
            Runs::Forever => false,
        }
    }

    /// The place of a kernel that could end at this time.
    #[must_use]
    pub fn due<B: Bus<Mark = M>>(&self, bus: &B, now: u64) -> Option<usize> {
        (0..self.running.len()).rfind(|place| self.may_end(bus, *place, now))
    }

    /// When the first of the kernels that are still to run may end, later than `now`.
    #[must_use]
    pub fn next_deadline(&self, now: u64) -> Option<u64> {
        let deadlines = self.running.iter().filter_map(|kernel| kernel.deadline);
        deadlines.filter(|deadline| *deadline > now).min()
    }

    /// Ends a kernel.
    pub fn end<B: Bus<Mark = M>>(&mut self, bus: &B, place: usize) -> Outcome {
        let kernel = self.running.swap_remove(place);
        if kernel.ends == Ends::Fault {
            bus.lost(kernel.packet);
            return Outcome::Fault;
        }
        // Before any signal tells that it has ended: whoever hears of it may start the next one.
        bus.finished(kernel.at());
        if let Some((signal, value)) = kernel.writes {
            bus.store(signal, i64::from(value));
        }
        let completion = kernel.copy.completion_signal();
        if !completion.is_null() {
            match kernel.ends {
                Ends::Badly(value) => bus.store(completion, i64::from(value)),
                Ends::Well | Ends::Fault => bus.complete(completion, kernel.started),
            }
        }
        Outcome::Went
    }

    /// The queue stopped: its kernels never complete.
    pub fn abandon<B: Bus<Mark = M>>(&mut self, bus: &B) {
        for kernel in std::mem::take(&mut self.running) {
            bus.lost(kernel.packet);
        }
    }
}

/// The signals that a packet names: five dependencies (null for other than barriers) and the
/// completion signal.
#[must_use]
pub fn signals(packet: &AqlPacket) -> [hsa_signal_t; 6] {
    let deps = packet.dependencies().unwrap_or_default();
    std::array::from_fn(|i| match deps.get(i) {
        Some(signal) => *signal,
        None => packet.completion_signal(),
    })
}
