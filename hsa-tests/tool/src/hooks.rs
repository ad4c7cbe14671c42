//! The functions that replace the runtime's in its tables.

use crate::session::{self, Session};
use hsa_sys::{
    TableError, Tables, functions, hsa_agent_t, hsa_queue_error_callback_t, hsa_queue_t,
    hsa_queue_type32_t, hsa_status_t,
};
use hsa_tests::setup::QueueRequest;
use std::ffi::c_void;
use std::sync::Arc;

/// Puts ours into the tables.
pub(crate) fn install(tables: &Tables) -> Result<(), TableError> {
    // SAFETY: each does what the runtime's does, by calling it, and adds only what a profiler adds;
    // this library stays mapped.
    unsafe {
        tables.replace(functions::hsa_init, init)?;
        tables.replace(functions::hsa_shut_down, shut_down)?;
        tables.replace(functions::hsa_queue_create, queue_create)?;
        tables.replace(functions::hsa_queue_destroy, queue_destroy)?;
        tables.replace(functions::hsa_queue_inactivate, queue_inactivate)?;
    }
    Ok(())
}

/// The session. Whoever calls one of these functions without one uses a runtime that was shut down.
fn with(call: impl FnOnce(&Arc<Session>) -> hsa_status_t) -> hsa_status_t {
    match session::current() {
        Some(session) => call(&session),
        None => hsa_status_t::ERROR_NOT_INITIALIZED,
    }
}

fn status(outcome: Result<(), hsa_status_t>) -> hsa_status_t {
    match outcome {
        Ok(()) => hsa_status_t::SUCCESS,
        Err(status) => status,
    }
}

/// One that does not start the runtime: that one comes before the table is ours.
unsafe extern "C" fn init() -> hsa_status_t {
    with(|session| {
        // SAFETY: it has no requirements.
        let status = unsafe { (session.api.hsa_init)() };
        if status == hsa_status_t::SUCCESS {
            session.user();
        }
        status
    })
}

unsafe extern "C" fn shut_down() -> hsa_status_t {
    with(|session| {
        session.user_gone();
        // SAFETY: as our caller called us.
        unsafe { (session.api.hsa_shut_down)() }
    })
}

unsafe extern "C" fn queue_create(
    agent: hsa_agent_t,
    size: u32,
    kind: hsa_queue_type32_t,
    callback: Option<hsa_queue_error_callback_t>,
    data: *mut c_void,
    private_segment_size: u32,
    group_segment_size: u32,
    queue: *mut *mut hsa_queue_t,
) -> hsa_status_t {
    if queue.is_null() {
        return hsa_status_t::ERROR_INVALID_ARGUMENT;
    }
    let request = QueueRequest {
        agent,
        size,
        kind,
        callback,
        data,
        private_segment_size,
        group_segment_size,
    };
    with(|session| {
        // SAFETY: as our caller called us.
        let made = unsafe { session.profiler.create_queue(request) };
        // SAFETY: our caller's place for it.
        status(made.map(|made| unsafe { queue.write(made) }))
    })
}

unsafe extern "C" fn queue_destroy(queue: *mut hsa_queue_t) -> hsa_status_t {
    // SAFETY: as our caller called us.
    with(|session| status(unsafe { session.profiler.destroy_queue(queue) }))
}

unsafe extern "C" fn queue_inactivate(queue: *mut hsa_queue_t) -> hsa_status_t {
    // SAFETY: as our caller called us.
    with(|session| status(unsafe { session.profiler.inactivate_queue(queue) }))
}
