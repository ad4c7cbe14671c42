//! The end: in two phases, or at once; and the kill switch.
//!
//! # Stages
//! | stage | dispatches | what is queued | the runtime is called |
//! |---|---|---|---|
//! | open | counted | granted in turn | yes |
//! | closing, by [`begin_shutdown`](crate::Serializer::begin_shutdown) | turned away | granted in turn, beside what was turned away | yes |
//! | released, by [`release_all`](crate::Serializer::release_all) | turned away | let through, all at once | yes |
//! | finishing, by [`finish_shutdown`](crate::Serializer::finish_shutdown) | turned away | there is nothing | to destroy the last signals |
//! | finished, by the same | turned away | there is nothing | never again |
//! | left, by [`leave`](crate::Serializer::leave) | turned away where they would have to wait | is left as it is | never again |
//!
//! A dispatch has no check of its own for any of it: closing stamps every queue like a transition, so
//! the first dispatch after it takes the slow path, which finds the epoch closed. Leaving stamps
//! nobody; whoever would have to wait takes the slow path anyway, and finds the stage there.
//!
//! # Finishing
//! Each attempt does what can be done and says what is left:
//! 1. A queue all of whose dispatches have completed has no packet of ours that may execute. It is
//!    removed as if it had been destroyed; what the application does with it is its own business.
//! 2. Removal stores -1 to the queue's `ready`, so its handler runs once more and answers Drop: from
//!    then on no callback of ours is registered.
//! 3. Barriers clear by the completions that they wait for, and go.
//! 4. When nothing is left but a signal in reserve and the escape signal, the stage becomes
//!    *finishing*, and a grace period passes: whoever calls the runtime does so pinned, after having
//!    read the stage under that pin, so after the grace period nobody is inside a call, nor on the way
//!    to one. Creating signals and delivering reports, which must not be done pinned, are counted
//!    instead.
//! 5. The last signals are destroyed, behind the grace period, and the last reports delivered; the
//!    stage becomes *finished*.
//!
//! It never waits for a completion or a handler under a lock, and it is refused inside of a handler,
//! which would wait for itself.
//!
//! # Releasing everything
//! Every packet of ours waits for its own signal *or* for the serializer's escape signal, which is 1
//! as long as all is well. One store of 0 opens all that is queued, and all that is dispatched by a
//! thread that has not heard of it yet, without any further help of the host. Barriers are cleared
//! by force besides, so that what waits for them on the host's side hears of it. The escape signal
//! outlives the packets: it is destroyed when the serializer finishes, or with its last handle.

use crate::drain::Waiting;
use crate::event::Event;
use crate::queue::{Mode, QueueId};
use crate::runtime::{Report, Runtime};
use crate::serializer::Serializer;
use crate::shared::{Aftermath, Shared, Stage};
use crate::sync::{Ordering, Step, stands};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as StdOrdering};
use std::time::Duration;

/// What a shutdown still waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remaining {
    /// Queues with dispatches that have not completed: how many.
    pub queues: Vec<(QueueId, u64)>,
    /// `ready` handlers that have not said Drop: one for each queue that is not given up yet, and where
    /// no queue is left a handler thread that is gone, or busy.
    pub handlers: usize,
    /// Barriers that are not reclaimed.
    pub barriers: u64,
    /// Deferred functions that have not run: a thread sits pinned in the same
    /// [`Domain`](crate::Domain).
    pub deferred: usize,
    /// Calls that create signals ([`add_queue`](Serializer::add_queue),
    /// [`enable`](Serializer::enable) and the like) or deliver reports, and are under way.
    pub calls: usize,
}

impl Remaining {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Why a shutdown has not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShutdownError {
    /// It was called on a thread that calls the runtime's handlers, and would wait for itself. The
    /// first phase is done.
    OnHandlerThread,
    /// The time is over. Try again; or [let everything through](Serializer::release_all) and try
    /// again; or [leave](Serializer::leave) it. Dropping the last handle destroys what is left: only
    /// where no queue's packet refers to it any more.
    TimedOut(Remaining),
}

impl<R: Runtime> Serializer<R> {
    /// The first phase of shutting down: from now on dispatches come back with
    /// [`ShutDown`](crate::DispatchError::ShutDown), and the host passes their kernels on as they
    /// are, or refuses them. It waits for nothing but a transition that is under way; it may be called
    /// from any thread, handlers' included, but not within a [`Runtime`] method, and any number of
    /// times.
    ///
    /// Serialized kernels that are queued go on being granted, one at a time, but beside those that are
    /// passed on: who wants the last measurements says [`disable`](Self::disable) and
    /// [`drain`](Self::drain) before. Keep completing tickets, and keep the handlers registered, until
    /// they are through.
    pub fn begin_shutdown(&self) {
        self.shared.close();
    }

    /// The second phase: waits until everything that was dispatched has completed, removes all
    /// queues, hears their handlers say Drop, and destroys every signal, the last ones behind a grace
    /// period. Once it has returned `Ok`, nothing of this serializer calls the runtime again, and no handler of it is
    /// registered. It begins the shutdown itself where that was not done, and may be called any number
    /// of times, by several threads, too.
    ///
    /// Queues that the application still has are given up by the serializer, not destroyed. Where
    /// everything was [left](Self::leave) there is nothing to finish: it says `Ok`, and knows nothing.
    ///
    /// # Errors
    /// On time-out, with what is left; on a thread that is known to be a handler's
    /// ([`Runtime::is_handler_thread`]).
    pub fn finish_shutdown(&self, timeout: Duration) -> Result<(), ShutdownError> {
        self.begin_shutdown();
        if self.shared.on_handler_thread() {
            return Err(ShutdownError::OnHandlerThread);
        }
        let mut waiting = Waiting::new(timeout);
        loop {
            match self.try_finish_shutdown() {
                Ok(()) => return Ok(()),
                Err(remaining) if waiting.is_over() => {
                    return Err(ShutdownError::TimedOut(remaining));
                }
                Err(_) => waiting.wait(),
            }
        }
    }

    /// One step of [`finish_shutdown`](Self::finish_shutdown), which never waits: for hosts that wait
    /// in a way of their own.
    ///
    /// # Errors
    /// What is left.
    pub fn try_finish_shutdown(&self) -> Result<(), Remaining> {
        self.begin_shutdown();
        self.shared.try_finish()
    }

    /// Leaves everything as it is: from now on the serializer does not call the runtime any more, not
    /// even when its last handle goes. For a runtime that is gone already, for the child of a `fork`
    /// (in `pthread_atfork`'s child handler), for a process that ends.
    ///
    /// One atomic step, without a lock and without an allocation. A call of the runtime's that is
    /// under way on another thread ends as it would, and is the last.
    ///
    /// Nobody grants any more and no barrier clears: what is queued and serialized does not run. So
    /// while the runtime lives, say [`release_all`](Self::release_all) first. Dispatches come back with
    /// [`ShutDown`](crate::DispatchError::ShutDown), unless the queue runs unserialized and has nothing
    /// to wait for: those still come back with a ticket.
    pub fn leave(&self) {
        self.shared.advance_stage(Stage::Left);
    }

    /// The kill switch: lets everything through, now, and serializes nothing any more. Dispatches
    /// from now on come back with [`ShutDown`](crate::DispatchError::ShutDown), and the host passes
    /// their kernels on as they are. Tickets are completed and queues removed as ever.
    ///
    /// From any thread, but not within a [`Runtime`] method; any number of times. It takes the
    /// transition lock. There is no way back, and [`finish_shutdown`](Self::finish_shutdown) is still
    /// to be said. After [`leave`](Self::leave) it does nothing: nobody may open anything any more.
    pub fn release_all(&self) {
        self.shared.release_all();
    }
}

impl<R: Runtime> Shared<R> {
    /// Closes: no dispatch that begins after this is counted.
    pub(crate) fn close(&self) {
        let Some(mut t) = self.lock().filter(|t| !t.closed) else {
            return;
        };
        self.advance_stage(Stage::Closing);
        t.closed = true;
        // The epoch keeps its mode, but no dispatch is of it any more.
        if t.mode() == Mode::Enabled {
            self.count_serialized(self.now());
        }
        let to = t.epoch.wrapping_add(2);
        // Before the stamps, whose release publishes it.
        self.closed.store(u64::from(to), Ordering::Relaxed);
        self.stamp(&mut t, to);
    }

    fn release_all(&self) {
        // After the end there is nothing to let through, and nothing that could do it.
        if self.stage() >= Stage::Finishing {
            return;
        }
        // First: who hears of a kernel that was let through knows that nobody holds the token.
        if stands(Step::StageBeforeEscape) {
            self.advance_stage(Stage::Released);
        }
        self.close();
        let mut after = Aftermath::new();
        let guard = self.domain.pin();
        // Pinned: a shutdown that finishes meanwhile waits for the observer's call.
        self.record(Event::LetThrough);
        // Before the escape opens: a kernel that completes behind a barrier that is armed would be
        // taken for misreported.
        if stands(Step::ForceBeforeEscape) {
            self.force(None, &guard, &mut after);
        }
        let escape = self.escape();
        if !escape.is_null() && stands(Step::EscapeOpens) {
            self.store(&guard, escape, 0);
        }
        if !stands(Step::StageBeforeEscape) {
            self.advance_stage(Stage::Released);
        }
        if !stands(Step::ForceBeforeEscape) {
            self.force(None, &guard, &mut after);
        }
        after.finish(guard, self);
    }

    /// Lets everything through where misuse was detected. At the end of a slow path: the caller holds
    /// no lock and is not pinned.
    #[inline]
    pub(crate) fn act_on_misuse(&self) {
        if self.opens && self.misused.load(Ordering::Relaxed) != 0 {
            self.open_because_of_misuse();
        }
    }

    #[cold]
    fn open_because_of_misuse(&self) {
        // Once, whoever comes first; and before it is let through, whose end comes here again.
        if self.misused.swap(0, Ordering::Relaxed) == 0 || self.stage() >= Stage::Released {
            return;
        }
        // What was reported before may fill the queue.
        self.deliver_reports();
        self.note(Report::Released);
        self.release_all();
    }

    /// The living queues, with the dispatches that have not completed.
    pub(crate) fn in_flight(&self) -> Vec<(QueueId, u64)> {
        let Some(mut t) = self.lock() else {
            return Vec::new();
        };
        self.sweep(&mut t);
        t.registered()
            .filter_map(|(id, _)| {
                let (dispatched, completed) = self.counts(self.living(id)?);
                Some((id, dispatched.saturating_sub(completed)))
            })
            .collect()
    }

    fn try_finish(self: &Arc<Self>) -> Result<(), Remaining> {
        if self.stage() >= Stage::Finished && (self.visits() == 0 || self.stage() == Stage::Left) {
            // A queue's dispatching half that goes later defers something of its own: no matter.
            return Ok(());
        }
        let calls = || self.visits() * usize::from(stands(Step::WaitForCalls));
        // First: it is closed, so what is not under way now can't begin any more, and what has ended
        // shows in all that is read below.
        let first = calls();
        for (id, in_flight) in self.in_flight() {
            if in_flight == 0 {
                // Nothing of it is to execute: no dispatch is counted since it was closed.
                self.give_up(id);
            }
        }
        self.collect();
        // First: barriers that come and go in between are not among those that are left.
        let reclaimed = self.counters.reclaimed.get();
        let remaining = Remaining {
            queues: self.in_flight(),
            handlers: self.handlers.load(Ordering::Acquire),
            barriers: self.counters.barriers.get().saturating_sub(reclaimed),
            deferred: self.deferred(),
            calls: if stands(Step::CallsFirst) {
                first
            } else {
                calls()
            },
        };
        if !remaining.is_nothing() {
            return Err(remaining);
        }
        let remaining = self.grace();
        if remaining.is_nothing() {
            Ok(())
        } else {
            Err(remaining)
        }
    }

    /// Starts the grace period after which the last signals go, once. What is left until everything is
    /// over.
    fn grace(self: &Arc<Self>) -> Remaining {
        let mut remaining = Remaining::default();
        let Some(mut t) = self.lock() else {
            return remaining;
        };
        let grace = match &t.grace {
            Some(grace) if stands(Step::AllWaitForGrace) => grace.clone(),
            Some(_) => return remaining,
            None => {
                let reserve = t.reserve.take();
                let grace = Arc::new(AtomicBool::new(false));
                t.grace = Some(grace.clone());
                drop(t);
                self.advance_stage(Stage::Finishing);
                let last = reserve.into_iter().chain(self.take_escape());
                let last: Vec<_> = last.collect();
                let passed = grace.clone();
                let destroy = move |shared: &Arc<Self>| {
                    last.into_iter()
                        .for_each(|signal| shared.destroy_signal(signal));
                    passed.store(true, StdOrdering::Release);
                };
                if !stands(Step::GraceBeforeFinished) {
                    destroy(self);
                    return remaining;
                }
                let mut after = Aftermath::new();
                let guard = self.domain.pin();
                self.defer(&guard, &mut after, destroy);
                after.finish(guard, self);
                grace
            }
        };
        if !grace.load(StdOrdering::Acquire) {
            remaining.deferred = 1;
            return remaining;
        }
        // The last that the host is told.
        self.deliver_reports();
        self.advance_stage(Stage::Finished);
        // Nobody can be inside of a call of the runtime's any more: of those that are made pinned by
        // the grace period, of the others because they are counted and come too late from now on.
        remaining.calls = self.visits();
        remaining
    }
}

impl fmt::Display for Remaining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            queues,
            handlers,
            barriers,
            deferred,
            calls,
        } = self;
        let mut before = "";
        for (queue, in_flight) in queues {
            write!(f, "{before}{queue} ({in_flight} in flight)")?;
            before = ", ";
        }
        let counts = [
            (*handlers as u64, "handlers"),
            (*barriers, "barriers"),
            (*deferred as u64, "deferred functions"),
            (*calls as u64, "calls"),
        ];
        for (n, what) in counts.into_iter().filter(|(n, _)| *n > 0) {
            write!(f, "{before}{what}: {n}")?;
            before = ", ";
        }
        Ok(())
    }
}

impl fmt::Display for ShutdownError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnHandlerThread => {
                f.write_str("the runtime's handler thread would wait for itself")
            }
            Self::TimedOut(remaining) => write!(f, "the shutdown still waits for {remaining}"),
        }
    }
}

impl std::error::Error for ShutdownError {}
