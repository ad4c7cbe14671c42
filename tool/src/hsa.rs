//! The runtime's functions as calls that answer a `Result`.

use crate::calls::{self, CallId};
use hsa_sys::{
    Api, HSA_AGENT_INFO_DEVICE, HSA_AGENT_INFO_QUEUE_MAX_SIZE, HSA_DEVICE_TYPE_GPU,
    SignalCondition, amd_signal_t, hsa_agent_info_t, hsa_agent_t,
    hsa_amd_profiling_dispatch_time_t, hsa_device_type_t, hsa_queue_t, hsa_signal_t,
    hsa_signal_value_t, hsa_status_t,
};
use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The runtime's functions, as far as a profiler needs them beside its serializer.
///
/// Its methods take handles, which nobody can check: see [`new`](Self::new).
#[derive(Clone, Copy, Debug)]
pub struct Hsa {
    api: Api,
}

impl Hsa {
    /// Over these functions.
    ///
    /// # Safety
    /// Whoever holds this or a copy calls it only while the runtime is initialized and its library
    /// is loaded, and only with handles of signals and agents that are alive.
    #[must_use]
    pub const unsafe fn new(api: Api) -> Self {
        Self { api }
    }

    /// The functions themselves.
    #[must_use]
    pub const fn api(&self) -> &Api {
        &self.api
    }

    /// Has the thread that runs handlers say that it is the one, before it runs any that is registered later: the
    /// application's own may come first, and submit kernels.
    pub fn find_handlers_thread(&self) {
        // SAFETY: see `new`; nothing is behind the argument. Where it is refused, the thread is known by the first
        // handler of ours.
        let _ = unsafe { (self.api.hsa_amd_async_function)(calls::say_who, std::ptr::null_mut()) };
    }

    /// Makes a signal that the host may wait for: it takes a kernel event.
    ///
    /// # Errors
    /// What the runtime answered.
    pub fn create_interrupt(
        &self,
        initial: hsa_signal_value_t,
    ) -> Result<hsa_signal_t, hsa_status_t> {
        let mut signal = hsa_signal_t::NULL;
        let none = std::ptr::null();
        // SAFETY: no consumers are named; `signal` is written where the call succeeds.
        unsafe { (self.api.hsa_signal_create)(initial, 0, none, &raw mut signal) }.ok()?;
        if signal.is_null() {
            // Some versions have called that a success.
            return Err(hsa_status_t::ERROR_OUT_OF_RESOURCES);
        }
        Ok(signal)
    }

    /// Destroys a signal.
    ///
    /// # Errors
    /// What the runtime answered.
    pub fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        // SAFETY: see `new`.
        unsafe { (self.api.hsa_signal_destroy)(signal) }.ok()
    }

    /// A signal's value, with acquire semantics.
    #[must_use]
    pub fn load(&self, signal: hsa_signal_t) -> hsa_signal_value_t {
        // SAFETY: see `new`.
        unsafe { (self.api.hsa_signal_load_scacquire)(signal) }
    }

    /// Stores a signal's value, with release semantics.
    pub fn store(&self, signal: hsa_signal_t, value: hsa_signal_value_t) {
        // SAFETY: see `new`.
        unsafe { (self.api.hsa_signal_store_screlease)(signal, value) }
    }

    /// Subtracts from a signal's value, with release semantics.
    pub fn subtract(&self, signal: hsa_signal_t, value: hsa_signal_value_t) {
        // SAFETY: see `new`.
        unsafe { (self.api.hsa_signal_subtract_screlease)(signal, value) }
    }

    /// Has a call made, on the runtime's own thread, whenever the condition holds.
    ///
    /// # Errors
    /// What the runtime answered.
    pub fn on_signal(
        &self,
        signal: hsa_signal_t,
        condition: SignalCondition,
        value: hsa_signal_value_t,
        call: CallId,
    ) -> Result<(), hsa_status_t> {
        let register = self.api.hsa_amd_signal_async_handler;
        let argument = call.argument();
        // SAFETY: `handle` can be called at any time, with any number.
        unsafe { register(signal, condition.into(), value, calls::handle, argument) }.ok()
    }

    /// Copies what the packet processor wrote about a kernel's start and end from one signal to
    /// another, whose owner may ask the runtime for it.
    pub fn copy_times(&self, from: hsa_signal_t, to: hsa_signal_t) {
        // SAFETY: see `new`.
        let (from, to) = unsafe { (times_of(from), times_of(to)) };
        for (from, to) in from.into_iter().zip(to) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }

    /// When the kernel ran that completed a signal last, in ticks of its GPU's own clock: exact among the
    /// kernels of one GPU. `None` if nobody has written it since the times were cleared.
    #[must_use]
    pub fn ticks(&self, signal: hsa_signal_t) -> Option<[u64; 2]> {
        // SAFETY: see `new`.
        let times = unsafe { times_of(signal) }.map(|time| time.load(Relaxed));
        (times[0] != 0).then_some(times)
    }

    /// Forgets the times of a kernel that had the signal.
    pub fn clear_times(&self, signal: hsa_signal_t) {
        // SAFETY: see `new`.
        for time in unsafe { times_of(signal) } {
            time.store(0, Relaxed);
        }
    }

    /// The GPUs.
    ///
    /// # Errors
    /// What the runtime answered.
    pub fn gpus(&self) -> Result<Vec<hsa_agent_t>, hsa_status_t> {
        self.agents(HSA_DEVICE_TYPE_GPU)
    }

    /// The agents of one kind.
    ///
    /// # Errors
    /// What the runtime answered.
    pub fn agents(&self, kind: hsa_device_type_t) -> Result<Vec<hsa_agent_t>, hsa_status_t> {
        unsafe extern "C" fn push(agent: hsa_agent_t, agents: *mut c_void) -> hsa_status_t {
            // SAFETY: it is the vector that was given to the iteration below, which is still under
            // way.
            unsafe { &mut *agents.cast::<Vec<hsa_agent_t>>() }.push(agent);
            hsa_status_t::SUCCESS
        }
        let mut agents = Vec::<hsa_agent_t>::new();
        let argument = (&raw mut agents).cast();
        // SAFETY: `push` is called during this call alone, with that vector.
        unsafe { (self.api.hsa_iterate_agents)(push, argument) }.ok()?;
        let mut found = Vec::new();
        for agent in agents {
            if self.info::<hsa_device_type_t>(agent, HSA_AGENT_INFO_DEVICE)? == kind {
                found.push(agent);
            }
        }
        Ok(found)
    }

    /// The most packets that a queue of the agent can have.
    ///
    /// # Errors
    /// What the runtime answered.
    pub fn longest_ring(&self, agent: hsa_agent_t) -> Result<u32, hsa_status_t> {
        self.info(agent, HSA_AGENT_INFO_QUEUE_MAX_SIZE)
    }

    /// Whether the kernels of a queue write their times to their completion signals.
    ///
    /// # Errors
    /// What the runtime answered.
    ///
    /// # Safety
    /// The queue lives.
    pub unsafe fn profile(&self, queue: *mut hsa_queue_t, on: bool) -> Result<(), hsa_status_t> {
        let set = self.api.hsa_amd_profiling_set_profiler_enabled;
        // SAFETY: the caller's promise.
        unsafe { set(queue, i32::from(on)) }.ok()
    }

    /// When the kernel ran that completed a signal last, if its queue profiled.
    ///
    /// # Errors
    /// What the runtime answered.
    pub fn times(
        &self,
        agent: hsa_agent_t,
        signal: hsa_signal_t,
    ) -> Result<hsa_amd_profiling_dispatch_time_t, hsa_status_t> {
        let mut times = hsa_amd_profiling_dispatch_time_t::default();
        let get = self.api.hsa_amd_profiling_get_dispatch_time;
        // SAFETY: see `new`; `times` is written where the call succeeds.
        unsafe { get(agent, signal, &raw mut times) }.ok()?;
        Ok(times)
    }

    /// What an agent says of itself.
    ///
    /// # Errors
    /// What the runtime answered.
    pub(crate) fn info<T: Default>(
        &self,
        agent: hsa_agent_t,
        attribute: hsa_agent_info_t,
    ) -> Result<T, hsa_status_t> {
        let mut answer = T::default();
        let place = (&raw mut answer).cast();
        // SAFETY: the callers above name the type that the attribute has.
        unsafe { (self.api.hsa_agent_get_info)(agent, attribute, place) }.ok()?;
        Ok(answer)
    }
}

/// Where the packet processor writes a kernel's start and end, in ticks of its own.
///
/// # Safety
/// The signal lives, and is not destroyed while what is returned is used.
unsafe fn times_of<'a>(signal: hsa_signal_t) -> [&'a AtomicU64; 2] {
    [
        offset_of!(amd_signal_t, start_ts),
        offset_of!(amd_signal_t, end_ts),
    ]
    .map(|offset| {
        let start = std::ptr::with_exposed_provenance_mut::<u8>(signal.handle as usize);
        // SAFETY: a handle is the address of its structure; the fields are integers that others read and
        // write at any time, so they are accessed atomically.
        unsafe { AtomicU64::from_ptr(start.add(offset).cast()) }
    })
}
