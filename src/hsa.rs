//! The [`Runtime`] over AMD's HSA runtime (feature `hsa`).
//!
//! [`HsaRuntime`] is what a host would otherwise write itself: a few calls into HSA for one agent,
//! and the way back from HSA's handler to the serializer. It takes its functions from an
//! [`Api`]: those that a tool saved from the runtime's tables, or those of the
//! library, loaded at run time.
//!
//! ```no_run
//! use hsa_serializer::Builder;
//! use hsa_serializer::hsa::HsaRuntime;
//! use hsa_serializer::hsa::hsa_sys::{Api, Tables, hsa_agent_t};
//!
//! # fn f(tables: Tables, agent: hsa_agent_t) -> Result<(), Box<dyn std::error::Error>> {
//! // In a tool, before it replaces anything in the tables.
//! let api = Api::from_tables(&tables)?;
//!
//! // SAFETY: HSA is initialized, `agent` is one of its GPUs, and the serializer is dropped before
//! // the runtime is shut down.
//! let runtime = unsafe { HsaRuntime::new(api, agent) }?;
//! let serializer = runtime
//!     .with_reports(|report| eprintln!("serializer: {report}"))
//!     .serializer(Builder::default());
//! let queue = serializer.add_queue()?;
//! # Ok(()) }
//! ```
//!
//! A program without a tool loads the library. (It has no intercept queues then: the runtime does not
//! export them, and [`Api`]'s fields for them are `None`.)
//!
//! ```no_run
//! use hsa_serializer::Builder;
//! use hsa_serializer::hsa::HsaRuntime;
//! use hsa_serializer::hsa::hsa_sys::{Api, hsa_agent_t, hsa_status_t};
//! use std::ffi::c_void;
//!
//! unsafe extern "C" fn collect(agent: hsa_agent_t, agents: *mut c_void) -> hsa_status_t {
//!     // SAFETY: what was given to `hsa_iterate_agents` below.
//!     unsafe { &mut *agents.cast::<Vec<hsa_agent_t>>() }.push(agent);
//!     hsa_status_t::SUCCESS
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (library, api) = Api::load()?;
//! // The functions are used to the end of the program.
//! std::mem::forget(library);
//! let mut agents = Vec::<hsa_agent_t>::new();
//! // SAFETY: the library is loaded; `collect` gets what it expects.
//! unsafe {
//!     (api.hsa_init)().ok()?;
//!     (api.hsa_iterate_agents)(collect, (&raw mut agents).cast()).ok()?;
//! }
//! for agent in agents {
//!     // SAFETY: HSA is initialized, the agent is one of its own, and the serializer goes first.
//!     let Ok(runtime) = (unsafe { HsaRuntime::new(api, agent) }) else {
//!         continue; // a CPU
//!     };
//!     let serializer = runtime.serializer(Builder::default());
//!     serializer.enable()?;
//!     // ... queues, dispatches, completions ...
//! }
//! // SAFETY: no serializer is left.
//! unsafe { (api.hsa_shut_down)() }.ok()?;
//! # Ok(()) }
//! ```
//!
//! To count its calls, to guard them or to make one fail in a test, replace functions in the `Api`: a
//! [`Runtime`] that delegates to this one has to bring a [handler of its own](HsaRuntime::with_handler),
//! since this crate's finds its way back to a `Serializer<HsaRuntime>` alone.
//!
//! # Which signal for what
//! | kind | made by | why |
//! |---|---|---|
//! | [`Barrier`](SignalKind::Barrier), [`Block`](SignalKind::Block), [`Escape`](SignalKind::Escape) | `hsa_amd_signal_create`, the agent as its only consumer, GPU-only | packet processors alone wait for it, so it needs none of the kernel's 4,096 events |
//! | [`Ready`](SignalKind::Ready) | `hsa_signal_create`, no consumer named | a host handler waits for it: on a signal without an event the runtime refuses one (`HSA_STATUS_ERROR_INVALID_SIGNAL`) or, where it takes it, polls it with a whole core |
//!
//! A runtime that refuses a GPU-only signal is asked for one with the agent as its only consumer,
//! and then for an ordinary one: it does the same and costs an event.
//!
//! # The handler, for those who know crossbeam and not HSA
//! HSA calls a C function with a pointer that was given when the handler was registered. Such a
//! call can come late: after the queue was removed, after its signal was destroyed, after the
//! serializer was dropped. And in some versions the entry of a destroyed signal stays registered for
//! ever. So no memory could ever be freed that the pointer points to; here it points to nothing: it
//! *is* the [`QueueId`], whose upper bits name the serializer. The handler looks it up among those
//! that are alive, and where it finds none it answers `false` (go) and touches nothing.
//!
//! # The handler, for those who know HSA and not crossbeam
//! The serializers that are alive are in an immutable table; making or dropping one replaces the
//! table by another. The handler reads it without a lock, pinned (see [`Domain`](crate::Domain)), so
//! an old table is freed when no handler looks at it any more. What stays in memory is one entry for
//! each serializer that is alive, however many queues there were.
//!
//! # The handlers' thread
//! Waiting for a completion on the thread that calls handlers is waiting for oneself, so
//! [`finish_shutdown`](Serializer::finish_shutdown) and [`drain`](Serializer::drain) are refused there.
//! AMD's runtime has one such thread from its first registered handler to `hsa_shut_down`, and it does
//! nothing else. Making a serializer has that thread call a function once (`hsa_amd_async_function`), so
//! that it is known before it calls any handler that is registered afterwards. A thread that has called
//! a `ready` handler is known from then on as well, should a version have several.
//!
//! # Shutting down
//! The runtime's functions may not be called once it has been shut down, nor may its handler thread
//! call into a library that was unloaded. A tool replaces `hsa_shut_down` in the tables and, before the
//! last one goes on to the runtime, calls [`finish_shutdown`](Serializer::finish_shutdown); where that
//! does not end in time, [`release_all`](Serializer::release_all) and, after a second try,
//! [`leave`](Serializer::leave), after which nothing here calls the runtime, not even dropping the last
//! handle ([`docs::integrating`](crate::docs::integrating)). A process that
//! simply ends need not say anything. A tool library that contains this stays mapped (link it with
//! `-z nodelete`).

/// HSA's types and functions: the version of the crate that this interface is made of.
pub use hsa_sys;

use crate::queue::QueueId;
use crate::registry::Registry;
use crate::runtime::{Report, Runtime, SignalKind};
use crate::serializer::{Builder, Serializer, WeakSerializer};
use hsa_sys::{
    Api, HSA_AGENT_INFO_DEVICE, HSA_AMD_SIGNAL_AMD_GPU_ONLY, HSA_DEVICE_TYPE_GPU,
    HSA_SIGNAL_CONDITION_EQ, hsa_agent_t, hsa_amd_signal_handler, hsa_device_type_t, hsa_signal_t,
    hsa_signal_value_t, hsa_status_t,
};
use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, UnwindSafe, catch_unwind};
use std::ptr;
use std::sync::OnceLock;

static REGISTRY: Registry<WeakSerializer<HsaRuntime>> = Registry::new();

/// A queue's id has to fit into the handler's pointer.
const _: () = assert!(size_of::<*mut c_void>() == size_of::<u64>());

/// HSA's functions for one GPU. See the [module](self).
pub struct HsaRuntime {
    api: Api,
    agent: hsa_agent_t,
    sink: Option<Box<dyn Fn(Report) + Send + Sync>>,
    /// What is registered in place of its own.
    handler: Option<hsa_amd_signal_handler>,
    /// The serializer that it belongs to, by the number that its queues' ids have.
    instance: OnceLock<u32>,
}

/// Why there is no [`HsaRuntime`] for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HsaRuntimeError {
    /// The runtime did not say what kind of device the agent is.
    Agent {
        /// Its answer.
        status: hsa_status_t,
        /// The same, as text.
        text: String,
    },
    /// The agent is not a GPU.
    NotAGpu(hsa_device_type_t),
}

impl fmt::Display for HsaRuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent { text, .. } => write!(f, "asking what the agent is: {text}"),
            Self::NotAGpu(device) => write!(f, "the agent is not a GPU but {device:?}"),
        }
    }
}

impl std::error::Error for HsaRuntimeError {}

impl HsaRuntime {
    /// The functions of `api` for that agent.
    ///
    /// # Errors
    /// Where the agent is not a GPU, or the runtime does not say.
    ///
    /// # Safety
    /// From now on and until this value has been dropped, with every serializer or
    /// [`BarrierSet`](crate::BarrierSet) that was made of it and what that has deferred:
    /// - the functions of `api` are those of HSA, and can be called: HSA is initialized, and the
    ///   library is loaded;
    /// - `agent` is one of its agents;
    /// - the methods of [`Runtime`] are for the serializer to call: who else calls them passes
    ///   signals that this value has created and not destroyed, and destroys none that the
    ///   serializer has.
    ///
    /// Until the runtime was shut down, the code of this crate stays mapped.
    pub unsafe fn new(api: Api, agent: hsa_agent_t) -> Result<Self, HsaRuntimeError> {
        let runtime = Self {
            api,
            agent,
            sink: None,
            handler: None,
            instance: OnceLock::new(),
        };
        let mut device = hsa_device_type_t::default();
        // SAFETY: the caller's promise; this attribute is 32 bits.
        let status = unsafe {
            (api.hsa_agent_get_info)(agent, HSA_AGENT_INFO_DEVICE, (&raw mut device).cast())
        };
        if let Err(status) = status.ok() {
            let text = runtime.status_text(status).into_owned();
            return Err(HsaRuntimeError::Agent { status, text });
        }
        if device != HSA_DEVICE_TYPE_GPU {
            return Err(HsaRuntimeError::NotAGpu(device));
        }
        Ok(runtime)
    }

    /// Passes reports on to `sink`, from whatever thread they come up on; without one they are
    /// dropped. A panic of `sink` ends there.
    #[must_use]
    pub fn with_reports(mut self, sink: impl Fn(Report) + Send + Sync + 'static) -> Self {
        self.sink = Some(Box::new(sink));
        self
    }

    /// Has queues register `handler` on their `ready` signals in place of this crate's own: for a
    /// [`Runtime`] that delegates to this one, and is the serializer's in its place.
    ///
    /// HSA calls it with the queue's id ([`QueueId::to_raw`]) as its pointer, possibly late; it has to
    /// find the serializer, if there still is one, and return what [`Serializer::ready`] says.
    #[must_use]
    pub fn with_handler(mut self, handler: hsa_amd_signal_handler) -> Self {
        self.handler = Some(handler);
        self.ask_for_handlers_thread();
        self
    }

    /// Has the thread that calls handlers say that it is the one.
    fn ask_for_handlers_thread(&self) {
        // SAFETY: the promise of `new`. The function may be called at any time: nothing is behind its
        // argument. Where it is refused, the thread is known by its first `ready` handler.
        let _ = unsafe { (self.api.hsa_amd_async_function)(on_handlers_thread, ptr::null_mut()) };
    }

    /// The serializer of this agent, disabled, to which HSA's handlers find their way.
    ///
    /// Not `Serializer::new(runtime)`: its queues could not be added, for want of that way.
    pub fn serializer(self, builder: Builder) -> Serializer<Self> {
        let serializer = builder.build(self);
        let instance = serializer.shared.instance;
        REGISTRY.insert(instance, serializer.downgrade());
        let first = serializer.runtime().instance.set(instance);
        debug_assert!(first.is_ok(), "nobody else has this runtime");
        serializer.runtime().ask_for_handlers_thread();
        serializer
    }

    /// The functions.
    #[must_use]
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> hsa_agent_t {
        self.agent
    }

    /// A status as text: its name, or what the runtime says of one that this crate does not know.
    #[must_use]
    pub fn status_text(&self, status: hsa_status_t) -> Cow<'static, str> {
        if let Some(name) = status.name() {
            return name.into();
        }
        let mut text = ptr::null();
        // SAFETY: the promise of `new`; `text` lives through the call.
        let known = unsafe { (self.api.hsa_status_string)(status, &raw mut text) };
        if known.ok().is_err() || text.is_null() {
            return status.to_string().into();
        }
        // SAFETY: a success gives a string that ends with a zero and that nobody frees.
        let text = unsafe { CStr::from_ptr(text) };
        format!("{status}: {}", text.to_string_lossy()).into()
    }

    /// A signal that the agent alone waits for.
    fn create_for_agent(&self, initial: hsa_signal_value_t) -> Result<hsa_signal_t, hsa_status_t> {
        let api = &self.api;
        let agent = &raw const self.agent;
        created(|signal| {
            // The attribute is for runtimes that look at it; AMD's goes by the consumers, where
            // some are named.
            let gpu_only = HSA_AMD_SIGNAL_AMD_GPU_ONLY.0;
            // SAFETY: the promise of `new`; one agent is named, and it lives through the call.
            unsafe { (api.hsa_amd_signal_create)(initial, 1, agent, gpu_only, signal) }
        })
        .or_else(|_| {
            created(|signal| {
                // SAFETY: as above.
                unsafe { (api.hsa_signal_create)(initial, 1, agent, signal) }
            })
        })
        .or_else(|_| self.create_for_all(initial))
    }

    /// A signal that everybody may wait for.
    fn create_for_all(&self, initial: hsa_signal_value_t) -> Result<hsa_signal_t, hsa_status_t> {
        created(|signal| {
            // SAFETY: the promise of `new`; no agent is named.
            unsafe { (self.api.hsa_signal_create)(initial, 0, ptr::null(), signal) }
        })
    }
}

/// What a creating function has made.
fn created(
    create: impl FnOnce(*mut hsa_signal_t) -> hsa_status_t,
) -> Result<hsa_signal_t, hsa_status_t> {
    let mut signal = hsa_signal_t::NULL;
    create(&raw mut signal).ok()?;
    Ok(signal)
}

impl Runtime for HsaRuntime {
    fn create_signal(
        &self,
        kind: SignalKind,
        initial: hsa_signal_value_t,
    ) -> Result<hsa_signal_t, hsa_status_t> {
        match kind {
            SignalKind::Barrier | SignalKind::Block | SignalKind::Escape => {
                self.create_for_agent(initial)
            }
            SignalKind::Ready => self.create_for_all(initial),
        }
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        // SAFETY: the promise of `new`. The caller has created it here and destroys it once.
        unsafe { (self.api.hsa_signal_destroy)(signal) }.ok()
    }

    fn store(&self, signal: hsa_signal_t, value: hsa_signal_value_t) {
        // SAFETY: the promise of `new`. The caller has not destroyed it.
        unsafe { (self.api.hsa_signal_store_screlease)(signal, value) }
    }

    fn compare_exchange(
        &self,
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        desired: hsa_signal_value_t,
    ) -> hsa_signal_value_t {
        // SAFETY: the promise of `new`. The caller has not destroyed it.
        unsafe { (self.api.hsa_signal_cas_scacq_screl)(signal, expected, desired) }
    }

    /// Registers a handler that finds its serializer by the queue's id. Where there is no way to
    /// find it (`Serializer::new` instead of [`HsaRuntime::serializer`]) it is
    /// `HSA_STATUS_ERROR_INVALID_RUNTIME_STATE`.
    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        let own = (self.instance.get() == Some(&queue.instance()))
            .then_some(on_ready as hsa_amd_signal_handler);
        let Some(handler) = self.handler.or(own) else {
            return Err(hsa_status_t::ERROR_INVALID_RUNTIME_STATE);
        };
        let arg = ptr::without_provenance_mut(queue.to_raw() as usize);
        // SAFETY: the promise of `new`. The handler may be called with this argument at any time
        // and any number of times: nothing is behind it.
        unsafe {
            (self.api.hsa_amd_signal_async_handler)(
                ready,
                HSA_SIGNAL_CONDITION_EQ,
                -1,
                handler,
                arg,
            )
        }
        .ok()
    }

    /// Whether this is the thread that calls the runtime's handlers: see [the module](self).
    fn is_handler_thread(&self) -> bool {
        // A thread whose locals are gone calls no handlers.
        CALLS_HANDLERS.try_with(Cell::get).unwrap_or(false)
    }

    fn report(&self, report: Report) {
        if let Some(sink) = &self.sink {
            // A sink that panics would leave a slow path half done.
            let _ = catch_unwind(AssertUnwindSafe(|| sink(report)));
        }
    }
}

std::thread_local! {
    /// Whether this thread calls handlers.
    static CALLS_HANDLERS: Cell<bool> = const { Cell::new(false) };
}

/// What HSA calls once, on the thread that calls its handlers.
unsafe extern "C" fn on_handlers_thread(_: *mut c_void) {
    let _ = CALLS_HANDLERS.try_with(|calls| calls.set(true));
}

/// What HSA calls when a queue's `ready` signal is -1. `arg` is the queue's id, not an address.
unsafe extern "C" fn on_ready(_: hsa_signal_value_t, arg: *mut c_void) -> bool {
    // SAFETY: it has no requirements.
    unsafe { on_handlers_thread(ptr::null_mut()) };
    let queue = QueueId::from_raw(arg.addr() as u64);
    keep_despite_panic(|| {
        let serializer = REGISTRY.find(queue.instance());
        serializer.is_some_and(|serializer| serializer.ready(queue).keep())
    })
}

/// A panic may not cross into C. One in a handler is a fault of this crate; the handler stays, since
/// a queue whose handler goes is blocked for ever.
fn keep_despite_panic(answer: impl FnOnce() -> bool + UnwindSafe) -> bool {
    catch_unwind(answer).unwrap_or(true)
}

impl Drop for HsaRuntime {
    fn drop(&mut self) {
        if let Some(instance) = self.instance.get() {
            REGISTRY.remove(*instance);
        }
    }
}

impl fmt::Debug for HsaRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HsaRuntime")
            .field("agent", &self.agent)
            .field("reports", &self.sink.is_some())
            .field("serializer", &self.instance.get())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_the_handler_ends_there_and_the_handler_stays() {
        assert!(keep_despite_panic(|| panic!("a fault of this crate")));
        assert!(!keep_despite_panic(|| false));
        assert!(keep_despite_panic(|| true));
    }
}
