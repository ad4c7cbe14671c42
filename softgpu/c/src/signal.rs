//! Signals, and who hears of them.

use crate::border::{Userdata, or, status};
use crate::machine::softgpu_t;
use hsa_sys::{SignalCondition, hsa_signal_t, hsa_status_t};
use softgpu::{SignalKind, SignalPool};
use std::cell::Cell;
use std::ffi::c_void;
use std::time::Duration;

pub type softgpu_handler_fn =
    Option<unsafe extern "C" fn(userdata: *mut c_void, value: i64) -> bool>;

thread_local! {
    /// Whether this thread has called a handler; such a thread does nothing else.
    static CALLS_HANDLERS: Cell<bool> = const { Cell::new(false) };
}

/// # Safety
/// A machine that lives.
unsafe fn signals<'a>(gpu: *mut softgpu_t) -> &'a SignalPool {
    // SAFETY: the caller's promise.
    unsafe { (*gpu).gpu.signals() }
}

const fn named(signal: u64) -> hsa_signal_t {
    hsa_signal_t { handle: signal }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_signal_create(
    gpu: *mut softgpu_t,
    kind: u32,
    initial: i64,
    signal: *mut u64,
) -> u32 {
    status(|| {
        let kind = match kind {
            0 => SignalKind::GpuOnly,
            1 => SignalKind::Interrupt,
            _ => return Err(hsa_status_t::ERROR_INVALID_ARGUMENT),
        };
        // SAFETY: a machine that lives, and room for a handle, says the header.
        unsafe { signal.write(signals(gpu).create(initial, kind)?.handle) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_signal_destroy(gpu: *mut softgpu_t, signal: u64) -> u32 {
    // SAFETY: a machine that lives, says the header.
    status(|| unsafe { signals(gpu).destroy(named(signal)) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_signal_load(gpu: *mut softgpu_t, signal: u64) -> i64 {
    // SAFETY: a machine that lives, says the header.
    or(0, || unsafe { signals(gpu).load(named(signal)) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_signal_store(gpu: *mut softgpu_t, signal: u64, value: i64) {
    // SAFETY: a machine that lives, says the header.
    or((), || unsafe { signals(gpu).store(named(signal), value) });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_signal_subtract(gpu: *mut softgpu_t, signal: u64, value: i64) {
    // SAFETY: a machine that lives, says the header.
    or((), || unsafe {
        signals(gpu).subtract(named(signal), value);
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_signal_compare_exchange(
    gpu: *mut softgpu_t,
    signal: u64,
    expected: i64,
    desired: i64,
) -> i64 {
    // SAFETY: a machine that lives, says the header.
    or(0, || unsafe {
        signals(gpu).compare_exchange(named(signal), expected, desired)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_signal_wait(
    gpu: *mut softgpu_t,
    signal: u64,
    below: i64,
    timeout_ns: u64,
) -> bool {
    or(false, || {
        let timeout = Duration::from_nanos(timeout_ns);
        // SAFETY: a machine that lives, says the header.
        let signals = unsafe { signals(gpu) };
        signals.wait(named(signal), SignalCondition::Lt, below, timeout) < below
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_signal_on(
    gpu: *mut softgpu_t,
    signal: u64,
    condition: u32,
    compare: i64,
    handler: softgpu_handler_fn,
    userdata: *mut c_void,
) -> u32 {
    let userdata = Userdata::new(userdata);
    status(|| {
        let invalid = hsa_status_t::ERROR_INVALID_ARGUMENT;
        let condition = match condition {
            0 => SignalCondition::Eq,
            1 => SignalCondition::Ne,
            2 => SignalCondition::Lt,
            3 => SignalCondition::Gte,
            _ => return Err(invalid),
        };
        let handler = handler.ok_or(invalid)?;
        let call = move |value| {
            CALLS_HANDLERS.set(true);
            // SAFETY: the header says when and with what it is called.
            unsafe { handler(userdata.get(), value) }
        };
        // SAFETY: a machine that lives, says the header.
        unsafe { signals(gpu) }.on_signal(named(signal), condition, compare, Box::new(call))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn softgpu_is_handler_thread() -> bool {
    CALLS_HANDLERS.try_with(Cell::get).unwrap_or(false)
}
