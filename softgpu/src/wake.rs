//! Waking a processor's thread that sleeps until a signal changes (real threads only).
//!
//! The sleeper announces itself (`parked`), looks once more, then parks; the waker writes, then
//! looks for sleepers. Both sides are sequentially consistent, so one of them sees the other.

use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::Thread;

/// A signal that several processors wait for.
pub(crate) const MANY: u32 = u32::MAX;

/// One processor's thread.
#[derive(Debug)]
pub(crate) struct Waker {
    parked: AtomicBool,
    thread: Thread,
}

impl Waker {
    /// For the calling thread.
    pub(crate) fn new() -> Self {
        Self {
            parked: AtomicBool::new(false),
            thread: std::thread::current(),
        }
    }

    pub(crate) fn set_parked(&self, parked: bool) {
        self.parked.store(parked, SeqCst);
    }

    pub(crate) fn wake(&self) {
        if self.parked.swap(false, SeqCst) {
            self.thread.unpark();
        }
    }
}

/// All processors' threads, by a number that a signal's slot can hold.
#[derive(Debug, Default)]
pub(crate) struct Wakers(RwLock<Vec<Option<Arc<Waker>>>>);

impl Wakers {
    /// Adds one and says its number, which starts at 1: 0 in a signal's slot is nobody.
    pub(crate) fn add(&self, waker: Arc<Waker>) -> u32 {
        let mut all = self.0.write();
        let place = all.iter().position(Option::is_none).unwrap_or_else(|| {
            all.push(None);
            all.len() - 1
        });
        all[place] = Some(waker);
        place as u32 + 1
    }

    pub(crate) fn remove(&self, number: u32) {
        self.0.write()[number as usize - 1] = None;
    }

    /// Wakes who waits: one processor or, for [`MANY`], all.
    pub(crate) fn wake(&self, number: u32) {
        let all = self.0.read();
        if number == MANY {
            all.iter().flatten().for_each(|waker| waker.wake());
        } else if let Some(Some(waker)) = all.get(number as usize - 1) {
            waker.wake();
        }
    }
}
