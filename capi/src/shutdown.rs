//! The end: in two phases, by force, or by leaving everything as it is.

use crate::handle::hsa_serializer_t;
use crate::runtime::CRuntime;
use crate::serializer::{self, Entry};
use crate::status::{HSA_SERIALIZER_NOT_FINISHED, Outcome, hsa_serializer_status_t, status};
use crate::waiting::{hsa_serializer_in_flight_t, in_flight};
use hsa_serializer::{Remaining, Serializer, ShutdownError};
use std::ffi::c_void;
use std::time::Duration;

/// What a shutdown still waits for.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_remaining_t {
    /// Queues with dispatches that have not completed.
    pub queues: *const hsa_serializer_in_flight_t,
    /// How many queues.
    pub queue_count: usize,
    /// Ready handlers that have not been told to go.
    pub handlers: u64,
    /// Barriers that are not reclaimed.
    pub barriers: u64,
    /// Deferred functions that have not run: a thread sits in a call that uses the same domain.
    pub deferred: u64,
    /// Calls that create signals or deliver reports, and are under way.
    pub calls: u64,
}

/// Who is told what is left; it lives for the call. It may call whatever its caller may.
#[allow(non_camel_case_types, reason = "the names are C's")]
pub type hsa_serializer_remaining_fn = Option<
    unsafe extern "C" fn(userdata: *mut c_void, remaining: *const hsa_serializer_remaining_t),
>;

/// # Safety
/// `told` may be called with `userdata`.
unsafe fn tell(remaining: &Remaining, told: hsa_serializer_remaining_fn, userdata: *mut c_void) {
    let Some(told) = told else {
        return;
    };
    let queues = in_flight(&remaining.queues);
    let remaining = hsa_serializer_remaining_t {
        queues: queues.as_ptr(),
        queue_count: queues.len(),
        handlers: remaining.handlers as u64,
        barriers: remaining.barriers,
        deferred: remaining.deferred as u64,
        calls: remaining.calls as u64,
    };
    // SAFETY: the caller's promise; what it points to lives through the call.
    unsafe { told(userdata, &raw const remaining) };
}

fn entry(serializer: hsa_serializer_t) -> Outcome<(&'static Entry, &'static Serializer<CRuntime>)> {
    serializer::entry(serializer.number()?)
}

/// The first phase of shutting down: from now on dispatches come to `HSA_SERIALIZER_SHUT_DOWN`, and the host
/// passes their kernels on as they are. Serialized kernels that are queued go on being granted. Any number of
/// times.
///
/// Takes the transition lock: from any thread, handlers' included, but not in callbacks.
///
/// The handle's, as hsa_serializer_mode().
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_begin_shutdown(
    serializer: hsa_serializer_t,
) -> hsa_serializer_status_t {
    status(|| {
        entry(serializer)?.1.begin_shutdown();
        Ok(())
    })
}

/// The second phase: waits until everything that was dispatched has completed, removes all queues, hears their
/// handlers go, and destroys every signal; for `timeout_ns` nanoseconds at the most. Begins the shutdown, if
/// that was not done. After `HSA_SERIALIZER_SUCCESS` nothing of this serializer calls the runtime again. On
/// time-out `remaining` (which may be null) is told what is left, before this returns: try again; or say
/// hsa_serializer_release_all() and try again; or hsa_serializer_leave().
///
/// It waits: on a thread of the host's own, as hsa_serializer_drain(). Any number of times.
///
/// `HSA_SERIALIZER_TIMED_OUT`, `HSA_SERIALIZER_ON_HANDLER_THREAD` (the first phase is done then); the
/// handle's, as hsa_serializer_mode().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_finish_shutdown(
    serializer: hsa_serializer_t,
    timeout_ns: u64,
    remaining: hsa_serializer_remaining_fn,
    userdata: *mut c_void,
) -> hsa_serializer_status_t {
    status(|| {
        let (entry, serializer) = entry(serializer)?;
        let finished = serializer.finish_shutdown(Duration::from_nanos(timeout_ns));
        match &finished {
            Ok(()) => entry.ended(),
            // SAFETY: the caller's promise.
            Err(ShutdownError::TimedOut(left)) => unsafe { tell(left, remaining, userdata) },
            Err(_) => {}
        }
        finished.map_err(|error| (&error).into())
    })
}

/// One step of hsa_serializer_finish_shutdown(), which never waits: for hosts that wait in a way of their own.
///
/// Takes the transition lock: from any thread, but not in callbacks.
///
/// `HSA_SERIALIZER_NOT_FINISHED`, having told `remaining` (which may be null) what is left; the handle's, as
/// hsa_serializer_mode().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_try_finish_shutdown(
    serializer: hsa_serializer_t,
    remaining: hsa_serializer_remaining_fn,
    userdata: *mut c_void,
) -> hsa_serializer_status_t {
    status(|| {
        let (entry, serializer) = entry(serializer)?;
        match serializer.try_finish_shutdown() {
            Ok(()) => entry.ended(),
            Err(left) => {
                // SAFETY: the caller's promise.
                unsafe { tell(&left, remaining, userdata) };
                return Err(HSA_SERIALIZER_NOT_FINISHED);
            }
        }
        Ok(())
    })
}

/// The kill switch: lets everything through, now, and serializes nothing any more. There is no way back, and
/// hsa_serializer_finish_shutdown() is still to be said. Any number of times.
///
/// Takes the transition lock: from any thread, but not in callbacks.
///
/// The handle's, as hsa_serializer_mode().
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_release_all(
    serializer: hsa_serializer_t,
) -> hsa_serializer_status_t {
    status(|| {
        entry(serializer)?.1.release_all();
        Ok(())
    })
}

/// Leaves everything as it is: from now on the serializer does not call the runtime any more. For a runtime that
/// is gone already, for the child of a fork (which has left by itself), for a process that ends. While the
/// runtime lives, say hsa_serializer_release_all() first: what is queued and serialized does not run otherwise.
///
/// Wait-free; from anywhere, also in callbacks, signal handlers and pthread_atfork's handlers.
///
/// The handle's, as hsa_serializer_mode().
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_leave(serializer: hsa_serializer_t) -> hsa_serializer_status_t {
    status(|| {
        let (entry, serializer) = entry(serializer)?;
        serializer.leave();
        entry.ended();
        Ok(())
    })
}
