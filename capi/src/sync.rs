//! The atomics of [`lease`](crate::lease), which the loom tests mount with loom's.

pub(crate) use crate::fence::{heavy, light};
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Guards of the protocol, which the loom tests can take away.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    HeavyFence,
    EnderLooks,
    UserLooks,
}

/// Here all of them stand.
#[inline(always)]
pub(crate) const fn stands(_: Step) -> bool {
    true
}
