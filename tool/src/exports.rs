//! What a program may call: `include/hsa_serializer_tool.h`, and two functions of roctx's.
//!
//! The runtime loads the tool for itself, so a program finds these functions by `dlsym` of the library that
//! is loaded already, or, where the tool is in `LD_PRELOAD` too, under their names. Then they also stand
//! before roctx's own functions, which are called as well.

use crate::switch;
use std::ffi::{CStr, c_int, c_void};

/// Kernels are no longer serialized. Returns 0; or -1 where that failed, which is said on standard error.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_tool_pause() -> c_int {
    said(switch::set(false))
}

/// Kernels are serialized from now on. Returns 0; or -1 where that failed, which is said on standard
/// error.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_tool_resume() -> c_int {
    said(switch::set(true))
}

fn said(outcome: Result<(), String>) -> c_int {
    match outcome {
        Ok(()) => 0,
        Err(e) => {
            say!("{e}");
            -1
        }
    }
}

/// A function of roctx's that takes a thread's number: 0 for all. Kernels of different threads run on one
/// GPU, so here it is always all.
type Roctx = unsafe extern "C" fn(u64) -> c_int;

/// `roctxProfilerPause` of `roctx.h`.
///
/// # Safety
/// As roctx's own, which is called too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxProfilerPause(thread: u64) -> c_int {
    let paused = hsa_serializer_tool_pause();
    // SAFETY: it is of this type, if it is there.
    unsafe { behind(c"roctxProfilerPause", thread, paused) }
}

/// `roctxProfilerResume` of `roctx.h`.
///
/// # Safety
/// As roctx's own, which is called too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxProfilerResume(thread: u64) -> c_int {
    let resumed = hsa_serializer_tool_resume();
    // SAFETY: it is of this type, if it is there.
    unsafe { behind(c"roctxProfilerResume", thread, resumed) }
}

/// Calls the function that this library stands before, if there is one: another profiler may listen.
///
/// # Safety
/// Every function of this name is one of roctx's.
unsafe fn behind(name: &CStr, thread: u64, outcome: c_int) -> c_int {
    // SAFETY: a string that ends with a zero.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if next.is_null() {
        return outcome;
    }
    // SAFETY: the caller's promise; function pointers have the size of data pointers here.
    let next = unsafe { std::mem::transmute::<*mut c_void, Roctx>(next) };
    // SAFETY: as our caller called us.
    let theirs = unsafe { next(thread) };
    if outcome == 0 { theirs } else { outcome }
}
