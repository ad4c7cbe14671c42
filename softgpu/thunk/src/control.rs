//! What programs under test may ask of the emulation: `softgpu_...`, found with `dlsym`.

use crate::device::device;
use crate::witness::Counts;
use std::ffi::{CStr, c_char, c_int};

/// Copies the counts out, as many bytes of them as there is room for.
///
/// Returns 0, or -1 if there is no room or no machine.
///
/// # Safety
/// `out` is writable for `size` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn softgpu_get_counts(out: *mut u8, size: usize) -> c_int {
    let Ok(device) = device() else {
        return -1;
    };
    if out.is_null() || size == 0 {
        return -1;
    }
    let counts = device.counts();
    let length = size.min(size_of::<Counts>());
    // SAFETY: both are valid for `length` bytes, and do not overlap: one is our local.
    unsafe { std::ptr::copy_nonoverlapping((&raw const counts).cast::<u8>(), out, length) };
    0
}

/// Writes who waits for whom, and what was found, as text that ends with a 0; returns the length
/// that it has without that, whether or not there was room.
///
/// # Safety
/// `buffer` is writable for `size` bytes, or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn softgpu_describe(buffer: *mut c_char, size: usize) -> usize {
    let text = device().map_or_else(str::to_owned, |device| device.describe());
    if !buffer.is_null() && size > 0 {
        let length = text.len().min(size - 1);
        // SAFETY: valid for `length + 1` bytes, and ours do not overlap it.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), length);
            *buffer.add(length) = 0;
        }
    }
    text.len()
}

/// How long a kernel lasts that does not say so itself, in nanoseconds, from now on.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn softgpu_set_kernel_ns(nanoseconds: u64) {
    if let Ok(device) = device() {
        device.set_kernel_ns(nanoseconds);
    }
}

/// Changes a fault, by its name in `SOFTGPU_FAULTS`; returns 0, or -1 if there is no such fault or
/// it can't have this value.
///
/// # Safety
/// `name` is a string that ends with a 0, or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn softgpu_set_fault(name: *const c_char, value: f64) -> c_int {
    let Ok(device) = device() else {
        return -1;
    };
    if name.is_null() {
        return -1;
    }
    // SAFETY: the caller's contract.
    let name = unsafe { CStr::from_ptr(name) };
    let known = name
        .to_str()
        .is_ok_and(|name| device.faults.set(name, value));
    if known { 0 } else { -1 }
}
