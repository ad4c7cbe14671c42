#![doc = include_str!("../README.md")]

mod barrier;
mod barrier_set;
mod dispatch;
mod domain;
mod error;
mod list;
mod packet;
mod pending;
mod queue;
mod removal;
mod runtime;
mod serializer;
mod shared;
mod statistics;
mod sync;
mod ticket;
mod token;
mod transition;

pub mod doc_runtime;
pub mod docs;

pub use barrier::Outcome;
pub use barrier_set::{BarrierHandle, BarrierSet, Drain};
pub use dispatch::{Dispatch, Queue};
pub use domain::Domain;
pub use error::{
    AddQueueError, CompleteError, CompleteErrorReason, DispatchError, SignalError, TransitionError,
    UnknownQueue,
};
pub use hsa_sys::{AqlPacket, hsa_signal_t, hsa_status_t};
pub use packet::MAX_PACKETS;
pub use queue::{Mode, QueueId};
pub use runtime::{Handler, Misuse, Report, Runtime, SignalKind};
pub use serializer::{Builder, Completion, Serializer, WeakSerializer};
pub use statistics::Statistics;
pub use ticket::Ticket;
pub use transition::Transition;

#[cfg(any(hsa_serializer_loom, hsa_serializer_shuttle))]
#[doc(hidden)]
pub use sync::{Step, remove_guard};
