//! Tells ThreadSanitizer what the standard library's compiled part orders.
//!
//! The installed standard library is not instrumented. What of it is generic or inlined (a lock that is
//! free, a channel's slots, an atomic) is compiled into the program and so is seen; what is not is a
//! blank: a thread that had to wait for a `Mutex` has acquired it unseen, and all that the lock guards
//! looks like a race. Here each such function is wrapped (the linker's `--wrap`) by one that says
//! afterwards, or before, what was acquired or released. Nothing is suppressed, and nothing is ordered
//! that the function does not order itself.
//!
//! Compiled by `cargo xtask sanitize thread` alone, with the toolchain whose library it is for: it
//! repeats the signatures of functions that are the library's own. The xtask finds their symbols, and
//! fails where there is none or the planted faults' twins without a fault are reported.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::OnceState;
use std::time::Duration;

unsafe extern "C" {
    fn __tsan_acquire(at: *const c_void);
    fn __tsan_release(at: *const c_void);
    fn __real___tsan_atomic64_fetch_sub(at: *mut u64, value: u64, order: c_int) -> u64;
    fn __real___tsan_atomic_thread_fence(order: c_int);
}

#[allow(improper_ctypes, reason = "the ABI is Rust's on both sides")]
unsafe extern "Rust" {
    #[link_name = concat!("__real_", env!("LOCK_CONTENDED"))]
    fn real_lock_contended(mutex: *const u32);
    #[link_name = concat!("__real_", env!("READ_CONTENDED"))]
    fn real_read_contended(lock: *const u32);
    #[link_name = concat!("__real_", env!("WRITE_CONTENDED"))]
    fn real_write_contended(lock: *const u32);
    #[link_name = concat!("__real_", env!("CONDVAR_WAIT"))]
    fn real_wait(condvar: *const u32, mutex: *const u32);
    #[link_name = concat!("__real_", env!("CONDVAR_WAIT_TIMEOUT"))]
    fn real_wait_timeout(condvar: *const u32, mutex: *const u32, timeout: Duration) -> bool;
    #[link_name = concat!("__real_", env!("ONCE_CALL"))]
    fn real_call(once: *const u32, poisoned: bool, f: &mut dyn FnMut(&OnceState));
    #[link_name = concat!("__real_", env!("SCOPED_THREAD_ENDED"))]
    fn real_thread_ended(scope: *const usize, panicked: bool);
}

fn acquire<T>(at: *const T) {
    // SAFETY: it takes any address, and only notes it.
    unsafe { __tsan_acquire(at.cast()) };
}

fn release<T>(at: *const T) {
    // SAFETY: as above.
    unsafe { __tsan_release(at.cast()) };
}

/// `sys::sync::Mutex::lock_contended`: its compare-exchange acquires, unseen. Unlocking is inlined.
#[unsafe(export_name = concat!("__wrap_", env!("LOCK_CONTENDED")))]
unsafe fn lock_contended(mutex: *const u32) {
    // SAFETY: the caller's arguments, here and below.
    unsafe { real_lock_contended(mutex) };
    acquire(mutex);
}

/// The same of `sys::sync::RwLock`, whose state is one of its two words, in whichever order the compiler
/// has laid them; the other one orders nothing.
#[unsafe(export_name = concat!("__wrap_", env!("READ_CONTENDED")))]
unsafe fn read_contended(lock: *const u32) {
    // SAFETY: as above.
    unsafe { real_read_contended(lock) };
    acquire(lock);
    acquire(lock.wrapping_add(1));
}

#[unsafe(export_name = concat!("__wrap_", env!("WRITE_CONTENDED")))]
unsafe fn write_contended(lock: *const u32) {
    // SAFETY: as above.
    unsafe { real_write_contended(lock) };
    acquire(lock);
    acquire(lock.wrapping_add(1));
}

/// `sys::sync::Condvar::wait` unlocks and locks.
#[unsafe(export_name = concat!("__wrap_", env!("CONDVAR_WAIT")))]
unsafe fn wait(condvar: *const u32, mutex: *const u32) {
    release(mutex);
    // SAFETY: as above.
    unsafe { real_wait(condvar, mutex) };
    acquire(mutex);
}

#[unsafe(export_name = concat!("__wrap_", env!("CONDVAR_WAIT_TIMEOUT")))]
unsafe fn wait_timeout(condvar: *const u32, mutex: *const u32, timeout: Duration) -> bool {
    release(mutex);
    // SAFETY: as above.
    let in_time = unsafe { real_wait_timeout(condvar, mutex, timeout) };
    acquire(mutex);
    in_time
}

/// `sys::sync::Once::call`: what the closure did is released by whoever ran it, and acquired by whoever
/// waited for that. Finding it complete is inlined.
#[unsafe(export_name = concat!("__wrap_", env!("ONCE_CALL")))]
unsafe fn call(once: *const u32, poisoned: bool, f: &mut dyn FnMut(&OnceState)) {
    let mut then_releases = |state: &OnceState| {
        f(state);
        release(once);
    };
    // SAFETY: as above.
    unsafe { real_call(once, poisoned, &mut then_releases) };
    acquire(once);
}

/// `thread::scoped::ScopeData::decrement_num_running_threads` releases what a scope's thread did to who
/// left it to the scope to wait for it. The counter is one of the first two words, in whichever order
/// the compiler has laid them.
#[unsafe(export_name = concat!("__wrap_", env!("SCOPED_THREAD_ENDED")))]
unsafe fn thread_ended(scope: *const usize, panicked: bool) {
    release(scope);
    release(scope.wrapping_add(1));
    // SAFETY: as above.
    unsafe { real_thread_ended(scope, panicked) };
}

/// As the sanitizer numbers it.
const RELEASE: c_int = 3;

thread_local! {
    static COUNTED_DOWN: Cell<*const c_void> = const { Cell::new(std::ptr::null()) };
}

/// The last handle of an `Arc` is given up by a subtraction that releases and a fence that acquires,
/// which the sanitizer does not model. By the language's rules that fence acquires what the value that
/// the thread has just read was released with.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap___tsan_atomic64_fetch_sub(at: *mut u64, value: u64, order: c_int) -> u64 {
    COUNTED_DOWN.set(at.cast());
    // SAFETY: as above.
    unsafe { __real___tsan_atomic64_fetch_sub(at, value, order) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap___tsan_atomic_thread_fence(order: c_int) {
    // SAFETY: as above.
    unsafe { __real___tsan_atomic_thread_fence(order) };
    let at = COUNTED_DOWN.get();
    if order != RELEASE && !at.is_null() {
        acquire(at);
    }
}
