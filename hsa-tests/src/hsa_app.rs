//! What test applications, and the yardstick, call of the runtime besides.

use crate::hsa::Hsa;
use hsa_sys::{
    HSA_AMD_SIGNAL_AMD_GPU_ONLY, HSA_WAIT_STATE_BLOCKED, SignalCondition, amd_signal_t,
    hsa_agent_t, hsa_signal_t, hsa_signal_value_t, hsa_status_t,
};
use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

impl Hsa {
    /// Makes a signal that only packet processors wait for: it takes no kernel event.
    ///
    /// # Errors
    /// What the runtime answered.
    pub fn create_gpu_only(
        &self,
        initial: hsa_signal_value_t,
    ) -> Result<hsa_signal_t, hsa_status_t> {
        let mut signal = hsa_signal_t::NULL;
        let none = std::ptr::null();
        let only = HSA_AMD_SIGNAL_AMD_GPU_ONLY.0;
        // SAFETY: no consumers are named; `signal` is written where the call succeeds.
        unsafe { (self.api().hsa_amd_signal_create)(initial, 0, none, only, &raw mut signal) }
            .ok()?;
        Ok(signal)
    }

    /// Replaces a signal's value where it is as expected; returns what it was.
    pub fn compare_exchange(
        &self,
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        desired: hsa_signal_value_t,
    ) -> hsa_signal_value_t {
        // SAFETY: see `new`.
        unsafe { (self.api().hsa_signal_cas_scacq_screl)(signal, expected, desired) }
    }

    /// Waits until a signal is below a value, at most so long. Whether it is.
    #[must_use]
    pub fn wait_below(
        &self,
        signal: hsa_signal_t,
        value: hsa_signal_value_t,
        patience: Duration,
    ) -> bool {
        // Ticks of the runtime's clock, which counts nanoseconds here; nothing depends on more than
        // that it ends.
        let ticks = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        let below = SignalCondition::Lt.into();
        let wait = self.api().hsa_signal_wait_scacquire;
        // SAFETY: see `new`.
        let seen = unsafe { wait(signal, below, value, ticks, HSA_WAIT_STATE_BLOCKED) };
        seen < value
    }

    /// Whether there is a signal of this handle, by what the runtime keeps in its place.
    ///
    /// # Safety
    /// There was one since the runtime was initialized.
    #[must_use]
    pub unsafe fn exists(&self, signal: hsa_signal_t) -> bool {
        let kind = offset_of!(amd_signal_t, kind);
        // SAFETY: a handle is the address of its structure, which stays as long as the runtime does;
        // the field is an integer that others write at any time, so it is accessed atomically.
        let kind = unsafe {
            let start = std::ptr::with_exposed_provenance_mut::<u8>(signal.handle as usize);
            AtomicU64::from_ptr(start.add(kind).cast()).load(Relaxed)
        };
        kind != 0
    }

    /// Copies memory by a copy engine, when the signal `after` is 0, or at once where that is null;
    /// `done` is decremented then.
    ///
    /// # Errors
    /// What the runtime answered.
    ///
    /// # Safety
    /// Both can be accessed, for so many bytes, until then.
    pub unsafe fn copy(
        &self,
        (to, to_agent): (*mut c_void, hsa_agent_t),
        (from, from_agent): (*const c_void, hsa_agent_t),
        bytes: usize,
        after: hsa_signal_t,
        done: hsa_signal_t,
    ) -> Result<(), hsa_status_t> {
        let (copy, waits) = (
            self.api().hsa_amd_memory_async_copy,
            u32::from(!after.is_null()),
        );
        let after = if after.is_null() {
            std::ptr::null()
        } else {
            &raw const after
        };
        // SAFETY: the caller's promise; see `new`.
        unsafe { copy(to, to_agent, from, from_agent, bytes, waits, after, done) }.ok()
    }
}
