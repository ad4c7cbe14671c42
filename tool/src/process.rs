//! The process that the tool is in: its end, and its children.

use crate::{session, signals};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Once, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How long the end of the process is held up, at most, by the wish to say how it went.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The process that started the runtime; 0 before.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Whether this is a child of the process that started the runtime. It has none of its threads, and locks
/// that they held; the runtime doesn't work in it either. So the tool does nothing there.
pub(crate) fn is_child() -> bool {
    let process = PROCESS.load(SeqCst);
    process != 0 && process != process::id()
}

static ENDS: AtomicBool = AtomicBool::new(false);
/// All was said.
static SAID: AtomicBool = AtomicBool::new(false);
/// Who says it.
static SPEAKER: OnceLock<Thread> = OnceLock::new();

/// Whether the process ends.
pub(crate) fn ends() -> bool {
    ENDS.load(SeqCst)
}

/// The runtime was started: from now on the end of this process is heard of. A program need not shut the
/// runtime down.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        PROCESS.store(process::id(), SeqCst);
        let speaker = signals::deaf_thread(|| {
            while !ends() {
                thread::park();
            }
            session::last_words();
            SAID.store(true, SeqCst);
        });
        if let Some(speaker) = speaker {
            let _ = SPEAKER.set(speaker.thread().clone());
        }
        // SAFETY: the function stays mapped, as this library does. Registered after the runtime's
        // library was loaded, so it runs before that one's own destructors.
        unsafe { libc::atexit(at_exit) };
    });
}

/// A signal handler may have called `exit`, in the middle of anything, on any thread but ours: in the allocator, or
/// under a lock. So this takes no lock and no memory, and touches no locals of the thread, which are allocated at their
/// first use: all of that is left to a thread of ours, which is not waited for without end.
extern "C" fn at_exit() {
    let Some(speaker) = SPEAKER.get().filter(|_| !is_child()) else {
        return;
    };
    ENDS.store(true, SeqCst);
    speaker.unpark();
    let deadline = Instant::now() + LAST_WORDS;
    while !SAID.load(SeqCst) && Instant::now() < deadline {
        thread::sleep(Duration::from_micros(200));
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
