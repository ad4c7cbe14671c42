//! Whether the calling thread is inside of a `ready` handler, where waiting for a handler, or for a
//! completion that a handler reports, would be waiting for itself.

use std::cell::Cell;

std::thread_local! {
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// Lives as long as the handler runs.
pub(crate) struct Inside(());

impl Inside {
    #[inline]
    pub(crate) fn enter() -> Self {
        // A thread whose locals are gone calls no handlers.
        let _ = INSIDE.try_with(|inside| inside.set(inside.get() + 1));
        Self(())
    }

    /// Whether this thread is inside of one.
    pub(crate) fn is() -> bool {
        INSIDE.try_with(Cell::get).is_ok_and(|inside| inside > 0)
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.set(inside.get() - 1));
    }
}
