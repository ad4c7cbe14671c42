//! A queue's dispatching half, as a C program has it: by a handle, which another thread may take away.
//!
//! # Participants
//! - *The user*: the queue's interceptor, one call at a time. It looks the lease up, [enters](Lease::enter)
//!   it, dispatches, and leaves.
//! - *The remover*: any thread, once. It [ends](Lease::end) the lease, possibly while the user is inside.
//!
//! # States
//! | `value` | `left` | |
//! |---|---|---|
//! | some | null | it can be entered |
//! | null | some | it has ended; the value waits for the one who drops it |
//! | null | null | the value was dropped |
//!
//! # Who drops the value
//! | the user | the remover |
//! |---|---|
//! | 1. says that it is inside | 1. takes the value out, and puts it into `left` |
//! | 2. looks whether the value is there; works with it | 2. looks whether the user is inside |
//! | 3. says that it is outside | 3. if not, takes from `left`, and drops |
//! | 4. takes from `left`, if something is there, and drops | |
//!
//! Two store-buffering pairs. Of the user's 1 and 2 against the remover's 1 and 2: either the remover sees
//! the user inside, or the user sees that the value is gone. Of the user's 3 and 4 against the remover's 1
//! and 2: either the user sees what was left, or the remover sees it outside. If both do, taking is an
//! exchange. So the value is dropped once, and never while the user has it.
//!
//! A store and a load of different words stay in order by a full fence only, which costs as much as a whole
//! dispatch. The remover is rare: its fence is one for all threads of the process
//! ([`heavy`](crate::fence::heavy)), and the user's is none but for the compiler.
//!
//! # What is never used again
//! The lease itself: a user that was interrupted between looking it up and entering it writes to it
//! whenever it goes on. So each queue has a lease of its own, for ever: a cache line.

use crate::sync::{AtomicPtr, AtomicU32, Ordering, Step, heavy, light, stands};
use std::ptr::{self, NonNull};

/// See the [module](self).
pub(crate) struct Lease<T> {
    value: AtomicPtr<T>,
    inside: AtomicU32,
    left: AtomicPtr<T>,
}

/// Why a lease could not be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It has ended.
    Ended,
    /// Somebody is inside.
    Busy,
}

impl<T> Lease<T> {
    /// One that has no value yet, of a null, a zero and a null (which only loom can't make beforehand).
    pub(crate) const fn of(value: AtomicPtr<T>, inside: AtomicU32, left: AtomicPtr<T>) -> Self {
        Self {
            value,
            inside,
            left,
        }
    }

    /// Gives it its value, once, before anybody knows of it.
    pub(crate) fn fill(&self, value: T) {
        // Release: the value's making, for who enters.
        self.value
            .store(Box::into_raw(Box::new(value)), Ordering::Release);
    }

    /// Works with the value.
    ///
    /// Two users at once are most likely noticed; with the feature `checked` they always are.
    ///
    /// # Safety
    /// One call at a time, unless each of two is sure to be noticed.
    #[inline(always)]
    pub(crate) unsafe fn enter<R>(&self, work: impl FnOnce(&mut T) -> R) -> Result<R, Refused> {
        if !self.claim() {
            return Err(Refused::Busy);
        }
        light();
        let inside = Inside(self);
        // Acquire: the value's making.
        let value = NonNull::new(self.value.load(Ordering::Acquire)).ok_or(Refused::Ended)?;
        // SAFETY: the only user, by the caller's promise; the remover sees it inside, and leaves it to it.
        let done = work(unsafe { &mut *value.as_ptr() });
        drop(inside);
        Ok(done)
    }

    /// The first half of [`enter`](Self::enter), for who can't be interrupted by a panic: the value, until
    /// [`go_out`](Self::go_out). `None`, and nothing is changed, where it can't be entered.
    ///
    /// Where the value is gone, somebody has to look what was left: it has to be entered, to be refused.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(crate) unsafe fn come_in(&self) -> Option<NonNull<T>> {
        if !self.claim() {
            return None;
        }
        light();
        // Acquire: the value's making.
        let value = NonNull::new(self.value.load(Ordering::Acquire));
        if value.is_none() {
            // Release: as in `Inside`, which does the rest.
            self.inside.store(0, Ordering::Release);
        }
        value
    }

    /// Goes out when it is dropped: for who has [come in](Self::come_in), and may panic now.
    pub(crate) fn inside(&self) -> Inside<'_, T> {
        Inside(self)
    }

    /// The second half: whether nothing was left. Else [`take_what_is_left`](Self::take_what_is_left).
    #[inline(always)]
    pub(crate) fn go_out(&self) -> bool {
        // Release: what was done with the value, for who drops it.
        self.inside.store(0, Ordering::Release);
        light();
        // Relaxed: who takes it acquires it.
        self.left.load(Ordering::Relaxed).is_null()
    }

    /// Drops the value, if the one that ended the lease has not.
    #[cold]
    pub(crate) fn take_what_is_left(&self) {
        if stands(Step::UserLooks) {
            self.drop_what_is_left();
        }
    }

    /// Relaxed: what orders it is the fence behind it; see the module.
    #[inline(always)]
    #[cfg(not(feature = "checked"))]
    fn claim(&self) -> bool {
        if self.inside.load(Ordering::Relaxed) != 0 {
            return false;
        }
        self.inside.store(1, Ordering::Relaxed);
        true
    }

    /// The one of two that comes second is sure to be refused.
    #[cfg(feature = "checked")]
    fn claim(&self) -> bool {
        // Acquire: what the user before has done with the value.
        self.inside.swap(1, Ordering::Acquire) == 0
    }

    /// Ends it, and says whether this call did. The value is dropped here, or by the user when it leaves.
    pub(crate) fn end(&self) -> bool {
        // AcqRel: the value's making; and that it is left, to the user that sees it gone.
        let value = self.value.swap(ptr::null_mut(), Ordering::AcqRel);
        if value.is_null() {
            return false;
        }
        // Release: for who takes it.
        self.left.store(value, Ordering::Release);
        if !stands(Step::HeavyFence) || heavy() {
            // Acquire: what the user has done with the value before it left.
            let inside = self.inside.load(Ordering::Acquire) != 0;
            if !inside || !stands(Step::EnderLooks) {
                self.drop_what_is_left();
            }
        }
        // Without the fence nobody knows who is inside: the user drops it if it comes by, or nobody does.
        true
    }

    #[cold]
    fn drop_what_is_left(&self) {
        // AcqRel: what was done with the value; one of two takes it.
        let left = self.left.swap(ptr::null_mut(), Ordering::AcqRel);
        if let Some(value) = NonNull::new(left) {
            // SAFETY: made by `Box::into_raw`, and taken by this call alone; nobody is inside, see the module.
            drop(unsafe { Box::from_raw(value.as_ptr()) });
        }
    }
}

/// Leaves when it is dropped, in a panic, too.
pub(crate) struct Inside<'a, T>(&'a Lease<T>);

impl<T> Drop for Inside<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.0.go_out() {
            self.0.take_what_is_left();
        }
    }
}
