//! Barriers by themselves: over a set of queues, without serialization.

use crate::barrier::{Barrier, Outcome};
use crate::dispatch::Queue;
use crate::error::{AddQueueError, CompleteError, TransitionError, UnknownQueue};
use crate::handle::Handle;
use crate::queue::{HOLDS, QueueId};
use crate::runtime::Runtime;
use crate::serializer::{Builder, Completion, Serializer};
use crate::shared::{Aftermath, Shared};
use crate::shutdown::Remaining;
use crate::statistics::Statistics;
use crate::ticket::Ticket;
use hsa_sys::hsa_signal_t;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// A set of queues over which barriers can be armed, each of which holds back what is dispatched
/// after it until what was dispatched before it has completed.
///
/// It is the serializer without the token: for hosts that want a cut through the work of several
/// queues and have their own idea of what happens on either side of it. It has no drain and no stalls
/// either, and it [ends](Self::try_finish) when its queues have gone. Misuse that is noticed lets everything through and ends it, unless it was
/// [made](Self::with) with [`OnMisuse::GoOn`](crate::OnMisuse::GoOn).
///
/// ```
/// # use hsa_serializer::doc_runtime::Host;
/// use hsa_serializer::{AqlPacket, BarrierSet, Drain, Outcome};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = Host::default();
/// let set = BarrierSet::new(runtime);
/// let mut queue = set.add_queue()?;
/// let mut packets = [AqlPacket::INVALID; 4];
///
/// let before = queue.dispatch(&mut packets)?;
/// let barrier = set.arm(|outcome| assert_eq!(outcome, Outcome::Cleared))?;
///
/// // The first dispatch after it carries the transition packet, once.
/// let first = queue.dispatch(&mut packets)?;
/// assert_eq!((before.packets, first.packets), (0, 1));
/// assert_eq!(barrier.drain_queue(queue.id()), Drain::Armed);
///
/// set.complete(before.ticket)?; // clears it
/// assert!(barrier.is_cleared() && !barrier.is_safe_to_destroy());
/// set.complete(first.ticket)?; // drains the tag: the packet has executed
/// assert!(barrier.is_safe_to_destroy());
/// # Ok(()) }
/// ```
pub struct BarrierSet<R: Runtime> {
    inner: Serializer<R>,
}

impl<R: Runtime> BarrierSet<R> {
    /// A set without queues, in the process's reclamation domain.
    pub fn new(runtime: R) -> Self {
        Self::with(Builder::default(), runtime)
    }

    /// The same, made with other than the defaults.
    pub fn with(builder: Builder, runtime: R) -> Self {
        Self {
            inner: builder.build(runtime),
        }
    }

    /// The runtime that it was made with.
    pub fn runtime(&self) -> &R {
        self.inner.runtime()
    }

    /// Adds a queue. It needs no signal and no handler.
    ///
    /// # Errors
    /// Where no slot is left; after the set has [ended](Self::try_finish), or misuse has ended it.
    pub fn add_queue(&self) -> Result<Queue<R>, AddQueueError> {
        let shared = self.shared();
        let _visit = shared.visit().ok_or(AddQueueError::ShutDown)?;
        let (id, cell) = shared.take_cell()?;
        let null = hsa_signal_t::NULL;
        cell.seat().adopt(null, null);
        // Where misuse has shut it down meanwhile there is no handler to take back.
        let _ = shared.register(id, cell, HOLDS);
        Ok(Queue::new(
            Handle::new(shared.clone()),
            id,
            NonNull::from(cell),
            [null; 3],
        ))
    }

    /// Arms a barrier over all queues of the set. `on_end` is called once, when it ends, on the
    /// thread that ends it, with no lock held: it may call what that thread may, and where that can be a
    /// handler's thread nothing that waits. It should not panic: the panic would surface in whatever
    /// call ended the barrier.
    ///
    /// Where no queue has dispatched since the previous barrier, that one is superseded by this.
    ///
    /// # Errors
    /// Where no signal could be had, or the set was shut down; nothing has happened then.
    pub fn arm(
        &self,
        on_end: impl FnOnce(Outcome) + Send + 'static,
    ) -> Result<BarrierHandle<R>, TransitionError> {
        let shared = self.shared();
        let barrier = shared.arm(Box::new(on_end))?;
        Ok(BarrierHandle {
            shared: Handle::new(shared.clone()),
            barrier,
        })
    }

    /// See [`Serializer::complete`].
    ///
    /// # Errors
    /// As there.
    pub fn complete(&self, ticket: Ticket) -> Result<Completion, CompleteError> {
        self.inner.complete(ticket)
    }

    /// See [`Serializer::try_complete`].
    ///
    /// # Errors
    /// As there.
    pub fn try_complete(&self, ticket: Ticket) -> Result<Completion, CompleteError> {
        self.inner.try_complete(ticket)
    }

    /// See [`Serializer::check`].
    ///
    /// # Errors
    /// As there.
    pub fn check(&self, ticket: Ticket) -> Result<Ticket, CompleteError> {
        self.inner.check(ticket)
    }

    /// Ends the set, once its queues are gone: nothing can be added or armed any more, and every signal is
    /// destroyed. It never waits, and may be called any number of times. After `Ok` the set does not call
    /// the runtime again.
    ///
    /// # Errors
    /// What is left. Where these are queues, nothing was done.
    pub fn try_finish(&self) -> Result<(), Remaining> {
        let queues = self.shared().in_flight();
        if !queues.is_empty() {
            return Err(Remaining {
                queues,
                ..Remaining::default()
            });
        }
        self.inner.try_finish_shutdown()
    }

    /// See [`Serializer::queue_destroyed`].
    ///
    /// # Errors
    /// As there.
    pub fn queue_destroyed(&self, queue: QueueId) -> Result<(), UnknownQueue> {
        self.inner.queue_destroyed(queue)
    }

    /// See [`Serializer::collect`].
    pub fn collect(&self) {
        self.inner.collect();
    }

    /// See [`Serializer::statistics`].
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }

    fn shared(&self) -> &Arc<Shared<R>> {
        &self.inner.shared
    }
}

impl<R: Runtime> Clone for BarrierSet<R> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl<R: Runtime> fmt::Debug for BarrierSet<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BarrierSet").field(self.shared()).finish()
    }
}

/// What is known of a queue's transition packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// The barrier is armed: nothing can have drained.
    Armed,
    /// The queue carries this barrier's packet, and it may not have executed.
    Outstanding,
    /// The queue carries no packet of this barrier that could still execute.
    Drained,
}

/// A barrier, for looking at. It goes its way by itself; the handle keeps none of its signal.
pub struct BarrierHandle<R: Runtime> {
    shared: Handle<R>,
    barrier: Arc<Barrier>,
}

impl<R: Runtime> BarrierHandle<R> {
    /// Takes away the queue's tag if its packet is known to have executed.
    ///
    /// Completions do this by themselves; it is there for hosts that want to ask. On an armed
    /// barrier it is one load and a return. It never locks.
    #[inline]
    pub fn drain_queue(&self, queue: QueueId) -> Drain {
        if self.barrier.life().is_armed() {
            return Drain::Armed;
        }
        self.drain_settled(queue)
    }

    #[inline(never)]
    fn drain_settled(&self, queue: QueueId) -> Drain {
        let Some(cell) = self.shared.cell(queue) else {
            return Drain::Drained;
        };
        let mut after = Aftermath::new();
        let guard = self.shared.domain.pin();
        self.shared.settle(queue, cell, &guard, &mut after);
        let mut drain = Drain::Drained;
        let progress = cell.progress();
        if progress.is_live(queue.generation()) {
            cell.tags.for_each(progress.count(), &guard, |_, barrier| {
                if std::ptr::eq(barrier.as_ptr(), Arc::as_ptr(&self.barrier)) {
                    drain = Drain::Outstanding;
                }
            });
        }
        after.finish(guard, &self.shared);
        drain
    }

    /// Whether it lets everything through: every dispatch that it counted has completed, or it was
    /// cleared by force.
    #[must_use]
    pub fn is_cleared(&self) -> bool {
        self.barrier.life().is_cleared()
    }

    /// Whether it was superseded by a later barrier before anybody waited for it.
    #[must_use]
    pub fn is_superseded(&self) -> bool {
        self.barrier.life().is_superseded()
    }

    /// Whether its signal may be destroyed: it has ended, and no queue carries a packet of it that
    /// may not have executed. Once true it stays true.
    #[must_use]
    pub fn is_safe_to_destroy(&self) -> bool {
        self.barrier.life().is_closed()
    }

    /// How many queues carry a packet of it that may not have executed. A dispatch that has come
    /// too late may show as one for a moment.
    #[must_use]
    pub fn tags(&self) -> u32 {
        self.barrier.life().tags()
    }

    /// Its signal's handle. It may have been destroyed, and the handle be another signal's: for
    /// comparing and printing only.
    #[must_use]
    pub fn signal(&self) -> hsa_signal_t {
        self.barrier.signal
    }
}

impl<R: Runtime> fmt::Debug for BarrierHandle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.barrier, f)
    }
}
