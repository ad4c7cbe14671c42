//! The thread that plays all hardware: it asks each queue in turn what can go on.
//!
//! Nothing wakes it: a doorbell and a signal are plain words in memory. While something goes on it
//! asks without a pause; then it yields for a while, then sleeps, longer the longer nothing happens.
//!
//! Locks, in this order: the queues', the map of allocations (for reading), and what `Events`,
//! `Witness` and `Faults` have inside. Destroying a queue takes the queues' lock, so when that
//! returns the queue is not touched any more.

use crate::aql::{AqlQueue, Places};
use crate::clock;
use crate::device::Device;
use crate::memory::Mapped;
use crate::sdma::SdmaQueue;
use crate::types::{QUEUE_AQL, QUEUE_SDMA, QUEUE_SDMA_XGMI, Status};
use hsa_sys::{AQL_PACKET_SIZE, amd_queue_t};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::offset_of;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Idle for so long it only yields (ns).
const YIELDS: u64 = 20_000;
/// Then it sleeps so long, twice as long each time (ns).
const SHORTEST_SLEEP: u64 = 50_000;
const LONGEST_SLEEP: u64 = 500_000;

/// Doorbells are 64-bit words in blocks that are aligned to their size.
const DOORBELLS: usize = 1_024;

#[repr(C, align(8192))]
struct Doorbells([AtomicI64; DOORBELLS]);

/// An event that is to be raised later: when, and which.
pub(crate) type Late = BinaryHeap<Reverse<(u64, u32)>>;

/// What a queue works on during one pass.
pub(crate) struct Surroundings<'a> {
    pub(crate) device: &'a Device,
    pub(crate) held: &'a Mapped<'a>,
    pub(crate) late: &'a RefCell<Late>,
}

impl Surroundings<'_> {
    /// Raises a signal's event, if it has one: the mailbox first, then the interrupt.
    pub(crate) fn raise(&self, event: Option<(u64, u32)>) {
        if let Some((mailbox, id)) = event {
            self.device.events.write_mailbox(mailbox, id);
            self.raise_id(id);
        }
    }

    /// Raises an event, or does with it what the faults say.
    pub(crate) fn raise_id(&self, id: u32) {
        let how = self.device.faults.raising();
        if how.now {
            self.device.events.raise(id);
        }
        if let Some(by) = how.later {
            self.late
                .borrow_mut()
                .push(Reverse((clock::now() + by, id)));
        }
    }

    /// Whether a word of this size can be written there.
    pub(crate) fn writable(&self, address: u64, size: usize) -> bool {
        address % size as u64 == 0 && self.held.contains(address as usize, size)
    }
}

enum Queue {
    Aql(AqlQueue),
    Sdma(SdmaQueue),
}

impl Queue {
    fn id(&self) -> u64 {
        match self {
            Self::Aql(queue) => queue.places().id,
            Self::Sdma(queue) => queue.id,
        }
    }

    /// Whether it has something that is not over.
    fn is_busy(&self) -> bool {
        match self {
            Self::Aql(queue) => queue.is_busy(),
            Self::Sdma(queue) => queue.is_busy(),
        }
    }
}

#[derive(Default)]
struct State {
    queues: Vec<Queue>,
    next_id: u64,
    late: RefCell<Late>,
    free_doorbells: Vec<&'static AtomicI64>,
    thread: Option<JoinHandle<()>>,
    ends: bool,
}

/// All queues, and the thread that runs them.
#[derive(Default)]
pub(crate) struct Engine {
    state: Mutex<State>,
    changed: Condvar,
}

/// What the runtime says of a new queue, and is told.
pub(crate) struct NewQueue {
    pub(crate) node: u32,
    pub(crate) kind: u32,
    pub(crate) ring: usize,
    pub(crate) ring_bytes: u64,
    /// In: of an AQL queue. Out: of a copy engine's.
    pub(crate) read_ptr: u64,
    pub(crate) write_ptr: u64,
    pub(crate) id: u64,
    pub(crate) doorbell: u64,
}

impl State {
    /// The last destroyed queue's doorbell is the next one's, as the driver does it.
    fn doorbell(&mut self) -> &'static AtomicI64 {
        if self.free_doorbells.is_empty() {
            // Kept for good: an application may ring a doorbell late.
            let block: &'static Doorbells = Box::leak(Box::new(Doorbells(
                [const { AtomicI64::new(0) }; DOORBELLS],
            )));
            self.free_doorbells.extend(block.0.iter().rev());
        }
        let doorbell = self
            .free_doorbells
            .pop()
            .unwrap_or_else(|| unreachable!("a block was just added"));
        // Rung for nothing yet: it holds the index of the last packet.
        doorbell.store(-1, Relaxed);
        doorbell
    }
}

impl Engine {
    /// Makes a queue, and the thread if this is the first.
    pub(crate) fn create(&self, device: &'static Device, new: &mut NewQueue) -> Status {
        if new.ring == 0 || new.ring_bytes < AQL_PACKET_SIZE as u64 {
            return Status::InvalidParameter;
        }
        let mut state = self.state.lock();
        state.next_id += 1;
        let id = state.next_id;
        let doorbell = state.doorbell();
        let queue = match new.kind {
            QUEUE_AQL => {
                let field = offset_of!(amd_queue_t, read_dispatch_id) as u64;
                let Some(queue) = new.read_ptr.checked_sub(field) else {
                    state.free_doorbells.push(doorbell);
                    return Status::InvalidParameter;
                };
                let places = Places {
                    id,
                    node: new.node,
                    ring: new.ring,
                    ring_bytes: new.ring_bytes as usize,
                    queue: queue as usize,
                    doorbell,
                };
                Queue::Aql(AqlQueue::new(places, device.settings.running))
            }
            QUEUE_SDMA | QUEUE_SDMA_XGMI => {
                let queue = SdmaQueue::new(id, new.node, new.ring, new.ring_bytes, doorbell);
                new.read_ptr = &raw const queue.indices.read as u64;
                new.write_ptr = &raw const queue.indices.write as u64;
                Queue::Sdma(queue)
            }
            _ => {
                state.free_doorbells.push(doorbell);
                return Status::NotSupported;
            }
        };
        new.id = id;
        new.doorbell = std::ptr::from_ref(doorbell) as u64;
        state.queues.push(queue);
        if state.thread.is_none() {
            let thread = thread::Builder::new().name("softgpu".to_owned());
            match thread.spawn(move || device.engine.run(device)) {
                Ok(thread) => state.thread = Some(thread),
                Err(_) => {
                    state.queues.pop();
                    state.free_doorbells.push(doorbell);
                    return Status::NoMemory;
                }
            }
        }
        drop(state);
        device.witness.count(|counts| counts.queues_created += 1);
        self.changed.notify_all();
        Status::Success
    }

    /// Takes a queue away; when it returns, nothing of it is touched any more.
    pub(crate) fn destroy(&self, device: &Device, id: u64) -> bool {
        let mut state = self.state.lock();
        let Some(place) = state.queues.iter().position(|queue| queue.id() == id) else {
            return false;
        };
        let queue = state.queues.remove(place);
        finish(&mut state, device, queue);
        true
    }

    /// Stops a queue, whose memory stays.
    pub(crate) fn stop(&self, device: &Device, id: u64) -> bool {
        let state = &mut *self.state.lock();
        let held = device.memory.hold();
        let around = Surroundings {
            device,
            held: &held,
            late: &state.late,
        };
        let queue = state.queues.iter_mut().find(|queue| queue.id() == id);
        match queue {
            Some(Queue::Aql(queue)) => queue.stop(&around),
            Some(Queue::Sdma(_)) => {}
            None => return false,
        }
        true
    }

    /// Whether there is such a queue.
    pub(crate) fn knows(&self, id: u64) -> bool {
        self.state
            .lock()
            .queues
            .iter()
            .any(|queue| queue.id() == id)
    }

    /// The driver is closed: takes all queues away and ends the thread.
    pub(crate) fn close(&self, device: &Device) {
        let mut state = self.state.lock();
        for queue in std::mem::take(&mut state.queues) {
            finish(&mut state, device, queue);
        }
        state.late.get_mut().clear();
        state.ends = true;
        let thread = state.thread.take();
        drop(state);
        self.changed.notify_all();
        if let Some(thread) = thread {
            // It panics only where one of our own assertions is wrong, and then it has said so.
            let _ = thread.join();
        }
        self.state.lock().ends = false;
    }

    fn run(&self, device: &Device) {
        // SAFETY: sets this thread's timer slack (ns), so that a short sleep is short.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000_u64) };
        let mut idle_since = clock::now();
        let mut sleep = SHORTEST_SLEEP;
        let still = device.settings.still.as_nanos() as u64;
        let mut told = false;
        let mut state = self.state.lock();
        while !state.ends {
            if state.queues.is_empty() && state.late.get_mut().is_empty() {
                self.changed.wait(&mut state);
                continue;
            }
            let went = pass(&mut state, device);
            // Whoever waits to make or destroy a queue comes first.
            MutexGuard::bump(&mut state);
            let now = clock::now();
            if went {
                idle_since = now;
                sleep = SHORTEST_SLEEP;
                told = false;
                continue;
            }
            if now - idle_since >= still && !told && state.queues.iter().any(Queue::is_busy) {
                // A program that hangs is ended from outside, where no report is written.
                told = true;
                MutexGuard::unlocked(&mut state, || device.report());
                continue;
            }
            let next = next_deadline(&state, now).map_or(u64::MAX, |at| at - now);
            if now - idle_since < YIELDS || next < SHORTEST_SLEEP {
                MutexGuard::unlocked(&mut state, thread::yield_now);
                continue;
            }
            let nap = Duration::from_nanos(sleep.min(next));
            sleep = (sleep * 2).min(LONGEST_SLEEP);
            self.changed.wait_for(&mut state, nap);
        }
    }

    /// Everything that is under way or waits, as text.
    pub(crate) fn describe(&self, device: &Device) -> String {
        let state = &mut *self.state.lock();
        let held = device.memory.hold();
        let around = Surroundings {
            device,
            held: &held,
            late: &state.late,
        };
        let mut text = String::new();
        for queue in &state.queues {
            match queue {
                Queue::Aql(queue) => queue.describe(&around, &mut text),
                Queue::Sdma(queue) => queue.describe(&around, &mut text),
            }
        }
        text
    }
}

/// A queue goes: its kernels are lost, its doorbell is free.
fn finish(state: &mut State, device: &Device, queue: Queue) {
    let id = queue.id();
    match queue {
        Queue::Aql(mut queue) => {
            let held = device.memory.hold();
            queue.stop(&Surroundings {
                device,
                held: &held,
                late: &state.late,
            });
            state.free_doorbells.push(queue.places().doorbell);
        }
        Queue::Sdma(queue) => state.free_doorbells.push(queue.doorbell),
    }
    device.witness.queue_destroyed(id);
}

fn pass(state: &mut State, device: &Device) -> bool {
    let State { queues, late, .. } = state;
    let now = clock::now();
    let mut went = false;
    let is_due = |late: &RefCell<Late>| late.borrow().peek().is_some_and(|l| l.0.0 <= now);
    while is_due(late) {
        if let Some(Reverse((_, id))) = late.get_mut().pop() {
            device.events.raise(id);
            went = true;
        }
    }
    let held = device.memory.hold();
    let around = Surroundings {
        device,
        held: &held,
        late,
    };
    for queue in queues {
        went |= match queue {
            Queue::Aql(queue) => queue.pass(&around),
            Queue::Sdma(queue) => queue.pass(&around),
        };
    }
    went
}

/// When something will go on by itself.
fn next_deadline(state: &State, now: u64) -> Option<u64> {
    let kernels = state.queues.iter().filter_map(|queue| match queue {
        Queue::Aql(queue) => queue.next_deadline().map(|at| at.max(now)),
        Queue::Sdma(_) => None,
    });
    let late = state.late.borrow().peek().map(|late| late.0.0.max(now));
    kernels.chain(late).min()
}
