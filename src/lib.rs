//! Lets one kernel at a time run on an AMD GPU, and switches that on and off while kernels are in
//! flight. For profilers that intercept HSA queues.
//!
//! **It has never run on AMD hardware**; on AMD's own runtime, over an emulated GPU, it has.
//! [`docs::verification`] says what is known of it, and by what.
//!
//! # Where to start
//! - What a host does, in order: [`docs::integrating`].
//! - How it works, and why that is enough: [`docs::algorithm`].
//! - The terms, when to use it and when not, and what is lock-free: the README.
//!
//! | | |
//! |---|---|
//! | [`Serializer`] | one for each agent: on, off, completions, ready queues, queues that are gone |
//! | [`Queue`], [`Dispatch`], [`Ticket`] | the dispatching half of a queue, what a dispatch has to do, its receipt |
//! | [`Runtime`] | what the host gives: five functions over HSA's, which threads call handlers, and a sink for reports |
//! | `hsa::HsaRuntime` | the same, ready made over AMD's runtime (feature `hsa`) |
//! | [`BarrierSet`] | barriers by themselves, without serialization |
//! | [`Request`], [`Agents`] | who wants it, of one agent, of some and of all |
//! | [`Snapshot`], [`Event`] | who waits for whom, and what happens |
//! | [`StallWatch`] | what stands still, by name, and letting it go |
//! | [`Domain`] | reclamation, explained to who knows HSA and to who knows crossbeam |
//!
//! # What may be called from where
//! | in | allowed |
//! |---|---|
//! | an HSA handler | all but [`drain`](Serializer::drain) and [`finish_shutdown`](Serializer::finish_shutdown), which wait; some take a mutex for a moment |
//! | an interceptor | [`dispatch`](Queue::dispatch), [`complete`](Serializer::complete), [`ready`](Serializer::ready), [`queue_destroyed`](Serializer::queue_destroyed), [`Agents::get`] freely; what takes the transition lock under a condition |
//! | a [`Runtime`] method, an [`Observer`], a POSIX signal handler | [`mode`](Serializer::mode), [`leave`](Serializer::leave) |
//!
//! The whole of it, with the condition: [`docs::integrating`]; which call takes which lock: [`Serializer`].
//!
//! # Example
//! ```
//! use hsa_serializer::{AqlPacket, MAX_PACKETS, Serializer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A runtime of plain integers; a host implements `Runtime` over HSA.
//! let serializer = Serializer::new(hsa_serializer::doc_runtime::Host::default());
//! let mut queue = serializer.add_queue()?;
//! let mut inject = [AqlPacket::INVALID; MAX_PACKETS];
//!
//! let dispatch = queue.dispatch(&mut inject)?;
//! assert_eq!(dispatch.packets, 0); // kernels run as they like
//! serializer.complete(dispatch.ticket)?;
//!
//! serializer.enable()?;
//! let dispatch = queue.dispatch(&mut inject)?;
//! assert!(dispatch.serialized);
//! serializer.queue_destroyed(queue.id())?;
//! dispatch.ticket.abandon(); // this example has no GPU to run it
//! # Ok(()) }
//! ```

mod agents;
mod barrier;
mod barrier_set;
mod clock;
#[cfg(all(
    feature = "debugger",
    not(any(hsa_serializer_loom, hsa_serializer_shuttle))
))]
mod debugger;
mod dispatch;
mod domain;
mod drain;
mod error;
mod event;
mod fork;
mod gap;
mod handle;
mod handler_thread;
mod insight;
mod limit;
mod list;
mod look;
mod packet;
#[cfg(hsa_serializer_loom)]
mod parts;
mod pending;
mod queue;
#[cfg(not(hsa_serializer_shuttle))]
#[cfg_attr(
    hsa_serializer_loom,
    allow(dead_code, reason = "who records is left out of the models")
)]
mod recorder;
#[cfg(any(feature = "hsa", feature = "debugger", hsa_serializer_loom))]
mod registry;
mod removal;
mod requests;
mod runtime;
mod serializer;
mod shared;
mod shutdown;
mod snapshot;
mod stall;
mod statistics;
mod sync;
mod ticket;
mod token;
mod transition;

pub mod doc_runtime;
pub mod docs;
#[cfg(feature = "hsa")]
pub mod hsa;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use agents::{Agents, AgentsRequest};
pub use barrier::Outcome;
pub use barrier_set::{BarrierHandle, BarrierSet, Drain};
#[cfg(all(
    feature = "debugger",
    not(any(hsa_serializer_loom, hsa_serializer_shuttle))
))]
pub use debugger::{hsa_serializer_print_all, snapshots};
#[doc(hidden)]
pub use dispatch::Begun;
pub use dispatch::{Dispatch, Queue};
pub use domain::Domain;
pub use drain::{Cut, DrainError};
pub use error::{
    AddQueueError, AgentError, CompleteError, CompleteErrorReason, DispatchError, ReleaseError,
    SignalError, TransitionError, UnknownQueue,
};
pub use event::{Event, Observer};
pub use gap::{GapError, Marker};
pub use hsa_sys::{AqlPacket, hsa_signal_t, hsa_signal_value_t, hsa_status_t};
pub use packet::MAX_PACKETS;
pub use queue::{Mode, QueueId};
pub use requests::Request;
pub use runtime::{Handler, Misuse, Report, Runtime, SignalKind};
#[doc(hidden)]
pub use serializer::BegunCompletion;
pub use serializer::{Builder, Completion, OnMisuse, Serializer, WeakSerializer};
pub use shutdown::{Remaining, ShutdownError};
pub use snapshot::{BarrierState, BarrierView, EndState, Party, QueueView, Record, Snapshot, Wait};
pub use stall::{QueueActivity, QueueWait, Stall, StallPolicy, StallWatch, Stalled};
pub use statistics::Statistics;
pub use ticket::Ticket;
pub use transition::Transition;

#[cfg(hsa_serializer_loom)]
#[doc(hidden)]
pub use parts::{Chain, Duties, Numbers, Records};
#[cfg(any(hsa_serializer_loom, hsa_serializer_shuttle))]
#[doc(hidden)]
pub use sync::{Step, remove_guard};
