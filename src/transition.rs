//! Transitions: from one epoch to the next, over all queues.
//!
//! # Participants
//! - *The transition*. Transitions, and adding a queue, exclude each other by a lock: they are
//!   rare. Dispatches, completions and removals never take it.
//! - *Dispatches* and *completions* of every queue, at any moment.
//!
//! # Steps
//! 1. The signal is created before the lock is taken; if that fails nothing has happened.
//! 2. The new barrier, armed, holding the arming's own unit, is pushed to the list. Were a queue
//!    stamped first, a dispatch of the new epoch would find no barrier and run beside the old
//!    mode's kernels.
//! 3. Each queue is stamped: one `fetch_add` on its word, from which comes the number of dispatches
//!    that it had. From here on its dispatches are of the new epoch.
//! 4. If no queue has dispatched in the epoch that ends, nobody can ever look for that epoch's
//!    barrier: it is superseded. (A dispatch that had taken its number in the old epoch would show
//!    in the stamps, even if it has not got to looking for its barrier yet.) What it was still
//!    waiting for, the new barrier waits for as well, with the same counts, because nothing was
//!    dispatched in between: each target is *moved*, by compare-exchange against the completions.
//! 5. Each other queue that has not completed what it had dispatched becomes a target of the new
//!    barrier: take a unit, push, announce, read the count again.
//! 6. The arming gives its unit back. If that was the last one, it clears the barrier.
//!
//! # Why live barriers are bounded
//! After step 4 a barrier stays only while somebody dispatched in its epoch and it has not cleared,
//! or a tag stands. However often somebody toggles while a long kernel runs, the barriers of idle
//! epochs go at the next toggle.
//!
//! # Orderings
//! The stamp releases and a dispatch that sees the new epoch acquires (by a fence in its slow
//! path): it finds the barrier that was pushed before. That no completion is missed between
//! stamping and publishing is the store-buffering pair of
//! [`announce`](crate::queue::QueueCell::announce).

use crate::barrier::{Barrier, OnEnd};
use crate::error::{AddQueueError, SignalError, TransitionError};
use crate::event::Event;
use crate::queue::{CELLS, Mode, QueueCell, QueueId, Word, stamp_increment};
use crate::runtime::{Runtime, SignalKind};
use crate::shared::{Aftermath, Shared, Start};
use crate::sync::{Ordering, Step, stands};
use crossbeam_epoch::Guard;
use hsa_sys::hsa_signal_t;
use std::ptr::NonNull;
use std::sync::Arc;

/// A queue that is stamped by transitions.
#[derive(Debug)]
struct Registered {
    id: QueueId,
    /// How many dispatches it had at its last stamp; and [`IDLE`].
    stamp: u64,
}

/// All dispatches of before the last stamp were seen to have completed. Counts are far below it.
const IDLE: u64 = 1 << 63;

impl Registered {
    fn stamp(&self) -> u64 {
        self.stamp & !IDLE
    }

    fn is_idle(&self) -> bool {
        self.stamp & IDLE != 0
    }
}

/// What the transition lock guards.
#[derive(Debug)]
pub(crate) struct Transitions {
    pub(crate) epoch: u32,
    /// What `enable` and `disable` have said last.
    pub(crate) switch: bool,
    queues: Vec<Registered>,
    /// Cells that were ever used: the indices below this.
    cells: u32,
    /// The present epoch's barrier.
    current: Option<Arc<Barrier>>,
    /// The signal for turning off, so that it can't fail.
    pub(crate) reserve: Option<hsa_signal_t>,
    pub(crate) closed: bool,
    /// The last grace period of a shutdown, once it was begun: whether it has passed.
    pub(crate) grace: Option<Arc<std::sync::atomic::AtomicBool>>,
}

/// What a transition did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transition {
    /// The mode was that one already: nothing was done.
    Unchanged,
    /// The mode has changed. Every dispatch begun from now on runs in the new mode.
    Changed {
        /// How many queues had dispatches in flight, for which the new mode's kernels now wait.
        waiting_for: usize,
    },
    /// It was switched off, but somebody [requests](crate::Request) it: kernels go on being serialized.
    Kept {
        /// How many requests there are.
        requests: u64,
    },
}

/// What somebody wants of the mode; see [`requests`](crate::requests).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The host's own switch.
    Switch(bool),
    /// A request has come.
    Requested,
    /// A request has gone.
    Released,
}

impl Transitions {
    pub(crate) fn new(start: Start) -> Self {
        Self {
            epoch: start.epoch,
            switch: false,
            queues: Vec::new(),
            cells: 0,
            current: None,
            reserve: None,
            closed: false,
            grace: None,
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        Mode::of_epoch(self.epoch)
    }

    pub(crate) fn cells_made(&self) -> u32 {
        self.cells
    }

    /// The queues that transitions stamp, with their stamps; some may be gone.
    pub(crate) fn registered(&self) -> impl Iterator<Item = (QueueId, u64)> {
        self.queues.iter().map(|q| (q.id, q.stamp()))
    }
}

impl<R: Runtime> Shared<R> {
    /// Dispatches and completions of all queues ever, and how many queues there are.
    pub(crate) fn totals(&self) -> (u64, u64, u64) {
        let t = self.lock();
        let queues = t.iter().flat_map(|t| t.registered());
        self.totals_of(queues.map(|(id, _)| id))
    }

    /// The same, with these queues for the present ones.
    pub(crate) fn totals_of(&self, queues: impl Iterator<Item = QueueId>) -> (u64, u64, u64) {
        let mut totals = (
            self.counters.former_dispatches.get(),
            self.counters.former_completions.get(),
            0,
        );
        for cell in queues.filter_map(|id| self.living(id)) {
            let (dispatched, completed) = self.counts(cell);
            totals = (totals.0 + dispatched, totals.1 + completed, totals.2 + 1);
        }
        totals
    }

    /// Dispatches and completions of one queue.
    pub(crate) fn counts(&self, cell: &QueueCell) -> (u64, u64) {
        let word = Word(cell.word.load(Ordering::Relaxed));
        (
            cell.widen(word.id()).wrapping_sub(self.start.count),
            cell.progress().count().wrapping_sub(self.start.count),
        )
    }

    /// The cell of a queue, if that is alive.
    pub(crate) fn living(&self, id: QueueId) -> Option<&QueueCell> {
        let cell = self.slab.get(id.index())?;
        cell.progress().is_live(id.generation()).then_some(cell)
    }

    /// Takes the queues that are gone out of the registered ones.
    pub(crate) fn sweep(&self, t: &mut Transitions) {
        // Acquire: the deaths of those that are counted.
        if self.gone.swap(0, Ordering::Acquire) > 0 {
            t.queues.retain(|q| self.living(q.id).is_some());
        }
    }

    /// Takes a cell that nobody uses, or a new one.
    pub(crate) fn take_cell(&self) -> Result<(QueueId, &QueueCell), AddQueueError> {
        let mut t = self.lock().ok_or(AddQueueError::ShutDown)?;
        if t.closed {
            return Err(AddQueueError::ShutDown);
        }
        let index = match self.free.pop() {
            Some(index) => index,
            None if (t.cells as usize) < CELLS => {
                t.cells += 1;
                t.cells - 1
            }
            None => return Err(AddQueueError::Full),
        };
        // After the cell was taken: its former owner was counted as gone before the cell became
        // free, so no stale registration of it is left.
        self.sweep(&mut t);
        let cell = self.slab.make(index);
        let generation = cell.progress().generation() as u32;
        Ok((QueueId::new(self.instance, generation, index), cell))
    }

    /// Makes a queue one of those that transitions stamp. False where the serializer was closed in
    /// the meantime: the queue is registered all the same, and has to be removed like any other,
    /// since its handler is there.
    pub(crate) fn register(&self, id: QueueId, cell: &QueueCell, holds: u32) -> bool {
        let Some(mut t) = self.lock() else {
            return false;
        };
        cell.tags.provide();
        let stamp = self.start.count;
        cell.adopt(holds, stamp, t.epoch);
        let idle = stamp | IDLE;
        t.queues.push(Registered { id, stamp: idle });
        self.counters.queues_added.add(1);
        self.record(Event::QueueAdded(id));
        !t.closed
    }

    /// Changes to the next epoch, with a barrier in front of it. Returns how many queues it counts,
    /// and the barrier.
    pub(crate) fn advance(
        self: &Arc<Self>,
        t: &mut Transitions,
        to: u32,
        signal: hsa_signal_t,
        on_end: Option<OnEnd>,
        guard: &Guard,
        after: &mut Aftermath,
    ) -> (usize, Arc<Barrier>) {
        self.sweep(t);
        let now = self.now();
        let mode = Mode::of_epoch(to);
        self.record_at(Event::Transition { epoch: to, mode }, now);
        let barrier = Arc::new(Barrier::new(to, signal, on_end, now));
        if stands(Step::PushBeforeStamp) {
            self.link(&barrier);
        }
        let used = self.stamp(t, to);
        if !stands(Step::PushBeforeStamp) {
            self.link(&barrier);
        }
        // Superseding leaves the old barrier's gate closed: its last unit is given back when its
        // last target is moved, or resolved by the queue's completion or death.
        let superseded = t
            .current
            .take()
            .filter(|_| !used || !stands(Step::SupersedeOnlyUnused))
            .filter(|old| old.supersede(&mut after.ended));
        if let Some(old) = &superseded {
            self.counters.superseded.add(1);
            self.ended(old, |epoch| Event::Superseded { epoch });
        }
        let counted = self.count_in_flight(t, &barrier, superseded.as_ref(), guard, after);
        if let Some(old) = superseded.filter(|old| old.close()) {
            self.retire(node_of(&old), guard, after);
        }
        self.tell(|| Event::Armed {
            epoch: to,
            waits_for: counted as u32,
        });
        if barrier.leave() {
            self.open(node_of(&barrier), guard, after);
        }
        t.current = Some(barrier.clone());
        self.counters.transitions.add(1);
        self.counters
            .transitions_that_counted
            .add(u64::from(counted > 0));
        (counted, barrier)
    }

    /// Pushes the barrier to the list, which holds a reference to it from now on.
    fn link(&self, barrier: &Arc<Barrier>) {
        self.counters.barriers.add(1);
        let live = self.counters.barriers_live.add(1);
        self.counters.barriers_live_most.at_least(live);
        self.tell(|| Event::Made {
            epoch: barrier.epoch,
            signal: barrier.signal,
        });
        let node = node_of(barrier);
        // The reference that the list holds from now on; given up in `reclaim`, or when everything
        // is dropped.
        std::mem::forget(barrier.clone());
        // SAFETY: the caller holds the transition lock, so it is the only pusher, and is pinned;
        // the list's reference keeps the barrier until a grace period after it was removed.
        unsafe { self.barriers.push(node) };
    }

    /// Stamps every queue. True if one of them dispatched in the epoch that ends.
    pub(crate) fn stamp(&self, t: &mut Transitions, to: u32) -> bool {
        let increment = stamp_increment(t.epoch, to);
        let mut used = false;
        // Relaxed: see `mode`.
        self.epoch.store(to, Ordering::Relaxed);
        for q in &mut t.queues {
            let Some(cell) = self.slab.get(q.id.index()) else {
                continue;
            };
            // Room for the new epoch's tag, before anybody can want it.
            cell.tags.provide();
            // Release: a dispatch that sees the new epoch sees its barrier in the list. Acquire:
            // this sees what the dispatches before it published.
            let before = Word(cell.word.fetch_add(increment, Ordering::AcqRel));
            let stamp = cell.widen(before.id());
            if stamp != q.stamp() {
                used = true;
                q.stamp = stamp;
            }
        }
        t.epoch = to;
        used
    }

    /// Makes every queue that has dispatches in flight a target of the barrier.
    fn count_in_flight(
        self: &Arc<Self>,
        t: &mut Transitions,
        barrier: &Arc<Barrier>,
        superseded: Option<&Arc<Barrier>>,
        guard: &Guard,
        after: &mut Aftermath,
    ) -> usize {
        let node = node_of(barrier);
        let mut counted = 0;
        for q in t.queues.iter_mut().filter(|q| !q.is_idle()) {
            let Some(cell) = self.living(q.id) else {
                continue;
            };
            // Nothing is left of it: what the old barrier wants of it is due, and is resolved by
            // whoever completed the last of it, as for a dead queue.
            if cell.progress().reached() >= q.stamp || !stands(Step::IdleIfReached) {
                q.stamp |= IDLE;
                continue;
            }
            if let Some(old) = superseded {
                barrier.enter();
                // SAFETY: the caller holds the transition lock, so it is the only pusher of
                // targets; `barrier` is not reclaimed while its gate is not at zero.
                let moved = unsafe { cell.targets().move_last(node_of(old), node) };
                if moved && old.leave() {
                    self.open(node_of(old), guard, after);
                }
                if moved && stands(Step::TransferByExchange) {
                    counted += 1;
                    continue;
                }
                // It was not counted by the old barrier, or has completed. The arming's own unit
                // is still held.
                let last = barrier.leave();
                debug_assert!(!last || !stands(Step::ArmingUnit));
            }
            if cell.progress().reached() >= q.stamp {
                continue;
            }
            barrier.enter();
            // SAFETY: as above.
            unsafe { cell.targets().push(q.stamp, node) };
            counted += 1;
            if cell.announce(q.stamp) && stands(Step::SettleWhatWasLeft) {
                self.settle_owned(q.id, cell, guard, after);
            }
        }
        counted
    }

    /// Makes the mode agree with who wants it. See [`Serializer::enable`](crate::Serializer::enable).
    pub(crate) fn turn(self: &Arc<Self>, wish: Wish) -> Result<Transition, TransitionError> {
        let _visit = self.visit().ok_or(TransitionError::ShutDown)?;
        let mut signals = Signals::new(self);
        loop {
            let mut after = Aftermath::new();
            // Before the lock: pinning may run what others have deferred.
            let guard = self.domain.pin();
            let done = {
                let mut t = self.lock().ok_or(TransitionError::ShutDown)?;
                self.try_turn(&mut t, wish, &mut signals.spare, &guard, &mut after)
            };
            after.finish(guard, self);
            if let Some(done) = done {
                drop(signals);
                self.collect();
                return done;
            }
            // Signals are made outside of the lock: the runtime has locks of its own.
            signals.create().map_err(TransitionError::Signal)?;
        }
    }

    /// Changes the mode, if that is to be and there are enough spare signals; `None` if there are not.
    fn try_turn(
        self: &Arc<Self>,
        t: &mut Transitions,
        wish: Wish,
        spare: &mut Vec<hsa_signal_t>,
        guard: &Guard,
        after: &mut Aftermath,
    ) -> Option<Result<Transition, TransitionError>> {
        if t.closed {
            return Some(Err(TransitionError::ShutDown));
        }
        let mode = self.wanted(t, wish);
        if t.mode() == mode {
            return Some(Ok(self.stays(t, wish)));
        }
        // Turning on takes a second signal, in reserve for turning off.
        let wanted = match mode {
            Mode::Enabled => 2,
            Mode::Disabled => 1,
        };
        // There is one in reserve only where the mode is to be turned off, for which it is enough.
        spare.extend(t.reserve.take());
        if spare.len() < wanted {
            return None;
        }
        let signal = spare.pop()?;
        if mode == Mode::Enabled {
            t.reserve = spare.pop();
        }
        if let Wish::Switch(on) = wish {
            t.switch = on;
        }
        let to = t.epoch.wrapping_add(1);
        // First: who looks meanwhile, with this thread stuck in the runtime, does not take the old mode's
        // time for the new one's.
        self.mode_changed(mode);
        let (waiting_for, _) = self.advance(t, to, signal, None, guard, after);
        Some(Ok(Transition::Changed { waiting_for }))
    }

    /// What it means that the mode stays.
    fn stays(&self, t: &mut Transitions, wish: Wish) -> Transition {
        if let Wish::Switch(on) = wish {
            t.switch = on;
        }
        let (own, all) = self.insight.requests.count();
        if wish == Wish::Switch(false) && t.mode() == Mode::Enabled {
            Transition::Kept {
                requests: own + all,
            }
        } else {
            Transition::Unchanged
        }
    }

    /// Arms a barrier over all queues. See [`BarrierSet::arm`](crate::BarrierSet::arm).
    ///
    /// A barrier set is never shut down, but left in the child of a fork.
    pub(crate) fn arm(self: &Arc<Self>, on_end: OnEnd) -> Result<Arc<Barrier>, TransitionError> {
        let _visit = self.visit().ok_or(TransitionError::ShutDown)?;
        let mut signals = Signals::new(self);
        signals.create().map_err(TransitionError::Signal)?;
        let mut after = Aftermath::new();
        // Before the lock: pinning may run what others have deferred.
        let guard = self.domain.pin();
        let armed = {
            let mut t = self.lock().ok_or(TransitionError::ShutDown)?;
            // While the signal was made misuse may have let everything through, for good.
            let signal = match t.closed {
                true => None,
                false => signals.spare.pop(),
            };
            // The epoch stays even: a barrier alone serializes nothing.
            let to = t.epoch.wrapping_add(2);
            signal.map(|signal| self.advance(&mut t, to, signal, Some(on_end), &guard, &mut after))
        };
        after.finish(guard, self);
        drop(signals);
        self.collect();
        armed
            .map(|(_, barrier)| barrier)
            .ok_or(TransitionError::ShutDown)
    }
}

/// The pointer by which the list and the queues' entries know a barrier. It is good for giving the
/// list's reference back.
fn node_of(barrier: &Arc<Barrier>) -> NonNull<Barrier> {
    // SAFETY: an `Arc`'s pointer is not null.
    unsafe { NonNull::new_unchecked(Arc::as_ptr(barrier).cast_mut()) }
}

/// Barrier signals that were created and are not in use yet. What is left over is destroyed.
struct Signals<'a, R: Runtime> {
    shared: &'a Arc<Shared<R>>,
    spare: Vec<hsa_signal_t>,
}

impl<'a, R: Runtime> Signals<'a, R> {
    fn new(shared: &'a Arc<Shared<R>>) -> Self {
        Self {
            shared,
            spare: Vec::new(),
        }
    }

    fn create(&mut self) -> Result<(), SignalError> {
        let signal = self.shared.create_signal(SignalKind::Barrier, 1)?;
        self.spare.push(signal);
        Ok(())
    }
}

impl<R: Runtime> Drop for Signals<'_, R> {
    fn drop(&mut self) {
        for signal in self.spare.drain(..) {
            self.shared.destroy_signal(signal);
        }
    }
}

#[cfg(all(test, not(any(hsa_serializer_loom, hsa_serializer_shuttle))))]
mod tests {
    use super::*;
    use crate::doc_runtime::Host;
    use crate::domain::Domain;

    #[test]
    fn where_every_cell_was_used_a_queue_is_refused_until_one_is_free() {
        let shared = Shared::new(Host::default(), Domain::new(), Start::default(), true, None);
        let first = shared.take_cell().unwrap().0;
        let used = |cells| shared.lock().unwrap().cells = cells;
        used(CELLS as u32);
        assert_eq!(shared.take_cell().unwrap_err(), AddQueueError::Full);
        shared.free.push(first.index());
        assert_eq!(shared.take_cell().unwrap().0, first);
        used(1);
    }
}
