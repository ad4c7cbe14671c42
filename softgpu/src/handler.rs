//! Asynchronous handlers, level-triggered, on threads of their own and in any order.
//!
//! A write of a watched signal puts the handlers whose condition it meets among the *ready* ones;
//! a handler thread (or a step of virtual time) draws one of them, looks at the value once more
//! and calls it. Handlers are called under no lock. One that answers true stays registered and,
//! while its condition holds, is ready again at once.

use crate::clock::Clock;
use crate::dice::Dice;
use crate::fault::Faults;
use crate::signal::SignalPool;
use crate::violation::QueueId;
use hsa_sys::{SignalCondition, hsa_signal_t, hsa_status_t};
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

type Call = Box<dyn FnMut(i64) -> bool + Send>;
/// A queue's error callback.
pub(crate) type OnError = Box<dyn FnMut(QueueId, hsa_status_t) + Send>;

/// One registered handler.
pub(crate) struct Entry {
    signal: hsa_signal_t,
    slot: u32,
    condition: SignalCondition,
    compare: i64,
    /// Taken while it runs.
    call: Option<Call>,
    /// Whether an item for it stands among the ready or the late ones.
    queued: bool,
    /// The signal went: whatever is left to be called is called, then it is dropped.
    dead: bool,
}

enum Item {
    /// Call it if its condition holds.
    Check(u64),
    /// Call it with this value, come what may; then, if so marked, drop it.
    Forced { id: u64, value: i64, last: bool },
    Error {
        call: OnError,
        queue: QueueId,
        status: hsa_status_t,
    },
}

#[derive(Default)]
struct State {
    entries: HashMap<u64, Entry>,
    by_slot: HashMap<u32, Vec<u64>>,
    next: u64,
    ready: Vec<Item>,
    late: Vec<(u64, Item)>,
    running: usize,
    stats: HandlerStats,
    stopped: bool,
}

/// How many handlers there are and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandlerStats {
    /// Registered now.
    pub registered: u64,
    /// Calls made, error callbacks included.
    pub calls: u64,
    /// Of those, made a second time by an injected fault.
    pub repeated: u64,
    /// Of those, made late by an injected fault.
    pub late: u64,
    /// Handlers that were forgotten because their signal was destroyed.
    pub swept: u64,
}

/// A thread that plays dead looks after so long whether it still shall.
const DEAD_FOR: Duration = Duration::from_millis(1);

/// What a call was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    Handler { signal: hsa_signal_t, kept: bool },
    Error(QueueId),
}

pub(crate) struct Handlers {
    state: Mutex<State>,
    changed: Condvar,
    clock: Arc<Clock>,
    dice: Arc<Dice>,
    faults: Arc<Faults>,
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl State {
    /// Makes the handler ready if its condition holds and it does not stand in line already.
    fn check(&mut self, id: u64, value: i64) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else {
            return false;
        };
        let due = !entry.queued
            && !entry.dead
            && entry.call.is_some()
            && entry.condition.holds(value, entry.compare);
        if due {
            entry.queued = true;
            self.ready.push(Item::Check(id));
        }
        due
    }

    /// Moves late calls whose time has come among the ready ones.
    fn promote(&mut self, now: u64) {
        let mut i = 0;
        while i < self.late.len() {
            if self.late[i].0 <= now {
                let (_, item) = self.late.swap_remove(i);
                self.ready.push(item);
            } else {
                i += 1;
            }
        }
    }

    /// Forgets the handler; whether its slot has no other.
    fn remove(&mut self, id: u64) -> (Option<Entry>, bool) {
        let entry = self.entries.remove(&id);
        let mut last = false;
        if let Some(entry) = entry.as_ref().filter(|entry| !entry.dead) {
            let ids = self.by_slot.entry(entry.slot).or_default();
            ids.retain(|other| *other != id);
            last = ids.is_empty();
            if last {
                self.by_slot.remove(&entry.slot);
            }
        }
        (entry, last)
    }
}

impl Handlers {
    pub(crate) fn new(clock: Arc<Clock>, dice: Arc<Dice>, faults: Arc<Faults>) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            clock,
            dice,
            faults,
        }
    }

    pub(crate) fn register(
        &self,
        pool: &SignalPool,
        signal: hsa_signal_t,
        slot: u32,
        condition: SignalCondition,
        compare: i64,
        call: Call,
    ) {
        let mut state = self.state.lock();
        if state.stopped {
            return;
        }
        let id = state.next;
        state.next += 1;
        let entry = Entry {
            signal,
            slot,
            condition,
            compare,
            call: Some(call),
            queued: false,
            dead: false,
        };
        state.entries.insert(id, entry);
        state.by_slot.entry(slot).or_default().push(id);
        // Marked first, then looked at: a writer either sees the mark or is seen.
        pool.set_watched(slot, true);
        if state.check(id, pool.value_at(slot)) {
            self.changed.notify_one();
        }
    }

    /// A watched signal was written.
    pub(crate) fn written(&self, pool: &SignalPool, slot: u32) {
        let mut state = self.state.lock();
        let ids = state.by_slot.remove(&slot).unwrap_or_default();
        // Read under the lock: the last writer to get here sees the last value.
        let value = pool.value_at(slot);
        let mut due = false;
        for id in &ids {
            due |= state.check(*id, value);
        }
        if !ids.is_empty() {
            state.by_slot.insert(slot, ids);
        }
        if due {
            self.changed.notify_one();
        }
    }

    /// The signal is destroyed: forgets its handlers, of which some may be called once more.
    ///
    /// What it returns is for the caller to drop, once it holds no lock.
    pub(crate) fn sweep(&self, slot: u32, value: i64) -> Vec<Option<Entry>> {
        let mut state = self.state.lock();
        let ids = state.by_slot.remove(&slot).unwrap_or_default();
        let mut gone = Vec::new();
        for id in ids {
            let Some(entry) = state.entries.get_mut(&id) else {
                continue;
            };
            entry.dead = true;
            let running = entry.call.is_none();
            let again = !running && self.faults.handler_after_destroy(&self.dice);
            state.stats.swept += 1;
            if again {
                let last = true;
                state.ready.push(Item::Forced { id, value, last });
                self.changed.notify_one();
            } else if !running {
                gone.push(state.entries.remove(&id));
            }
        }
        gone
    }

    /// Lines up a queue's error callback.
    pub(crate) fn error(&self, call: OnError, queue: QueueId, status: hsa_status_t) {
        let mut state = self.state.lock();
        state.ready.push(Item::Error {
            call,
            queue,
            status,
        });
        self.changed.notify_one();
    }

    /// How many could be called now.
    pub(crate) fn ready(&self) -> usize {
        if self.faults.handlers_dead() {
            return 0;
        }
        let mut state = self.state.lock();
        state.promote(self.clock.now());
        state.ready.len()
    }

    /// When the next late call is due.
    pub(crate) fn next_late(&self) -> Option<u64> {
        let state = self.state.lock();
        let next = state.late.iter().map(|late| late.0).min();
        next.filter(|_| !self.faults.handlers_dead())
    }

    /// Whether one runs, is ready or will be.
    pub(crate) fn busy(&self) -> bool {
        let state = self.state.lock();
        let due = !state.ready.is_empty() || !state.late.is_empty();
        state.running > 0 || due && !self.faults.handlers_dead()
    }

    pub(crate) fn stats(&self) -> HandlerStats {
        let state = self.state.lock();
        HandlerStats {
            registered: state.entries.len() as u64,
            ..state.stats
        }
    }

    /// The registered handlers' signals, with what each waits for.
    pub(crate) fn waiting(&self) -> Vec<(hsa_signal_t, SignalCondition, i64)> {
        let state = self.state.lock();
        let mut ids: Vec<_> = state.entries.keys().copied().collect();
        ids.sort_unstable();
        ids.iter()
            .map(|id| &state.entries[id])
            .map(|entry| (entry.signal, entry.condition, entry.compare))
            .collect()
    }

    /// Draws one of the ready handlers and calls it; `None` if, looked at again, none was due.
    pub(crate) fn call_one(&self, pool: &SignalPool) -> Option<Called> {
        loop {
            let mut state = self.state.lock();
            state.promote(self.clock.now());
            if state.ready.is_empty() || self.faults.handlers_dead() {
                return None;
            }
            let drawn = self.dice.below(state.ready.len() as u64) as usize;
            let item = state.ready.swap_remove(drawn);
            let (id, forced, last) = match item {
                Item::Error {
                    mut call,
                    queue,
                    status,
                } => {
                    state.running += 1;
                    state.stats.calls += 1;
                    drop(state);
                    call(queue, status);
                    self.state.lock().running -= 1;
                    return Some(Called::Error(queue));
                }
                Item::Check(id) => (id, None, false),
                Item::Forced { id, value, last } => (id, Some(value), last),
            };
            let Some(entry) = state.entries.get_mut(&id) else {
                continue;
            };
            entry.queued = false;
            let value = forced.unwrap_or_else(|| pool.value_at(entry.slot));
            if forced.is_none() {
                if entry.dead || !entry.condition.holds(value, entry.compare) {
                    continue;
                }
                if let Some(by) = self.faults.handler_late(&self.dice) {
                    entry.queued = true;
                    let due = self.clock.now().saturating_add(by);
                    state.stats.late += 1;
                    state.late.push((due, Item::Forced { id, value, last }));
                    self.changed.notify_one();
                    continue;
                }
            }
            let Some(mut call) = entry.call.take() else {
                continue;
            };
            let signal = entry.signal;
            state.running += 1;
            state.stats.calls += 1;
            drop(state);
            let kept = call(value);
            self.after_call(pool, id, call, value, kept && !last, last);
            return Some(Called::Handler { signal, kept });
        }
    }

    fn after_call(
        &self,
        pool: &SignalPool,
        id: u64,
        call: Call,
        value: i64,
        keep: bool,
        last: bool,
    ) {
        let again = !last && self.faults.handler_twice(&self.dice);
        let mut state = self.state.lock();
        state.running -= 1;
        let mut call = Some(call);
        let mut gone = None;
        if let Some(entry) = state.entries.get_mut(&id) {
            let slot = entry.slot;
            if again && !entry.dead {
                entry.call = call.take();
                entry.queued = true;
                state.stats.repeated += 1;
                let last = !keep;
                state.ready.push(Item::Forced { id, value, last });
            } else if keep && !entry.dead {
                entry.call = call.take();
                state.check(id, pool.value_at(slot));
            } else {
                let (entry, slot_is_free) = state.remove(id);
                gone = entry;
                if slot_is_free {
                    // Under the lock, as the mark of a registration is.
                    pool.set_watched(slot, false);
                }
            }
        }
        drop(state);
        drop((call, gone));
    }

    /// A handler thread: calls handlers until told to stop.
    pub(crate) fn serve(&self, pool: &SignalPool) {
        loop {
            if self.call_one(pool).is_some() {
                continue;
            }
            let mut state = self.state.lock();
            if state.stopped {
                return;
            }
            if self.faults.handlers_dead() {
                self.changed.wait_for(&mut state, DEAD_FOR);
                continue;
            }
            if !state.ready.is_empty() {
                continue;
            }
            match state.late.iter().map(|late| late.0).min() {
                None => self.changed.wait(&mut state),
                Some(due) => {
                    let wait = Duration::from_nanos(due.saturating_sub(self.clock.now()));
                    self.changed.wait_for(&mut state, wait);
                }
            }
        }
    }

    /// Calls nobody any more and forgets everything.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        let entries = std::mem::take(&mut state.entries);
        let ready = std::mem::take(&mut state.ready);
        let late = std::mem::take(&mut state.late);
        state.by_slot.clear();
        drop(state);
        self.changed.notify_all();
        drop((entries, ready, late));
    }
}
