//! Signals of the process: the application's handlers are not to run on the tool's threads, and what the tool
//! can't write is not to end the program.

use std::fs::File;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::ptr;
use std::thread::{self, JoinHandle};

/// Those that a write sends to the thread that writes: to a pipe that nobody reads, and beyond the length that
/// files may have.
const OF_WRITES: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// A set, filled by a function that can't fail.
fn set(fill: unsafe extern "C" fn(*mut libc::sigset_t) -> libc::c_int) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the place is ours; each of these functions initializes it.
    unsafe {
        fill(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Calls that with more signals blocked for this thread, and for those that it starts.
fn with_blocked<T>(blocked: &libc::sigset_t, call: impl FnOnce() -> T) -> T {
    let mut before = set(libc::sigemptyset);
    // SAFETY: both sets are initialized.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, blocked, &raw mut before) };
    let outcome = call();
    // SAFETY: as it was before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    outcome
}

/// Starts a thread that hears of no signal, ever.
pub(crate) fn deaf_thread(run: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    let thread = thread::Builder::new().name("hsa-serializer".into());
    with_blocked(&set(libc::sigfillset), || thread.spawn(run))
        .inspect_err(|e| say!("a thread can't be started: {e}"))
        .ok()
}

/// Calls something that writes: where it can't, it gets an error, and the program no signal.
fn unheard<T>(write: impl FnOnce() -> T) -> T {
    let (mut pending, mut ours) = (set(libc::sigemptyset), set(libc::sigemptyset));
    // SAFETY: the sets are initialized, and the numbers are signals'.
    unsafe {
        libc::sigpending(&raw mut pending);
        for signal in OF_WRITES {
            // One that waits already is the application's own.
            if libc::sigismember(&raw const pending, signal) == 0 {
                libc::sigaddset(&raw mut ours, signal);
            }
        }
    }
    with_blocked(&ours, || {
        let outcome = write();
        let at_once = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: initialized; nobody wants to know more of a signal.
        while unsafe { libc::sigtimedwait(&raw const ours, ptr::null_mut(), &raw const at_once) }
            > 0
        {}
        outcome
    })
}

/// A file that is written to without signals.
#[derive(Debug)]
pub(crate) struct Unheard(pub(crate) File);

impl Write for Unheard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unheard(|| self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes to standard error, if that can be. Not by the standard library's, which panics on a thread that a
/// signal has interrupted in it.
pub(crate) fn write_error(text: &str) {
    // SAFETY: the bytes live until it returns. One write, so that lines of several threads stay whole.
    unheard(|| unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) });
}
