//! What is still due on one queue: a lock-free queue of (count, barrier) pairs in rising order.
//!
//! Each HSA queue has two: its *targets* (barriers that count dispatches of this queue; pushed by
//! transitions) and its *tags* (barriers whose transition packet this queue carries; pushed by its
//! dispatches). Both fall due as the queue's count of completions rises, in the order in which
//! they were pushed. So a completion finds what it makes due at the front, however many barriers
//! are alive.
//!
//! # Participants
//! - *One pusher*: for targets whoever holds the transition lock, for tags the queue's dispatching
//!   half (`&mut`).
//! - *Takers*, any number, pinned: completions, publishers that read the count again, removal.
//!
//! # An entry's life
//! | barrier | meaning | next |
//! |---|---|---|
//! | null | not filled | the pusher stores a barrier (after `due`) |
//! | a barrier | pending | one taker's compare-exchange wins it; or a transition moves it on |
//! | [`TAKEN`] | resolved | never changes again |
//!
//! A taker reads the barrier, then `due`, and then takes the barrier by compare-exchange. A barrier
//! stands in one entry once, so the exchange succeeds only if `due` was that barrier's.
//!
//! An entry keeps the low half of its count, and is compared with what was completed by wrapping
//! difference: that is exact while fewer than 2^31 dispatches of the queue are in flight, as for the
//! queue's word. So an entry and its share of the block's link take 14 bytes.
//!
//! # Blocks
//! Entries live in blocks of a few, linked in order. A block whose entries are all taken is
//! unlinked from the front once it has a successor, and reclaimed by a deferred callback. From the
//! first push on there is always a last block. Pushing a tag must not allocate: a transition leaves a
//! [spare](Pending::provide) block ahead of time.
//!
//! # Orderings
//! A filled barrier is published with release and read with acquire, which carries `due` and the
//! barrier's own fields. The store-buffering pair that keeps a target or tag from being overlooked
//! (push and then read the count; count and then read what is due) is the business of
//! [`settle`](crate::barrier), not of this module.

use crate::domain::Domain;
use crate::sync::{AtomicPtr, AtomicU32, Ordering, Step, Witness, stands};
use crossbeam_epoch::Guard;
use std::fmt;
use std::ptr::{self, NonNull};

/// Nothing is due, at whatever count.
pub(crate) const NEVER: u64 = u64::MAX;

/// The count of a queue that is dead: it has completed everything.
pub(crate) const EVERYTHING: u64 = NEVER - 1;

/// Entries a block, which they fill to 56 bytes with the link: most queues never need more than one
/// block. Model checkers want to see a block end.
const BLOCK: usize = if cfg!(any(hsa_serializer_loom, hsa_serializer_shuttle)) {
    2
} else {
    4
};

/// Pushes that can come between two looks at the room left: one of a dispatch that lags behind
/// two transitions, one for the epoch that ends, one for the epoch that begins, and one to spare.
const ROOM: usize = 4;

struct Block<T> {
    /// Of each entry, null, a pending barrier, or [`taken`].
    barriers: [AtomicPtr<T>; BLOCK],
    /// The low half of each entry's count.
    dues: [AtomicU32; BLOCK],
    next: AtomicPtr<Block<T>>,
    witness: Witness,
}

/// The pointer that stands for "resolved": aligned as no barrier is.
fn taken<T>() -> *mut T {
    ptr::without_provenance_mut(1)
}

impl<T> Block<T> {
    fn boxed() -> Box<Self> {
        Box::new(Self {
            barriers: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            dues: std::array::from_fn(|_| AtomicU32::new(0)),
            next: AtomicPtr::new(ptr::null_mut()),
            witness: Witness::new(),
        })
    }
}

/// The count whose low half is `due`, if `count` has not reached it.
fn not_reached(due: u32, count: u64) -> Option<u64> {
    let ahead = due.wrapping_sub(count as u32) as i32;
    (ahead > 0 && count != EVERYTHING).then(|| count.wrapping_add_signed(ahead.into()))
}

/// What to do with an entry whose count was reached.
pub(crate) enum Verdict {
    /// Resolve it.
    Take,
    /// Leave it; look again after one more completion.
    Stand,
}

/// The bits of a pointer to a block that count its entries.
const FILLED: usize = align_of::<AtomicPtr<u8>>() - 1;
const _: () = assert!(BLOCK <= FILLED);

/// See the [module](self).
pub(crate) struct Pending<T> {
    /// The oldest block; null until something is pushed.
    head: AtomicPtr<Block<T>>,
    /// The newest block, and in the low bits how many of its entries are filled. Only the pusher
    /// writes it.
    tail: AtomicPtr<Block<T>>,
    /// A block for the pusher, so that it need not allocate.
    spare: AtomicPtr<Block<T>>,
}

impl<T> Pending<T> {
    pub(crate) fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            tail: AtomicPtr::new(ptr::null_mut()),
            spare: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The newest block, and how many of its entries are filled.
    fn newest(&self, order: Ordering) -> (*mut Block<T>, usize) {
        let tail = self.tail.load(order);
        (tail.map_addr(|a| a & !FILLED), tail.addr() & FILLED)
    }

    /// Appends a pair. `due` must be at least the last one's.
    ///
    /// # Safety
    /// The caller is the only pusher. `barrier` stays valid until a grace period after its entry
    /// was taken or moved on.
    pub(crate) unsafe fn push(&self, due: u64, barrier: NonNull<T>) {
        // Relaxed: only the pusher writes it, and whoever becomes the pusher does so through a lock
        // or a `&mut`.
        let (mut newest, mut filled) = self.newest(Ordering::Relaxed);
        if newest.is_null() || filled == BLOCK {
            // Acquire: the spare's contents. Where the room was judged wrongly, one allocation
            // is the price, and nothing else.
            let mut next = self.spare.swap(ptr::null_mut(), Ordering::Acquire);
            if next.is_null() {
                next = Box::into_raw(Block::boxed());
            }
            // SAFETY: the newest block, if there is one, is never unlinked, hence never freed before
            // `self`.
            let link = unsafe { newest.as_ref() }.map_or(&self.head, |block| &block.next);
            // Release: takers that follow the link see an empty block.
            link.store(next, Ordering::Release);
            newest = next;
            filled = 0;
        }
        // SAFETY: as above; a block that was linked just now came from `Box::into_raw`.
        let block = unsafe { &*newest };
        let due = due as u32;
        if stands(Step::DueBeforeBarrier) {
            block.dues[filled].store(due, Ordering::Relaxed);
        }
        // Release: who reads the barrier sees `due` and the barrier's fields.
        block.barriers[filled].store(barrier.as_ptr(), Ordering::Release);
        if !stands(Step::DueBeforeBarrier) {
            block.dues[filled].store(due, Ordering::Relaxed);
        }
        // Release: who reads the room with acquire knows of this push.
        let tail = newest.map_addr(|a| a | (filled + 1));
        self.tail.store(tail, Ordering::Release);
    }

    /// Makes sure that the next few pushes will not have to allocate.
    ///
    /// Anybody may call it, but one caller at a time.
    pub(crate) fn provide(&self) {
        let (newest, filled) = self.newest(Ordering::Acquire);
        let room = if newest.is_null() { 0 } else { BLOCK - filled };
        if room < ROOM && self.spare.load(Ordering::Relaxed).is_null() {
            // Release: the pusher that takes it sees an empty block.
            self.spare
                .store(Box::into_raw(Block::boxed()), Ordering::Release);
        }
    }

    /// Hands the last pushed entry over from `old` to `new`, with the count at which it is due.
    /// False where that entry is not `old`'s, or was taken.
    ///
    /// # Safety
    /// As for [`push`](Self::push); and the caller is the only pusher.
    pub(crate) unsafe fn move_last(&self, old: NonNull<T>, new: NonNull<T>) -> bool {
        let (newest, filled) = self.newest(Ordering::Relaxed);
        if filled == 0 {
            return false;
        }
        // SAFETY: the newest block is never unlinked.
        let block = unsafe { &*newest };
        // AcqRel: a taker of the new barrier sees its fields; a failure means that a taker has
        // resolved the old one.
        block.barriers[filled - 1]
            .compare_exchange(
                old.as_ptr(),
                new.as_ptr(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Takes everything that is due at `count`, oldest first, and returns the smallest count at
    /// which something is left, or [`NEVER`]. Blocks that it unlinks are deferred, and noted in
    /// `deferred`.
    ///
    /// `judge` is asked about each entry that is due; `resolve` is called for each one that this
    /// call, and no other, took.
    pub(crate) fn take_due(
        &self,
        count: u64,
        domain: &Domain,
        guard: &Guard,
        deferred: &mut bool,
        mut judge: impl FnMut(NonNull<T>) -> Verdict,
        mut resolve: impl FnMut(NonNull<T>),
    ) -> u64
    where
        T: Sync + Send + 'static,
    {
        // Acquire here and below: the block's contents.
        let mut at = self.head.load(Ordering::Acquire);
        // SAFETY: the head and its successors are unlinked before they are deferred, and the caller is
        // pinned.
        while let Some(block) = unsafe { at.as_ref() } {
            for (entry, due) in block.barriers.iter().zip(&block.dues) {
                loop {
                    block.witness.is_used("block");
                    let barrier = entry.load(Ordering::Acquire);
                    if barrier == taken() {
                        break;
                    }
                    let Some(pending) = NonNull::new(barrier) else {
                        return NEVER;
                    };
                    if let Some(due) = not_reached(due.load(Ordering::Relaxed), count) {
                        return due;
                    }
                    if let Verdict::Stand = judge(pending) {
                        return count + 1;
                    }
                    // AcqRel: the taker sees all that led to this entry, and the next taker sees
                    // that it is gone. On failure a taker was faster, or a transition moved the
                    // entry to another barrier: look at it again.
                    if entry
                        .compare_exchange(barrier, taken(), Ordering::AcqRel, Ordering::Relaxed)
                        .is_ok()
                    {
                        resolve(pending);
                        break;
                    }
                }
            }
            block.witness.is_used("block");
            let next = block.next.load(Ordering::Acquire);
            if next.is_null() {
                break;
            }
            // All of it is taken and it has a successor: unlink it. Who fails was beaten by
            // another taker. AcqRel: pass the successor's contents on.
            if self
                .head
                .compare_exchange(at, next, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                let block = SendBlock(at);
                if stands(Step::DeferBlocks) {
                    // SAFETY (of the drop): unlinked, and freed after every pin of now.
                    domain.defer(guard, move || drop(block.into_box()));
                    *deferred = true;
                } else {
                    Box::leak(block.into_box()).witness.reclaim();
                }
            }
            at = next;
        }
        NEVER
    }

    /// The pending entries, oldest first, as (count, barrier); the counts are those next to `count`.
    /// What is taken or pushed meanwhile may or may not be seen. The caller is pinned.
    pub(crate) fn for_each(&self, count: u64, _guard: &Guard, mut f: impl FnMut(u64, NonNull<T>)) {
        let mut at = self.head.load(Ordering::Acquire);
        // SAFETY: as in `take_due`.
        while let Some(block) = unsafe { at.as_ref() } {
            for (entry, due) in block.barriers.iter().zip(&block.dues) {
                let barrier = entry.load(Ordering::Acquire);
                match NonNull::new(barrier) {
                    None => return,
                    Some(_) if barrier == taken() => {}
                    Some(pending) => {
                        let ahead = due.load(Ordering::Relaxed).wrapping_sub(count as u32) as i32;
                        f(count.wrapping_add_signed(ahead.into()), pending);
                    }
                }
            }
            at = block.next.load(Ordering::Acquire);
        }
    }
}

/// A block on its way to be freed, possibly on another thread.
struct SendBlock<T>(*mut Block<T>);

impl<T> SendBlock<T> {
    fn into_box(self) -> Box<Block<T>> {
        // SAFETY: made by `Box::into_raw`, unlinked by the one who made this value, and past the
        // grace period: nobody else has it.
        unsafe { Box::from_raw(self.0) }
    }
}

// SAFETY: a block holds counts and pointers that it does not own; freeing it on another thread
// touches no `T`.
unsafe impl<T> Send for SendBlock<T> {}

// SAFETY: `Pending` owns blocks of atomics; the pointers to `T` are handed to takers on any thread,
// hence the bound. `T: Send` is not needed: no `T` is owned or moved.
unsafe impl<T: Sync> Send for Pending<T> {}
// SAFETY: as above; all shared state is atomic, and the single pusher is `push`'s contract.
unsafe impl<T: Sync> Sync for Pending<T> {}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        let mut at = self.head.load(Ordering::Relaxed);
        while !at.is_null() {
            // SAFETY: `&mut self`: nobody else is here; each block is reachable once.
            let block = unsafe { Box::from_raw(at) };
            at = block.next.load(Ordering::Relaxed);
        }
        let spare = self.spare.load(Ordering::Relaxed);
        if !spare.is_null() {
            // SAFETY: as above; a spare is in no list.
            drop(unsafe { Box::from_raw(spare) });
        }
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("filled", &self.newest(Ordering::Relaxed).1)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(hsa_serializer_loom, hsa_serializer_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn counts_compare_across_the_wrap_of_their_low_half() {
        let wrap = 1_u64 << 32;
        assert_eq!(not_reached(5, wrap - 3), Some(wrap + 5));
        assert_eq!(not_reached(5, wrap + 5), None);
        assert_eq!(not_reached(u32::MAX, wrap + 5), None);
        assert_eq!(not_reached(7, 3 * wrap + 5), Some(3 * wrap + 7));
    }

    #[test]
    fn a_dead_queue_has_reached_every_count() {
        for due in [0, 1, 1 << 31, u32::MAX] {
            assert_eq!(not_reached(due, EVERYTHING), None);
        }
    }

    #[test]
    fn a_block_takes_less_than_a_line() {
        assert_eq!(size_of::<Block<u64>>(), 56);
    }

    #[test]
    fn a_block_is_at_hand_before_a_push_needs_one_and_one_is_enough() {
        let (pending, barrier) = (Pending::<u32>::new(), 0);
        let spare = || pending.spare.load(Ordering::Relaxed);
        let push = || {
            // SAFETY: the only pusher; `barrier` outlives `pending`, and nobody takes.
            unsafe { pending.push(1, NonNull::from(&barrier)) };
        };
        for _ in 0..2 {
            pending.provide();
            let provided = spare();
            assert!(!provided.is_null());
            pending.provide();
            assert_eq!(spare(), provided, "one is enough");
            push();
            assert_eq!(pending.newest(Ordering::Relaxed), (provided, 1));
            assert!(spare().is_null(), "it was used, and none allocated");
            pending.provide();
            let next = spare();
            for filled in 2..=BLOCK {
                push();
                pending.provide();
                assert_eq!(pending.newest(Ordering::Relaxed), (provided, filled));
                assert_eq!(spare(), next, "one is enough");
            }
        }
    }
}
