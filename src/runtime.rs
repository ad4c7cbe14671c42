//! What the serializer needs of the HSA runtime: the trait, and what is reported to the host.
//!
//! A host implements [`Runtime`] once, over the functions that its tool saved from the runtime's
//! table (or over an emulation). The serializer calls it from whatever thread calls the
//! serializer; [each method](Runtime) says from where.

use crate::clock;
use crate::event::Observer;
use crate::queue::QueueId;
use hsa_sys::{hsa_signal_t, hsa_signal_value_t, hsa_status_t};
use std::fmt;
use std::time::Duration;

/// What a signal is for, so that the runtime can make the cheapest that will do.
///
/// A signal that the host may wait for takes one of the kernel driver's events (4,096 a process);
/// one whose consumers are GPU agents alone takes none (`hsa_amd_signal_create` with
/// `HSA_AMD_SIGNAL_AMD_GPU_ONLY`, or the agent as its only consumer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SignalKind {
    /// A transition barrier's signal. Packet processors wait for it; the host only stores.
    Barrier,
    /// A queue's `block` signal. Packet processors wait for it; the host only stores.
    Block,
    /// The serializer's escape signal: 1 as long as all is well. Packet processors wait for it beside
    /// the others; the host stores 0 once, to let everything through.
    Escape,
    /// A queue's `ready` signal. A host handler waits for it: it must be an interrupt signal.
    Ready,
}

/// Whether an asynchronous handler stays registered: what the handler returns to the runtime.
///
/// Handlers are level-triggered: one that stays while its condition holds is called again at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the runtime's handler has to return this"]
pub enum Handler {
    /// Stay registered (`return true`).
    Keep,
    /// Go: the queue was removed, or the serializer is gone (`return false`).
    Drop,
}

impl Handler {
    /// The value that an `hsa_amd_signal_handler` returns.
    #[must_use]
    pub const fn keep(self) -> bool {
        matches!(self, Self::Keep)
    }
}

/// The HSA runtime, as far as the serializer needs it.
///
/// # Thread-safety
/// Every method may be called by several threads at once, some of them the runtime's own handler
/// thread. No method may call back into the serializer (but for [`mode`](crate::Serializer::mode) and
/// [`leave`](crate::Serializer::leave)), nor wait for something that needs it, nor panic: a panic would
/// leave a transition or a grant half done.
///
/// # Where each is called
/// | method | from |
/// |---|---|
/// | [`store`](Self::store), [`compare_exchange`](Self::compare_exchange) | completions, `ready`, transitions (drains, cuts and gaps among them), removal, releases (of stalls, of everything), shutting down; under an epoch pin and possibly the transition lock, so they must not block |
/// | [`create_signal`](Self::create_signal), [`watch_ready`](Self::watch_ready) | `add_queue`, `enable`, `arm`, `gap`, `cut`, `drain`; never under a pin or a lock |
/// | [`destroy_signal`](Self::destroy_signal) | wherever the epoch collector runs a deferred callback: any slow path, on any thread, under a pin; without one where what was created was not needed |
/// | [`is_handler_thread`](Self::is_handler_thread) | `drain`, `finish_shutdown`; never under a pin or a lock |
/// | [`now`](Self::now), [`observer`](Self::observer) | slow paths, transitions, serialized kernels; under a pin and possibly the transition lock |
/// | [`report`](Self::report) | after a slow path; never under a lock, and under a pin only where the last handle went with a deferred function |
///
/// A dispatch or completion on the fast path calls nothing. A completion of an unserialized kernel
/// stores where it clears a barrier, and may reclaim where it drains a tag.
pub trait Runtime: Send + Sync + 'static {
    /// Creates a signal with the value `initial` (`hsa_signal_create`).
    ///
    /// # Errors
    /// The runtime's status. A success with the null handle is treated as an error by the caller.
    fn create_signal(
        &self,
        kind: SignalKind,
        initial: hsa_signal_value_t,
    ) -> Result<hsa_signal_t, hsa_status_t>;

    /// Destroys a signal (`hsa_signal_destroy`). Called exactly once for each signal created, and
    /// only when no packet that may still execute refers to it.
    ///
    /// # Errors
    /// The runtime's status; it is reported, and the signal is not touched again.
    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t>;

    /// Stores a value with release semantics (`hsa_signal_store_screlease`).
    fn store(&self, signal: hsa_signal_t, value: hsa_signal_value_t);

    /// Replaces `expected` by `desired` and returns the value seen
    /// (`hsa_signal_cas_scacq_screl`).
    fn compare_exchange(
        &self,
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        desired: hsa_signal_value_t,
    ) -> hsa_signal_value_t;

    /// Registers an asynchronous handler on a queue's `ready` signal with the condition *equal to
    /// -1* (`hsa_amd_signal_async_handler`), which calls [`Serializer::ready`] with `queue` and
    /// returns what that says. Register the id by value, never a pointer: a late call must find
    /// out for itself that its queue has gone. A runtime reaches its serializer through a
    /// [`WeakSerializer`](crate::WeakSerializer).
    ///
    /// Hold no lock while calling `ready`: it may destroy signals, the `ready` signal of the very
    /// handler that is running among them.
    ///
    /// # Errors
    /// The runtime's status; the queue is then not added.
    ///
    /// [`Serializer::ready`]: crate::Serializer::ready
    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t>;

    /// Whether the calling thread is one that calls the runtime's asynchronous handlers: on it,
    /// [`finish_shutdown`](crate::Serializer::finish_shutdown) and
    /// [`drain`](crate::Serializer::drain) would wait for themselves, and are refused. By default
    /// only what [`Serializer::ready`](crate::Serializer::ready) is called from counts as one.
    fn is_handler_thread(&self) -> bool {
        false
    }

    /// The time since any one moment, on a clock that only goes on: for statistics, the flight recorder
    /// and snapshots. By default the system's monotonic clock.
    ///
    /// It is called where queues become ready and are granted, among others: it must be quick, and may be
    /// called after the end.
    fn now(&self) -> Duration {
        clock::now()
    }

    /// Who is told of [events](crate::Event) as they happen. By default nobody is, and nothing of it is compiled:
    /// a runtime that observes returns a reference to what it keeps for that.
    fn observer(&self) -> Option<&dyn Observer> {
        None
    }

    /// Takes note of something that should not have happened. Does nothing by default.
    fn report(&self, report: Report) {
        let _ = report;
    }
}

/// Something that should not have happened, told to [`Runtime::report`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Report {
    /// A barrier was destroyed while tags were outstanding on it; its signal was destroyed all the
    /// same. The protocol excludes it while the serializer lives; when the serializer itself is
    /// dropped it means that queues were still alive.
    TaggedAtDestruction {
        /// The barrier's transition epoch.
        epoch: u32,
        /// Its signal.
        signal: hsa_signal_t,
        /// How many tags were outstanding.
        tags: u32,
    },
    /// A retired barrier was not safe to destroy in its deferred callback. It is left alone, memory
    /// and signal. The protocol excludes it; it is checked all the same.
    UnsafeReclaim {
        /// The barrier's transition epoch.
        epoch: u32,
        /// Its signal.
        signal: hsa_signal_t,
    },
    /// The runtime refused to destroy a signal.
    DestroyFailed {
        /// The signal.
        signal: hsa_signal_t,
        /// Why.
        status: hsa_status_t,
    },
    /// The host used the serializer in a way that its contract excludes.
    Misuse(Misuse),
    /// So many reports came at once that this many were lost.
    Dropped(u64),
    /// Everything was let through, since misuse was detected: what is counted may not be true any
    /// more, and something could wait for ever.
    Released,
}

/// A breach of the host's contract that was noticed. Counts may be wrong from then on, which is what
/// [`OnMisuse`](crate::OnMisuse) is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misuse {
    /// A completion was reported with no dispatch left to complete.
    CompletionAhead(QueueId),
    /// A kernel behind a transition packet was reported complete before the barrier had cleared.
    CompletionBehindBarrier(QueueId),
    /// A serialized kernel was reported complete although its queue was not granted.
    CompletionNotGranted(QueueId),
    /// `ready` fired for a queue that was not idle.
    ReadyNotIdle(QueueId),
    /// A completion came with a ticket of another serializer, or of nobody.
    ForeignTicket(QueueId),
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CompletionAhead(q) => {
                write!(f, "a completion of {q} with no dispatch left to complete")
            }
            Self::CompletionBehindBarrier(q) => write!(
                f,
                "a kernel of {q} behind an armed barrier was reported complete"
            ),
            Self::CompletionNotGranted(q) => write!(
                f,
                "a serialized kernel of {q} was reported complete without having been granted"
            ),
            Self::ReadyNotIdle(q) => write!(f, "ready fired for {q}, which was not idle"),
            Self::ForeignTicket(q) => write!(f, "a ticket of {q}, which is no queue of it"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TaggedAtDestruction {
                epoch,
                signal,
                tags,
            } => write!(
                f,
                "the barrier of epoch {epoch} (signal {:#x}) was destroyed with {tags} tags \
                 outstanding",
                signal.handle
            ),
            Self::UnsafeReclaim { epoch, signal } => write!(
                f,
                "the retired barrier of epoch {epoch} (signal {:#x}) was not safe to destroy",
                signal.handle
            ),
            Self::DestroyFailed { signal, status } => {
                write!(f, "destroying signal {:#x}: {status}", signal.handle)
            }
            Self::Misuse(misuse) => write!(f, "misuse: {misuse}"),
            Self::Dropped(n) => write!(f, "{n} reports were lost"),
            Self::Released => f.write_str("everything was let through, because of the misuse"),
        }
    }
}
