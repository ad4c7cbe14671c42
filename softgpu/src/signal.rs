//! Signals: values that anybody may read and write without a lock, behind handles that are given
//! out again last in, first out, as the real runtime does.
//!
//! A handle names a slot. Creating a signal in it raises the slot's generation, which is how the
//! checks tell a signal from its predecessor of the same handle. An operation on a destroyed signal
//! does what it would do on the real machine, where the memory is still mapped: it reads and writes
//! what is there; and it is reported.

use crate::clock::Clock;
use crate::dice::Dice;
use crate::fault::{Failure, Faults};
use crate::handler::Handlers;
use crate::history::{Event, History, What};
use crate::violation::{Violation, Violations};
use crate::wake::{MANY, Wakers};
use hsa_sys::{SignalCondition, hsa_signal_t, hsa_status_t};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Handles look like addresses, so that a small number is never mistaken for one.
const BASE: u64 = 0x7f50_0000_0000;
const STEP: u64 = 64;

/// Who consumes a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignalKind {
    /// The host may wait for it or have a handler called: it takes one of the kernel's events.
    Interrupt,
    /// GPUs alone wait for it.
    GpuOnly,
}

#[derive(Debug)]
#[repr(align(64))]
struct Slot {
    value: AtomicI64,
    /// Generation times 2, plus 1 while alive.
    state: AtomicU64,
    /// The number of the processor that sleeps for it, [`MANY`], or 0.
    waiter: AtomicU32,
    /// Whether a handler is registered with it.
    watched: AtomicBool,
    interrupt: AtomicBool,
}

/// How many signals there are and were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalStats {
    /// Alive now.
    pub live: u64,
    /// Alive now that hold an event of the kernel.
    pub live_interrupt: u64,
    /// The most that were alive at a time.
    pub most_live: u64,
    /// The most with an event that were alive at a time.
    pub most_live_interrupt: u64,
    /// Created in all.
    pub created: u64,
    /// Of those, created with a handle that had been used before.
    pub recycled: u64,
    /// Creations that failed or gave the null handle.
    pub failed: u64,
}

#[derive(Debug, Default)]
struct Owner {
    /// Slots that were given back; the last one goes first.
    free: Vec<u32>,
    /// One history for each slot that was ever used.
    histories: Vec<History>,
    stats: SignalStats,
}

/// All signals of one emulated machine.
pub struct SignalPool {
    slots: Box<[Slot]>,
    owner: Mutex<Owner>,
    interrupt_limit: u64,
    clock: Arc<Clock>,
    dice: Arc<Dice>,
    faults: Arc<Faults>,
    violations: Arc<Violations>,
    wakers: Arc<Wakers>,
    pub(crate) handlers: Handlers,
}

impl fmt::Debug for SignalPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalPool")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl SignalPool {
    /// Nanoseconds since the start, on the GPU's clock.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    pub(crate) fn new(
        capacity: usize,
        interrupt_limit: u64,
        clock: Arc<Clock>,
        dice: Arc<Dice>,
        faults: Arc<Faults>,
        violations: Arc<Violations>,
        wakers: Arc<Wakers>,
    ) -> Self {
        let slot = |_| Slot {
            value: AtomicI64::new(0),
            state: AtomicU64::new(0),
            waiter: AtomicU32::new(0),
            watched: AtomicBool::new(false),
            interrupt: AtomicBool::new(false),
        };
        Self {
            slots: (0..capacity).map(slot).collect(),
            owner: Mutex::default(),
            interrupt_limit,
            handlers: Handlers::new(clock.clone(), dice.clone(), faults.clone()),
            clock,
            dice,
            faults,
            violations,
            wakers,
        }
    }

    /// Creates a signal.
    ///
    /// # Errors
    /// `ERROR_OUT_OF_RESOURCES` when there are no more signals or events, or by an injected fault.
    /// Another injected fault gives success and the null handle.
    pub fn create(&self, initial: i64, kind: SignalKind) -> Result<hsa_signal_t, hsa_status_t> {
        self.create_labelled(initial, kind, "")
    }

    /// Creates a signal with a label that reports name it by.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_labelled(
        &self,
        initial: i64,
        kind: SignalKind,
        label: impl Into<Cow<'static, str>>,
    ) -> Result<hsa_signal_t, hsa_status_t> {
        let failure = self.faults.create(&self.dice);
        let interrupt = kind == SignalKind::Interrupt;
        let mut owner = self.owner.lock();
        let exhausted = owner.free.is_empty() && owner.histories.len() == self.slots.len()
            || interrupt && owner.stats.live_interrupt == self.interrupt_limit;
        match failure {
            Some(Failure::NullHandle) => {
                owner.stats.failed += 1;
                return Ok(hsa_signal_t::NULL);
            }
            _ if exhausted || failure.is_some() => {
                owner.stats.failed += 1;
                return Err(hsa_status_t::ERROR_OUT_OF_RESOURCES);
            }
            _ => {}
        }
        let recycled = owner.free.pop();
        let index = recycled.unwrap_or_else(|| {
            owner.histories.push(History::default());
            owner.histories.len() as u32 - 1
        });
        let slot = &self.slots[index as usize];
        let generation = (slot.state.load(SeqCst) >> 1) + 1;
        owner.histories[index as usize].add(Event {
            at: self.clock.now(),
            generation,
            what: What::Created(initial, label.into()),
        });
        let stats = &mut owner.stats;
        stats.created += 1;
        stats.recycled += u64::from(recycled.is_some());
        stats.live += 1;
        stats.most_live = stats.most_live.max(stats.live);
        stats.live_interrupt += u64::from(interrupt);
        stats.most_live_interrupt = stats.most_live_interrupt.max(stats.live_interrupt);
        slot.interrupt.store(interrupt, SeqCst);
        slot.waiter.store(0, SeqCst);
        slot.watched.store(false, SeqCst);
        slot.value.store(initial, SeqCst);
        slot.state.store(generation << 1 | 1, SeqCst);
        drop(owner);
        Ok(hsa_signal_t {
            handle: BASE + u64::from(index) * STEP,
        })
    }

    /// Destroys a signal. Handlers registered with it are forgotten.
    ///
    /// # Errors
    /// `ERROR_INVALID_SIGNAL` for what is no live signal; it is reported, too.
    pub fn destroy(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        let Some((index, slot)) = self.find(signal, "destroy") else {
            return Err(hsa_status_t::ERROR_INVALID_SIGNAL);
        };
        // The lock is held until the slot is free, so that two destroyers can't both succeed.
        let mut owner = self.owner.lock();
        let state = slot.state.load(SeqCst);
        if state & 1 == 0 {
            drop(owner);
            self.violations.add(Violation::DestroyedTwice { signal });
            return Err(hsa_status_t::ERROR_INVALID_SIGNAL);
        }
        slot.state.store(state & !1, SeqCst);
        let value = slot.value.load(SeqCst);
        owner.histories[index as usize].add(Event {
            at: self.clock.now(),
            generation: state >> 1,
            what: What::Destroyed(value),
        });
        owner.stats.live -= 1;
        owner.stats.live_interrupt -= u64::from(slot.interrupt.load(SeqCst));
        let swept = if slot.watched.swap(false, SeqCst) {
            self.handlers.sweep(index, value)
        } else {
            Vec::new()
        };
        owner.free.push(index);
        drop(owner);
        // What the closures own is dropped under no lock of ours.
        drop(swept);
        Ok(())
    }

    /// The value.
    #[must_use]
    pub fn load(&self, signal: hsa_signal_t) -> i64 {
        self.live(signal, "load")
            .map_or(0, |(_, slot)| slot.value.load(SeqCst))
    }

    /// Stores a value.
    pub fn store(&self, signal: hsa_signal_t, value: i64) {
        if let Some((index, slot)) = self.live(signal, "store") {
            slot.value.store(value, SeqCst);
            self.written(index, slot);
        }
    }

    /// Stores `desired` if the value is `expected`; what it was before, either way.
    pub fn compare_exchange(&self, signal: hsa_signal_t, expected: i64, desired: i64) -> i64 {
        let Some((index, slot)) = self.live(signal, "compare_exchange") else {
            return 0;
        };
        match slot
            .value
            .compare_exchange(expected, desired, SeqCst, SeqCst)
        {
            Ok(before) => {
                self.written(index, slot);
                before
            }
            Err(before) => before,
        }
    }

    /// Subtracts.
    pub fn subtract(&self, signal: hsa_signal_t, value: i64) {
        if let Some((index, slot)) = self.live(signal, "subtract") {
            slot.value.fetch_sub(value, SeqCst);
            self.written(index, slot);
        }
    }

    /// Waits until the condition holds or the time is over; the value seen last.
    ///
    /// It waits in real time: in virtual time, nothing happens meanwhile.
    pub fn wait(
        &self,
        signal: hsa_signal_t,
        condition: SignalCondition,
        compare: i64,
        timeout: Duration,
    ) -> i64 {
        let end = Instant::now() + timeout;
        let mut rounds = 0_u32;
        loop {
            let value = self.load(signal);
            if condition.holds(value, compare) || Instant::now() >= end {
                return value;
            }
            rounds += 1;
            if rounds < 100 {
                std::thread::yield_now();
            } else {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }

    /// Calls `handler` with the value whenever the condition holds, until it answers false.
    ///
    /// As with `hsa_amd_signal_async_handler`, it is level-triggered: a handler that answers true
    /// while the condition holds is called again at once.
    ///
    /// # Errors
    /// `ERROR_INVALID_SIGNAL` for what is no live signal.
    pub fn on_signal(
        &self,
        signal: hsa_signal_t,
        condition: SignalCondition,
        compare: i64,
        handler: Box<dyn FnMut(i64) -> bool + Send>,
    ) -> Result<(), hsa_status_t> {
        let (index, slot) = self
            .live(signal, "on_signal")
            .ok_or(hsa_status_t::ERROR_INVALID_SIGNAL)?;
        if slot.state.load(SeqCst) & 1 == 0 {
            return Err(hsa_status_t::ERROR_INVALID_SIGNAL);
        }
        if !slot.interrupt.load(SeqCst) {
            self.violations
                .add(Violation::HandlerOnGpuSignal { signal });
        }
        self.handlers
            .register(self, signal, index, condition, compare, handler);
        Ok(())
    }

    /// Says something about a signal that its history shall show, such as who armed it.
    pub fn note(&self, signal: hsa_signal_t, note: impl Into<Cow<'static, str>>) {
        if let Some((index, slot)) = self.live(signal, "note") {
            let event = Event {
                at: self.clock.now(),
                generation: slot.state.load(SeqCst) >> 1,
                what: What::Noted(note.into()),
            };
            self.owner.lock().histories[index as usize].add(event);
        }
    }

    /// The last events of a handle, oldest first.
    #[must_use]
    pub fn history(&self, signal: hsa_signal_t) -> Vec<Event> {
        self.look(signal).map_or_else(Vec::new, |(index, _)| {
            let owner = self.owner.lock();
            owner
                .histories
                .get(index as usize)
                .map_or_else(Vec::new, History::events)
        })
    }

    /// The label that the handle's signal was created with last.
    #[must_use]
    pub fn label(&self, signal: hsa_signal_t) -> String {
        self.look(signal).map_or_else(String::new, |(index, _)| {
            let owner = self.owner.lock();
            owner
                .histories
                .get(index as usize)
                .map_or_else(String::new, History::label)
        })
    }

    /// The handle's generation, and whether a signal is alive in it; `(0, false)` for none.
    #[must_use]
    pub fn generation(&self, signal: hsa_signal_t) -> (u64, bool) {
        self.look(signal).map_or((0, false), |(_, slot)| {
            let state = slot.state.load(SeqCst);
            (state >> 1, state & 1 == 1)
        })
    }

    /// Whether a signal is alive in this handle.
    #[must_use]
    pub fn is_alive(&self, signal: hsa_signal_t) -> bool {
        self.generation(signal).1
    }

    /// How many signals there are and were.
    #[must_use]
    pub fn stats(&self) -> SignalStats {
        self.owner.lock().stats
    }

    /// The value without a check: the packet processor's and the reports' look, for which the
    /// packet's own check is the exact one.
    pub(crate) fn peek(&self, signal: hsa_signal_t) -> i64 {
        self.look(signal)
            .map_or(0, |(_, slot)| slot.value.load(SeqCst))
    }

    /// Makes writes of the signal wake this processor.
    pub(crate) fn sleep_for(&self, signal: hsa_signal_t, processor: u32) {
        if let Some((_, slot)) = self.look(signal) {
            let before = slot.waiter.compare_exchange(0, processor, SeqCst, SeqCst);
            if before.is_err_and(|other| other != processor) {
                slot.waiter.store(MANY, SeqCst);
            }
        }
    }

    /// Whether writes of this slot are to be told to the handlers.
    pub(crate) fn set_watched(&self, index: u32, watched: bool) {
        self.slots[index as usize].watched.store(watched, SeqCst);
    }

    pub(crate) fn value_at(&self, index: u32) -> i64 {
        self.slots[index as usize].value.load(SeqCst)
    }

    fn written(&self, index: u32, slot: &Slot) {
        let waiter = slot.waiter.load(SeqCst);
        if waiter != 0 {
            self.wakers.wake(waiter);
        }
        if slot.watched.load(SeqCst) {
            self.handlers.written(self, index);
        }
    }

    fn look(&self, signal: hsa_signal_t) -> Option<(u32, &Slot)> {
        let offset = signal.handle.checked_sub(BASE)?;
        let index = u32::try_from(offset / STEP).ok()?;
        let slot = self.slots.get(index as usize)?;
        (offset % STEP == 0 && slot.state.load(SeqCst) != 0).then_some((index, slot))
    }

    fn find(&self, signal: hsa_signal_t, operation: &'static str) -> Option<(u32, &Slot)> {
        let found = self.look(signal);
        if found.is_none() {
            self.violations
                .add(Violation::UnknownSignal { signal, operation });
        }
        found
    }

    /// The slot, having reported if it is not alive.
    fn live(&self, signal: hsa_signal_t, operation: &'static str) -> Option<(u32, &Slot)> {
        let (index, slot) = self.find(signal, operation)?;
        let state = slot.state.load(SeqCst);
        if state & 1 == 0 {
            self.violations.add(Violation::TouchedDestroyed {
                signal,
                operation,
                generation: state >> 1,
            });
        }
        Some((index, slot))
    }
}
