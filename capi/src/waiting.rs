//! Drains and cuts: waiting for what is in flight.

use crate::handle::{hsa_serializer_cut_t, hsa_serializer_t};
use crate::objects::{self, Objects};
use crate::runtime::CRuntime;
use crate::serializer::{self, output};
use crate::status::{
    HSA_SERIALIZER_BUSY, HSA_SERIALIZER_NULL_POINTER, HSA_SERIALIZER_STALE_HANDLE,
    HSA_SERIALIZER_TOO_SMALL, Outcome, hsa_serializer_status_t, status,
};
use hsa_serializer::{Cut, DrainError, QueueId};
use std::ffi::c_void;
use std::sync::Mutex;
use std::time::Duration;

/// A queue that is not through, and how many of its dispatches have not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_in_flight_t {
    /// The queue's id.
    pub queue_id: u64,
    /// How many.
    pub dispatches: u64,
}

/// Who is told which queues are stuck: an array that lives for the call. It may call whatever its caller may.
#[allow(non_camel_case_types, reason = "the names are C's")]
pub type hsa_serializer_stuck_fn = Option<
    unsafe extern "C" fn(
        userdata: *mut c_void,
        stuck: *const hsa_serializer_in_flight_t,
        count: usize,
    ),
>;

pub(crate) fn in_flight(queues: &[(QueueId, u64)]) -> Vec<hsa_serializer_in_flight_t> {
    let of = |&(queue, dispatches): &(QueueId, u64)| hsa_serializer_in_flight_t {
        queue_id: queue.to_raw(),
        dispatches,
    };
    queues.iter().map(of).collect()
}

/// Waits until everything that is in flight now has been completed, or its queue is gone, for `timeout_ns`
/// nanoseconds at the most. What is dispatched meanwhile is not waited for; it waits, on the GPU, for what is.
/// On time-out `stuck` (which may be null) is told which queues are not through, before this returns.
///
/// It waits: on a thread of the host's own, not in callbacks, interceptors, nor handlers, nor under a lock that
/// one of these takes.
///
/// `HSA_SERIALIZER_TIMED_OUT`, `HSA_SERIALIZER_ON_HANDLER_THREAD`, `HSA_SERIALIZER_NO_SIGNAL`,
/// `HSA_SERIALIZER_NULL_SIGNAL`, `HSA_SERIALIZER_LEFT` (always so in the child of a fork); the handle's, as
/// hsa_serializer_mode().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_drain(
    serializer: hsa_serializer_t,
    timeout_ns: u64,
    stuck: hsa_serializer_stuck_fn,
    userdata: *mut c_void,
) -> hsa_serializer_status_t {
    status(|| {
        let serializer = serializer::find(serializer)?;
        let drained = serializer.drain(Duration::from_nanos(timeout_ns));
        if let (Err(DrainError::TimedOut(queues)), Some(stuck)) = (&drained, stuck) {
            let queues = in_flight(queues);
            // SAFETY: the caller's promise; the array lives through the call.
            unsafe { stuck(userdata, queues.as_ptr(), queues.len()) };
        }
        drained.map_err(|error| (&error).into())
    })
}

static CUTS: Objects<Mutex<Option<Cut<CRuntime>>>> = Objects::new();

/// What is in flight now, to be asked after without waiting: for hosts that wait in a way of their own. It is to
/// be given up by hsa_serializer_cut_end() or hsa_serializer_cut_withdraw().
///
/// Takes the transition lock: from where hsa_serializer_enable() may be called.
///
/// `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_NO_SIGNAL`, `HSA_SERIALIZER_NULL_SIGNAL`,
/// `HSA_SERIALIZER_LEFT`; the handle's, as hsa_serializer_mode().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_cut(
    serializer: hsa_serializer_t,
    cut: *mut hsa_serializer_cut_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(cut) }?;
        let made = serializer::find(serializer)?.cut()?;
        out.write(hsa_serializer_cut_t::new(CUTS.keep(Mutex::new(Some(made)))));
        Ok(())
    })
}

/// The queues that are not through yet. `count` gets how many there are; `queues` gets them. With a `capacity`
/// of 0, `queues` may be null, and `count` is written all the same.
///
/// From any thread, but not in callbacks; one call at a time for one cut.
///
/// `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_TOO_SMALL`, `HSA_SERIALIZER_BUSY`, `HSA_SERIALIZER_NULL_HANDLE`,
/// `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_cut_in_flight(
    cut: hsa_serializer_cut_t,
    queues: *mut hsa_serializer_in_flight_t,
    capacity: usize,
    count: *mut usize,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(count) }?;
        let cut = CUTS.find(cut.number()?)?;
        let held = cut.try_lock().map_err(|_| HSA_SERIALIZER_BUSY)?;
        let left = held
            .as_ref()
            .ok_or(HSA_SERIALIZER_STALE_HANDLE)?
            .in_flight();
        // SAFETY: the caller's promise.
        unsafe { list(&in_flight(&left), queues, capacity) }?;
        out.write(left.len());
        Ok(())
    })
}

/// Writes a list to an array, unless the caller has asked for its length alone.
///
/// # Safety
/// `to` is null, or has room for `capacity` of them.
pub(crate) unsafe fn list<T: Copy>(from: &[T], to: *mut T, capacity: usize) -> Outcome {
    if capacity == 0 {
        return Ok(());
    }
    if to.is_null() {
        return Err(HSA_SERIALIZER_NULL_POINTER);
    }
    if capacity < from.len() {
        return Err(HSA_SERIALIZER_TOO_SMALL);
    }
    for (i, item) in from.iter().enumerate() {
        // SAFETY: the caller's promise; `i` is less than `capacity`.
        unsafe { to.add(i).write_unaligned(*item) };
    }
    Ok(())
}

fn take(cut: hsa_serializer_cut_t) -> Outcome<Cut<CRuntime>> {
    objects::take_from(&CUTS, cut.number()?)
}

/// Gives the handle up. Later work goes on waiting for what was in flight.
///
/// Once, from any thread, but not in callbacks.
///
/// `HSA_SERIALIZER_BUSY`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_cut_end(cut: hsa_serializer_cut_t) -> hsa_serializer_status_t {
    status(|| take(cut).map(drop))
}

/// Lets go what waits for the cut, though something of it is in flight, and gives the handle up. `needed` (which
/// may be null) says whether that was needed. Kernels may run side by side that should not have.
///
/// Once, from where hsa_serializer_enable() may be called.
///
/// `HSA_SERIALIZER_BUSY`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_cut_withdraw(
    cut: hsa_serializer_cut_t,
    needed: *mut bool,
) -> hsa_serializer_status_t {
    status(|| {
        let withdrawn = take(cut)?.withdraw();
        // SAFETY: the caller's promise.
        if let Ok(out) = unsafe { output(needed) } {
            out.write(withdrawn);
        }
        Ok(())
    })
}
