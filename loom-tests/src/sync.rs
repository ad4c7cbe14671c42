//! The atomics of the C interface's lease: loom's.

use crate::check::Guard;
use loom::sync::atomic::fence;
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::cell::Cell;

/// Guards of the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The ender has everybody execute a full fence before it looks.
    HeavyFence,
    /// The ender drops the value only if nobody is inside.
    EnderLooks,
    /// The user that leaves drops what was left to it.
    UserLooks,
}

// Of the operating system's thread: loom runs all threads of a model on one.
std::thread_local! {
    static OFF: Cell<Option<Step>> = const { Cell::new(None) };
}

impl Guard for Step {
    fn remove(guard: Option<Self>) {
        OFF.set(guard);
    }
}

pub(crate) fn stands(step: Step) -> bool {
    OFF.get() != Some(step)
}

/// Loom knows no fence that one thread pays for all: here each pays its own, which orders as much.
pub(crate) fn light() {
    fence(Ordering::SeqCst);
}

/// See [`light`]. Never refused.
pub(crate) fn heavy() -> bool {
    fence(Ordering::SeqCst);
    true
}
