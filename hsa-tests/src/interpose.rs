//! The runtime's functions as a profiler calls them here: counted, refused once the gate is closed,
//! and made to fail where a scenario says so. So the crate's own `HsaRuntime` is used as it is.
//!
//! C functions have no captures: what they need is in one place for the process, and a profiler that
//! is made later takes it over.

use crate::gate::Gate;
use crate::tally::{Kind, Tally};
use hsa_sys::{
    Api, hsa_agent_t, hsa_amd_signal_handler, hsa_signal_condition_t, hsa_signal_t,
    hsa_signal_value_t, hsa_status_t,
};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

/// How a creation is made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The runtime answers that it has none left, in whatever form it is asked.
    Status,
    /// It answers success with the null handle.
    NullHandle,
}

/// What is to fail within a call of this thread.
#[derive(Clone, Copy, Debug)]
pub enum Inject {
    /// Every creation of a signal but so many first ones.
    Signals(u32, Failure),
    /// Every registration of a handler.
    Handlers,
}

thread_local! {
    static INJECT: Cell<Option<Inject>> = const { Cell::new(None) };
}

/// Makes a call in which the runtime fails as said.
pub fn failing<T>(inject: Inject, call: impl FnOnce() -> T) -> T {
    INJECT.set(Some(inject));
    let answer = call();
    INJECT.set(None);
    answer
}

/// The failure that is due for a creation now.
fn due() -> Option<Failure> {
    match INJECT.get() {
        Some(Inject::Signals(0, failure)) => Some(failure),
        Some(Inject::Signals(n, failure)) => {
            INJECT.set(Some(Inject::Signals(n - 1, failure)));
            None
        }
        Some(Inject::Handlers) | None => None,
    }
}

/// Nobody is to be held, or the next one, or somebody is.
const FREE: u8 = 0;
const NEXT: u8 = 1;
const HELD: u8 = 2;

static HOLD: AtomicU8 = AtomicU8::new(FREE);

/// Holds whoever stores to a signal next, until told to let go.
pub fn hold(on: bool) {
    HOLD.store(if on { NEXT } else { FREE }, SeqCst);
}

/// Whether somebody is held.
#[must_use]
pub fn is_held() -> bool {
    HOLD.load(SeqCst) == HELD
}

/// What the functions need.
struct Session {
    api: Api,
    gate: Arc<Gate>,
    tally: Arc<Tally>,
    /// Destructions so far, where some are to be left out.
    leaks: Option<AtomicU64>,
}

static CALLS: AtomicU64 = AtomicU64::new(0);

/// How often serializers have called the runtime in this process, be it in vain because the gate was
/// closed.
#[must_use]
pub fn calls() -> u64 {
    CALLS.load(Relaxed)
}

static SESSION: RwLock<Option<Arc<Session>>> = RwLock::new(None);

/// The functions of `api` for a profiler with this gate and tally; one that `leaks` never destroys one
/// signal in 20. Those of a profiler that was made before go the same way from now on, so nothing of it
/// may be left that calls them.
#[must_use]
pub fn interpose(api: Api, gate: Arc<Gate>, tally: Arc<Tally>, leaks: bool) -> Api {
    let session = Arc::new(Session {
        api,
        gate,
        tally,
        leaks: leaks.then(AtomicU64::default),
    });
    *SESSION.write().unwrap_or_else(PoisonError::into_inner) = Some(session);
    let mut api = api;
    api.hsa_signal_create = signal_create;
    api.hsa_amd_signal_create = amd_signal_create;
    api.hsa_signal_destroy = signal_destroy;
    api.hsa_signal_store_screlease = signal_store_screlease;
    api.hsa_signal_cas_scacq_screl = signal_cas_scacq_screl;
    api.hsa_amd_signal_async_handler = signal_async_handler;
    api
}

/// Calls with the session, inside its gate; `None` where there is none, or the gate is closed.
fn inside<T>(call: impl FnOnce(&Session) -> T) -> Option<T> {
    let session = {
        let session = SESSION.read().unwrap_or_else(PoisonError::into_inner);
        session.clone()?
    };
    CALLS.fetch_add(1, Relaxed);
    let _inside = session.gate.enter()?;
    Some(call(&session))
}

/// Creates by `create`, unless a failure is due, and counts what was made.
fn create(
    kind: Kind,
    signal: *mut hsa_signal_t,
    create: impl FnOnce(&Api) -> hsa_status_t,
) -> hsa_status_t {
    match due() {
        Some(Failure::Status) => return hsa_status_t::ERROR_OUT_OF_RESOURCES,
        Some(Failure::NullHandle) => {
            // SAFETY: the caller's place for the handle.
            unsafe { signal.write(hsa_signal_t::NULL) };
            return hsa_status_t::SUCCESS;
        }
        None => {}
    }
    let status = inside(|session| {
        let status = create(&session.api);
        if status == hsa_status_t::SUCCESS {
            // SAFETY: the function has written it.
            session.tally.created(kind, unsafe { signal.read() });
        }
        status
    });
    status.unwrap_or(hsa_status_t::ERROR_NOT_INITIALIZED)
}

unsafe extern "C" fn signal_create(
    initial: hsa_signal_value_t,
    consumers: u32,
    named: *const hsa_agent_t,
    signal: *mut hsa_signal_t,
) -> hsa_status_t {
    let kind = if consumers == 0 {
        Kind::Ready
    } else {
        Kind::GpuOnly
    };
    create(kind, signal, |api| {
        // SAFETY: as our caller called us.
        unsafe { (api.hsa_signal_create)(initial, consumers, named, signal) }
    })
}

unsafe extern "C" fn amd_signal_create(
    initial: hsa_signal_value_t,
    consumers: u32,
    named: *const hsa_agent_t,
    attributes: u64,
    signal: *mut hsa_signal_t,
) -> hsa_status_t {
    create(Kind::GpuOnly, signal, |api| {
        // SAFETY: as our caller called us.
        unsafe { (api.hsa_amd_signal_create)(initial, consumers, named, attributes, signal) }
    })
}

unsafe extern "C" fn signal_destroy(signal: hsa_signal_t) -> hsa_status_t {
    let status = inside(|session| {
        if let Some(destroyed) = &session.leaks {
            if destroyed.fetch_add(1, Relaxed) % 20 == 19 {
                return hsa_status_t::SUCCESS;
            }
        }
        session.tally.destroyed(signal);
        // SAFETY: as our caller called us.
        unsafe { (session.api.hsa_signal_destroy)(signal) }
    });
    // Closed: the runtime that it belonged to is gone, and the signal with it.
    status.unwrap_or(hsa_status_t::SUCCESS)
}

unsafe extern "C" fn signal_store_screlease(signal: hsa_signal_t, value: hsa_signal_value_t) {
    if HOLD.compare_exchange(NEXT, HELD, SeqCst, SeqCst).is_ok() {
        while is_held() {
            thread::sleep(Duration::from_micros(50));
        }
    }
    inside(|session| {
        // SAFETY: as our caller called us.
        unsafe { (session.api.hsa_signal_store_screlease)(signal, value) }
    });
}

unsafe extern "C" fn signal_cas_scacq_screl(
    signal: hsa_signal_t,
    expected: hsa_signal_value_t,
    value: hsa_signal_value_t,
) -> hsa_signal_value_t {
    let seen = inside(|session| {
        // SAFETY: as our caller called us.
        unsafe { (session.api.hsa_signal_cas_scacq_screl)(signal, expected, value) }
    });
    // A value that no caller expects: the exchange has failed.
    seen.unwrap_or(hsa_signal_value_t::MIN)
}

unsafe extern "C" fn signal_async_handler(
    signal: hsa_signal_t,
    condition: hsa_signal_condition_t,
    value: hsa_signal_value_t,
    handler: hsa_amd_signal_handler,
    argument: *mut c_void,
) -> hsa_status_t {
    if matches!(INJECT.get(), Some(Inject::Handlers)) {
        return hsa_status_t::ERROR_OUT_OF_RESOURCES;
    }
    let status = inside(|session| {
        let register = session.api.hsa_amd_signal_async_handler;
        // SAFETY: as our caller called us.
        unsafe { register(signal, condition, value, handler, argument) }
    });
    status.unwrap_or(hsa_status_t::ERROR_NOT_INITIALIZED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_creations_pass_before_all_fail_and_only_within_the_call() {
        let failures = failing(Inject::Signals(1, Failure::Status), || {
            [due(), due(), due()]
        });
        let failure = Some(Failure::Status);
        assert_eq!(failures, [None, failure, failure]);
        assert_eq!(due(), None);
    }
}
