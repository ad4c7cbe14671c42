//! What a profiler is made of, and what it is asked for.

use crate::host::{Host, OnReady};
use crate::hsa::Hsa;
use crate::lifecycle::Lifecycle;
use crate::tally::Tally;
use clap::ValueEnum;
use harness::{BoxError, LockedSerializer};
use hsa_serializer::Serializer;
use hsa_serializer::hsa::HsaRuntime;
use hsa_sys::{HSA_QUEUE_TYPE_MULTI, hsa_agent_t, hsa_queue_error_callback_t, hsa_queue_type32_t};
use locked::{ProfilerSerializer, Retire};
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

/// A mistake that the profiler makes on purpose, for the checks to find; in a scenario that comes to
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// One completion in 100 is not reported to the serializer (in: load).
    SkipComplete,
    /// The application is told of a kernel's end before the serializer is (in: rounds).
    ForwardFirst,
    /// The application is told of one kernel in 100 twice (in: load).
    ForwardTwice,
    /// The serializer is told that a queue is gone a while before it is destroyed (in: churn).
    RemoveEarly,
    /// The serializer is not told at all (in: churn).
    SkipRemove,
    /// One kernel in 7 goes past the serializer (in: load).
    Unseen,
    /// One signal in 20 is never destroyed (in: load, soak).
    Leak,
    /// The runtime is shut down without the profiler having let go (in: shutdown-live).
    HoldOn,
    /// The profiler lets go of the runtime, and does not tell its serializers (in: shutdown-live).
    SkipLeave,
    /// The serializer is not told of work that passed unseen (in: gap).
    SkipGap,
}

/// What a serializer is made of.
pub struct Parts {
    /// The runtime's functions, counted.
    pub hsa: Hsa,
    /// The agent.
    pub agent: hsa_agent_t,
    /// Where reports go.
    pub tally: Arc<Tally>,
    /// What is to be called when a queue's `ready` signal fires, where the serializer's runtime does
    /// not find its serializer by itself.
    pub on_ready: OnReady,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

impl Parts {
    /// The crate's serializer, on the crate's own runtime.
    ///
    /// # Errors
    /// Where the agent is not a GPU.
    pub fn ours(self) -> Result<Ours, BoxError> {
        // SAFETY: the profiler is dropped, or has let go, before the runtime is shut down; then its
        // functions do nothing any more.
        let runtime = unsafe { HsaRuntime::new(*self.hsa.api(), self.agent) }?;
        let tally = self.tally;
        let runtime = runtime.with_reports(move |report| tally.report(report));
        Ok(runtime.serializer(Serializer::<HsaRuntime>::builder()))
    }

    /// The yardstick.
    #[must_use]
    pub fn locked(self, retire: Retire) -> LockedSerializer<Host> {
        let host = Host::new(self.hsa, self.tally, self.on_ready);
        LockedSerializer(ProfilerSerializer::new(host, retire))
    }
}

/// The crate's serializer, on the crate's own runtime.
pub type Ours = Serializer<HsaRuntime>;

/// Makes the serializer of an agent.
pub type Make<S> = Arc<dyn Fn(Parts) -> Result<S, BoxError> + Send + Sync>;

/// What a profiler is made of.
pub struct Setup<S: Lifecycle> {
    /// The runtime's functions, as they were before anybody replaced them.
    pub hsa: Hsa,
    /// Makes the serializer of an agent.
    pub make: Make<S>,
    /// Whether a packet of the profiler's own stands behind each kernel.
    pub tail: bool,
    /// A mistake to make.
    pub fault: Option<Fault>,
}

impl<S: Lifecycle> fmt::Debug for Setup<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("tail", &self.tail)
            .field("fault", &self.fault)
            .finish_non_exhaustive()
    }
}

/// A queue as the application asked for it: the arguments of `hsa_queue_create`.
#[derive(Clone, Copy, Debug)]
pub struct QueueRequest {
    /// The agent.
    pub agent: hsa_agent_t,
    /// Packets in the ring.
    pub size: u32,
    /// Who may submit.
    pub kind: hsa_queue_type32_t,
    /// Called when the queue has stopped because of an error.
    pub callback: Option<hsa_queue_error_callback_t>,
    /// What it is called with.
    pub data: *mut c_void,
    /// Private memory of a work-item.
    pub private_segment_size: u32,
    /// Group memory of a work-group.
    pub group_segment_size: u32,
}

impl QueueRequest {
    /// A queue that several threads submit to, without a callback.
    #[must_use]
    pub fn new(agent: hsa_agent_t, size: u32) -> Self {
        Self {
            agent,
            size,
            kind: HSA_QUEUE_TYPE_MULTI,
            callback: None,
            data: std::ptr::null_mut(),
            private_segment_size: 0,
            group_segment_size: 0,
        }
    }
}
