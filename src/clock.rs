//! The time, for waiting times: off the unserialized hot path alone.

use std::time::Duration;

/// The time since the process's first look at it, on the system's monotonic clock.
#[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
pub(crate) fn now() -> Duration {
    use std::ptr;
    use std::sync::atomic::{AtomicPtr, Ordering};
    use std::time::Instant;

    // Not a `OnceLock`, which would have the child of a fork in that moment wait for a thread that it
    // has not got.
    static BEGAN: AtomicPtr<Instant> = AtomicPtr::new(ptr::null_mut());

    #[cold]
    fn begin() -> *mut Instant {
        let new = Box::into_raw(Box::new(Instant::now()));
        let none = ptr::null_mut();
        // AcqRel: who finds this one sees what it holds; who lost sees the other's.
        match BEGAN.compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: made by `Box::into_raw` above, and nobody else has it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        }
    }

    // Acquire: what its maker wrote.
    let mut began = BEGAN.load(Ordering::Acquire);
    if began.is_null() {
        began = begin();
    }
    // SAFETY: it is set once, to what `Box::into_raw` gave, and never freed.
    unsafe { *began }.elapsed()
}

/// In models no time passes.
#[cfg(any(hsa_serializer_loom, hsa_serializer_shuttle))]
pub(crate) fn now() -> Duration {
    Duration::ZERO
}
