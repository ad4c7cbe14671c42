//! A full fence that one thread pays for all: Linux's `membarrier`.
//!
//! | | does |
//! |---|---|
//! | [`light`] | keeps the compiler from moving a load before a store |
//! | [`heavy`] | has every thread of the process that runs execute a full fence, where it is |
//!
//! Together they order as two full fences would: whatever a thread has done before its `light`, or does after
//! it, lies on one side of the fence that `heavy` has it execute. Where the kernel has no `membarrier`, or
//! forbids it, `light` is a fence of its own. That is found out once, before anything depends on it.

use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

/// Whether [`heavy`] can be relied on. Set by [`ready`], before the first lease.
static MEMBARRIER: AtomicBool = AtomicBool::new(false);

/// Has the kernel prepare itself. To be called before anything that calls [`light`] is made.
pub(crate) fn ready() {
    if ask(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) {
        // SeqCst: who sees it calls `heavy` or `light` afterwards; it is never taken back.
        MEMBARRIER.store(true, Ordering::SeqCst);
    }
}

/// See the [module](self).
#[inline(always)]
pub(crate) fn light() {
    // Relaxed: what has a lease was made after `ready`, in the same thread or one that heard of it.
    if MEMBARRIER.load(Ordering::Relaxed) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// See the [module](self). False where it was refused, and nothing is ordered.
#[must_use]
pub(crate) fn heavy() -> bool {
    if MEMBARRIER.load(Ordering::Relaxed) {
        return ask(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    }
    fence(Ordering::SeqCst);
    true
}

fn ask(command: libc::c_int) -> bool {
    // SAFETY: the call reads its arguments, and nothing else of the process.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}
