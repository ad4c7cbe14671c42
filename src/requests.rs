//! Requests: serialization is on while somebody wants it.
//!
//! # Who wants it
//! - The host's own *switch* ([`enable`](crate::Serializer::enable) and
//!   [`disable`](crate::Serializer::disable)): one bit, the last word counts.
//! - *Requests*: guards ([`Serializer::request`](crate::Serializer::request)), which count; and for
//!   hosts in C, which have none, a count by hand
//!   ([`acquire`](crate::Serializer::acquire), [`release`](crate::Serializer::release)) that can't go
//!   below zero and takes nothing away from the guards.
//! - *Requests of all agents* ([`Agents`](crate::Agents)): a count that all serializers of a group look
//!   at.
//!
//! Kernels are serialized while any of them says so. So nobody takes it away from anybody else, and
//! nested or overlapping regions need not know of each other.
//!
//! # Steps
//! 1. A count changes: one atomic step, without the transition lock.
//! 2. *Settling*: under the transition lock all that want it are looked at, and the mode is made to agree.
//!
//! Who asks for it settles towards on, or off if nobody wants it any more; who gives it back settles
//! towards off, and leaves the mode alone where somebody still wants it. (He may be on his way to settle.
//! Turning on takes a signal, which can fail; it is his to fail.) Turning off can't fail: its signal was
//! set aside when the mode was turned on.
//!
//! # Why the mode agrees in the end
//! Every change of a count is followed by a settling of the same thread, and settlings exclude each other.
//! Take the last one of them: the changes of all others happened before their own settlings, hence before
//! this one, so it reads the counts as they stay. Where they were zero, it turns off. Where one was not,
//! look at the change that raised it from zero last: its own settling, and each one after it, finds it
//! wanted, so it was turned on then, and nobody has turned it off since.
//!
//! Where turning on fails, the count is given back, and that change is settled like any other: in between
//! somebody may have turned it on for a request that is gone by now.
//!
//! # Orderings
//! The transition lock orders the counts of one serializer. The count of all agents is one half of a
//! store-buffering pair; see [`agents`](crate::agents).

use crate::agents::Member;
use crate::error::{ReleaseError, TransitionError};
use crate::handle::Handle;
use crate::queue::Mode;
use crate::runtime::Runtime;
use crate::serializer::Serializer;
use crate::shared::Shared;
use crate::sync::{AtomicU64, Ordering, Step, stands};
use crate::transition::{Transition, Transitions, Wish};
use std::fmt;
use std::mem;
use std::sync::{Arc, OnceLock};

/// Who requests one serializer.
#[derive(Debug)]
pub(crate) struct Requests {
    /// Guards that live.
    guards: AtomicU64,
    /// Acquired and not released by hand.
    by_hand: AtomicU64,
    /// The group that it is in.
    pub(crate) member: OnceLock<Member>,
}

impl Requests {
    pub(crate) fn new() -> Self {
        Self {
            guards: AtomicU64::new(0),
            by_hand: AtomicU64::new(0),
            member: OnceLock::new(),
        }
    }

    /// How many there are of this agent, and of all.
    pub(crate) fn count(&self) -> (u64, u64) {
        // Relaxed: see the module. SeqCst for the group's; see `agents`.
        let own = self.guards.load(Ordering::Relaxed) + self.by_hand.load(Ordering::Relaxed);
        let all = self.member.get().map_or(0, Member::requests_of_all);
        (own, all)
    }

    fn any(&self) -> bool {
        self.count() != (0, 0)
    }
}

/// Keeps kernels serialized for as long as it lives. Made by [`Serializer::request`].
///
/// Dropping it takes the transition lock for a moment, like [`Serializer::disable`], and can't fail. It
/// keeps the serializer alive.
#[must_use = "kernels are serialized for as long as this lives"]
pub struct Request<R: Runtime> {
    shared: Handle<R>,
}

impl<R: Runtime> Request<R> {
    /// Gives it back, and says what that did.
    pub fn end(self) -> Transition {
        let shared = self.shared.clone();
        // What dropping would do, but with its answer.
        let mut request = mem::ManuallyDrop::new(self);
        let did = shared.give_back(&shared.insight.requests.guards);
        // SAFETY: the guard is not dropped, so its handle is given up here and nowhere else.
        unsafe { std::ptr::drop_in_place(&raw mut request.shared) };
        did
    }
}

impl<R: Runtime> Drop for Request<R> {
    fn drop(&mut self) {
        self.shared.give_back(&self.shared.insight.requests.guards);
    }
}

impl<R: Runtime> Serializer<R> {
    /// Serializes for as long as the guard lives, whoever else wants it or not.
    ///
    /// It does not wait, like [`enable`](Self::enable). With the first request of a region the mode
    /// changes, with the end of the last one it changes back, unless the host's own switch
    /// (`enable`) or a request of [all agents](crate::Agents) keeps it on.
    ///
    /// # Errors
    /// Where no signal could be had, or the serializer has ended. Nothing is requested then.
    pub fn request(&self) -> Result<Request<R>, TransitionError> {
        self.shared.take(&self.shared.insight.requests.guards)?;
        Ok(Request {
            shared: self.shared.clone(),
        })
    }

    /// The same by hand, for hosts that can't keep a guard: each one is to be
    /// [released](Self::release) once. In Rust [`request`](Self::request) is better: a guard can't be
    /// released twice.
    ///
    /// # Errors
    /// As for [`request`](Self::request).
    pub fn acquire(&self) -> Result<Transition, TransitionError> {
        self.shared.take(&self.shared.insight.requests.by_hand)
    }

    /// Gives back what was [acquired](Self::acquire). It can't fail for want of a signal; where the
    /// serializer has ended there is nothing to turn off, and that is no error.
    ///
    /// # Errors
    /// Where nothing is acquired: nothing was changed then. Guards and the host's own switch are not
    /// touched by it.
    pub fn release(&self) -> Result<Transition, ReleaseError> {
        let by_hand = &self.shared.insight.requests.by_hand;
        by_hand
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
            .map_err(|_| ReleaseError::Unbalanced)?;
        Ok(self.shared.settle_requests())
    }

    /// How many requests there are, those of all agents among them.
    #[must_use]
    pub fn requests(&self) -> u64 {
        let (own, all) = self.shared.insight.requests.count();
        own + all
    }
}

impl<R: Runtime> Shared<R> {
    fn take(self: &Arc<Self>, count: &AtomicU64) -> Result<Transition, TransitionError> {
        count.fetch_add(1, Ordering::Relaxed);
        self.turn(Wish::Requested).inspect_err(|_| {
            self.give_back(count);
        })
    }

    fn give_back(self: &Arc<Self>, count: &AtomicU64) -> Transition {
        // Not below zero: somebody may have released by hand what was just being acquired.
        let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        self.settle_requests()
    }

    /// Turns off, if nobody wants it any more.
    pub(crate) fn settle_requests(self: &Arc<Self>) -> Transition {
        let wish = if stands(Step::CountUnderLock) {
            Wish::Released
        } else if self.insight.requests.any() {
            return Transition::Unchanged;
        } else {
            Wish::Switch(false)
        };
        // What has ended is off.
        self.turn(wish).unwrap_or(Transition::Unchanged)
    }

    /// The mode to change to, or to stay in, where somebody has that wish.
    ///
    /// The caller holds the transition lock: what is read here is what the mode will agree with.
    pub(crate) fn wanted(&self, t: &Transitions, wish: Wish) -> Mode {
        let switched = match wish {
            Wish::Switch(on) => on,
            Wish::Requested | Wish::Released => t.switch,
        };
        let requested = self.insight.requests.any() && stands(Step::CountUnderLock)
            || wish == Wish::Requested && !stands(Step::CountUnderLock);
        match wish {
            _ if !switched && !requested => Mode::Disabled,
            Wish::Switch(true) | Wish::Requested => Mode::Enabled,
            // Who wants it turns it on himself.
            Wish::Switch(false) | Wish::Released => t.mode(),
        }
    }
}

impl<R: Runtime> fmt::Debug for Request<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("serializer", &self.shared.instance)
            .finish()
    }
}
