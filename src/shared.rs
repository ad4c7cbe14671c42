//! What all handles of one serializer share, and the steps that go through more than one of its
//! parts: settling a queue, handing out a barrier, retiring it, giving its cell back.
//!
//! Nothing here calls the host's code while it is pinned, but for [`Runtime::store`] and (from
//! deferred callbacks) [`Runtime::destroy_signal`]. What is left to do for the host after a slow
//! path is collected in an [`Aftermath`].

use crate::barrier::{Barrier, Ended, Tagged};
use crate::domain::Domain;
use crate::error::SignalError;
use crate::event::Event;
use crate::fork;
use crate::handler_thread::Inside;
use crate::insight::{Insight, Waited};
use crate::list::List;
use crate::pending::{NEVER, Verdict};
use crate::queue::{QueueCell, QueueId, Slab, Word};
use crate::runtime::{Misuse, Report, Runtime, SignalKind};
use crate::statistics::Counters;
use crate::sync::{
    ArrayQueue, AtomicU32, AtomicU64, AtomicUsize, LockGuard, Mutex, Ordering, SegQueue, Step,
    between_store_and_load, lock, stands, try_lock,
};
use crate::token::{Grant, Phase, Token};
use crate::transition::Transitions;
use crossbeam_epoch::Guard;
use crossbeam_utils::CachePadded;
use hsa_sys::{hsa_signal_t, hsa_signal_value_t};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// Reports that wait for the end of a slow path. More than this many at once are counted only; the
/// loom models want to see that.
const REPORTS: usize = if cfg!(hsa_serializer_loom) { 1 } else { 64 };

/// No epoch is closed.
pub(crate) const OPEN: u64 = u64::MAX;

/// How far the end has come; see [`shutdown`](crate::shutdown). It only goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub(crate) enum Stage {
    Open = 0,
    Closing = 1,
    Released = 2,
    Finishing = 3,
    Finished = 4,
    Left = 5,
}

/// See the [module](self).
pub(crate) struct Shared<R: Runtime> {
    pub(crate) runtime: R,
    pub(crate) domain: Domain,
    pub(crate) instance: u32,
    pub(crate) slab: Slab,
    pub(crate) barriers: List<Barrier>,
    /// Padded, like the counters: what completions read of this structure must not share a line
    /// with what others write.
    pub(crate) token: CachePadded<Token>,
    transitions: Mutex<Transitions>,
    /// The present epoch; written under the lock, with the first stamp.
    pub(crate) epoch: AtomicU32,
    /// Where its counters started.
    pub(crate) start: Start,
    /// Queues that have died since somebody looked through the registered ones.
    pub(crate) gone: AtomicUsize,
    /// Cells that may have a new owner.
    pub(crate) free: SegQueue<u32>,
    /// The epoch from which on dispatches are turned away, or [`OPEN`].
    pub(crate) closed: AtomicU64,
    /// A [`Stage`].
    stage: AtomicU32,
    /// The process that made it.
    process: u32,
    /// Calls under way that reach the runtime without being pinned.
    visits: AtomicUsize,
    /// See [`handle`](crate::handle).
    pub(crate) handles: AtomicUsize,
    /// `ready` handlers that have not said Drop.
    pub(crate) handlers: AtomicUsize,
    /// Deferred functions of this serializer that have not run.
    deferred: AtomicUsize,
    /// The escape signal's handle; 0 until the first queue is added.
    escape: AtomicU64,
    /// Whether detected misuse opens everything.
    pub(crate) opens: bool,
    /// Misuse was detected, and what it is to open is not open yet.
    pub(crate) misused: AtomicU32,
    reports: ArrayQueue<Report>,
    reports_dropped: AtomicU64,
    pub(crate) counters: CachePadded<Counters>,
    pub(crate) insight: Insight,
}

impl<R: Runtime> Shared<R> {
    pub(crate) fn new(
        runtime: R,
        domain: Domain,
        start: Start,
        opens: bool,
        agent: Option<u64>,
    ) -> Arc<Self> {
        let now = runtime.now();
        let shared = Arc::new(Self {
            runtime,
            domain,
            instance: next_instance(),
            slab: Slab::new(),
            barriers: List::new(),
            token: CachePadded::new(Token::new()),
            transitions: Mutex::new(Transitions::new(start)),
            epoch: AtomicU32::new(start.epoch),
            start,
            gone: AtomicUsize::new(0),
            free: SegQueue::new(),
            closed: AtomicU64::new(OPEN),
            stage: AtomicU32::new(Stage::Open as u32),
            process: fork::watch(),
            visits: AtomicUsize::new(0),
            handles: AtomicUsize::new(0),
            handlers: AtomicUsize::new(0),
            deferred: AtomicUsize::new(0),
            escape: AtomicU64::new(0),
            opens,
            misused: AtomicU32::new(0),
            reports: ArrayQueue::new(REPORTS),
            reports_dropped: AtomicU64::new(0),
            counters: CachePadded::new(Counters::new()),
            insight: Insight::new(agent, now),
        });
        #[cfg(all(
            feature = "debugger",
            not(any(hsa_serializer_loom, hsa_serializer_shuttle))
        ))]
        crate::debugger::born(&shared);
        shared
    }

    /// The cell that a queue's id names, whoever owns it now. `None` for another serializer's id.
    #[inline]
    pub(crate) fn cell(&self, id: QueueId) -> Option<&QueueCell> {
        if id.instance() != self.instance {
            return None;
        }
        self.slab.get(id.index())
    }

    /// Creates a signal; a null handle is an error.
    pub(crate) fn create_signal(
        &self,
        kind: SignalKind,
        initial: hsa_signal_value_t,
    ) -> Result<hsa_signal_t, SignalError> {
        if self.stage() == Stage::Left {
            return Err(SignalError::Left);
        }
        match self.runtime.create_signal(kind, initial) {
            Ok(signal) if signal.is_null() => Err(SignalError::NullHandle),
            Ok(signal) => Ok(signal),
            Err(status) => Err(SignalError::Status(status)),
        }
    }

    /// Destroys a signal and notes where the runtime refused. Where the host chose to leave
    /// everything as it is, or all was destroyed, it does nothing.
    pub(crate) fn destroy_signal(&self, signal: hsa_signal_t) {
        if self.stage() >= Stage::Finished && stands(Step::LeftIsRead) {
            return;
        }
        if let Err(status) = self.runtime.destroy_signal(signal) {
            self.note(Report::DestroyFailed { signal, status });
        }
    }

    /// Keeps a report for the end of the slow path. Misuse, or more reports than anybody takes, is
    /// acted upon there.
    pub(crate) fn note(&self, report: Report) {
        if self.stage() == Stage::Left {
            // In the child of a fork the queue of reports may wait for a thread that is not there.
            return;
        }
        let misuse = matches!(report, Report::Misuse(_));
        if misuse {
            self.counters.misuse.add(1);
        }
        let full = self.reports.push(report).is_err();
        if full {
            self.reports_dropped.fetch_add(1, Ordering::Relaxed);
        }
        if misuse || full {
            self.misused.store(1, Ordering::Relaxed);
        }
    }

    /// Whether somebody has the transition lock.
    pub(crate) fn in_transition(&self) -> bool {
        try_lock(&self.transitions).is_none()
    }

    /// The transition lock. `None` where everything was left and somebody has it: in the child of a
    /// fork that somebody may not be there.
    pub(crate) fn lock(&self) -> Option<LockGuard<'_, Transitions>> {
        if self.stage() == Stage::Left {
            try_lock(&self.transitions)
        } else {
            Some(lock(&self.transitions))
        }
    }

    /// How far the end has come.
    pub(crate) fn stage(&self) -> Stage {
        if self.process != fork::number() {
            return Stage::Left;
        }
        // Acquire: what led to it.
        match self.stage.load(Ordering::Acquire) {
            0 => Stage::Open,
            1 => Stage::Closing,
            2 => Stage::Released,
            3 => Stage::Finishing,
            4 => Stage::Finished,
            _ => Stage::Left,
        }
    }

    /// Whether this thread is one that calls handlers, where waiting would be waiting for itself.
    pub(crate) fn on_handler_thread(&self) -> bool {
        let visit = self.enter();
        Inside::is() || self.reaches(&visit) && self.runtime.is_handler_thread()
    }

    /// Goes on to that stage, unless it has come further.
    pub(crate) fn advance_stage(&self, to: Stage) {
        // SeqCst: with `visit` a store-buffering pair; and before the deferral whose pins it is
        // compared with.
        self.stage.fetch_max(to as u32, Ordering::SeqCst);
        between_store_and_load();
    }

    /// Enters a call that reaches the runtime without being pinned.
    fn enter(&self) -> Visit<'_> {
        // SeqCst: either who has entered sees how far the end has come, or who ends it sees this.
        self.visits.fetch_add(1, Ordering::SeqCst);
        between_store_and_load();
        Visit(&self.visits)
    }

    /// Enters a call that creates signals; `None` where the end has begun.
    pub(crate) fn visit(&self) -> Option<Visit<'_>> {
        let visit = self.enter();
        // (`stage` is weaker: what it reads may be older than the addition.)
        let open = self.stage.load(Ordering::SeqCst) == Stage::Open as u32;
        (open && self.stage() == Stage::Open).then_some(visit)
    }

    /// Whether the runtime may be called by who has entered.
    fn reaches(&self, _visit: &Visit<'_>) -> bool {
        // SeqCst: see `enter`. (`stage` is weaker, and knows of a fork.)
        self.stage.load(Ordering::SeqCst) < Stage::Finished as u32 && self.stage() < Stage::Finished
    }

    /// Calls under way that reach the runtime without being pinned.
    pub(crate) fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }

    /// Whether the runtime may be called. What is read under a pin holds until it ends: finishing
    /// waits for every pin of that time.
    pub(crate) fn may_call(&self, _guard: &Guard) -> bool {
        self.stage() < Stage::Finishing || !stands(Step::OpenReadUnderPin)
    }

    /// [`Runtime::store`], while that may be called.
    pub(crate) fn store(&self, guard: &Guard, signal: hsa_signal_t, value: hsa_signal_value_t) {
        if self.may_call(guard) {
            self.runtime.store(signal, value);
        }
    }

    /// [`Runtime::compare_exchange`], while that may be called; else as if it had failed.
    pub(crate) fn compare_exchange(
        &self,
        guard: &Guard,
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        desired: hsa_signal_value_t,
    ) -> bool {
        self.may_call(guard) && self.runtime.compare_exchange(signal, expected, desired) == expected
    }

    /// The escape signal; null until there is a queue.
    pub(crate) fn escape(&self) -> hsa_signal_t {
        hsa_signal_t {
            handle: self.escape.load(Ordering::Acquire),
        }
    }

    /// Makes the escape signal, if there is none yet.
    pub(crate) fn make_escape(&self) -> Result<(), SignalError> {
        if !self.escape().is_null() {
            return Ok(());
        }
        let made = self.create_signal(SignalKind::Escape, 1)?;
        let first =
            self.escape
                .compare_exchange(0, made.handle, Ordering::AcqRel, Ordering::Relaxed);
        if first.is_err() && stands(Step::EscapeByExchange) {
            self.destroy_signal(made);
        }
        Ok(())
    }

    /// Takes the escape signal for destruction.
    pub(crate) fn take_escape(&self) -> Option<hsa_signal_t> {
        let handle = self.escape.swap(0, Ordering::AcqRel);
        (handle != 0).then_some(hsa_signal_t { handle })
    }

    /// Runs `f` a grace period from now.
    pub(crate) fn defer(
        self: &Arc<Self>,
        guard: &Guard,
        after: &mut Aftermath,
        f: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) {
        self.deferred.fetch_add(1, Ordering::Relaxed);
        after.deferred = true;
        let shared = self.clone();
        self.domain.defer(guard, move || {
            f(&shared);
            // Release: who sees that it has run sees what it did.
            shared.deferred.fetch_sub(1, Ordering::Release);
        });
    }

    /// Deferred functions of this serializer that have not run.
    pub(crate) fn deferred(&self) -> usize {
        self.deferred.load(Ordering::Acquire)
    }

    /// Resolves everything of the queue's that its completions have reached: clears barriers,
    /// drains tags, retires what has become safe to destroy.
    ///
    /// Anybody may call it, any number at once. The two rules that make it complete: what is due
    /// is taken away *first*, so who pushes meanwhile announces it anew; and after putting back the
    /// smallest count that is left, the count is read *again*, so a completion that found nothing
    /// due meanwhile is not missed.
    pub(crate) fn settle(
        self: &Arc<Self>,
        id: QueueId,
        cell: &QueueCell,
        guard: &Guard,
        after: &mut Aftermath,
    ) {
        if cell.progress().generation() != id.generation() {
            // The cell is another queue's by now, or about to be. Nothing of the former one's can
            // be left: it was settled as dead before its parties let go.
            return;
        }
        self.settle_owned(id, cell, guard, after);
    }

    /// The same for who has seen the queue alive under this pin, or is one of the parties that hold
    /// its cell: the cell gets no other owner meanwhile. It may have been left by everybody, and
    /// what the caller has pushed since is then for nobody else to settle.
    pub(crate) fn settle_owned(
        self: &Arc<Self>,
        id: QueueId,
        cell: &QueueCell,
        guard: &Guard,
        after: &mut Aftermath,
    ) {
        loop {
            if stands(Step::DueTakenFirst) {
                cell.take_due();
            }
            let progress = cell.progress();
            let reached = progress.reached();
            let mut deferred = false;
            let targets = cell.targets().take_due(
                reached,
                &self.domain,
                guard,
                &mut deferred,
                |_| Verdict::Take,
                |barrier| {
                    // SAFETY: the entry stood for a unit of the barrier's gate, which keeps it from
                    // being retired; it was taken under the caller's pin, so whoever retires it
                    // afterwards does so later than this pin.
                    if unsafe { barrier.as_ref() }.leave() {
                        self.open(barrier, guard, after);
                    }
                },
            );
            let mut standing = false;
            let tags = cell.tags.take_due(
                reached,
                &self.domain,
                guard,
                &mut deferred,
                |barrier| {
                    // SAFETY: the entry stands for a tag, which keeps the barrier from being
                    // retired; a pinned reader of an entry that was just taken is as above.
                    let armed = unsafe { barrier.as_ref() }.life().is_armed();
                    if armed && !progress.is_dead() {
                        // Only a host that misreports gets here: what was counted in front of the
                        // packet has not all completed, yet something behind it has.
                        standing = true;
                        return Verdict::Stand;
                    }
                    Verdict::Take
                },
                |node| {
                    // SAFETY: as above.
                    let barrier = unsafe { node.as_ref() };
                    let was_cleared = barrier.life().is_cleared();
                    self.tell(|| Event::Drained {
                        epoch: barrier.epoch,
                        queue: id,
                    });
                    if barrier.untag() {
                        if was_cleared && !progress.is_dead() {
                            self.counters.retired_after_drain.add(1);
                        }
                        self.retire(node, guard, after);
                    }
                },
            );
            after.deferred |= deferred;
            if standing {
                self.note(Report::Misuse(Misuse::CompletionBehindBarrier(id)));
            }
            if !stands(Step::DueTakenFirst) {
                cell.take_due();
            }
            let left = targets.min(tags);
            if left == NEVER || !cell.announce(left) {
                return;
            }
        }
    }

    /// Opens a barrier's gate, whose last unit was just given back.
    pub(crate) fn open(
        self: &Arc<Self>,
        node: NonNull<Barrier>,
        guard: &Guard,
        after: &mut Aftermath,
    ) {
        // SAFETY: nobody retires a barrier whose gate was not opened, and the caller is pinned.
        let barrier = unsafe { node.as_ref() };
        if barrier.open(&mut after.ended) {
            self.counters.cleared.add(1);
            self.ended(barrier, |epoch| Event::Cleared { epoch });
            // The barrier may be closed and retired by somebody else from here on; its signal
            // lives until we unpin.
            self.store(guard, barrier.signal, 0);
        }
        if barrier.close() {
            self.retire(node, guard, after);
        }
    }

    /// Gives a dispatch of a new epoch the barrier to wait for, if that is still armed.
    pub(crate) fn hand_out(
        self: &Arc<Self>,
        id: QueueId,
        cell: &QueueCell,
        word: Word,
        guard: &Guard,
        after: &mut Aftermath,
    ) -> Option<hsa_signal_t> {
        let of_epoch = |barrier: &Barrier| barrier.epoch == word.epoch();
        let barrier = self
            .barriers
            .newest()
            // SAFETY: valid while the caller is pinned.
            .filter(|b| of_epoch(unsafe { b.as_ref() }))
            // A transition came in between: the epoch's barrier is further back, or settled.
            .or_else(|| self.barriers.find(of_epoch))?;
        // SAFETY: as above.
        let entered = unsafe { barrier.as_ref() };
        match entered.tag() {
            Tagged::Settled => None,
            Tagged::BackedOut { retire } => {
                if retire {
                    self.retire(barrier, guard, after);
                }
                None
            }
            Tagged::Added => {
                self.counters.tags.add(1);
                let due = cell.widen(word.id()) + 1;
                self.tell(|| Event::Tagged {
                    epoch: entered.epoch,
                    queue: id,
                    dispatch: (due - 1).wrapping_sub(self.start.count),
                });
                // SAFETY: the caller is the queue's dispatching half, the only pusher of tags; the
                // tag keeps the barrier from being retired before its entry is taken.
                unsafe { cell.tags.push(due, barrier) };
                if cell.announce(due) {
                    self.settle(id, cell, guard, after);
                }
                Some(entered.signal)
            }
        }
    }

    /// Unlinks a closed barrier and defers its reclamation. Called once, by whoever closed it, with
    /// the pointer that the list has of it.
    pub(crate) fn retire(
        self: &Arc<Self>,
        node: NonNull<Barrier>,
        guard: &Guard,
        after: &mut Aftermath,
    ) {
        // SAFETY: only who closed a barrier removes it; the caller is pinned.
        unsafe { self.barriers.remove(node) };
        self.counters.barriers_live.sub(1);
        self.counters.retired.add(1);
        // SAFETY: valid while the caller is pinned.
        let epoch = unsafe { node.as_ref() }.epoch;
        self.record(Event::Retired { epoch });
        let retired = Retired(node);
        if stands(Step::DeferReclaim) {
            self.defer(guard, after, move |shared| shared.reclaim(retired));
        } else {
            self.reclaim(retired);
        }
    }

    /// Destroys a retired barrier's signal and gives up the list's reference to it.
    fn reclaim(&self, retired: Retired) {
        // SAFETY: the pointer is that of `Arc::as_ptr`. The list held one reference (see `link`), and
        // the barrier was unlinked a grace period ago: nobody reaches it any more through the list or
        // an entry.
        let barrier = unsafe { Arc::from_raw(retired.0.as_ptr().cast_const()) };
        if !barrier.life().is_safe_to_destroy() {
            // A closed barrier stays safe to destroy, so this can't be. Were it so, leaving it alone
            // is the lesser evil.
            self.note(Report::UnsafeReclaim {
                epoch: barrier.epoch,
                signal: barrier.signal,
            });
            std::mem::forget(barrier);
            return;
        }
        // Handles may still look at it; nobody who found it in the list or an entry may.
        barrier.witness.reclaim();
        self.destroy_signal(barrier.signal);
        self.counters.reclaimed.add(1);
        self.tell(|| Event::Reclaimed {
            epoch: barrier.epoch,
            signal: barrier.signal,
        });
    }

    /// Grants the token to a queue that is ready, if nobody has it or waits for it. `None` where
    /// somebody does; the phase that it is in where it is not idle.
    pub(crate) fn grant_at_once(
        self: &Arc<Self>,
        queue: QueueId,
        cell: &QueueCell,
        guard: &Guard,
        after: &mut Aftermath,
    ) -> Option<Result<(), Phase>> {
        if !self.token.take() {
            return None;
        }
        let place = self.counts_grant(false);
        let granted = self.token.grant_at_once(cell.seat());
        if granted.is_ok() {
            self.grants_to(queue, cell, Waited::Not, place, guard);
        } else {
            self.takes_grant_back(false, place);
            if self.token.release() {
                self.grant(true, guard, after);
            }
        }
        Some(granted)
    }

    /// Grants the token to the first ready queue that is still there. For who was told to grant.
    pub(crate) fn grant(self: &Arc<Self>, contended: bool, guard: &Guard, after: &mut Aftermath) {
        loop {
            let place = self.counts_grant(contended);
            match self.token.grant(&self.slab) {
                Grant::To { index, generation } => {
                    if let Some(cell) = self.slab.get(index) {
                        let queue = QueueId::new(self.instance, generation as u32, index);
                        self.grants_to(queue, cell, Waited::InLine, place, guard);
                    }
                    return;
                }
                Grant::Gone(index) => {
                    self.takes_grant_back(contended, place);
                    let go_on = self.token.release();
                    self.let_go(index, guard, after);
                    if !go_on {
                        return;
                    }
                }
            }
        }
    }

    /// One party is through with a dead queue's cell; the last one makes it free for another.
    pub(crate) fn let_go(self: &Arc<Self>, index: u32, guard: &Guard, after: &mut Aftermath) {
        let Some(cell) = self.slab.get(index) else {
            return;
        };
        if cell.let_go() {
            self.free_cell(index, cell, guard, after);
        }
    }

    /// Gives a cell that nobody holds to the free ones, a grace period from now.
    pub(crate) fn free_cell(
        self: &Arc<Self>,
        index: u32,
        cell: &QueueCell,
        guard: &Guard,
        after: &mut Aftermath,
    ) {
        if stands(Step::VacantBeforeNext) {
            cell.seat().vacate();
        }
        if cell.leave_generation() {
            let free = move |shared: &Arc<Self>| {
                // As for reports: nobody adds a queue any more.
                if shared.stage() != Stage::Left {
                    shared.free.push(index);
                }
            };
            if stands(Step::DeferFree) {
                self.defer(guard, after, free);
            } else {
                free(self);
            }
        }
    }

    /// Tells the host what was noted. After the end nobody is told anything.
    #[inline]
    pub(crate) fn deliver_reports(&self) {
        let dropped = || self.reports_dropped.load(Ordering::Relaxed) != 0;
        if !self.reports.is_empty() || dropped() && stands(Step::DroppedIsRead) {
            self.deliver();
        }
    }

    #[cold]
    fn deliver(&self) {
        let dropped = || self.reports_dropped.load(Ordering::Relaxed);
        let visit = self.enter();
        if !self.reaches(&visit) {
            return;
        }
        while let Some(report) = self.reports.pop() {
            self.runtime.report(report);
            // It may itself have said `leave`.
            if !self.reaches(&visit) {
                return;
            }
        }
        let seen = dropped();
        if seen > 0 {
            // Where another one has told of them by now, there are none to tell of.
            let taken = self.reports_dropped.swap(0, Ordering::Relaxed);
            let lost = if stands(Step::DroppedBySwap) {
                taken
            } else {
                seen
            };
            if lost > 0 {
                self.runtime.report(Report::Dropped(lost));
            }
        }
    }

    /// Runs what is deferred, as far as nobody holds it back, and tells the host what came of it.
    /// The caller is not pinned.
    pub(crate) fn collect(&self) {
        self.domain.pump();
        self.act_on_misuse();
        self.deliver_reports();
    }
}

/// A call under way that reaches the runtime without being pinned.
pub(crate) struct Visit<'a>(&'a AtomicUsize);

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        // Release: who sees that it is over sees what it did.
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl<R: Runtime> Drop for Shared<R> {
    /// Nobody else is left, deferred functions included. Every signal that was created and not
    /// destroyed goes now; a barrier that still has tags is reported, and goes all the same.
    fn drop(&mut self) {
        #[cfg(all(
            feature = "debugger",
            not(any(hsa_serializer_loom, hsa_serializer_shuttle))
        ))]
        crate::debugger::gone(self.instance);
        let guard = self.domain.pin();
        while let Some(node) = self.barriers.find(|_| true) {
            // SAFETY: `&mut self`: nobody else removes; pinned. The list's reference is ours now.
            let barrier = unsafe {
                self.barriers.remove(node);
                Arc::from_raw(node.as_ptr().cast_const())
            };
            let tags = barrier.life().tags();
            if tags > 0 {
                self.note(Report::TaggedAtDestruction {
                    epoch: barrier.epoch,
                    signal: barrier.signal,
                    tags,
                });
            }
            self.destroy_signal(barrier.signal);
        }
        drop(guard);
        let transitions = self
            .transitions
            .get_mut()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let reserve = transitions.reserve.take();
        let made = transitions.cells_made();
        let escape = self.take_escape();
        for signal in reserve.into_iter().chain(escape).chain(
            (0..made).filter_map(|i| self.slab.get(i)).flat_map(|cell| {
                let seat = &cell.seat();
                [seat.take_ready(), seat.take_block()].into_iter().flatten()
            }),
        ) {
            self.destroy_signal(signal);
        }
        self.deliver_reports();
    }
}

/// A barrier on its way to be reclaimed, possibly on another thread.
struct Retired(NonNull<Barrier>);

// SAFETY: it stands for one reference of an `Arc<Barrier>`, and `Barrier` is `Send` and `Sync`: its
// callback is `Send` and is taken once; all else is atomic or constant.
unsafe impl Send for Retired {}

/// What a slow path leaves to do for when nobody is pinned and no lock is held.
#[must_use = "callbacks, reports and reclamation wait for `finish`"]
pub(crate) struct Aftermath {
    pub(crate) ended: Ended,
    /// Something was deferred and not flushed.
    pub(crate) deferred: bool,
}

impl Aftermath {
    pub(crate) const fn new() -> Self {
        Self {
            ended: Ended::new(),
            deferred: false,
        }
    }

    /// Unpins, reclaims what can be, and calls what is to be called. The caller holds no lock.
    ///
    /// The callbacks come last: should one panic, nothing else is left undone.
    pub(crate) fn finish<R: Runtime>(self, guard: Guard, shared: &Shared<R>) {
        if self.deferred {
            Domain::flush(guard);
            shared.domain.pump();
        } else {
            drop(guard);
        }
        shared.act_on_misuse();
        shared.deliver_reports();
        self.ended.call();
    }
}

/// Where a serializer's counters start. For tests of the wrap-around.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Start {
    pub(crate) epoch: u32,
    pub(crate) count: u64,
}

fn next_instance() -> u32 {
    // Not through the facade: it belongs to the process, not to a model.
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    // Ids hold 25 bits of it. 0 is nobody's.
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % (1 << 25)
}

impl<R: Runtime> fmt::Debug for Shared<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("instance", &self.instance)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
