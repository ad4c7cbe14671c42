//! The process that the tool is in: its end, and its children.

use crate::{session, summary};
use std::process;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// The process that started the runtime; 0 before.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Whether this is a child of the process that started the runtime. It has none of its threads, and locks
/// that they held; the runtime doesn't work in it either. So the tool does nothing there.
pub(crate) fn is_child() -> bool {
    let process = PROCESS.load(SeqCst);
    process != 0 && process != process::id()
}

/// The runtime was started: from now on the end of this process is heard of. A program need not shut the
/// runtime down.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        PROCESS.store(process::id(), SeqCst);
        // SAFETY: the function stays mapped, as this library does. Registered after the runtime's
        // library was loaded, so it runs before that one's own destructors.
        unsafe { libc::atexit(at_exit) };
    });
}

extern "C" fn at_exit() {
    if !is_child() {
        session::at_exit();
        summary::print();
    }
}

/// The number of this thread, as the kernel has it.
pub(crate) fn thread() -> u64 {
    std::thread_local! {
        // Asked once: it is a system call.
        // SAFETY: it has no requirements.
        static THREAD: u64 = unsafe { libc::syscall(libc::SYS_gettid) } as u64;
    }
    // 0 for a thread that is ending.
    THREAD.try_with(|thread| *thread).unwrap_or(0)
}
