//! What a debugger can call in a process that hangs.
//!
//! ```text
//! gdb -p PID -batch -ex 'call (void) hsa_serializer_print_all()'
//! ```
//!
//! It prints a [snapshot](crate::Snapshot) of each serializer of the process, whoever made it, to the
//! standard error's descriptor.
//!
//! # What it must not do
//! The thread that the debugger stopped, or one that it waits for, can be anywhere: inside of the runtime,
//! under the host's locks, under the transition lock, pinned, or writing to the standard error stream.
//! - No lock of ours, of the host's or of that stream's is waited for: it writes to the descriptor itself.
//! - Nothing of the runtime's is called but its clock: what its pins find due is left to others, and if it
//!   happens to be the last one that holds a serializer, that goes with the next reclamation.
//! - No panic leaves it.
//!
//! It does allocate. Where the process hangs inside of its allocator, nothing can be printed.
//!
//! # Participants
//! A table of weak handles, replaced as a whole ([`registry`](crate::registry)): a serializer enters it
//! when it is made and leaves it when it is gone.

use crate::domain::Domain;
use crate::registry::Registry;
use crate::runtime::Runtime;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// A serializer, whatever its runtime.
trait Living: Send + Sync {
    fn snapshot(&self) -> Snapshot;
    fn domain(&self) -> Domain;
}

impl<R: Runtime> Living for Shared<R> {
    fn snapshot(&self) -> Snapshot {
        Shared::snapshot(self)
    }

    fn domain(&self) -> Domain {
        self.domain.clone()
    }
}

static ALL: Registry<Weak<dyn Living>> = Registry::new();

/// A serializer was made.
pub(crate) fn born<R: Runtime>(shared: &Arc<Shared<R>>) {
    let living: Arc<dyn Living> = shared.clone();
    ALL.insert(shared.instance, Arc::downgrade(&living));
}

/// It is gone.
pub(crate) fn gone(instance: u32) {
    ALL.remove(instance);
}

/// A [snapshot](crate::Snapshot) of each serializer of the process, in the order in which they were made.
///
/// As for one: no lock, and nothing of any runtime's but its clock.
#[must_use]
pub fn snapshots() -> Vec<Snapshot> {
    let all = ALL.all();
    let living = all.into_iter().filter_map(|weak| weak.upgrade());
    living
        .map(|living| {
            let snapshot = living.snapshot();
            // Were it the last one that holds it, dropping it here would call the runtime.
            living.domain().postpone(move || drop(living));
            snapshot
        })
        .collect()
}

/// Prints a [snapshot](crate::Snapshot) of each serializer of this process to the standard error's
/// descriptor, without a lock: for a debugger to call in a process that hangs, on whatever thread it has
/// stopped. With the feature `debugger`.
///
/// ```text
/// gdb -p PID -batch -ex 'call (void) hsa_serializer_print_all()'
/// ```
///
/// It allocates, and it needs the other threads only if one of them was stopped inside of the allocator.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_print_all() {
    // Nobody is there to be told of a panic.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let mut text = String::new();
        for snapshot in snapshots() {
            text += &format!("{snapshot}\n");
        }
        if text.is_empty() {
            text += "No serializer lives in this process.\n";
        }
        write_error(&text);
    }));
}

/// A debugger finds it also where nobody calls it: the linker keeps what is used.
#[used]
static KEEP: extern "C" fn() = hsa_serializer_print_all;

#[cfg(unix)]
fn write_error(text: &str) {
    use std::fs::File;
    use std::mem::ManuallyDrop;
    use std::os::fd::FromRawFd;
    // SAFETY: the descriptor is the process's standard error, or closed, which writing finds out; it is
    // not closed here.
    let mut error = ManuallyDrop::new(unsafe { File::from_raw_fd(2) });
    // Whoever closed it does not want it.
    let _ = error.write_all(text.as_bytes());
}

#[cfg(not(unix))]
fn write_error(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
