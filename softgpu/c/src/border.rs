//! The border to C.

use hsa_sys::hsa_status_t;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a C program gives its callbacks.
///
/// A method takes it out, so that closures take the whole, which may go to other threads.
#[derive(Clone, Copy)]
pub(crate) struct Userdata(*mut c_void);

// SAFETY: the header says that callbacks are called on other threads, with it.
unsafe impl Send for Userdata {}

impl Userdata {
    pub(crate) fn new(userdata: *mut c_void) -> Self {
        Self(userdata)
    }

    pub(crate) fn get(self) -> *mut c_void {
        self.0
    }
}

/// Runs `work`; a panic comes to `otherwise`.
pub(crate) fn or<R>(otherwise: R, work: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

/// Runs `work`, as a status.
pub(crate) fn status(work: impl FnOnce() -> Result<(), hsa_status_t>) -> u32 {
    or(hsa_status_t::ERROR.0, || match work() {
        Ok(()) => hsa_status_t::SUCCESS.0,
        Err(status) => status.0,
    })
}
