//! A serializer as profilers have had it until now: a reader-writer lock, maps, a deque of
//! barriers, counting and asking in two steps.
//!
//! It is the yardstick for tests, examples and benchmarks, and is meant for nothing else. It shows
//! the faults R0 to R5 of the crate's scenarios because of the order of its locks and steps, not of
//! a sleep or a planted line.
//!
//! # How it is used
//! | what happens | calls, in this order |
//! |---|---|
//! | a kernel is dispatched | [`Queue::started`], then [`ProfilerSerializer::kernel_dispatch`] |
//! | it has completed | [`ProfilerSerializer::kernel_completion`], then [`Queue::ended`] |
//! | a queue's `ready` signal fires | [`ProfilerSerializer::queue_ready`] |
//! | a queue comes or goes | [`ProfilerSerializer::add_queue`], [`ProfilerSerializer::destroy_queue`] |
//! | profiling goes on or off | [`ProfilerSerializer::enable`], [`ProfilerSerializer::disable`] |
//!
//! The two steps of a dispatch, and of a completion, are calls of their own because they are in the
//! original: each takes another lock, and anything may happen in between.

mod barrier;
mod packet;
mod queue;
mod serializer;

pub use barrier::HsaBarrier;
pub use queue::Queue;
pub use serializer::{Packets, ProfilerSerializer, Statistics};

use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// When a barrier is destroyed, and with it its signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retire {
    /// Once it is complete, whoever may still wait for its signal (R0).
    Eager,
    /// Once it is complete and every queue that it was handed to has completed past its packet.
    Drained,
}

// A test that fails under a lock says so itself; the others go on.

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
