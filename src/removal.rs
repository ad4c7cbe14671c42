//! A queue that is gone: whatever it held goes on without it.
//!
//! Removal takes no lock, may come at any moment, and is decided by two atomic steps: the queue's
//! progress is declared dead, which makes its count of completions infinite; and its seat becomes
//! Removed, which says what it was doing.
//!
//! | the queue was | what happens |
//! |---|---|
//! | counted by barriers | it is settled like by a completion of everything: its units go back |
//! | tagged | the same: its tags go, its packets never execute |
//! | granted | the token is released on its behalf |
//! | ready | the granter that comes to it finds it Removed and goes on |
//! | dispatching | the dispatch announces, finds the queue dead and settles what it pushed |
//! | being stamped | the transition does the same |
//!
//! # Order
//! Dead comes first: a completion that is counted is before it, one that is not does nothing more.
//!
//! # The cell and the signals
//! The queue's `block` signal is destroyed by a deferred callback (a granter may be on its way to
//! store to it). The `ready` signal has a handler, which has to say Drop first: removal stores -1,
//! the handler fires, [`ready`](crate::Serializer::ready) says Drop and defers the destruction.
//! The cell goes to another queue when its four parties have let go of it, and a grace period
//! later.

use crate::error::UnknownQueue;
use crate::event::Event;
use crate::queue::{QueueCell, QueueId};
use crate::runtime::{Handler, Runtime};
use crate::shared::{Aftermath, Shared, Stage};
use crate::sync::{Ordering, Step, stands};
use crate::token::Phase;
use crossbeam_epoch::Guard;
use hsa_sys::hsa_signal_t;
use std::sync::Arc;

impl<R: Runtime> Shared<R> {
    /// See [`Serializer::queue_destroyed`](crate::Serializer::queue_destroyed).
    pub(crate) fn queue_destroyed(self: &Arc<Self>, id: QueueId) -> Result<(), UnknownQueue> {
        self.remove(id, |dispatches, _| dispatches)
    }

    /// The same for a queue that was closed and all of whose dispatches have completed. One that is
    /// being turned away may show in its word.
    pub(crate) fn give_up(self: &Arc<Self>, id: QueueId) {
        // Where the host removes it at the same time, one of the two does it.
        let _ = self.remove(id, |_, completions| completions);
    }

    /// Removes a queue. How many were dispatched is told from the counts of its dispatches and its
    /// completions.
    fn remove(
        self: &Arc<Self>,
        id: QueueId,
        dispatched: impl FnOnce(u64, u64) -> u64,
    ) -> Result<(), UnknownQueue> {
        let cell = self.cell(id).ok_or(UnknownQueue(id))?;
        let guard = self.domain.pin();
        if !cell.kill(id.generation()) {
            // A shutdown gives queues up before their host destroys them.
            let was = id.generation() <= cell.progress().generation();
            let given_up = was && self.stage() >= Stage::Closing;
            return if given_up {
                Ok(())
            } else {
                Err(UnknownQueue(id))
            };
        }
        self.record(Event::QueueGone(id));
        let mut after = Aftermath::new();
        let serialized = !cell.seat().ready().is_null();
        let was = cell.seat().remove();
        if was == Phase::Granted {
            self.tell(|| Event::Released(id));
        }
        let held = was == Phase::Granted || !stands(Step::ReleaseOnlyIfGranted);
        if held && self.token.release() {
            self.grant(true, &guard, &mut after);
        }
        self.settle(id, cell, &guard, &mut after);
        if serialized {
            self.store(&guard, cell.seat().ready(), -1);
            if let Some(block) = cell.seat().take_block() {
                self.defer_destroy(block, &guard, &mut after);
            }
            if was != Phase::Waiting {
                // Otherwise it is in the ready queues, and the granter that finds it lets go.
                self.let_go(id.index(), &guard, &mut after);
            }
        }
        let (dispatches, completions) = self.counts(cell);
        let dispatches = dispatched(dispatches, completions);
        self.counters.former_dispatches.add(dispatches);
        self.counters.former_completions.add(completions);
        self.counters.queues_gone.add(1);
        // Release: who sees the count sees the death. Before letting go, so that the cell's next
        // owner is registered after this one was swept out.
        self.gone.fetch_add(1, Ordering::Release);
        self.let_go(id.index(), &guard, &mut after);
        after.finish(guard, self);
        Ok(())
    }

    /// Undoes seating a queue whose handler the runtime refused. Its id, which the runtime has seen,
    /// is not used again.
    pub(crate) fn unseat(self: &Arc<Self>, id: QueueId, cell: &QueueCell) {
        let mut after = Aftermath::new();
        let guard = self.domain.pin();
        // Before it is removed: a call with a guessed id would take them along.
        let signals = [cell.seat().take_ready(), cell.seat().take_block()];
        cell.seat().remove();
        // Deferred: such a call may be looking at them.
        for signal in signals.into_iter().flatten() {
            self.defer_destroy(signal, &guard, &mut after);
        }
        self.free_cell(id.index(), cell, &guard, &mut after);
        after.finish(guard, self);
    }

    /// What a `ready` handler of a removed queue does: go, and take the signal along.
    pub(crate) fn handler_goes(
        self: &Arc<Self>,
        id: QueueId,
        cell: &QueueCell,
        guard: &Guard,
        after: &mut Aftermath,
    ) -> Handler {
        // Taking the signal is what only one call can do: a repeated one finds none.
        if let Some(ready) = cell.seat().take_ready() {
            self.defer_destroy(ready, guard, after);
            self.handlers.fetch_sub(1, Ordering::Release);
            self.let_go(id.index(), guard, after);
        }
        Handler::Drop
    }

    fn defer_destroy(self: &Arc<Self>, signal: hsa_signal_t, guard: &Guard, after: &mut Aftermath) {
        if !stands(Step::DeferSignals) {
            return self.destroy_signal(signal);
        }
        self.defer(guard, after, move |shared| shared.destroy_signal(signal));
    }
}
