//! A queue as its user sees it: submit, interceptor, destroy and inactivate.
//!
//! The queue's own lock covers the interceptor and the packets that did not fit into the ring.
//! Packets that do not fit wait there, in order, and move on as the processor frees slots, so that
//! a batch may be larger than the ring.

use crate::processor::{Blocked, Outcome, Processor, signals};
use crate::ring::{Meta, Ring};
use crate::shared::Shared;
use crate::violation::{QueueId, Violation};
use crate::wake::Waker;
use hsa_sys::{
    AqlPacket, FenceScope, HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE,
    HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE, PacketType, header, hsa_agent_t, hsa_status_t,
};
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// Gets each batch that is submitted, under the queue's lock and in order, and pushes the packets
/// that the ring is to hold instead.
///
/// It may do anything but submit to its own queue.
pub type Interceptor = Box<dyn FnMut(&[AqlPacket], &mut Vec<AqlPacket>) + Send>;

/// What a queue does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum QueueState {
    /// It runs packets.
    Active = 0,
    /// It was inactivated: packets are taken and dropped.
    Inactive = 1,
    /// A kernel of it faulted: packets are taken and never run.
    Faulted = 2,
    /// It is destroyed.
    Destroyed = 3,
}

/// A ring has no more slots than this, as on AMD's GPUs (`HSA_AGENT_INFO_QUEUE_MAX_SIZE`).
pub const MOST_SLOTS: usize = 1 << 17;

/// What to make of a queue.
#[derive(Default)]
pub struct QueueConfig {
    /// Slots of the ring, a power of two up to [`MOST_SLOTS`]; 0 is 1,024.
    pub slots: usize,
    /// So many kernels of it run at a time at most; 0 is 64.
    pub most_running: usize,
    /// The agent's one cooperative queue: made by the first who asks, destroyed by the last.
    pub cooperative: bool,
    /// Whether barrier packets that the interceptor adds must have fences of system scope.
    pub check_fences: bool,
    /// Rewrites what is submitted.
    pub interceptor: Option<Interceptor>,
    /// Called once, on a handler thread, when a kernel faulted and the queue stopped.
    pub on_error: Option<Box<dyn FnMut(QueueId, hsa_status_t) + Send>>,
}

impl fmt::Debug for QueueConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueConfig")
            .field("slots", &self.slots)
            .field("most_running", &self.most_running)
            .field("intercepted", &self.interceptor.is_some())
            .finish_non_exhaustive()
    }
}

/// What the queue's lock protects.
struct Host {
    interceptor: Option<Interceptor>,
    /// Packets that the ring had no room for, oldest first.
    overflow: VecDeque<(AqlPacket, Meta)>,
    /// Reused from batch to batch.
    written: Vec<AqlPacket>,
}

pub(crate) struct Inner {
    pub(crate) id: QueueId,
    pub(crate) handle: u64,
    pub(crate) agent: hsa_agent_t,
    pub(crate) shared: Arc<Shared>,
    pub(crate) ring: Ring,
    host: Mutex<Host>,
    pub(crate) overflowing: AtomicUsize,
    pub(crate) processor: Mutex<Processor<Meta>>,
    state: AtomicU8,
    on_error: Mutex<Option<crate::handler::OnError>>,
    dropped: AtomicU64,
    /// How often it was created, less how often it was destroyed; more than 1 if cooperative.
    pub(crate) users: AtomicUsize,
    pub(crate) cooperative: bool,
    check_fences: bool,
    /// The processor's thread, where it has one.
    pub(crate) waker: OnceLock<Arc<Waker>>,
    /// Tells that thread to end.
    pub(crate) ends: AtomicBool,
    pub(crate) thread: Mutex<Option<JoinHandle<()>>>,
}

/// A queue; clones are the same queue.
#[derive(Clone)]
pub struct Queue(pub(crate) Arc<Inner>);

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("id", &self.0.id)
            .field("agent", &self.0.agent)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl Inner {
    pub(crate) fn new(
        id: QueueId,
        handle: u64,
        agent: hsa_agent_t,
        shared: Arc<Shared>,
        config: QueueConfig,
    ) -> Self {
        let or = |value: usize, default| if value == 0 { default } else { value };
        Self {
            id,
            handle,
            agent,
            shared,
            ring: Ring::new(or(config.slots, 1_024)),
            host: Mutex::new(Host {
                interceptor: config.interceptor,
                overflow: VecDeque::new(),
                written: Vec::new(),
            }),
            overflowing: AtomicUsize::new(0),
            processor: Mutex::new(Processor::new(or(config.most_running, 64))),
            state: AtomicU8::new(QueueState::Active as u8),
            on_error: Mutex::new(config.on_error),
            dropped: AtomicU64::new(0),
            users: AtomicUsize::new(1),
            cooperative: config.cooperative,
            check_fences: config.check_fences,
            waker: OnceLock::new(),
            ends: AtomicBool::new(false),
            thread: Mutex::new(None),
        }
    }

    pub(crate) fn state(&self) -> QueueState {
        match self.state.load(SeqCst) {
            0 => QueueState::Active,
            1 => QueueState::Inactive,
            2 => QueueState::Faulted,
            _ => QueueState::Destroyed,
        }
    }

    pub(crate) fn blocked(&self, processor: &Processor<Meta>) -> Option<Blocked> {
        processor.blocked(self)
    }

    /// Ends a kernel, and stops the queue if that was a fault.
    pub(crate) fn end(&self, processor: &mut Processor<Meta>, place: usize) {
        if processor.end(self, place) == Outcome::Fault {
            self.state.store(QueueState::Faulted as u8, SeqCst);
            processor.abandon(self);
            if let Some(call) = self.on_error.lock().take() {
                let status = hsa_status_t::ERROR_EXCEPTION;
                self.shared.signals.handlers.error(call, self.id, status);
            }
        }
        self.shared.progressed();
    }

    fn lock(&self) -> MutexGuard<'_, Host> {
        if self.shared.clock.is_virtual() {
            // One thread runs it all, so a lock that is taken will not be given back.
            self.host
                .try_lock()
                .expect("an interceptor may not submit to its own queue")
        } else {
            self.host.lock()
        }
    }

    /// Generations of the packet's signals, now.
    fn meta(&self, packet: &AqlPacket, periods: Option<(u64, u64)>) -> Meta {
        let mut generations = [0; 6];
        for (generation, signal) in generations.iter_mut().zip(signals(packet)) {
            if let (found, true) = self.shared.signals.generation(signal) {
                *generation = found;
            }
        }
        Meta {
            generations,
            periods,
            told: false,
        }
    }

    fn submit(&self, packets: &[AqlPacket], intercept: bool) -> Result<(), hsa_status_t> {
        let mut locked = self.lock();
        if self.state() == QueueState::Destroyed {
            return Err(hsa_status_t::ERROR_INVALID_QUEUE);
        }
        let host = &mut *locked;
        let mut written = std::mem::take(&mut host.written);
        written.clear();
        let periods = match host.interceptor.as_mut().filter(|_| intercept) {
            Some(interceptor) => {
                let witness = &self.shared.witness;
                let first = witness.dispatch_begins(self.agent);
                interceptor(packets, &mut written);
                let last = witness.dispatch_ended(self.agent);
                if self.check_fences {
                    self.find_weak_fences(packets, &written);
                }
                Some((first, last))
            }
            None => {
                written.extend_from_slice(packets);
                None
            }
        };
        for packet in &written {
            host.overflow
                .push_back((*packet, self.meta(packet, periods)));
        }
        host.written = written;
        let state = self.state();
        if matches!(state, QueueState::Inactive | QueueState::Destroyed) {
            self.dropped.fetch_add(host.overflow.len() as u64, SeqCst);
            host.overflow.clear();
        }
        self.fill(host);
        // The destroyer did not get the lock, so it left this to us.
        let orphan = host.interceptor.take_if(|_| state == QueueState::Destroyed);
        drop(locked);
        drop(orphan);
        self.shared.progressed();
        Ok(())
    }

    /// Reports barrier packets that were added and do not order memory between host and agents.
    fn find_weak_fences(&self, given: &[AqlPacket], written: &[AqlPacket]) {
        let fences = 0b11 << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE
            | 0b11 << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
        let system = header(
            PacketType::VendorSpecific,
            false,
            FenceScope::System,
            FenceScope::System,
        );
        for packet in written {
            let deps = packet.dependencies();
            let added = deps.is_some() && given.iter().all(|other| other.dependencies() != deps);
            if added && packet.header() & fences != system {
                self.shared.violations.add(Violation::WeakFences {
                    queue: self.id,
                    header: packet.header(),
                });
            }
        }
    }

    /// Moves what waits into the ring, as far as there is room; says how many.
    fn fill(&self, host: &mut Host) -> usize {
        let mut moved = 0;
        while !host.overflow.is_empty() {
            let n = self.ring.free().min(host.overflow.len() as u64);
            if n == 0 {
                break;
            }
            let Some(first) = self.ring.reserve(n) else {
                break;
            };
            let last = first + n;
            for (index, (packet, meta)) in (first..last).zip(host.overflow.drain(..n as usize)) {
                self.ring.write_body(index, &packet, meta);
                self.ring.publish(index, packet.header());
            }
            self.ring_doorbell(last - 1);
            moved += n as usize;
        }
        self.overflowing.store(host.overflow.len(), SeqCst);
        moved
    }

    fn ring_doorbell(&self, index: u64) {
        self.ring.ring_doorbell(index);
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    /// Whether packets could move from the overflow into the ring.
    pub(crate) fn can_refill(&self) -> bool {
        self.overflowing.load(SeqCst) > 0
            && self.ring.free() > 0
            && self.state() == QueueState::Active
    }

    /// Moves them, unless somebody holds the queue's lock, who will.
    pub(crate) fn refill(&self) -> usize {
        let moved = self
            .host
            .try_lock()
            .map_or(0, |mut host| self.fill(&mut host));
        if moved > 0 {
            self.shared.progressed();
        }
        moved
    }

    /// Stops the processor for good, and drops what it has not launched.
    pub(crate) fn stop(&self, state: QueueState) {
        // First: a kernel's fault stops the queue under this lock, and would otherwise come in between.
        let mut processor = self.processor.lock();
        let was = self.state.fetch_max(state as u8, SeqCst);
        // What a queue that had stopped before still holds can't execute since then: the host may
        // have destroyed the signals that it names.
        let executable = was == QueueState::Active as u8;
        if state == QueueState::Inactive {
            // What happens to the kernels that run is not said by HSA: some complete.
            let mut place = 0;
            while place < processor.running().len() {
                if self.shared.dice.chance(0.5) {
                    let _ = processor.end(self, place);
                } else {
                    place += 1;
                }
            }
        }
        processor.abandon(self);
        let dropped = self.drop_packets(executable);
        self.dropped.fetch_add(dropped, SeqCst);
        drop(processor);
        // Whoever holds the queue's lock now sees the state and drops the rest itself.
        let mut interceptor = None;
        if let Some(mut host) = self.host.try_lock() {
            for (packet, meta) in host.overflow.drain(..) {
                if executable {
                    // It has no index yet; it is reported as the next one.
                    self.check(self.ring.write_index(), &packet, &meta);
                }
                self.dropped.fetch_add(1, SeqCst);
            }
            self.overflowing.store(0, SeqCst);
            if state == QueueState::Destroyed {
                interceptor = host.interceptor.take();
            }
        }
        drop(interceptor);
        if state == QueueState::Destroyed {
            // What the host's callback holds on to goes with the queue, not with its last handle.
            drop(self.on_error.lock().take());
        }
        self.shared.progressed();
    }
}

impl Queue {
    /// Its name in reports; never used again.
    #[must_use]
    pub fn id(&self) -> QueueId {
        self.0.id
    }

    /// Its address, as the real runtime's `hsa_queue_t*`: given out again after its destruction,
    /// last in, first out.
    #[must_use]
    pub fn handle(&self) -> u64 {
        self.0.handle
    }

    /// The agent that it belongs to.
    #[must_use]
    pub fn agent(&self) -> hsa_agent_t {
        self.0.agent
    }

    /// What it does.
    #[must_use]
    pub fn state(&self) -> QueueState {
        self.0.state()
    }

    /// Sets or replaces the interceptor.
    pub fn set_interceptor(&self, interceptor: Interceptor) {
        let before = self.0.lock().interceptor.replace(interceptor);
        drop(before);
    }

    /// Writes a batch of packets, through the interceptor if there is one.
    ///
    /// Any thread may call it: calls for one queue come one at a time.
    ///
    /// # Errors
    /// `ERROR_INVALID_QUEUE` once the queue is destroyed; the interceptor is not called then.
    ///
    /// # Panics
    /// In virtual time, when an interceptor submits to its own queue. With real threads that is a
    /// deadlock.
    pub fn submit(&self, packets: &[AqlPacket]) -> Result<(), hsa_status_t> {
        self.0.submit(packets, true)
    }

    /// Writes a batch that no interceptor sees; its kernels are outside the promise.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_unseen(&self, packets: &[AqlPacket]) -> Result<(), hsa_status_t> {
        self.0.submit(packets, false)
    }

    /// Reserves slots of the ring for a producer that writes them by itself, past the interceptor.
    #[must_use]
    pub fn reserve(&self, n: u64) -> Option<u64> {
        self.0.ring.reserve(n)
    }

    /// Writes all but the header of a packet into a reserved slot.
    pub fn write(&self, index: u64, packet: &AqlPacket) {
        let meta = self.0.meta(packet, None);
        self.0.ring.write_body(index, packet, meta);
    }

    /// Publishes a written slot by its header.
    pub fn publish(&self, index: u64, header: u16) {
        self.0.ring.publish(index, header);
        // A processor that stopped in front of it, rung for already, is told.
        if let Some(waker) = self.0.waker.get() {
            waker.wake();
        }
    }

    /// Rings the doorbell for everything up to and including `index`.
    pub fn ring_doorbell(&self, index: u64) {
        self.0.ring_doorbell(index);
    }

    /// The index of the next slot to reserve.
    #[must_use]
    pub fn write_index(&self) -> u64 {
        self.0.ring.write_index()
    }

    /// The index of the next packet to launch.
    #[must_use]
    pub fn read_index(&self) -> u64 {
        self.0.ring.read_index()
    }

    /// One more than the highest index that the doorbell was rung for.
    #[must_use]
    pub fn doorbell(&self) -> u64 {
        self.0.ring.doorbell()
    }

    /// The slot at an index, as it is now.
    #[must_use]
    pub fn slot(&self, index: u64) -> AqlPacket {
        self.0.ring.packet(index)
    }

    /// Packets that wait for room in the ring.
    #[must_use]
    pub fn overflowing(&self) -> usize {
        self.0.overflowing.load(SeqCst)
    }

    /// Packets that were never launched because the queue went.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(SeqCst)
    }

    /// Packets consumed that are neither kernels nor barriers.
    #[must_use]
    pub fn foreign(&self) -> u64 {
        self.0.processor.lock().foreign()
    }

    /// Kernels that run now.
    #[must_use]
    pub fn running(&self) -> usize {
        self.0.processor.lock().running().len()
    }
}
