//! The calls that a profiler makes of a serializer.

use hsa_serializer::{Handler, QueueId};
use hsa_sys::AqlPacket;
use std::error::Error;
use std::time::Duration;

/// Any error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A dispatch that was counted.
#[derive(Debug)]
#[must_use = "the ticket has to be completed"]
pub struct Dispatched<T> {
    /// To be handed back when the kernel has completed.
    pub ticket: T,
    /// Whether the kernel is serialized, and so needs the barrier bit.
    pub serialized: bool,
}

/// What a serializer has done so far, as far as both can say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Transitions that took place.
    pub transitions: u64,
    /// Those of them that found a kernel in flight.
    pub transitions_that_counted: u64,
    /// Barriers created.
    pub barriers: u64,
    /// The most barriers that were there at once.
    pub barriers_live_most: u64,
    /// Transition packets handed out.
    pub tags: u64,
    /// Barriers that were kept after they had cleared, because a packet of theirs might not have
    /// executed: each is a chance for the fault that the crate exists for.
    pub retired_after_drain: u64,
    /// Grants of the token.
    pub grants: u64,
    /// Those of them that had to wait for another queue.
    pub grants_contended: u64,
    /// How long kernels were serialized. This and the next ones are zero where nobody counts them.
    pub serialized: Duration,
    /// How long queues waited for the token, all of them together.
    pub token_waited: Duration,
    /// The most that one of them waited.
    pub token_waited_most: Duration,
    /// How long barriers were armed, all of them together.
    pub barriers_armed: Duration,
}

/// A serializer, as a profiler sees it.
pub trait Serializing: Send + Sync + 'static {
    /// What the profiler keeps for each queue's interceptor.
    type Queue: Send + 'static;
    /// What a dispatch gives and its completion takes.
    type Ticket: Send + 'static;

    /// Adds a queue.
    ///
    /// # Errors
    /// Where a signal or a handler could not be had.
    fn add_queue(&self) -> Result<Self::Queue, BoxError>;

    /// The queue's identity.
    fn id(queue: &Self::Queue) -> QueueId;

    /// Counts a kernel and pushes what has to stand in front of it. `None`, and nothing pushed,
    /// where the kernel has to be passed on as it is.
    fn dispatch(
        &self,
        queue: &mut Self::Queue,
        packets: &mut Vec<AqlPacket>,
    ) -> Option<Dispatched<Self::Ticket>>;

    /// The kernel has completed.
    fn complete(&self, ticket: Self::Ticket);

    /// The kernel will never complete: its queue is gone.
    fn abandon(&self, ticket: Self::Ticket);

    /// A queue's `ready` signal fired.
    fn ready(&self, queue: QueueId) -> Handler;

    /// Serializes from now on. Whether that is a change.
    ///
    /// # Errors
    /// Where it could not be done and nothing has changed.
    fn enable(&self) -> Result<bool, BoxError>;

    /// Serializes no longer. Whether that is a change.
    ///
    /// # Errors
    /// Where it could not be done and nothing has changed.
    fn disable(&self) -> Result<bool, BoxError>;

    /// The queue is gone: none of its packets executes any more.
    fn queue_destroyed(&self, queue: QueueId);

    /// What it has done so far.
    fn counters(&self) -> Counters;
}
