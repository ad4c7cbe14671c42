//! One transition barrier: its gate, its tags, its life.
//!
//! A *barrier* here is neither a memory barrier nor `std::sync::Barrier`: it is what holds back
//! the kernels of a new mode until those of the old mode have completed. It owns one HSA signal,
//! 1 while armed and 0 once cleared, for which the *transition packets* in the queues wait.
//!
//! # The life word
//! ```text
//!  31      30          29       28      27      26 .. 24  23              0
//! ┌──────┬────────────┬───────┬───────┬────────┬─────────┬──────────────────┐
//! │closed│ superseded │cleared│ gated │ forced │ 0       │ tags outstanding │
//! └──────┴────────────┴───────┴───────┴────────┴─────────┴──────────────────┘
//! ```
//! Everything that decides a barrier's end is in one word, so every decision is one atomic step:
//!
//! | step | from | to | who |
//! |---|---|---|---|
//! | tag | armed | tags + 1 | a dispatch that takes the transition packet |
//! | back out | settled | tags + 1, and - 1 again | a dispatch that came too late |
//! | open, armed | armed, gated | cleared | whoever takes the gate to zero; then stores 0 to the signal |
//! | open, superseded | superseded, gated | superseded | the same |
//! | open, forced | cleared, forced, gated | cleared, forced | the same, and stores nothing |
//! | supersede | armed | superseded | a transition, if no queue dispatched in the epoch |
//! | force | armed | cleared, forced, still gated | who releases a stall, or everything; then stores 0 to the signal |
//! | untag | any | tags - 1 | whoever finds the tag drained, or its queue gone |
//! | close | settled, not gated, 0 tags | closed | whoever sees that it is so; retires the barrier |
//!
//! *Settled* is cleared or superseded. *Safe to destroy* is settled, with no tags and its gate
//! open: no packet waits for it, and no queue's entry names it. After *close* nothing can be tagged
//! any more, so what was safe to destroy stays so: the deferred callback that destroys the signal
//! checks it again, and can only find it true.
//!
//! # What the drain checks, and why that is enough
//! A tag is the number of the dispatch that carries the queue's transition packet. While it
//! stands, the packet may not have executed. It is drained when the queue's count of completions
//! is *greater* than that number. The count is of completions and not of positions, and kernels of
//! one queue may complete out of order; it is enough all the same. Nothing of the queue behind the
//! packet can complete before the packet has executed. So while it has not executed, at most the
//! dispatches before it can have completed, which are as many as its number says; one more
//! completion than that proves that it has. And after it has executed, the barrier's signal is
//! referred to by nothing in this queue.
//!
//! This rests on completions being *strict*: each reported once, when the packet processor is
//! through with that kernel. A host that reports one early or twice breaks it; where that can be
//! told it is reported as [misuse](crate::Misuse) and the tag stands.
//!
//! # The gate
//! A counter: one unit for the arming itself and one for each queue whose completions are waited
//! for. Arming takes the unit of a queue before it publishes that queue's *target* (its count of
//! dispatches at the transition), and gives its own unit back last. Completions and arming race for
//! each target by compare-exchange (see [`pending`](crate::pending)), so each unit is given back
//! once; who gives the last one back opens the gate, which clears the barrier unless it was
//! superseded. A superseded barrier's gate is waited for as well: a queue that has died and was not
//! settled yet still has an entry that names the barrier.

use crate::list::Linked;
use crate::sync::{AtomicPtr, AtomicU32, Ordering, Step, Witness, stands};
use hsa_sys::hsa_signal_t;
use std::fmt;
use std::ptr;

/// How a barrier ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Every dispatch that it counted has completed.
    Cleared,
    /// Nobody dispatched in its epoch before the next transition, so nobody waits for it; the next
    /// barrier counts what it counted.
    Superseded,
    /// It was cleared by force, while dispatches that it counted may still be running.
    Forced,
}

/// What is called when a barrier ends.
pub(crate) type OnEnd = Box<dyn FnOnce(Outcome) + Send>;

const CLOSED: u32 = 1 << 31;
const SUPERSEDED: u32 = 1 << 30;
const CLEARED: u32 = 1 << 29;
const GATED: u32 = 1 << 28;
const FORCED: u32 = 1 << 27;
const SETTLED: u32 = CLEARED | SUPERSEDED;
const TAGS: u32 = (1 << 24) - 1;
// There is at most one tag a queue.
const _: () = assert!(crate::queue::CELLS <= TAGS as usize);

/// What a barrier's life word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life(u32);

impl Life {
    #[inline]
    pub(crate) const fn is_armed(self) -> bool {
        self.0 & SETTLED == 0
    }

    #[inline]
    pub(crate) const fn is_cleared(self) -> bool {
        self.0 & CLEARED != 0
    }

    pub(crate) const fn is_superseded(self) -> bool {
        self.0 & SUPERSEDED != 0
    }

    pub(crate) const fn is_forced(self) -> bool {
        self.0 & FORCED != 0
    }

    pub(crate) const fn tags(self) -> u32 {
        self.0 & TAGS
    }

    pub(crate) const fn is_safe_to_destroy(self) -> bool {
        !self.is_armed() && self.tags() == 0 && self.0 & GATED == 0
    }

    /// Safe to destroy, and for ever: a dispatch that backs out no longer shows.
    pub(crate) const fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }
}

/// See the [module](self).
pub(crate) struct Barrier {
    next: AtomicPtr<Barrier>,
    life: AtomicU32,
    gate: AtomicU32,
    /// The transition epoch that this barrier stands in front of.
    pub(crate) epoch: u32,
    pub(crate) signal: hsa_signal_t,
    /// When it was made, in nanoseconds of the runtime's clock.
    pub(crate) made: u64,
    /// Taken once, by whoever settles the barrier; null if there is none.
    on_end: AtomicPtr<EndNode>,
    /// Whether those who find it in the list, or by a tag, come in time.
    pub(crate) witness: Witness,
}

// The model checkers' atomics are larger.
#[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
const _: () = assert!(size_of::<Barrier>() <= 128);

/// A callback that waits for its barrier's end, and then in a [`Ended`] chain for its call.
struct EndNode {
    call: OnEnd,
    outcome: Outcome,
    next: *mut EndNode,
}

impl Barrier {
    /// An armed barrier that holds the arming's own unit.
    pub(crate) fn new(epoch: u32, signal: hsa_signal_t, on_end: Option<OnEnd>, made: u64) -> Self {
        let on_end = on_end.map_or(ptr::null_mut(), |call| {
            Box::into_raw(Box::new(EndNode {
                call,
                outcome: Outcome::Cleared,
                next: ptr::null_mut(),
            }))
        });
        let arming = u32::from(stands(Step::ArmingUnit));
        Self {
            next: AtomicPtr::new(ptr::null_mut()),
            life: AtomicU32::new(GATED),
            gate: AtomicU32::new(arming),
            epoch,
            signal,
            made,
            on_end: AtomicPtr::new(on_end),
            witness: Witness::new(),
        }
    }

    /// One load. Acquire: who sees a settled barrier sees what settled it.
    #[inline]
    pub(crate) fn life(&self) -> Life {
        Life(self.life.load(Ordering::Acquire))
    }

    /// Adds a tag; false where the barrier needs none any more.
    ///
    /// Whoever gets true must push the tag to the queue's pending ones.
    #[inline]
    pub(crate) fn tag(&self) -> Tagged {
        self.witness.is_used("barrier");
        if !self.life().is_armed() && stands(Step::ClosedCheck) {
            return Tagged::Settled;
        }
        // AcqRel: ordered with clearing and closing by being on the same word: if this is first,
        // closing sees a tag and fails; if closing is first, this sees it.
        let before = Life(self.life.fetch_add(1, Ordering::AcqRel));
        if before.is_armed() || !stands(Step::ClosedCheck) {
            return Tagged::Added;
        }
        Tagged::BackedOut {
            retire: self.untag(),
        }
    }

    /// Takes a tag away. True if the caller now has to retire the barrier.
    #[must_use]
    pub(crate) fn untag(&self) -> bool {
        self.witness.is_used("barrier");
        // AcqRel: whoever closes sees all that every former holder of a tag did.
        self.life.fetch_sub(1, Ordering::AcqRel);
        self.close()
    }

    /// Closes the barrier if it is safe to destroy. True for the one who did: it has to retire it.
    #[must_use]
    pub(crate) fn close(&self) -> bool {
        let mut seen = self.life.load(Ordering::Acquire);
        while seen & CLOSED == 0 && Self::may_close(Life(seen)) {
            // AcqRel: as in `tag`.
            match self.life.compare_exchange_weak(
                seen,
                seen | CLOSED,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Whether it is safe to destroy, as far as negative controls let it ask.
    fn may_close(life: Life) -> bool {
        let tags = if stands(Step::CloseIfUntagged) {
            TAGS
        } else {
            0
        };
        let gated = if stands(Step::CloseIfOpen) { GATED } else { 0 };
        !life.is_armed() && life.0 & (tags | gated) == 0
    }

    /// Adds a unit to the gate. The caller holds one already, so the gate can't be at zero.
    #[inline]
    pub(crate) fn enter(&self) {
        // Relaxed: giving back is what is ordered.
        self.gate.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives a unit back. True for the last one, which has to open the gate.
    #[must_use]
    #[inline]
    pub(crate) fn leave(&self) -> bool {
        // AcqRel: who clears does so after everything that every other unit stood for.
        self.gate.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Opens the gate, whose last unit the caller has given back. True if that clears the barrier;
    /// false where it was superseded.
    #[must_use]
    pub(crate) fn open(&self, ended: &mut Ended) -> bool {
        let cleared = |seen: u32| {
            let clears = if Life(seen).is_armed() { CLEARED } else { 0 };
            seen & !GATED | clears
        };
        let before = self.change(|seen| Some(cleared(seen)));
        let clears = before.is_some_and(|b| b.is_armed() || !stands(Step::ClearIfArmed));
        if clears {
            ended.add(self.take_on_end(), Outcome::Cleared);
        }
        clears
    }

    /// Supersedes the barrier. False where it has cleared.
    #[must_use]
    pub(crate) fn supersede(&self, ended: &mut Ended) -> bool {
        let superseded = |seen: u32| Life(seen).is_armed().then_some(seen | SUPERSEDED);
        let supersedes = self.change(superseded).is_some();
        if supersedes {
            ended.add(self.take_on_end(), Outcome::Superseded);
        }
        supersedes
    }

    /// Clears the barrier though its gate is not open. False where it is settled already. True for
    /// the one who did: it has to store 0 to the signal.
    #[must_use]
    pub(crate) fn force(&self, ended: &mut Ended) -> bool {
        let forced = |seen: u32| Life(seen).is_armed().then_some(seen | CLEARED | FORCED);
        let forces = self.change(forced).is_some();
        if forces {
            ended.add(self.take_on_end(), Outcome::Forced);
        }
        forces
    }

    /// Changes the life word; what it was before, or `None` where `to` refused.
    fn change(&self, to: impl Fn(u32) -> Option<u32>) -> Option<Life> {
        // AcqRel: who sees the barrier settled sees that what it counted has completed.
        self.life
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, to)
            .ok()
            .map(Life)
    }

    fn take_on_end(&self) -> *mut EndNode {
        self.on_end.swap(ptr::null_mut(), Ordering::Acquire)
    }
}

/// What became of an attempt to tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tagged {
    /// The tag stands, and the queue must carry the packet.
    Added,
    /// The barrier is settled: no packet is needed.
    Settled,
    /// The same, seen a step later.
    BackedOut {
        /// Backing out made the barrier safe to destroy, and the caller has to retire it.
        retire: bool,
    },
}

impl Linked for Barrier {
    fn next(&self) -> &AtomicPtr<Self> {
        self.witness.is_used("barrier");
        &self.next
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        // A barrier that never ended (the serializer was dropped first) calls nobody.
        let node = self.take_on_end();
        if !node.is_null() {
            // SAFETY: made by `Box::into_raw`; whoever takes it out of `on_end` owns it.
            drop(unsafe { Box::from_raw(node) });
        }
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier")
            .field("epoch", &self.epoch)
            .field("signal", &self.signal.handle)
            .field("life", &self.life())
            .field("gate", &self.gate.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

/// Callbacks of barriers that have ended, to be called when nobody is pinned or locked any more.
///
/// A chain through the callbacks' own nodes: collecting them allocates nothing.
pub(crate) struct Ended {
    first: *mut EndNode,
}

impl Ended {
    pub(crate) const fn new() -> Self {
        Self {
            first: ptr::null_mut(),
        }
    }

    fn add(&mut self, node: *mut EndNode, outcome: Outcome) {
        if node.is_null() {
            return;
        }
        // SAFETY: the caller has just taken the node out of its barrier, so it is ours alone.
        let end = unsafe { &mut *node };
        end.outcome = outcome;
        end.next = self.first;
        self.first = node;
    }

    /// Calls them, the one that ended first first.
    #[inline]
    pub(crate) fn call(self) {
        if self.first.is_null() {
            // Nothing to drop either.
            std::mem::forget(self);
        } else {
            self.call_all();
        }
    }

    #[inline(never)]
    fn call_all(mut self) {
        let mut newest_first = std::mem::replace(&mut self.first, ptr::null_mut());
        while !newest_first.is_null() {
            // SAFETY: as in `add`: each node of the chain is ours alone.
            let node = unsafe { &mut *newest_first };
            let next = std::mem::replace(&mut node.next, self.first);
            self.first = std::mem::replace(&mut newest_first, next);
        }
        while let Some((call, outcome)) = self.pop() {
            call(outcome);
        }
    }

    fn pop(&mut self) -> Option<(OnEnd, Outcome)> {
        if self.first.is_null() {
            return None;
        }
        // SAFETY: made by `Box::into_raw`, and ours alone since `add`.
        let node = unsafe { Box::from_raw(self.first) };
        self.first = node.next;
        Some((node.call, node.outcome))
    }
}

impl Drop for Ended {
    /// Where a callback panicked: the others are called by nobody, but nothing leaks.
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}
