//! One facade for atomics, locks and thread-locals: the standard library's, loom's or shuttle's.
//!
//! Everything that two threads of this crate share goes through here, so that the model checkers
//! see each step of it. The switch is a cfg (`hsa_serializer_loom`, `hsa_serializer_shuttle`),
//! never a feature: a feature could be turned on by somebody else's build.

#[cfg(hsa_serializer_loom)]
mod queue;

#[cfg(hsa_serializer_loom)]
mod imp {
    pub(crate) use super::queue::{ArrayQueue, SegQueue};
    pub(crate) use loom::sync::Mutex;
    pub(crate) use loom::sync::atomic::{
        AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use loom::thread_local;
}

#[cfg(hsa_serializer_shuttle)]
mod imp {
    pub(crate) use crossbeam_queue::{ArrayQueue, SegQueue};
    pub(crate) use shuttle::sync::Mutex;
    pub(crate) use shuttle::sync::atomic::{
        AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use shuttle::thread_local;
}

#[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
mod imp {
    pub(crate) use crossbeam_queue::{ArrayQueue, SegQueue};
    pub(crate) use std::sync::Mutex;
    pub(crate) use std::sync::atomic::{
        AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub(crate) use std::thread_local;
}

pub(crate) use imp::*;
use std::sync::TryLockError;

/// For statistics, always the standard library's: they order nothing and decide nothing, and each
/// step that a model checker sees multiplies what it has to explore.
pub(crate) mod statistic {
    pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
}

/// The middle of a store-buffering pair whose four accesses are sequentially consistent.
///
/// In the language's memory model nothing has to stand here: of two threads that each write one
/// location and then read the other's, all with `SeqCst`, at least one reads the other's write.
/// loom treats `SeqCst` accesses as `AcqRel` and only fences as total, so under loom, and there
/// alone, a fence stands here. What loom checks is therefore a stronger program than what runs;
/// the written argument is in `docs/verification.md`.
#[inline(always)]
pub(crate) fn between_store_and_load() {
    #[cfg(hsa_serializer_loom)]
    fence(Ordering::SeqCst);
}

/// A value of up to eight bytes that is read and replaced as a whole.
///
/// The crate `atomic` does it in an ordinary build. Model checkers can't see through that crate,
/// so under them the value travels as the integer that it is made of.
#[derive(Debug)]
pub(crate) struct AtomicState<T: bytemuck::NoUninit + bytemuck::AnyBitPattern> {
    #[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
    value: atomic::Atomic<T>,
    #[cfg(any(hsa_serializer_loom, hsa_serializer_shuttle))]
    value: AtomicU64,
    #[cfg(any(hsa_serializer_loom, hsa_serializer_shuttle))]
    _holds: std::marker::PhantomData<T>,
}

#[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
impl<T: bytemuck::NoUninit + bytemuck::AnyBitPattern> AtomicState<T> {
    pub(crate) fn new(value: T) -> Self {
        const { assert!(atomic::Atomic::<T>::is_lock_free()) };
        Self {
            value: atomic::Atomic::new(value),
        }
    }

    pub(crate) fn load(&self, order: Ordering) -> T {
        self.value.load(order)
    }

    pub(crate) fn swap(&self, value: T, order: Ordering) -> T {
        self.value.swap(value, order)
    }

    pub(crate) fn compare_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T> {
        self.value.compare_exchange(current, new, success, failure)
    }
}

#[cfg(any(hsa_serializer_loom, hsa_serializer_shuttle))]
impl<T: bytemuck::NoUninit + bytemuck::AnyBitPattern> AtomicState<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            value: AtomicU64::new(bytemuck::cast(value)),
            _holds: std::marker::PhantomData,
        }
    }

    pub(crate) fn load(&self, order: Ordering) -> T {
        bytemuck::cast(self.value.load(order))
    }

    pub(crate) fn swap(&self, value: T, order: Ordering) -> T {
        bytemuck::cast(self.value.swap(bytemuck::cast(value), order))
    }

    pub(crate) fn compare_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T> {
        self.value
            .compare_exchange(
                bytemuck::cast(current),
                bytemuck::cast(new),
                success,
                failure,
            )
            .map(|v| bytemuck::cast(v))
            .map_err(|v| bytemuck::cast(v))
    }
}

/// Locks, also after a panic of another holder: of the host's code only [`Runtime::store`] runs
/// under it, which may not panic.
///
/// [`Runtime::store`]: crate::Runtime::store
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> LockGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The same, if nobody has it.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<LockGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

pub(crate) use imp_guard::Guard as LockGuard;

mod imp_guard {
    #[cfg(hsa_serializer_loom)]
    pub(crate) use loom::sync::MutexGuard as Guard;
    #[cfg(hsa_serializer_shuttle)]
    pub(crate) use shuttle::sync::MutexGuard as Guard;
    #[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
    pub(crate) use std::sync::MutexGuard as Guard;
}

/// Tells the loom models when somebody uses memory that was reclaimed; in every other build it is
/// nothing.
///
/// What holds one is marked where its memory would be freed. A control that reclaims at once frees
/// nothing, so that what comes too late finds the mark.
#[derive(Debug)]
pub(crate) struct Witness {
    // loom has to see it: a use is a step of its own, which reclaiming can come before or after.
    #[cfg(hsa_serializer_loom)]
    reclaimed: AtomicU32,
}

impl Witness {
    pub(crate) fn new() -> Self {
        Self {
            #[cfg(hsa_serializer_loom)]
            reclaimed: AtomicU32::new(0),
        }
    }

    /// Its holder is reclaimed.
    #[inline(always)]
    pub(crate) fn reclaim(&self) {
        #[cfg(hsa_serializer_loom)]
        self.reclaimed.store(1, Ordering::Relaxed);
    }

    /// Its holder is used.
    #[inline(always)]
    pub(crate) fn is_used(&self, _what: &str) {
        #[cfg(hsa_serializer_loom)]
        assert!(
            self.reclaimed.load(Ordering::Relaxed) == 0,
            "a reclaimed {_what} was used"
        );
    }
}

/// A step of the protocol that holds an invariant, and that a negative control can take away.
///
/// A model that passes with its guard removed proves nothing. Outside of the model checkers
/// [`stands`] is a constant and these names cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
#[cfg_attr(
    not(any(hsa_serializer_loom, hsa_serializer_shuttle)),
    expect(
        unreachable_pub,
        reason = "exported to the model checkers' tests alone"
    )
)]
pub enum Step {
    /// A publisher of a target or tag reads the count of completions again afterwards.
    PublisherRereads,
    /// A completer reads what is due after it has counted.
    CompleterReadsDue,
    /// Arming holds a unit of the barrier's gate until every target is published.
    ArmingUnit,
    /// A dispatch that finds the barrier closed takes its tag back.
    ClosedCheck,
    /// Retiring closes the barrier by a compare-exchange from zero tags.
    CloseIfUntagged,
    /// Retiring waits for the gate, also of a superseded barrier.
    CloseIfOpen,
    /// A retired barrier is reclaimed by a deferred callback, not at once.
    DeferReclaim,
    /// The armed barrier is in the list before the first queue is stamped.
    PushBeforeStamp,
    /// A ready queue is pushed before it is counted.
    PushBeforeAdd,
    /// A ready queue takes a free token by compare-exchange.
    TakeByExchange,
    /// A transition passes a queue over only if all that it dispatched has completed.
    IdleIfReached,
    /// A completing queue gives up `Granted` before `ready` is stored.
    IdleBeforeReady,
    /// A removed queue releases the token only if it held it.
    ReleaseOnlyIfGranted,
    /// The target of a superseded barrier moves by compare-exchange.
    TransferByExchange,
    /// A barrier is superseded only if no queue dispatched in its epoch.
    SupersedeOnlyUnused,
    /// Settling takes `due` away before it looks at what is pending.
    DueTakenFirst,
    /// A completion must be of the queue's present generation.
    GenerationCheck,
    /// A completion that may have been overtaken acquires the completions that it sees.
    OvertakenAcquires,
    /// The generation of the queue that is granted is read before the grant.
    GenerationFirst,
    /// The seat of a queue that is gone is vacant before anybody sees its place's next generation.
    VacantBeforeNext,
    /// A dispatch takes its number and its epoch in one step.
    OneWord,
    /// Of several `ready` callbacks one takes the -1, by compare-exchange.
    ReadyByExchange,
    /// A completion that a removal has overtaken does not release the token.
    FinishByExchange,
    /// Overtaking names the grant that it means.
    OvertakeOneGrant,
    /// The completion of an overtaken kernel does not release the token.
    OverrunReleasesNothing,
    /// Clearing by force clears every older barrier first.
    ForceOlderFirst,
    /// While one barrier and its older ones are cleared by force, no transition supersedes it.
    ForceUnderLock,
    /// Who calls the runtime has looked, under its pin, whether that is over.
    OpenReadUnderPin,
    /// Shutting down waits for a grace period before it destroys the last signals, and before it says
    /// that it has finished.
    GraceBeforeFinished,
    /// A transition settles what it pushed to a queue that everybody has left meanwhile.
    SettleWhatWasLeft,
    /// Opening the gate clears the barrier only if nobody has settled it before.
    ClearIfArmed,
    /// Letting everything through opens the escape signal.
    EscapeOpens,
    /// All is said to be released before the escape signal opens.
    StageBeforeEscape,
    /// A handler that comes after everything was released makes nobody ready.
    ReleasedIsNotReady,
    /// Shutting down waits for calls under way that create signals.
    WaitForCalls,
    /// Of several who finish a shutdown all wait for the one grace period.
    AllWaitForGrace,
    /// Who destroys a signal has looked whether everything is left as it is.
    LeftIsRead,
    /// A gap's marker is counted before the transition that it makes stamps its queue.
    MarkerBeforeStamp,
    /// A removed queue's own signals are destroyed by a deferred callback, not at once.
    DeferSignals,
    /// A dispatch that finds its epoch closed is turned away.
    ClosedIsRead,
    /// Shutting down looks for calls under way before it looks for what they have made.
    CallsFirst,
    /// Barriers are cleared by force before the escape signal opens.
    ForceBeforeEscape,
    /// A handler that took a -1 looks, also after everything was released, whether its queue is gone.
    RemovedIsSeen,
    /// A node of the list is marked before it is unlinked.
    MarkFirst,
    /// Who removes a node walks until the list is without it.
    WalkUntilUnlinked,
    /// Who can't unlink a marked node starts again from the head.
    RestartOnChange,
    /// The list's tail names no node that may be reclaimed.
    TailEmptied,
    /// Linking a node publishes what is in it.
    LinkReleases,
    /// A block of pending entries is reclaimed by a deferred callback, not at once.
    DeferBlocks,
    /// An entry's count is stored before its barrier.
    DueBeforeBarrier,
    /// A cell becomes free a grace period after its last party has let go.
    DeferFree,
    /// Reports that were lost are looked for also where none is left to deliver.
    DroppedIsRead,
    /// The number of reports that were lost is taken away by exchange.
    DroppedBySwap,
    /// What is collected from the list is forgotten where the traversal starts again.
    CollectOnce,
    /// Of several who make the escape signal one sets it, by compare-exchange.
    EscapeByExchange,
    /// Whether anybody requests it is read under the transition lock.
    CountUnderLock,
    /// Who makes an agent looks after he has published it whether all are requested.
    LookAfterPublish,
    /// Who requests all says so before he looks which agents there are.
    CountBeforeWalk,
    /// An agent is published by compare-exchange against the list that was searched for it.
    AgentByExchange,
    /// A slot of the recorder is claimed before it is written.
    RecordClaimed,
    /// Of several who claim a slot of the recorder one does, by compare-exchange.
    ClaimByExchange,
    /// Who reads a slot of the recorder reads its stamp again afterwards.
    StampReadAgain,
    /// Who is alone in claiming claims no slot that is still being written.
    AloneIfFree,
    /// A table of the registry is replaced by compare-exchange.
    #[cfg_attr(
        not(any(
            feature = "hsa",
            feature = "debugger",
            hsa_serializer_loom,
            hsa_serializer_shuttle
        )),
        expect(
            dead_code,
            reason = "the registry is compiled with the features `hsa` and `debugger` alone"
        )
    )]
    TableByExchange,
    /// A replaced table is reclaimed by a deferred callback, not at once.
    #[cfg_attr(
        not(any(
            feature = "hsa",
            feature = "debugger",
            hsa_serializer_loom,
            hsa_serializer_shuttle
        )),
        expect(
            dead_code,
            reason = "the registry is compiled with the features `hsa` and `debugger` alone"
        )
    )]
    DeferTable,
}

#[cfg(any(hsa_serializer_loom, hsa_serializer_shuttle))]
mod control {
    use super::Step;
    use std::cell::Cell;

    // Of the operating system's thread: a model checker runs all threads of a model on one, so
    // models with different guards removed may run beside each other.
    std::thread_local! {
        static OFF: Cell<Option<Step>> = const { Cell::new(None) };
    }

    pub(crate) fn stands(step: Step) -> bool {
        OFF.get() != Some(step)
    }

    /// Takes one guard away for all models that this thread runs from now on, or puts all back.
    pub fn remove_guard(step: Option<Step>) {
        OFF.set(step);
    }
}

#[cfg(any(hsa_serializer_loom, hsa_serializer_shuttle))]
pub use control::remove_guard;
#[cfg(any(hsa_serializer_loom, hsa_serializer_shuttle))]
pub(crate) use control::stands;

#[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
#[inline(always)]
pub(crate) const fn stands(_: Step) -> bool {
    true
}
