//! Kernels under way, and the completion signals that tell of their end.
//!
//! A signal is used again and again, with one handler that stays registered: creating one costs a
//! kernel event, and registering one wakes the runtime's thread. The handler is level-triggered and
//! may be called late, with a value that the signal no longer has; so it looks at the signal itself,
//! under the slot's lock, under which a slot also changes hands.

use crate::calls::CallId;
use crate::gate::Gate;
use crate::hsa::Hsa;
use crate::lifecycle::Lifecycle;
use crate::lock;
use crate::order::Order;
use crate::tally::{Kind, Tally};
use hsa_sys::{SignalCondition, hsa_signal_t, hsa_signal_value_t, hsa_status_t};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};

/// What is kept of an intercepted queue.
pub(crate) struct Watched<S: Lifecycle> {
    /// The serializer of its agent.
    pub(crate) serializer: Arc<S>,
    pub(crate) id: hsa_serializer::QueueId,
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
    pub(crate) order: Order<End<S>>,
    /// Slots of kernels that never end. Packets that refer to them may be in the ring until the queue
    /// is destroyed.
    pub(crate) left: Mutex<Vec<Arc<Slot<S>>>>,
}

/// What is needed to tell the application of an end: the slot, its own signal, and the value.
pub(crate) struct End<S: Lifecycle> {
    pub(crate) slot: Arc<Slot<S>>,
    pub(crate) forward: hsa_signal_t,
    pub(crate) value: hsa_signal_value_t,
}

/// A kernel under way.
pub(crate) struct Flight<S: Lifecycle> {
    pub(crate) queue: Arc<Watched<S>>,
    pub(crate) ticket: S::Ticket,
    /// The application's own completion signal.
    pub(crate) forward: hsa_signal_t,
    /// Its number in the queue's order, and whether the application gave it the barrier bit.
    pub(crate) number: u64,
    pub(crate) barrier: bool,
    /// Packets that had been written to the queue with this group.
    pub(crate) end: u64,
}

/// A completion signal and the kernel whose end it tells of.
pub(crate) struct Slot<S: Lifecycle> {
    pub(crate) signal: hsa_signal_t,
    call: CallId,
    flight: Mutex<Option<Flight<S>>>,
}

/// What the pool's signals do when they fire.
type OnEnd<S> = Arc<dyn Fn(Flight<S>, &Arc<Slot<S>>, hsa_signal_value_t) + Send + Sync>;

/// The completion signals.
pub(crate) struct Pool<S: Lifecycle> {
    hsa: Hsa,
    gate: Arc<Gate>,
    tally: Arc<Tally>,
    free: Mutex<Vec<Arc<Slot<S>>>>,
    /// All of them.
    slots: Mutex<Vec<Arc<Slot<S>>>>,
    on_end: OnceLock<OnEnd<S>>,
}

impl<S: Lifecycle> fmt::Debug for Pool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("slots", &lock(&self.slots).len())
            .finish_non_exhaustive()
    }
}

impl<S: Lifecycle> Pool<S> {
    pub(crate) fn new(hsa: Hsa, gate: Arc<Gate>, tally: Arc<Tally>) -> Self {
        Self {
            hsa,
            gate,
            tally,
            free: Mutex::default(),
            slots: Mutex::default(),
            on_end: OnceLock::new(),
        }
    }

    /// Says what happens at a kernel's end: to be said once, before the first kernel.
    pub(crate) fn on_end(&self, call: OnEnd<S>) {
        let _ = self.on_end.set(call);
    }

    /// A free slot, whose signal's value is 1; `None` if the runtime has no signal left.
    pub(crate) fn take(&self) -> Option<Arc<Slot<S>>> {
        let free = lock(&self.free).pop();
        free.or_else(|| self.create().ok())
    }

    /// Creates signals ahead of their use, so that creating them does not take the handles that
    /// transitions give back.
    pub(crate) fn reserve(&self, slots: usize) -> Result<(), hsa_status_t> {
        for _ in 0..slots {
            let slot = self.create()?;
            self.give(slot);
        }
        Ok(())
    }

    fn create(&self) -> Result<Arc<Slot<S>>, hsa_status_t> {
        let signal = self.hsa.create_interrupt(1)?;
        let on_end = self.on_end.get().expect("said before the first kernel");
        let mut call = None;
        let slot = Arc::new_cyclic(|weak: &std::sync::Weak<Slot<S>>| {
            let (weak, hsa, gate) = (weak.clone(), self.hsa, self.gate.clone());
            let on_end = on_end.clone();
            let id = CallId::of(Arc::new(move |_| {
                let Some(slot) = weak.upgrade() else {
                    return false;
                };
                let Some(_inside) = gate.enter() else {
                    return false;
                };
                slot.fired(hsa, &on_end);
                true
            }));
            call = Some(id);
            Slot {
                signal,
                call: id,
                flight: Mutex::new(None),
            }
        });
        self.tally.created(Kind::Completion, signal);
        lock(&self.slots).push(slot.clone());
        self.hsa
            .on_signal(signal, SignalCondition::Lt, 1, slot.call)?;
        Ok(slot)
    }

    /// Gives a slot back whose signal no packet refers to any more.
    pub(crate) fn give(&self, slot: Arc<Slot<S>>) {
        lock(&self.free).push(slot);
    }

    /// Puts a kernel on its way; gives it back if its queue is gone.
    pub(crate) fn start(&self, slot: &Slot<S>, flight: Flight<S>) -> Result<(), Flight<S>> {
        let mut place = lock(&slot.flight);
        // Under the slot's lock: either we see it closed, or who closes it finds us in the slot.
        if flight.queue.closed.load(SeqCst) {
            return Err(flight);
        }
        flight.queue.under_way.fetch_add(1, SeqCst);
        *place = Some(flight);
        Ok(())
    }

    /// Takes out every kernel of a closed queue, with its slot.
    pub(crate) fn close(&self, queue: &Arc<Watched<S>>) -> Vec<(Arc<Slot<S>>, S::Ticket)> {
        let slots = lock(&self.slots).clone();
        let mut left = Vec::new();
        for slot in slots {
            let mut place = lock(&slot.flight);
            let flight = place.take_if(|flight| Arc::ptr_eq(&flight.queue, queue));
            drop(place);
            if let Some(flight) = flight {
                queue.under_way.fetch_sub(1, SeqCst);
                left.push((slot, flight.ticket));
            }
        }
        left
    }

    /// Gives the slots of a destroyed queue's kernels back.
    pub(crate) fn reset(&self, slots: impl IntoIterator<Item = Arc<Slot<S>>>) {
        for slot in slots {
            self.hsa.store(slot.signal, 1);
            self.give(slot);
        }
    }

    /// Destroys all signals. No packet refers to any of them any more, and no handler runs that has one:
    /// the gate is closed.
    pub(crate) fn destroy(&self) {
        lock(&self.free).clear();
        for slot in std::mem::take(&mut *lock(&self.slots)) {
            slot.call.forget();
            self.tally.destroyed(slot.signal);
            // It is alive, and nobody else's.
            let _ = self.hsa.destroy_signal(slot.signal);
        }
    }
}

impl<S: Lifecycle> Slot<S> {
    /// The handler: late and repeated calls find a signal of value 1, or no kernel.
    fn fired(self: &Arc<Self>, hsa: Hsa, on_end: &OnEnd<S>) {
        let mut place = lock(&self.flight);
        let value = hsa.load(self.signal);
        if value >= 1 {
            return;
        }
        // Handlers are level-triggered: whatever it was, it must not hold when we return.
        hsa.store(self.signal, 1);
        let flight = place.take();
        drop(place);
        if let Some(flight) = flight {
            flight.queue.under_way.fetch_sub(1, SeqCst);
            flight.queue.launched.fetch_max(flight.end, SeqCst);
            on_end(flight, self, value);
        }
    }
}
