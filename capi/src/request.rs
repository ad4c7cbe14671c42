//! Requests: serialization is on while somebody wants it.

use crate::handle::{hsa_serializer_request_t, hsa_serializer_t};
use crate::objects::{self, Objects};
use crate::runtime::CRuntime;
use crate::serializer::{self, hsa_serializer_transition_t, output, tell_transition};
use crate::status::{Outcome, hsa_serializer_status_t, status};
use hsa_serializer::{AgentsRequest, Request, Transition};
use std::sync::Mutex;

/// A guard that C holds.
pub(crate) enum Guard {
    One(Request<CRuntime>),
    Agents {
        #[allow(dead_code, reason = "it is there to be dropped")]
        request: AgentsRequest<CRuntime>,
    },
}

/// Each until it is ended.
static REQUESTS: Objects<Mutex<Option<Guard>>> = Objects::new();

pub(crate) fn keep(guard: Guard) -> hsa_serializer_request_t {
    hsa_serializer_request_t::new(REQUESTS.keep(Mutex::new(Some(guard))))
}

/// Serializes until hsa_serializer_request_end(), whoever else wants it or not. Of several agents:
/// hsa_serializer_agents_request().
///
/// Takes the transition lock: from where hsa_serializer_enable() may be called.
///
/// As hsa_serializer_enable(); `HSA_SERIALIZER_NULL_POINTER`. Nothing is requested then.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_request(
    serializer: hsa_serializer_t,
    request: *mut hsa_serializer_request_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(request) }?;
        let guard = serializer::find(serializer)?.request()?;
        out.write(keep(Guard::One(guard)));
        Ok(())
    })
}

/// Ends a request. It can't fail for want of a signal. `transition` may be null; of a request of agents nothing
/// is known, and it says `HSA_SERIALIZER_UNCHANGED`.
///
/// Once, from where hsa_serializer_enable() may be called. Also when the serializer has ended.
///
/// `HSA_SERIALIZER_BUSY`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_request_end(
    request: hsa_serializer_request_t,
    transition: *mut hsa_serializer_transition_t,
) -> hsa_serializer_status_t {
    status(|| {
        let did = end(request)?;
        // SAFETY: the caller's promise.
        unsafe { tell_transition(transition, did) };
        Ok(())
    })
}

fn end(request: hsa_serializer_request_t) -> Outcome<Transition> {
    match objects::take_from(&REQUESTS, request.number()?)? {
        Guard::One(request) => Ok(request.end()),
        Guard::Agents { .. } => Ok(Transition::Unchanged),
    }
}

/// The same by hand: counts one request. Each is to be given back by one hsa_serializer_release().
///
/// As hsa_serializer_enable().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_acquire(
    serializer: hsa_serializer_t,
    transition: *mut hsa_serializer_transition_t,
) -> hsa_serializer_status_t {
    status(|| {
        let did = serializer::find(serializer)?.acquire()?;
        // SAFETY: the caller's promise.
        unsafe { tell_transition(transition, did) };
        Ok(())
    })
}

/// Gives back what hsa_serializer_acquire() has counted. Requests that have a handle, and the host's own switch,
/// are not touched by it.
///
/// From where hsa_serializer_enable() may be called.
///
/// `HSA_SERIALIZER_UNBALANCED`; the handle's, as hsa_serializer_mode().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_release(
    serializer: hsa_serializer_t,
    transition: *mut hsa_serializer_transition_t,
) -> hsa_serializer_status_t {
    status(|| {
        let did = serializer::find(serializer)?.release()?;
        // SAFETY: the caller's promise.
        unsafe { tell_transition(transition, did) };
        Ok(())
    })
}

/// How many requests there are, those of all agents among them.
///
/// Lock-free; from any thread.
///
/// As hsa_serializer_mode().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_requests(
    serializer: hsa_serializer_t,
    requests: *mut u64,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(requests) }?;
        out.write(serializer::find(serializer)?.requests());
        Ok(())
    })
}
