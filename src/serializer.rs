//! The serializer of one agent: the four calls of a profiler, and on and off.

use crate::dispatch::Queue;
use crate::domain::Domain;
use crate::error::{
    AddQueueError, CompleteError, CompleteErrorReason, TransitionError, UnknownQueue,
};
use crate::event::Event;
use crate::handle::Handle;
use crate::queue::{Counted, Mode, QueueCell, QueueId, SERIALIZED_HOLDS, Slab, Word};
use crate::runtime::{Handler, Misuse, Report, Runtime, SignalKind};
use crate::shared::{Aftermath, Shared, Stage, Start};
use crate::statistics::Statistics;
use crate::sync::{Ordering, Step, stands};
use crate::ticket::Ticket;
use crate::token::Phase;
use crate::transition::{Transition, Wish};
use crossbeam_epoch::Guard;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

/// Lets one kernel at a time run on an agent, and switches that on and off while kernels are in
/// flight. One for each agent.
///
/// A cheap handle: clones are the same serializer.
///
/// # Which calls from where
/// | call | from | takes a lock |
/// |---|---|---|
/// | [`Queue::dispatch`] | the queue's interceptor | never (*) |
/// | [`complete`](Self::complete), [`ready`](Self::ready) | asynchronous handlers | never (*) |
/// | [`queue_destroyed`](Self::queue_destroyed) | any thread | never (*) |
/// | [`collect`](Self::collect) | any thread | never (*) |
/// | [`snapshot`](Self::snapshot), [`requests`](Self::requests) | any thread | never |
/// | [`mode`](Self::mode), [`leave`](Self::leave) | anywhere | never: one atomic step |
/// | [`enable`](Self::enable), [`disable`](Self::disable), [`request`](Self::request) and its end, [`acquire`](Self::acquire), [`release`](Self::release), [`add_queue`](Self::add_queue), [`Queue::gap`](crate::Queue::gap), [`cut`](Self::cut), [`begin_shutdown`](Self::begin_shutdown), [`release_all`](Self::release_all), [`statistics`](Self::statistics), [`check_stalls`](crate::StallWatch::check_stalls), [`Cut::withdraw`](crate::Cut::withdraw), [`try_finish_shutdown`](Self::try_finish_shutdown) | any thread, but not within a [`Runtime`] method, and in an interceptor only if no thread that is inside of one of these can wait for its queue's lock | the transition lock, for a time that grows with the number of queues |
/// | [`drain`](Self::drain), [`finish_shutdown`](Self::finish_shutdown) | a thread of the host's own | the same, not while they wait |
///
/// (*) Unless it detects misuse and that [opens everything](crate::OnMisuse::Release): then the
/// transition lock, once.
///
/// # Dropping the last handle
/// Destroys every signal that is left, those of queues that were not destroyed among them. Handlers
/// that are still registered on them may be called by the runtime afterwards, or not, depending on
/// its version; a [`WeakSerializer`] answers them with Drop. So, before the last handle goes, destroy
/// the queues and let their `ready` handlers run once more, or have
/// [`finish_shutdown`](Self::finish_shutdown) see to it. A [`Queue`], a [`Cut`](crate::Cut), a
/// [`Request`](crate::Request), a [`StallWatch`](crate::StallWatch) and a [`BarrierHandle`](crate::BarrierHandle) are handles, too.
///
/// What a pinned thread holds back keeps the shared state alive until somebody else uses the same
/// [`Domain`].
///
/// [`Queue::dispatch`]: crate::Queue::dispatch
pub struct Serializer<R: Runtime> {
    pub(crate) shared: Handle<R>,
}

/// How a serializer is made where the defaults do not do.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    domain: Option<Domain>,
    start: Start,
    on_misuse: OnMisuse,
    agent: Option<u64>,
}

/// What follows from misuse that was detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMisuse {
    /// Everything is let through, as by [`Serializer::release_all`], and reported: what is counted may
    /// not be true any more, and an application that runs unserialized is better than one that hangs.
    #[default]
    Release,
    /// It goes on.
    GoOn,
}

impl Builder {
    /// Reclamation in this domain instead of the process's.
    #[must_use]
    pub fn domain(mut self, domain: Domain) -> Self {
        self.domain = Some(domain);
        self
    }

    /// What follows from misuse that was detected; [`OnMisuse::Release`] by default.
    #[must_use]
    pub fn on_misuse(mut self, on_misuse: OnMisuse) -> Self {
        self.on_misuse = on_misuse;
        self
    }

    /// Which agent it is for (the handle of HSA's `hsa_agent_t`): snapshots name it. Nothing else
    /// depends on it.
    #[must_use]
    pub fn agent(mut self, agent: u64) -> Self {
        self.agent = Some(agent);
        self
    }

    /// Starts the transition epoch (whose lowest bit is the mode) and every queue's count
    /// elsewhere than at 0, so that a test sees them wrap.
    #[doc(hidden)]
    #[must_use]
    pub fn starting_at(mut self, epoch: u32, count: u64) -> Self {
        self.start = Start {
            epoch: epoch & !1,
            count,
        };
        self
    }

    /// The serializer, disabled.
    pub fn build<R: Runtime>(self, runtime: R) -> Serializer<R> {
        Serializer {
            shared: Handle::new(self.shared(runtime)),
        }
    }

    pub(crate) fn shared<R: Runtime>(self, runtime: R) -> Arc<Shared<R>> {
        let domain = self.domain.unwrap_or_else(Domain::process);
        let releases = self.on_misuse == OnMisuse::Release;
        Shared::new(runtime, domain, self.start, releases, self.agent)
    }
}

/// What became of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Completion {
    /// It was counted.
    Counted,
    /// Its queue was gone before; nothing was counted and nothing had to be.
    QueueGone,
}

/// The same, and what else can become of it: what the slow paths return.
#[derive(Clone, Copy)]
enum Ended {
    Counted,
    QueueGone,
    Foreign,
    Ahead,
}

/// A completion of which more is to be done, or all: what counting it said, if that was done.
#[doc(hidden)]
#[derive(Debug)]
#[must_use = "it may be counted"]
pub struct BegunCompletion(Option<Counted>);

impl<R: Runtime> Serializer<R> {
    /// A serializer in the process's reclamation domain, disabled.
    pub fn new(runtime: R) -> Self {
        Builder::default().build(runtime)
    }

    /// To make one with other than the defaults.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The runtime that it was made with.
    pub fn runtime(&self) -> &R {
        &self.shared.runtime
    }

    /// Its number in this process: what [`QueueId::serializer`] and
    /// [`Snapshot::serializer`](crate::Snapshot::serializer) say.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.shared.instance
    }

    /// A handle that does not keep the serializer alive: for handlers, and for a runtime that has
    /// to find the serializer that it belongs to.
    #[must_use]
    pub fn downgrade(&self) -> WeakSerializer<R> {
        WeakSerializer {
            shared: Arc::downgrade(&self.shared),
        }
    }

    /// Adds a queue: creates its `ready` and `block` signals and registers the `ready` handler.
    ///
    /// Call it before the queue's first packet is intercepted. Work that the queue was given
    /// earlier is not known here and is not waited for.
    ///
    /// # Errors
    /// Where a signal or the handler could not be had, or the serializer is shutting down; nothing
    /// is kept then.
    pub fn add_queue(&self) -> Result<Queue<R>, AddQueueError> {
        let shared = &self.shared;
        let visit = shared.visit().ok_or(AddQueueError::ShutDown)?;
        shared.make_escape().map_err(AddQueueError::Escape)?;
        let ready = shared
            .create_signal(SignalKind::Ready, 0)
            .map_err(AddQueueError::Ready)?;
        let block = match shared.create_signal(SignalKind::Block, 1) {
            Ok(block) => block,
            Err(e) => {
                shared.destroy_signal(ready);
                return Err(AddQueueError::Block(e));
            }
        };
        let undo = |e| {
            shared.destroy_signal(ready);
            shared.destroy_signal(block);
            shared.collect();
            e
        };
        let (id, cell) = shared.take_cell().map_err(undo)?;
        // Before the handler is registered, whose first call may come at once.
        cell.seat().adopt(ready, block);
        if shared.stage() == Stage::Left {
            return Err(AddQueueError::ShutDown);
        }
        if let Err(status) = shared.runtime.watch_ready(ready, id) {
            shared.unseat(id, cell);
            return Err(AddQueueError::Watch(status));
        }
        shared.handlers.fetch_add(1, Ordering::Relaxed);
        let open = shared.register(id, cell, SERIALIZED_HOLDS);
        let cell = NonNull::from(cell);
        let escape = shared.escape();
        let queue = Queue::new(shared.clone(), id, cell, [ready, block, escape]);
        drop(visit);
        if !open {
            // Its handler is registered, so it goes the way of every queue.
            let _ = shared.queue_destroyed(id);
            return Err(AddQueueError::ShutDown);
        }
        shared.collect();
        Ok(queue)
    }

    /// Reports that the packet processor is through with a dispatch: its kernel and the caller's
    /// packets behind it, well or badly. Exactly once for each ticket, from any thread, in any
    /// order.
    ///
    /// A kernel that will never be launched is not completed: its queue is removed.
    ///
    /// On the fast path (an unserialized kernel, nothing due) it is one atomic exchange and one
    /// load.
    ///
    /// # Errors
    /// The ticket comes back where it is not this serializer's, or where it is of an earlier
    /// dispatch and every dispatch of its queue was completed before; nothing is counted then.
    // Always: a call of its own stores a return address and a result, and the exchange waits for
    // every store before it. For the same reason what is called returns what fits a register.
    #[inline(always)]
    pub fn complete(&self, ticket: Ticket) -> Result<Completion, CompleteError> {
        self.try_complete(ticket)
            .inspect_err(|refused| self.note_refused(refused))
    }

    /// [`complete`](Self::complete) for hosts whose tickets come from where a mistake must not matter, as
    /// through a C interface: what is refused is an error and nothing else, not
    /// [misuse](OnMisuse::Release) that lets everything through.
    ///
    /// # Errors
    /// As for `complete`.
    #[inline(always)]
    pub fn try_complete(&self, ticket: Ticket) -> Result<Completion, CompleteError> {
        let (id, word) = (ticket.queue(), ticket.word());
        match self.begin_completion::<false>(ticket) {
            Ok(()) => Ok(Completion::Counted),
            Err(begun) => self.go_on_completing([id.to_raw(), word.0], begun),
        }
    }

    /// The fast half of [`try_complete`](Self::try_complete), by itself: for who has nothing to save where it
    /// does. What it could not end has to be [gone on](Self::go_on_completing) with: it may be counted. If it is
    /// to be `NEAR`, queues beyond the first 512 are left, and nothing is called.
    ///
    /// # Errors
    /// What is left to do.
    #[doc(hidden)]
    #[inline(always)]
    pub fn begin_completion<const NEAR: bool>(
        &self,
        ticket: Ticket,
    ) -> Result<(), BegunCompletion> {
        let (id, word) = (ticket.queue(), ticket.word());
        // Whatever a callback does; an error gets one that is the same.
        ticket.used();
        if NEAR && !Slab::is_near(id.index()) {
            return Err(BegunCompletion(None));
        }
        let Some(cell) = self.shared.cell(id) else {
            return Err(BegunCompletion(None));
        };
        if word.mode() == Mode::Enabled {
            return Err(BegunCompletion(None));
        }
        match cell.add_in_order(id.generation(), word) {
            Some(Counted::Quiet) => Ok(()),
            counted => Err(BegunCompletion(counted)),
        }
    }

    /// The rest of the completion of that ticket, which was begun.
    ///
    /// # Errors
    /// As [`try_complete`](Self::try_complete).
    #[doc(hidden)]
    #[inline(always)]
    pub fn go_on_completing(
        &self,
        [queue, word]: [u64; 2],
        begun: BegunCompletion,
    ) -> Result<Completion, CompleteError> {
        let (id, word) = (QueueId::from_raw(queue), Word(word));
        let reason = match self.end(id, word, begun.0) {
            Ended::Counted => return Ok(Completion::Counted),
            Ended::QueueGone => return Ok(Completion::QueueGone),
            Ended::Foreign => CompleteErrorReason::Foreign,
            Ended::Ahead => CompleteErrorReason::Ahead,
        };
        let ticket = Ticket::new(id, word);
        Err(CompleteError { ticket, reason })
    }

    #[cold]
    fn note_refused(&self, refused: &CompleteError) {
        let id = refused.ticket.queue();
        let misuse = match refused.reason {
            CompleteErrorReason::Foreign => Misuse::ForeignTicket(id),
            CompleteErrorReason::Ahead | CompleteErrorReason::NeverDispatched => {
                Misuse::CompletionAhead(id)
            }
        };
        self.shared.note(Report::Misuse(misuse));
        self.shared.collect();
    }

    #[inline(always)]
    fn end(&self, id: QueueId, word: Word, counted: Option<Counted>) -> Ended {
        let Some(cell) = self.shared.cell(id) else {
            return Ended::Foreign;
        };
        if word.mode() == Mode::Enabled {
            return self.complete_serialized(id, word, cell);
        }
        self.complete_slow(id, word, cell, counted)
    }

    /// Checks a ticket that came back from [`Ticket::from_raw`] against the dispatches of its
    /// queue: one look at the dispatching half, which [`complete`](Self::complete) spares.
    ///
    /// # Errors
    /// The ticket comes back where it is not this serializer's, or is of a dispatch that has not
    /// been.
    pub fn check(&self, ticket: Ticket) -> Result<Ticket, CompleteError> {
        let id = ticket.queue();
        let reason = match self.shared.cell(id) {
            None => CompleteErrorReason::Foreign,
            Some(cell) if cell.is_ahead(id.generation(), ticket.word()) => {
                CompleteErrorReason::NeverDispatched
            }
            Some(_) => return Ok(ticket),
        };
        Err(CompleteError { ticket, reason })
    }

    /// A completion out of order, one that makes something due, or one that can't be counted: what
    /// counting it said, if that was done.
    #[inline(never)]
    fn complete_slow(
        &self,
        id: QueueId,
        word: Word,
        cell: &QueueCell,
        counted: Option<Counted>,
    ) -> Ended {
        let shared = &self.shared;
        let count = || cell.add_completion(id.generation(), word);
        match counted.unwrap_or_else(count) {
            Counted::Quiet => Ended::Counted,
            Counted::Due => {
                let mut after = Aftermath::new();
                let guard = shared.domain.pin();
                shared.settle(id, cell, &guard, &mut after);
                after.finish(guard, shared);
                Ended::Counted
            }
            Counted::Gone => Ended::QueueGone,
            Counted::Ahead => Ended::Ahead,
        }
    }

    /// A completion of a serialized kernel: it also gives the token back.
    #[inline(never)]
    fn complete_serialized(&self, id: QueueId, word: Word, cell: &QueueCell) -> Ended {
        let shared = &self.shared;
        // Pinned before the cell's generation is checked: its signals live until we unpin.
        let guard = shared.domain.pin();
        let counted = cell
            .add_in_order(id.generation(), word)
            .unwrap_or_else(|| cell.add_completion(id.generation(), word));
        let mut after = Aftermath::new();
        let seated =
            matches!(counted, Counted::Quiet | Counted::Due) && !cell.seat().ready().is_null();
        // Once everything is let through nobody waits for the token any more.
        if seated && shared.stage() < Stage::Released {
            let seat = &cell.seat();
            match seat.phase() {
                Phase::Granted | Phase::Overrun => {
                    shared.store(&guard, seat.block(), 1);
                    if !stands(Step::IdleBeforeReady) {
                        shared.store(&guard, seat.ready(), 0);
                    }
                    // Idle comes before `ready` is 0: from then on the queue's next kernel can make
                    // it ready. Where the queue was removed in between, the token has been
                    // released on its behalf; where it was overtaken, too.
                    let finished = seat.finish();
                    if finished.is_ok() || !stands(Step::FinishByExchange) {
                        // By compare-exchange: a removal that comes right now stores -1 for the
                        // handler's last call, which a plain store would take back.
                        shared.compare_exchange(&guard, seat.ready(), 1, 0);
                        let overrun =
                            finished == Ok(Phase::Overrun) && stands(Step::OverrunReleasesNothing);
                        if !overrun {
                            shared.tell(|| Event::Released(id));
                        }
                        if !overrun && shared.token.release() {
                            shared.grant(true, &guard, &mut after);
                        }
                    }
                }
                Phase::Removed | Phase::Vacant => {}
                Phase::Idle | Phase::Waiting => {
                    shared.note(Report::Misuse(Misuse::CompletionNotGranted(id)));
                }
            }
        }
        after.finish(guard, shared);
        if counted == Counted::Quiet {
            return Ended::Counted;
        }
        self.complete_slow(id, word, cell, Some(counted))
    }

    /// A queue's `ready` signal fired: what the handler that [`Runtime::watch_ready`] registered
    /// calls, and whose answer it returns to the runtime.
    ///
    /// Late and repeated calls do nothing. It never fails, and takes no lock but where it notices
    /// [misuse](OnMisuse).
    pub fn ready(&self, queue: QueueId) -> Handler {
        let shared = &self.shared;
        let _inside = crate::handler_thread::Inside::enter();
        let Some(cell) = shared.cell(queue) else {
            return Handler::Drop;
        };
        // Pinned before the generation is checked: the queue's signals live until we unpin.
        let guard = shared.domain.pin();
        if cell.progress().generation() != queue.generation() {
            return Handler::Drop;
        }
        let mut after = Aftermath::new();
        let answer = self.arrive(queue, cell, &guard, &mut after);
        after.finish(guard, shared);
        answer
    }

    fn arrive(
        &self,
        queue: QueueId,
        cell: &QueueCell,
        guard: &Guard,
        after: &mut Aftermath,
    ) -> Handler {
        let shared = &self.shared;
        let seat = &cell.seat();
        match seat.phase() {
            Phase::Removed => return shared.handler_goes(queue, cell, guard, after),
            Phase::Vacant => return Handler::Drop,
            Phase::Idle | Phase::Waiting | Phase::Granted | Phase::Overrun => {}
        }
        if !shared.may_call(guard) {
            return Handler::Drop;
        }
        // The exchange also keeps a handler that stays from being called again at once.
        let taken = shared.compare_exchange(guard, seat.ready(), -1, 1);
        if !taken && stands(Step::ReadyByExchange) {
            return Handler::Keep;
        }
        if shared.stage() >= Stage::Released && stands(Step::ReleasedIsNotReady) {
            // What was taken may be the -1 of a removal that came in between, and is stored once.
            return match seat.phase() {
                Phase::Removed if stands(Step::RemovedIsSeen) => {
                    shared.handler_goes(queue, cell, guard, after)
                }
                _ => Handler::Keep,
            };
        }
        shared.tell(|| Event::Ready(queue));
        if let Some(at_once) = shared.grant_at_once(queue, cell, guard, after) {
            return match at_once {
                Ok(()) => Handler::Keep,
                Err(phase) => self.not_idle(queue, cell, phase, guard, after),
            };
        }
        match seat.wait() {
            Ok(()) => {
                // Before it is among the ready ones: who grants reads it.
                seat.since.set(shared.now());
                if shared.token.arrive(queue.index(), &shared.slab) {
                    shared.grant(false, guard, after);
                }
                Handler::Keep
            }
            Err(phase) => self.not_idle(queue, cell, phase, guard, after),
        }
    }

    /// What a handler says that took a -1 of a queue that is not idle.
    #[cold]
    fn not_idle(
        &self,
        queue: QueueId,
        cell: &QueueCell,
        phase: Phase,
        guard: &Guard,
        after: &mut Aftermath,
    ) -> Handler {
        match phase {
            Phase::Removed => self.shared.handler_goes(queue, cell, guard, after),
            // A repeated call, and the one that went took everybody along meanwhile.
            Phase::Vacant => Handler::Drop,
            _ => {
                self.shared
                    .note(Report::Misuse(Misuse::ReadyNotIdle(queue)));
                Handler::Keep
            }
        }
    }

    /// Serializes from now on: every dispatch begun after this returns runs alone.
    ///
    /// It is the host's own switch, beside [requests](Self::request): one bit, the last word counts.
    ///
    /// It does not wait. Kernels of the new mode wait, on the GPU, for those that were in flight.
    /// It also reserves the signal for [`disable`](Self::disable), which therefore can't fail for
    /// want of one.
    ///
    /// # Errors
    /// Where no signal could be had, or the serializer is shutting down. The state is then as it
    /// was.
    pub fn enable(&self) -> Result<Transition, TransitionError> {
        self.shared.turn(Wish::Switch(true))
    }

    /// Lets kernels run as the application wrote them, from now on.
    ///
    /// It does not wait. Serialized kernels that were dispatched before go on being granted, one
    /// at a time; kernels of the new mode wait for them on the GPU.
    ///
    /// Where somebody [requests](Self::request) it, kernels go on being serialized until the last request
    /// has ended: [`Kept`](Transition::Kept).
    ///
    /// # Errors
    /// Where the serializer is shutting down. The state is then as it was.
    pub fn disable(&self) -> Result<Transition, TransitionError> {
        self.shared.turn(Wish::Switch(false))
    }

    /// The mode in which a dispatch begun now would run; after the end, the last one.
    ///
    /// One load: it may be called from anywhere, a signal handler or an allocator among them.
    #[must_use]
    pub fn mode(&self) -> Mode {
        // Relaxed: it is out of date as soon as it is read.
        Mode::of_epoch(self.shared.epoch.load(Ordering::Relaxed))
    }

    /// The queue is gone: none of its packets executes any more. Whatever it held goes on without
    /// it: its tags and what barriers wanted of it, the token, its place among the ready ones.
    ///
    /// Say it at one of three moments only: after the runtime's `hsa_queue_destroy` returned, after
    /// its `hsa_queue_inactivate` returned, or after the queue's error callback. Earlier, a packet
    /// may still execute and wait for a signal that this call lets go of.
    ///
    /// Completions that come later are harmless.
    ///
    /// # Errors
    /// Where the id is of no live queue of this serializer. Once the shutdown has begun, which gives
    /// queues up by itself, that is no error.
    pub fn queue_destroyed(&self, queue: QueueId) -> Result<(), UnknownQueue> {
        self.shared.queue_destroyed(queue)
    }

    /// Runs deferred reclamation, as far as no pinned thread holds it back, and delivers reports.
    ///
    /// Transitions, removals and completions that retire do this by themselves. A host that has an
    /// idle moment may do it, so that it never falls to a dispatch.
    pub fn collect(&self) {
        self.shared.collect();
    }

    /// What it has done so far. Takes the transition lock for a moment.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics_of(self.shared.totals())
    }
}

/// A [`Serializer`] that may be gone.
///
/// A serializer owns its runtime, and its runtime registers handlers that call the serializer: one
/// of the two has to hold the other weakly. A runtime keeps a `OnceLock<WeakSerializer<Self>>`, set
/// after the serializer was made and before the first queue is added.
pub struct WeakSerializer<R: Runtime> {
    shared: Weak<Shared<R>>,
}

impl<R: Runtime> WeakSerializer<R> {
    /// The serializer, if somebody still holds it.
    #[must_use]
    pub fn upgrade(&self) -> Option<Serializer<R>> {
        let shared = self.shared.upgrade()?;
        Some(Serializer {
            shared: Handle::new(shared),
        })
    }

    /// What a `ready` handler calls: [`Serializer::ready`], or Drop where the serializer is gone.
    pub fn ready(&self, queue: QueueId) -> Handler {
        let Some(serializer) = self.upgrade() else {
            return Handler::Drop;
        };
        let answer = serializer.ready(queue);
        drop(serializer);
        // It may have been the last handle: then the signal has gone with it.
        if self.shared.strong_count() == 0 {
            return Handler::Drop;
        }
        answer
    }
}

impl<R: Runtime> Clone for WeakSerializer<R> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<R: Runtime> fmt::Debug for WeakSerializer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSerializer")
            .field("holders", &self.shared.strong_count())
            .finish()
    }
}

impl<R: Runtime> Clone for Serializer<R> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<R: Runtime> fmt::Debug for Serializer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Serializer").field(&**self.shared).finish()
    }
}
