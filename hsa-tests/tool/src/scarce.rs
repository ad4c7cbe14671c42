//! A runtime that has no signals left, for a tool that is loaded later: creating one fails, or, every second time,
//! succeeds without a signal.

use hsa_sys::{
    Api, TableError, Tables, functions, hsa_agent_t, hsa_signal_t, hsa_signal_value_t, hsa_status_t,
};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

/// The functions that were in the tables.
static API: Mutex<Option<Api>> = Mutex::new(None);
/// So many creations are still to fail.
static FAIL: AtomicU32 = AtomicU32::new(0);

/// So many of the next signals are not made.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_test_tool_fail_signals(signals: u32) {
    FAIL.store(signals, SeqCst);
}

pub(crate) fn start(tables: &Tables) -> Result<(), TableError> {
    let saved = Api::from_tables(tables)?;
    *API.lock().unwrap_or_else(PoisonError::into_inner) = Some(saved);
    // SAFETY: each does what the runtime's does, by calling it, or fails; this library stays mapped.
    unsafe {
        tables.replace(functions::hsa_signal_create, create)?;
        tables.replace(functions::hsa_amd_signal_create, amd_create)?;
    }
    Ok(())
}

fn or_fail(signal: *mut hsa_signal_t, make: impl FnOnce(Api) -> hsa_status_t) -> hsa_status_t {
    let less = |left: u32| left.checked_sub(1);
    if let Ok(left) = FAIL.fetch_update(SeqCst, SeqCst, less) {
        // SAFETY: the caller's place for it.
        unsafe { signal.write(hsa_signal_t::NULL) };
        return if left % 2 == 0 {
            hsa_status_t::ERROR_OUT_OF_RESOURCES
        } else {
            hsa_status_t::SUCCESS
        };
    }
    let api = *API.lock().unwrap_or_else(PoisonError::into_inner);
    api.map_or(hsa_status_t::ERROR, make)
}

unsafe extern "C" fn create(
    initial: hsa_signal_value_t,
    consumers: u32,
    agents: *const hsa_agent_t,
    signal: *mut hsa_signal_t,
) -> hsa_status_t {
    or_fail(signal, |api| {
        // SAFETY: as our caller called us.
        unsafe { (api.hsa_signal_create)(initial, consumers, agents, signal) }
    })
}

unsafe extern "C" fn amd_create(
    initial: hsa_signal_value_t,
    consumers: u32,
    agents: *const hsa_agent_t,
    attributes: u64,
    signal: *mut hsa_signal_t,
) -> hsa_status_t {
    or_fail(signal, |api| {
        // SAFETY: as our caller called us.
        unsafe { (api.hsa_amd_signal_create)(initial, consumers, agents, attributes, signal) }
    })
}
