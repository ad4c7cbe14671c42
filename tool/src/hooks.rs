//! The functions that replace the runtime's in its tables.
//!
//! Each calls the one that was there before, which may be another tool's.

use crate::process;
use crate::queues::Request;
use crate::session::{self, Session};
use hsa_sys::{
    TableError, Tables, functions, hsa_agent_t, hsa_executable_t, hsa_queue_error_callback_t,
    hsa_queue_t, hsa_queue_type32_t, hsa_status_t,
};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

/// Puts ours into the tables: all of them, or none where one has no place, since without a session they would refuse
/// what the program wants.
///
/// # Safety
/// This library stays mapped.
pub(crate) unsafe fn install(tables: &Tables) -> Result<(), TableError> {
    macro_rules! replace {
        ($($theirs:ident by $ours:ident,)*) => {
            $(tables.get(functions::$theirs)?;)*
            // SAFETY: each does what the runtime's does, by calling it, and adds only what a profiler adds.
            $(unsafe { tables.replace(functions::$theirs, $ours) }?;)*
        };
    }
    replace! {
        hsa_queue_create by queue_create,
        hsa_amd_queue_intercept_create by queue_intercept_create,
        hsa_queue_destroy by queue_destroy,
        hsa_queue_inactivate by queue_inactivate,
        hsa_amd_profiling_set_profiler_enabled by set_profiler_enabled,
        hsa_executable_freeze by executable_freeze,
    }
    Ok(())
}

/// The session. Whoever calls one of these functions without one uses a runtime that was shut down: there is one
/// from the runtime's start to its end, whoever of its users starts it and ends it.
fn with(call: impl FnOnce(&Arc<Session>) -> Result<(), hsa_status_t>) -> hsa_status_t {
    if process::is_child() {
        // Locks that this needs, or the runtime, may be held by threads that only the parent has.
        return hsa_status_t::ERROR_NOT_INITIALIZED;
    }
    match session::current().map(|session| call(&session)) {
        Some(Ok(())) => hsa_status_t::SUCCESS,
        Some(Err(status)) => status,
        None => hsa_status_t::ERROR_NOT_INITIALIZED,
    }
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
    let request = Request {
        agent,
        size,
        kind,
        callback,
        data,
        private_segment_size,
        group_segment_size,
    };
    with(|session| {
        if queue.is_null() {
            return Err(hsa_status_t::ERROR_INVALID_ARGUMENT);
        }
        // SAFETY: as our caller called us.
        let made = unsafe { session.profiler.create_queue(&request) }?;
        // SAFETY: our caller's place for it.
        unsafe { queue.write(made) };
        Ok(())
    })
}

/// Another tool, loaded after this one, makes intercept queues of its own: they are ours, too.
unsafe extern "C" fn queue_intercept_create(
    agent: hsa_agent_t,
    size: u32,
    kind: hsa_queue_type32_t,
    callback: Option<hsa_queue_error_callback_t>,
    data: *mut c_void,
    private_segment_size: u32,
    group_segment_size: u32,
    queue: *mut *mut hsa_queue_t,
) -> hsa_status_t {
    // SAFETY: as our caller called us; what it makes is an intercept queue, or an ordinary one of a GPU
    // that is not wanted, and that is made below.
    with(|session| {
        if session.profiler.gpu(agent).is_some() {
            // SAFETY: as our caller called us.
            let made = unsafe {
                queue_create(
                    agent,
                    size,
                    kind,
                    callback,
                    data,
                    private_segment_size,
                    group_segment_size,
                    queue,
                )
            };
            return made.ok();
        }
        let create = session.api.hsa_amd_queue_intercept_create;
        let create = create.ok_or(hsa_status_t::ERROR)?;
        // SAFETY: as our caller called us.
        let made = unsafe {
            create(
                agent,
                size,
                kind,
                callback,
                data,
                private_segment_size,
                group_segment_size,
                queue,
            )
        };
        made.ok()
    })
}

unsafe extern "C" fn queue_destroy(queue: *mut hsa_queue_t) -> hsa_status_t {
    // SAFETY: as our caller called us.
    with(|session| unsafe { session.profiler.destroy_queue(queue) })
}

unsafe extern "C" fn queue_inactivate(queue: *mut hsa_queue_t) -> hsa_status_t {
    // SAFETY: as our caller called us.
    with(|session| unsafe { session.profiler.inactivate_queue(queue) })
}

/// Our queues' kernels write down their times, whoever else has enough of that.
unsafe extern "C" fn set_profiler_enabled(queue: *mut hsa_queue_t, enable: c_int) -> hsa_status_t {
    with(|session| {
        let enable = enable | c_int::from(session.profiler.intercepts(queue));
        // SAFETY: as our caller called us.
        unsafe { (session.api.hsa_amd_profiling_set_profiler_enabled)(queue, enable) }.ok()
    })
}

unsafe extern "C" fn executable_freeze(
    executable: hsa_executable_t,
    options: *const c_char,
) -> hsa_status_t {
    with(|session| {
        // SAFETY: as our caller called us.
        unsafe { (session.api.hsa_executable_freeze)(executable, options) }.ok()?;
        // SAFETY: who has it frozen does not destroy it meanwhile.
        unsafe { session.profiler.take_names(executable) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hsa_sys::{ApiTableVersion, HsaApiTable};
    use std::ptr;

    /// A table of that many bytes, with pointers that nobody follows.
    fn table(size: u32) -> Vec<*mut c_void> {
        let version = [1 | (size as usize) << 32, 0];
        let slots = 1..=size as usize / 8 - version.len();
        let words = version.into_iter().chain(slots);
        words.map(ptr::without_provenance_mut).collect()
    }

    #[test]
    fn where_one_has_no_place_none_is_replaced() {
        // As 5.2.3 has them.
        let (mut core, mut amd_ext) = (table(1016), table(400));
        let intercept_create = 2 + 35;
        amd_ext[intercept_create] = ptr::null_mut();
        let before = (core.clone(), amd_ext.clone());
        let root = HsaApiTable {
            version: ApiTableVersion {
                major_id: 1,
                minor_id: 48,
                ..Default::default()
            },
            core_: core.as_mut_ptr().cast(),
            amd_ext_: amd_ext.as_mut_ptr().cast(),
            finalizer_ext_: ptr::null_mut(),
            image_ext_: ptr::null_mut(),
        };
        // SAFETY: the tables say their sizes truly, and live to the end of the test.
        let tables = unsafe { Tables::from_raw(&raw const root) }.unwrap();
        // SAFETY: nobody calls what is in them.
        assert!(unsafe { install(&tables) }.is_err());
        assert!((core, amd_ext) == before);
    }
}
