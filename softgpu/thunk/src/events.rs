//! Kernel events: what the runtime's threads sleep on.
//!
//! An event has an *age*, which starts at 1 and goes up with each set. A waiter returns when the age
//! is not the one that it has seen. Where the caller passes ages (`hsaKmtWaitOn..._Ext`) it says
//! itself what it has seen; otherwise this module remembers that for each thread. An ordinary
//! auto-reset event will not do: all queues of a process share one event, and whoever wakes first
//! would take the others' wake-up away.

use crate::types::{EVENT_SIGNAL, HsaEvent, Status};
use parking_lot::{Condvar, Mutex};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Release};
use std::time::{Duration, Instant};

/// A thread remembers so many events; beyond that it forgets all, and wakes once for nothing.
const REMEMBERED: usize = 8_192;

/// Timeouts from here on are infinite: the runtime passes one less than `HSA_EVENTTIMEOUT_INFINITE`.
const INFINITE: u32 = 0xffff_fffe;

thread_local! {
    /// The age that this thread has seen, by the event's serial number.
    static SEEN: RefCell<HashMap<u64, u64>> = RefCell::default();
}

struct Slot {
    /// Never used again, as the id is.
    serial: u64,
    age: u64,
    /// Stays set, for everybody.
    manual: bool,
    set: bool,
    kind: u32,
    /// Made by `Box::into_raw`; null if the slot is free.
    event: *mut HsaEvent,
}

// SAFETY: the pointer is the event's only owner; nothing else in it belongs to a thread.
unsafe impl Send for Slot {}

#[derive(Default)]
struct State {
    /// By id; id 0 stays free.
    slots: Vec<Slot>,
    /// Ids of the events that exist, by address.
    ids: HashMap<usize, u32>,
    free: Vec<u32>,
    next_serial: u64,
    live: u64,
}

/// All events of the process.
pub(crate) struct Events {
    limit: u32,
    /// One word for each id, allocated for good: a packet processor may write one late.
    mailboxes: Box<[AtomicU64]>,
    state: Mutex<State>,
    changed: Condvar,
}

impl State {
    fn slot(&self, event: *mut HsaEvent) -> Option<u32> {
        self.ids.get(&(event as usize)).copied()
    }

    /// Whether the waiter is to wake for this event; then it has seen it.
    fn take(&mut self, id: u32, age: Option<&mut u64>) -> bool {
        let slot = &self.slots[id as usize];
        if slot.manual {
            return slot.set;
        }
        match age {
            Some(seen) if *seen != 0 && slot.kind == EVENT_SIGNAL => {
                let woken = *seen != slot.age;
                *seen = slot.age;
                woken
            }
            _ => {
                let (serial, now) = (slot.serial, slot.age);
                // A thread whose locals are gone is ending: it polls.
                SEEN.try_with(|seen| {
                    let mut seen = seen.borrow_mut();
                    if seen.len() >= REMEMBERED {
                        seen.clear();
                    }
                    seen.insert(serial, now).unwrap_or(1) != now
                })
                .unwrap_or(true)
            }
        }
    }
}

impl Events {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            limit,
            mailboxes: (0..=limit).map(|_| AtomicU64::new(0)).collect(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// A new event; `None` if there are as many as there can be.
    pub(crate) fn create(&self, kind: u32, manual: bool, set: bool) -> Option<*mut HsaEvent> {
        let state = &mut *self.state.lock();
        if state.live >= u64::from(self.limit) {
            return None;
        }
        let id = state
            .free
            .pop()
            .unwrap_or_else(|| state.slots.len().max(1) as u32);
        let mailbox = &raw const self.mailboxes[id as usize];
        // Zeroed: of a memory event the runtime reads the rest as a fault's description.
        let event = Box::into_raw(Box::new(HsaEvent {
            event_id: id,
            event_type: kind,
            event_data: [0; 5],
            hw_data1: 0,
            hw_data2: mailbox as u64,
            hw_data3: id,
        }));
        state.next_serial += 1;
        state.live += 1;
        let slot = |event| Slot {
            serial: state.next_serial,
            age: if set { 2 } else { 1 },
            manual,
            set,
            kind,
            event,
        };
        while state.slots.len() <= id as usize {
            state.slots.push(slot(std::ptr::null_mut()));
        }
        state.slots[id as usize] = slot(event);
        state.ids.insert(event as usize, id);
        Some(event)
    }

    /// Whether there was such an event.
    pub(crate) fn destroy(&self, event: *mut HsaEvent) -> bool {
        let mut state = self.state.lock();
        let Some(id) = state.ids.remove(&(event as usize)) else {
            return false;
        };
        state.slots[id as usize].event = std::ptr::null_mut();
        state.free.push(id);
        state.live -= 1;
        // SAFETY: made by `Box::into_raw`, and its slot has just forgotten it.
        drop(unsafe { Box::from_raw(event) });
        drop(state);
        // Whoever waits for it has to hear that it is gone.
        self.changed.notify_all();
        true
    }

    /// Sets an event; whether there is such a one.
    pub(crate) fn set(&self, event: *mut HsaEvent) -> bool {
        let id = self.state.lock().slot(event);
        id.is_some_and(|id| self.raise(id))
    }

    /// A packet processor's interrupt; nothing happens if there is no such event any more.
    pub(crate) fn raise(&self, id: u32) -> bool {
        let mut state = self.state.lock();
        let slot = state.slots.get_mut(id as usize);
        let Some(slot) = slot.filter(|slot| !slot.event.is_null()) else {
            return false;
        };
        slot.age += 1;
        slot.set = true;
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Writes the mailbox at this address, if it is one.
    pub(crate) fn write_mailbox(&self, address: u64, id: u32) {
        let mailbox = self.mailboxes.get(id as usize);
        if let Some(mailbox) = mailbox.filter(|mailbox| &raw const **mailbox as u64 == address) {
            // Pairs with whoever reads the event's id there before it looks at the signal.
            mailbox.store(u64::from(id), Release);
        }
    }

    /// Waits for any or all of these events, for so many milliseconds.
    pub(crate) fn wait(
        &self,
        events: &[*mut HsaEvent],
        all: bool,
        milliseconds: u32,
        mut ages: Option<&mut [u64]>,
    ) -> Status {
        let end = (milliseconds < INFINITE)
            .then(|| Instant::now() + Duration::from_millis(milliseconds.into()));
        let mut woken = vec![false; events.len()];
        let mut state = self.state.lock();
        loop {
            for (n, event) in events.iter().enumerate() {
                let Some(id) = state.slot(*event) else {
                    return Status::InvalidHandle;
                };
                let age = ages.as_deref_mut().and_then(|ages| ages.get_mut(n));
                woken[n] |= state.take(id, age);
            }
            let done = if all {
                woken.iter().all(|woken| *woken)
            } else {
                woken.contains(&true)
            };
            if done {
                return Status::Success;
            }
            match end {
                None => self.changed.wait(&mut state),
                Some(end) => {
                    if Instant::now() >= end {
                        return Status::WaitTimeout;
                    }
                    self.changed.wait_until(&mut state, end);
                }
            }
        }
    }

    /// Events that exist.
    pub(crate) fn live(&self) -> u64 {
        self.state.lock().live
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};
    use std::thread;

    fn wait_one(events: &Events, event: *mut HsaEvent) -> Status {
        events.wait(&[event], false, 0, None)
    }

    #[test]
    fn every_thread_gets_each_set() {
        let events = Arc::new(Events::new(8));
        let event = events.create(EVENT_SIGNAL, false, false).unwrap();
        assert_eq!(wait_one(&events, event), Status::WaitTimeout);
        assert!(events.set(event));
        let (copy, address) = (events.clone(), event as usize);
        let other = thread::spawn(move || wait_one(&copy, address as *mut HsaEvent));
        // Whoever comes first takes nothing away.
        assert_eq!(other.join().unwrap(), Status::Success);
        assert_eq!(wait_one(&events, event), Status::Success);
        assert_eq!(wait_one(&events, event), Status::WaitTimeout);
        assert!(events.destroy(event) && !events.destroy(event) && !events.set(event));
        assert_eq!(wait_one(&events, event), Status::InvalidHandle);
    }

    #[test]
    fn ages_are_the_callers() {
        let events = Events::new(8);
        let event = events.create(EVENT_SIGNAL, false, false).unwrap();
        let mut age = [1];
        let mut wait = || events.wait(&[event], false, 0, Some(&mut age));
        assert_eq!(wait(), Status::WaitTimeout);
        assert!(events.set(event) && events.set(event));
        assert_eq!((wait(), wait()), (Status::Success, Status::WaitTimeout));
        assert_eq!(age, [3]);
        assert!(events.destroy(event));
    }

    #[test]
    fn a_manual_event_stays_set_and_the_limit_holds() {
        let events = Events::new(2);
        let first = events.create(8, true, false).unwrap();
        let second = events.create(EVENT_SIGNAL, false, false).unwrap();
        assert!(events.create(EVENT_SIGNAL, false, false).is_none());
        assert!(events.set(first));
        assert_eq!(wait_one(&events, first), Status::Success);
        assert_eq!(wait_one(&events, first), Status::Success);
        let both = [first, second];
        assert_eq!(events.wait(&both, true, 0, None), Status::WaitTimeout);
        assert!(events.set(second));
        assert_eq!(events.wait(&both, true, 0, None), Status::Success);
        assert!(events.destroy(first) && events.destroy(second));
        assert_eq!(events.live(), 0);
        let again = events.create(EVENT_SIGNAL, false, false).unwrap();
        // A new event of an old id: what was seen of the old one does not count.
        assert_eq!(wait_one(&events, again), Status::WaitTimeout);
        assert!(events.destroy(again));
    }

    /// What a thread that waits for an event gets, once `wake` was done to that.
    fn woken_by(wake: impl FnOnce(&Events, *mut HsaEvent) -> bool) -> Status {
        let events = Arc::new(Events::new(2));
        let event = events.create(EVENT_SIGNAL, false, false).unwrap();
        let (copy, address) = (events.clone(), event as usize);
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let status = copy.wait(&[address as *mut HsaEvent], false, INFINITE, None);
            tell.send(status)
        });
        thread::sleep(Duration::from_millis(20));
        assert!(wake(&events, event));
        let status = told.recv_timeout(Duration::from_secs(20));
        let status = status.expect("the waiter is woken");
        // Destroyed by the test's end, whoever did it.
        events.destroy(event);
        assert_eq!(events.live(), 0);
        status
    }

    #[test]
    fn a_waiter_hears_that_its_event_is_gone() {
        let status = woken_by(|events, event| events.destroy(event));
        assert_eq!(status, Status::InvalidHandle);
    }

    #[test]
    fn a_waiter_is_woken() {
        let status = woken_by(|events, event| events.set(event));
        assert_eq!(status, Status::Success);
    }
}
