//! What the runtime's asynchronous handlers are registered with: a number that is never used again,
//! never a pointer. A handler that runs late finds nothing under its number.

use crate::lock;
use hsa_sys::{hsa_queue_t, hsa_signal_value_t, hsa_status_t};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

/// What a handler does: it is told the signal's value, and says whether it stays registered. A queue's
/// error callback is told the status.
pub type Call = Arc<dyn Fn(hsa_signal_value_t) -> bool + Send + Sync>;

/// The number of a call. Numbers start at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(u64);

static NEXT: AtomicU64 = AtomicU64::new(1);
static LATE: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static HANDLES: Cell<bool> = const { Cell::new(false) };
}

fn calls() -> &'static Mutex<HashMap<u64, Call>> {
    static CALLS: OnceLock<Mutex<HashMap<u64, Call>>> = OnceLock::new();
    CALLS.get_or_init(Mutex::default)
}

impl CallId {
    /// Keeps a call under a new number.
    pub fn of(call: Call) -> Self {
        let id = NEXT.fetch_add(1, Relaxed);
        lock(calls()).insert(id, call);
        Self(id)
    }

    /// Forgets the call. It may be running.
    pub fn forget(self) {
        // Dropped outside of the lock: what it holds may forget calls of its own.
        let call = lock(calls()).remove(&self.0);
        drop(call);
    }

    /// What the handler is registered with.
    #[must_use]
    pub fn argument(self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.0 as usize)
    }
}

/// The function that is registered with every signal. A number is for one registration: it is
/// forgotten when its call does not want to stay.
pub extern "C" fn handle(value: hsa_signal_value_t, argument: *mut c_void) -> bool {
    HANDLES.set(true);
    let stays = run(value, argument);
    if !stays {
        CallId(argument.addr() as u64).forget();
    }
    stays
}

/// The function that is registered as every queue's error callback.
pub extern "C" fn handle_error(
    status: hsa_status_t,
    _queue: *mut hsa_queue_t,
    argument: *mut c_void,
) {
    HANDLES.set(true);
    run(i64::from(status.0), argument);
}

/// What the runtime calls once, when it is asked for its handlers' thread.
pub extern "C" fn say_who(_: *mut c_void) {
    HANDLES.set(true);
}

fn run(value: hsa_signal_value_t, argument: *mut c_void) -> bool {
    let call = lock(calls()).get(&(argument.addr() as u64)).cloned();
    match call {
        Some(call) => call(value),
        None => {
            LATE.fetch_add(1, Relaxed);
            false
        }
    }
}

/// How often a handler ran whose call was forgotten.
#[must_use]
pub fn late() -> u64 {
    LATE.load(Relaxed)
}

/// Whether this thread is the runtime's own that runs handlers: waiting in it stops every completion. It has said
/// so ([`Hsa::find_handlers_thread`](crate::hsa::Hsa::find_handlers_thread)), or has run a handler of ours.
#[must_use]
pub fn on_handlers_thread() -> bool {
    HANDLES.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_does_not_stay_is_forgotten_and_late_after_that() {
        let id = CallId::of(Arc::new(|value| value == 3));
        assert!(handle(3, id.argument()));
        assert!(!handle(4, id.argument()));
        let before = late();
        assert!(!handle(3, id.argument()));
        assert_eq!(late(), before + 1);
        assert!(on_handlers_thread());
    }
}
