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
//! # Blocks
//! Entries live in blocks of a few, linked in order. A block whose entries are all taken is
//! unlinked from the front once it has a successor, and reclaimed by a deferred callback. There is
//! always a last block, so the empty queue is no special case. Pushing a tag must not allocate: a
//! transition leaves a [spare](Pending::provide) block ahead of time.
//!
//! # Orderings
//! A filled barrier is published with release and read with acquire, which carries `due` and the
//! barrier's own fields. The store-buffering pair that keeps a target or tag from being overlooked
//! (push and then read the count; count and then read what is due) is the business of
//! [`settle`](crate::barrier), not of this module.

use crate::domain::Domain;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, Step, Witness, stands};
use crossbeam_epoch::Guard;
use std::fmt;
use std::ptr::{self, NonNull};

/// Nothing is due, at whatever count.
pub(crate) const NEVER: u64 = u64::MAX;

/// Entries a block. Seven entries and the link fill two cache lines; model checkers want to see a
/// block end.
const BLOCK: usize = if cfg!(any(hsa_serializer_loom, hsa_serializer_shuttle)) {
    2
} else {
    7
};

/// Pushes that can come between two looks at the room left: one of a dispatch that lags behind
/// two transitions, one for the epoch that ends, one for the epoch that begins, and one to spare.
const ROOM: u32 = 4;

struct Entry<T> {
    due: AtomicU64,
    /// Null, a pending barrier, or [`taken`].
    barrier: AtomicPtr<T>,
}

struct Block<T> {
    entries: [Entry<T>; BLOCK],
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
            entries: std::array::from_fn(|_| Entry {
                due: AtomicU64::new(0),
                barrier: AtomicPtr::new(ptr::null_mut()),
            }),
            next: AtomicPtr::new(ptr::null_mut()),
            witness: Witness::new(),
        })
    }
}

/// What to do with an entry whose count was reached.
pub(crate) enum Verdict {
    /// Resolve it.
    Take,
    /// Leave it; look again after one more completion.
    Stand,
}

/// See the [module](self).
pub(crate) struct Pending<T> {
    /// The oldest block.
    head: AtomicPtr<Block<T>>,
    /// The newest block. Only the pusher uses it.
    tail: AtomicPtr<Block<T>>,
    /// How many entries of the newest block are filled. Only the pusher writes it.
    filled: AtomicU32,
    /// A block for the pusher, so that it need not allocate.
    spare: AtomicPtr<Block<T>>,
}

impl<T> Pending<T> {
    pub(crate) fn new() -> Self {
        let first = Box::into_raw(Block::boxed());
        Self {
            head: AtomicPtr::new(first),
            tail: AtomicPtr::new(first),
            filled: AtomicU32::new(0),
            spare: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Appends a pair. `due` must be at least the last one's.
    ///
    /// # Safety
    /// The caller is the only pusher. `barrier` stays valid until a grace period after its entry
    /// was taken or moved on.
    pub(crate) unsafe fn push(&self, due: u64, barrier: NonNull<T>) {
        // Relaxed: only the pusher touches `tail` and `filled`, and whoever becomes the pusher
        // does so through a lock or a `&mut`.
        let mut filled = self.filled.load(Ordering::Relaxed) as usize;
        // SAFETY: the newest block is never unlinked, hence never freed before `self`.
        let mut block = unsafe { &*self.tail.load(Ordering::Relaxed) };
        if filled == BLOCK {
            // Acquire: the spare's contents. Where the room was judged wrongly, one allocation
            // is the price, and nothing else.
            let mut next = self.spare.swap(ptr::null_mut(), Ordering::Acquire);
            if next.is_null() {
                next = Box::into_raw(Block::boxed());
            }
            // Release: takers that follow the link see an empty block.
            block.next.store(next, Ordering::Release);
            self.tail.store(next, Ordering::Relaxed);
            // SAFETY: `next` came from `Box::into_raw` and is now the newest block.
            block = unsafe { &*next };
            filled = 0;
        }
        let entry = &block.entries[filled];
        if stands(Step::DueBeforeBarrier) {
            entry.due.store(due, Ordering::Relaxed);
        }
        // Release: who reads the barrier sees `due` and the barrier's fields.
        entry.barrier.store(barrier.as_ptr(), Ordering::Release);
        if !stands(Step::DueBeforeBarrier) {
            entry.due.store(due, Ordering::Relaxed);
        }
        // Release: who reads the room with acquire knows of this push.
        self.filled.store(filled as u32 + 1, Ordering::Release);
    }

    /// Makes sure that the next few pushes will not have to allocate.
    ///
    /// Anybody may call it, but one caller at a time.
    pub(crate) fn provide(&self) {
        let room = BLOCK as u32 - self.filled.load(Ordering::Acquire).min(BLOCK as u32);
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
        let filled = self.filled.load(Ordering::Relaxed) as usize;
        if filled == 0 {
            return false;
        }
        // SAFETY: the newest block is never unlinked.
        let block = unsafe { &*self.tail.load(Ordering::Relaxed) };
        // AcqRel: a taker of the new barrier sees its fields; a failure means that a taker has
        // resolved the old one.
        block.entries[filled - 1]
            .barrier
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
        loop {
            // SAFETY: the head and its successors are unlinked before they are deferred, and the
            // caller is pinned.
            let block = unsafe { &*at };
            for entry in &block.entries {
                loop {
                    block.witness.is_used("block");
                    let barrier = entry.barrier.load(Ordering::Acquire);
                    if barrier == taken() {
                        break;
                    }
                    let Some(pending) = NonNull::new(barrier) else {
                        return NEVER;
                    };
                    let due = entry.due.load(Ordering::Relaxed);
                    if due > count {
                        return due;
                    }
                    if let Verdict::Stand = judge(pending) {
                        return count + 1;
                    }
                    // AcqRel: the taker sees all that led to this entry, and the next taker sees
                    // that it is gone. On failure a taker was faster, or a transition moved the
                    // entry to another barrier: look at it again.
                    if entry
                        .barrier
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
                return NEVER;
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
    }

    /// The pending entries, oldest first, as (count, barrier). What is taken or pushed meanwhile
    /// may or may not be seen. The caller is pinned.
    pub(crate) fn for_each(&self, _guard: &Guard, mut f: impl FnMut(u64, NonNull<T>)) {
        let mut at = self.head.load(Ordering::Acquire);
        // SAFETY: as in `take_due`.
        while let Some(block) = unsafe { at.as_ref() } {
            for entry in &block.entries {
                let barrier = entry.barrier.load(Ordering::Acquire);
                match NonNull::new(barrier) {
                    None => return,
                    Some(_) if barrier == taken() => {}
                    Some(pending) => f(entry.due.load(Ordering::Relaxed), pending),
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
            .field("filled", &self.filled.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}
