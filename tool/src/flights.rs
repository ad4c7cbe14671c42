//! Kernels under way, and the completion signals that tell of their end.
//!
//! A signal is used again and again, with one handler that stays registered: creating one costs a
//! kernel event, and registering one wakes the runtime's thread. The handler is level-triggered and
//! may be called late, with a value that the signal no longer has; so it looks at the signal itself,
//! under the slot's lock, under which a slot also changes hands.

use crate::calls::CallId;
use crate::hsa::Hsa;
use crate::lock;
use crate::order::Order;
use crate::profiler::Profiler;
use crate::trace::Dispatched;
use hsa_serializer::hsa::HsaRuntime;
use hsa_serializer::{QueueId, Serializer, Ticket};
use hsa_sys::{SignalCondition, hsa_signal_t, hsa_signal_value_t, hsa_status_t};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Weak};

/// What is kept of an intercepted queue.
pub(crate) struct Watched {
    /// The serializer of its agent.
    pub(crate) serializer: Serializer<HsaRuntime>,
    pub(crate) id: QueueId,
    /// The place of its agent.
    pub(crate) gpu: usize,
    /// Its number in the trace.
    pub(crate) number: u64,
    /// Packets that its ring was to hold.
    pub(crate) asked: u64,
    /// Packets that it holds.
    pub(crate) ring: u64,
    /// Packets up to here have been launched.
    pub(crate) launched: AtomicU64,
    pub(crate) under_way: AtomicU64,
    /// It executes nothing any more.
    pub(crate) closed: AtomicBool,
    /// In which order the application hears of its kernels' ends.
    pub(crate) order: Order<End>,
    /// Slots of kernels that never end. Packets that refer to them may be in the ring until the queue
    /// is destroyed.
    pub(crate) left: Mutex<Vec<Arc<Slot>>>,
}

/// What is needed to tell the application of an end: the slot, its own signal, and the value.
pub(crate) struct End {
    pub(crate) slot: Arc<Slot>,
    pub(crate) forward: hsa_signal_t,
    pub(crate) value: hsa_signal_value_t,
}

/// A kernel under way, or a marker.
pub(crate) struct Flight {
    pub(crate) queue: Arc<Watched>,
    /// `None` for a packet of ours that only tells how far the queue is.
    pub(crate) ticket: Option<Ticket>,
    /// `None` for that one, and for a marker, which stands for kernels that passed unseen.
    pub(crate) dispatched: Option<Dispatched>,
    /// The application's own completion signal.
    pub(crate) forward: hsa_signal_t,
    /// Its number in the queue's order, and whether the application gave it the barrier bit.
    pub(crate) number: u64,
    pub(crate) barrier: bool,
    /// Packets that had been written to the queue with it.
    pub(crate) end: u64,
}

impl Flight {
    /// How many kernels the queue has under way with it.
    fn kernels(&self) -> u64 {
        u64::from(self.ticket.is_some())
    }

    /// It never ends.
    pub(crate) fn abandon(self) {
        if let Some(ticket) = self.ticket {
            ticket.abandon();
        }
    }
}

/// A completion signal and the kernel whose end it tells of.
pub(crate) struct Slot {
    pub(crate) signal: hsa_signal_t,
    call: CallId,
    flight: Mutex<Option<Flight>>,
}

/// The completion signals.
pub(crate) struct Pool {
    hsa: Hsa,
    owner: Weak<Profiler>,
    free: Mutex<Vec<Arc<Slot>>>,
    /// All of them.
    slots: Mutex<Vec<Arc<Slot>>>,
}

impl Pool {
    pub(crate) fn new(hsa: Hsa, owner: Weak<Profiler>) -> Self {
        Self {
            hsa,
            owner,
            free: Mutex::default(),
            slots: Mutex::default(),
        }
    }

    /// Whose signals they are; `None` while that is being made, or is gone.
    pub(crate) fn owner(&self) -> Option<Arc<Profiler>> {
        self.owner.upgrade()
    }

    /// A free slot, whose signal's value is 1; `None` if the runtime has no signal left.
    pub(crate) fn take(&self) -> Option<Arc<Slot>> {
        let free = lock(&self.free).pop();
        free.or_else(|| self.create().ok())
    }

    fn create(&self) -> Result<Arc<Slot>, hsa_status_t> {
        let signal = self.hsa.create_interrupt(1)?;
        let slot = Arc::new_cyclic(|own: &Weak<Slot>| {
            let (own, owner) = (own.clone(), self.owner.clone());
            let fired = move |_| {
                let (Some(slot), Some(profiler)) = (own.upgrade(), owner.upgrade()) else {
                    return false;
                };
                let Some(_inside) = profiler.gate.enter() else {
                    return false;
                };
                slot.fired(&profiler);
                true
            };
            Slot {
                signal,
                call: CallId::of(Arc::new(fired)),
                flight: Mutex::new(None),
            }
        });
        let registered = self
            .hsa
            .on_signal(signal, SignalCondition::Lt, 1, slot.call);
        if let Err(status) = registered {
            slot.call.forget();
            // Nobody else has it.
            let _ = self.hsa.destroy_signal(signal);
            return Err(status);
        }
        lock(&self.slots).push(slot.clone());
        Ok(slot)
    }

    /// Gives a slot back whose signal no packet refers to any more.
    pub(crate) fn give(&self, slot: Arc<Slot>) {
        self.hsa.clear_times(slot.signal);
        lock(&self.free).push(slot);
    }

    /// Puts a kernel on its way; gives it back if its queue is gone.
    pub(crate) fn start(&self, slot: &Slot, flight: Flight) -> Option<Flight> {
        let mut place = lock(&slot.flight);
        // Under the slot's lock: either we see it closed, or who closes it finds us in the slot.
        if flight.queue.closed.load(SeqCst) {
            return Some(flight);
        }
        flight.queue.under_way.fetch_add(flight.kernels(), SeqCst);
        *place = Some(flight);
        None
    }

    /// Takes out every kernel of a closed queue, with its slot.
    pub(crate) fn close(&self, queue: &Arc<Watched>) -> Vec<(Arc<Slot>, Flight)> {
        let slots = lock(&self.slots).clone();
        let mut left = Vec::new();
        for slot in slots {
            let mut place = lock(&slot.flight);
            let flight = place.take_if(|flight| Arc::ptr_eq(&flight.queue, queue));
            drop(place);
            if let Some(flight) = flight {
                queue.under_way.fetch_sub(flight.kernels(), SeqCst);
                left.push((slot, flight));
            }
        }
        left
    }

    /// Gives the slots of a destroyed queue's kernels back.
    pub(crate) fn reset(&self, slots: impl IntoIterator<Item = Arc<Slot>>) {
        for slot in slots {
            self.hsa.store(slot.signal, 1);
            self.give(slot);
        }
    }

    /// Destroys the signals that no packet refers to any more; only packets that tell how far a queue is may still do so.
    /// No handler runs that has one: the gate is closed.
    pub(crate) fn destroy(&self) {
        lock(&self.free).clear();
        for slot in std::mem::take(&mut *lock(&self.slots)) {
            slot.call.forget();
            if lock(&slot.flight).is_some() {
                continue;
            }
            // It is alive, and nobody else's.
            let _ = self.hsa.destroy_signal(slot.signal);
        }
    }
}

impl Slot {
    /// The handler: late and repeated calls find a signal of value 1, or no kernel.
    fn fired(self: &Arc<Self>, profiler: &Profiler) {
        let mut place = lock(&self.flight);
        let value = profiler.hsa.load(self.signal);
        if value >= 1 {
            return;
        }
        // Handlers are level-triggered: whatever it was, it must not hold when we return.
        profiler.hsa.store(self.signal, 1);
        let flight = place.take();
        drop(place);
        if let Some(flight) = flight {
            flight.queue.under_way.fetch_sub(flight.kernels(), SeqCst);
            flight.queue.launched.fetch_max(flight.end, SeqCst);
            profiler.ended(flight, self, value);
        }
    }
}
