//! Errors: each names what was wrong and gives back what was refused.

use crate::queue::QueueId;
use crate::ticket::Ticket;
use hsa_sys::hsa_status_t;
use std::fmt;

/// Why a signal could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignalError {
    /// The runtime answered with an error.
    Status(hsa_status_t),
    /// The runtime answered success with the null handle.
    NullHandle,
    /// The serializer was left meanwhile: the runtime is not called any more.
    Left,
}

impl fmt::Display for SignalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "the runtime answered {status}"),
            Self::NullHandle => f.write_str("the runtime answered success with handle 0"),
            Self::Left => f.write_str("the serializer was left"),
        }
    }
}

impl std::error::Error for SignalError {}

/// Why a transition did not happen. The serializer is as it was before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransitionError {
    /// The barrier's signal could not be created.
    Signal(SignalError),
    /// The serializer is shutting down, or has ended: by `release_all` (misuse that was noticed
    /// included), by `leave`, or as the child of a fork.
    ShutDown,
}

impl fmt::Display for TransitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(e) => write!(f, "no signal for the transition barrier: {e}"),
            Self::ShutDown => {
                f.write_str("the serializer has ended: it was shut down, released or left")
            }
        }
    }
}

impl std::error::Error for TransitionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Signal(e) => Some(e),
            Self::ShutDown => None,
        }
    }
}

/// Why a request was not released. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseError {
    /// Nothing is acquired that could be released.
    Unbalanced,
}

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unbalanced => f.write_str("released more often than acquired"),
        }
    }
}

impl std::error::Error for ReleaseError {}

/// Why an agent could not be given what was asked for it, or for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentError {
    /// The agent's handle.
    pub agent: u64,
    /// Why.
    pub reason: TransitionError,
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent {:#x}: {}", self.agent, self.reason)
    }
}

impl std::error::Error for AgentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.reason)
    }
}

/// Why a queue was not added. Nothing was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddQueueError {
    /// The serializer's escape signal, which comes with its first queue, could not be created.
    Escape(SignalError),
    /// The queue's `ready` signal could not be created.
    Ready(SignalError),
    /// The queue's `block` signal could not be created.
    Block(SignalError),
    /// The handler on the `ready` signal could not be registered.
    Watch(hsa_status_t),
    /// So many queues are alive that no slot is left (16,777,208).
    Full,
    /// The serializer is shutting down, or has ended: by `release_all` (misuse that was noticed
    /// included), by `leave`, or as the child of a fork.
    ShutDown,
}

impl fmt::Display for AddQueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Escape(e) => write!(f, "no escape signal for the serializer: {e}"),
            Self::Ready(e) => write!(f, "no ready signal for the queue: {e}"),
            Self::Block(e) => write!(f, "no block signal for the queue: {e}"),
            Self::Watch(status) => write!(
                f,
                "the handler on the queue's ready signal was refused: {status}"
            ),
            Self::Full => f.write_str("no slot is left for another queue"),
            Self::ShutDown => {
                f.write_str("the serializer has ended: it was shut down, released or left")
            }
        }
    }
}

impl std::error::Error for AddQueueError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Escape(e) | Self::Ready(e) | Self::Block(e) => Some(e),
            Self::Watch(e) => Some(e),
            Self::Full | Self::ShutDown => None,
        }
    }
}

/// Why a dispatch was not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DispatchError {
    /// The caller's array has fewer elements than [`MAX_PACKETS`](crate::MAX_PACKETS).
    TooFewPackets {
        /// How many it has.
        given: usize,
    },
    /// [`queue_destroyed`](crate::Serializer::queue_destroyed) was said of this queue.
    QueueGone(QueueId),
    /// As many of its dispatches are in flight as [`try_dispatch`](crate::Queue::try_dispatch) allows.
    Full {
        /// How many.
        in_flight: u64,
    },
    /// The serializer is shutting down, or has ended: by `release_all` (misuse that was noticed
    /// included), by `leave`, or as the child of a fork.
    ShutDown,
}

impl fmt::Display for DispatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewPackets { given } => write!(
                f,
                "the packet array has {given} elements, fewer than {}",
                crate::MAX_PACKETS
            ),
            Self::QueueGone(queue) => write!(f, "{queue} was destroyed"),
            Self::Full { in_flight } => {
                write!(f, "{in_flight} dispatches of the queue are in flight")
            }
            Self::ShutDown => {
                f.write_str("the serializer has ended: it was shut down, released or left")
            }
        }
    }
}

impl std::error::Error for DispatchError {}

/// A completion that was refused, with its ticket. Nothing was counted.
#[derive(Debug)]
pub struct CompleteError {
    /// The refused ticket.
    pub ticket: Ticket,
    /// Why.
    pub reason: CompleteErrorReason,
}

/// Why a completion was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompleteErrorReason {
    /// The ticket is another serializer's, or nobody's.
    Foreign,
    /// Every dispatch of the queue has been completed already.
    Ahead,
    /// The queue has had no such dispatch (told by [`check`](crate::Serializer::check)).
    NeverDispatched,
}

impl fmt::Display for CompleteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.ticket.queue();
        match self.reason {
            CompleteErrorReason::Foreign => {
                write!(f, "the ticket of {queue} is not of this serializer")
            }
            CompleteErrorReason::Ahead => {
                write!(f, "every dispatch of {queue} was completed before")
            }
            CompleteErrorReason::NeverDispatched => {
                let dispatch = self.ticket.dispatch();
                write!(f, "{queue} has had no dispatch {dispatch}")
            }
        }
    }
}

impl std::error::Error for CompleteError {}

/// The id is of no queue that this serializer has now: never added, or destroyed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownQueue(pub QueueId);

impl fmt::Display for UnknownQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a live queue of this serializer", self.0)
    }
}

impl std::error::Error for UnknownQueue {}
