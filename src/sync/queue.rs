//! What stands in for crossbeam-queue under loom, which can't see into that crate.
//!
//! Both are made of loom's atomics and go through the same steps as the real ones, so everything that
//! can come between two of them is explored: a pusher first claims a place and then publishes what it
//! has put there, and whoever comes to a place that is claimed and not published waits. They are as
//! large as models need.
//!
//! Where the real ones look at an index that they are about to exchange, these add 0 to it: loom knows
//! but the last access to a location, so a thread's own load would hide that of another from the
//! exchange, and their other order would not be explored.

use super::{AtomicUsize, Ordering, fence};
use loom::cell::UnsafeCell;
use std::fmt;

/// Pushes to a [`SegQueue`] that one model may do.
const PLACES: usize = 8;

/// A value on its way. loom checks that nobody writes it beside somebody else.
struct Slot<T> {
    /// Whose turn it is.
    stamp: AtomicUsize,
    value: UnsafeCell<Option<T>>,
}

impl<T> Slot<T> {
    fn new(stamp: usize) -> Self {
        Self {
            stamp: AtomicUsize::new(stamp),
            value: UnsafeCell::new(None),
        }
    }

    fn replace(&self, value: Option<T>) -> Option<T> {
        self.value.with_mut(|place| {
            // SAFETY: the stamp gives the place to one thread at a time; loom checks it.
            std::mem::replace(unsafe { &mut *place }, value)
        })
    }
}

/// The bounded queue: a place is used again and again, and its stamp counts the laps.
pub(crate) struct ArrayQueue<T> {
    head: AtomicUsize,
    tail: AtomicUsize,
    slots: Box<[Slot<T>]>,
}

// SAFETY: values are moved in and out by one thread at a time, see `Slot`.
unsafe impl<T: Send> Send for ArrayQueue<T> {}
// SAFETY: as above; a shared queue moves values between threads, and lends none.
unsafe impl<T: Send> Sync for ArrayQueue<T> {}

impl<T> ArrayQueue<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            // Twice its number: the lower bit says whether it is filled.
            slots: (0..capacity).map(|i| Slot::new(2 * i)).collect(),
        }
    }

    /// The place of that position in the line, and the stamp with which it is free for it.
    fn place(&self, position: usize) -> (&Slot<T>, usize) {
        (&self.slots[position % self.slots.len()], 2 * position)
    }

    pub(crate) fn push(&self, value: T) -> Result<(), T> {
        let mut tail = self.tail.fetch_add(0, Ordering::Relaxed);
        loop {
            let (slot, free) = self.place(tail);
            if slot.stamp.load(Ordering::Acquire) == free {
                match self.tail.compare_exchange_weak(
                    tail,
                    tail + 1,
                    Ordering::SeqCst,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        slot.replace(Some(value));
                        slot.stamp.store(free + 1, Ordering::Release);
                        return Ok(());
                    }
                    Err(now) => tail = now,
                }
                continue;
            }
            fence(Ordering::SeqCst);
            if self.head.load(Ordering::Relaxed) + self.slots.len() == tail {
                return Err(value);
            }
            // It was claimed by another pusher, or is being emptied.
            loom::thread::yield_now();
            tail = self.tail.fetch_add(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn pop(&self) -> Option<T> {
        let mut head = self.head.fetch_add(0, Ordering::Relaxed);
        loop {
            let (slot, free) = self.place(head);
            if slot.stamp.load(Ordering::Acquire) == free + 1 {
                match self.head.compare_exchange_weak(
                    head,
                    head + 1,
                    Ordering::SeqCst,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        let value = slot.replace(None);
                        // Free for the position that is a lap further on.
                        let next = 2 * (head + self.slots.len());
                        slot.stamp.store(next, Ordering::Release);
                        return value;
                    }
                    Err(now) => head = now,
                }
                continue;
            }
            fence(Ordering::SeqCst);
            if self.tail.load(Ordering::Relaxed) == head {
                return None;
            }
            // It is claimed and not published, or was taken by another.
            loom::thread::yield_now();
            head = self.head.fetch_add(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let head = self.head.load(Ordering::SeqCst);
        self.tail.load(Ordering::SeqCst) == head
    }
}

/// The unbounded queue: each place is used once.
pub(crate) struct SegQueue<T> {
    head: AtomicUsize,
    tail: AtomicUsize,
    slots: [Slot<T>; PLACES],
}

// SAFETY: as for `ArrayQueue`.
unsafe impl<T: Send> Send for SegQueue<T> {}
// SAFETY: as for `ArrayQueue`.
unsafe impl<T: Send> Sync for SegQueue<T> {}

impl<T> SegQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            slots: std::array::from_fn(|_| Slot::new(0)),
        }
    }

    pub(crate) fn push(&self, value: T) {
        // The real one looks and exchanges until it succeeds.
        let tail = self.tail.fetch_add(1, Ordering::SeqCst);
        let slot = self.slots.get(tail);
        let slot = slot.expect("a model of more pushes than there are places");
        slot.replace(Some(value));
        slot.stamp.store(1, Ordering::Release);
    }

    pub(crate) fn pop(&self) -> Option<T> {
        let mut head = self.head.fetch_add(0, Ordering::Acquire);
        loop {
            fence(Ordering::SeqCst);
            if self.tail.load(Ordering::Relaxed) == head {
                return None;
            }
            match self.head.compare_exchange_weak(
                head,
                head + 1,
                Ordering::SeqCst,
                Ordering::Acquire,
            ) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        let slot = &self.slots[head];
        // It is claimed; its pusher may not have published it yet.
        while slot.stamp.load(Ordering::Acquire) == 0 {
            loom::thread::yield_now();
        }
        slot.replace(None)
    }
}

impl<T> fmt::Debug for SegQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegQueue").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for ArrayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrayQueue").finish_non_exhaustive()
    }
}
