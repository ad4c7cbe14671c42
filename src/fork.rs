//! Whether this process is the child of a `fork` since something was made.
//!
//! A child has a copy of everything and none of the other threads: locks may be held by nobody, and the
//! HSA runtime must not be called. So a serializer that finds itself in a child is *left*, as if the
//! host had said [`leave`](crate::Serializer::leave). Children that were made without running the
//! handlers of `pthread_atfork` (a bare `clone` or `vfork`) are not noticed: they exec or exit.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many forks lead from the first process that made a serializer to this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The number by which what is made now knows its own process.
#[cfg(all(unix, not(any(hsa_serializer_loom, hsa_serializer_shuttle))))]
pub(crate) fn watch() -> u32 {
    use std::ffi::c_int;
    use std::sync::atomic::AtomicBool;

    unsafe extern "C" {
        /// POSIX. The C library takes the handler back where the object that it is in is unloaded.
        fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> c_int;
    }

    extern "C" fn child() {
        // Relaxed: the child has one thread. An atomic addition may be done after a fork.
        FORKS.fetch_add(1, Ordering::Relaxed);
    }

    // Not a `Once`, which would have the child of a fork in this moment wait for a thread that it has
    // not got.
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    if !REGISTERED.load(Ordering::Acquire) {
        // Twice, where two threads come here at once, is as good: the numbers only have to differ.
        // SAFETY: the handler does one atomic addition. Where there is no memory for it, forks are
        // not noticed, and the host can still say `leave`.
        unsafe { pthread_atfork(None, None, Some(child)) };
        // Afterwards: who finds it said may fork at once. Release: it has been done by then.
        REGISTERED.store(true, Ordering::Release);
    }
    number()
}

/// Model checkers do not fork.
#[cfg(not(all(unix, not(any(hsa_serializer_loom, hsa_serializer_shuttle)))))]
pub(crate) fn watch() -> u32 {
    number()
}

/// This process's number.
#[inline]
pub(crate) fn number() -> u32 {
    // Relaxed: it changes while the process has one thread.
    FORKS.load(Ordering::Relaxed)
}
