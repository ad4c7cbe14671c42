//! A fork while another thread makes the process's first serializer. (`pthread_atfork` is this test's
//! here, so that the other thread can be held up inside of it.)
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{Domain, Serializer};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

type Callback = Option<extern "C" fn()>;

unsafe extern "C" {
    /// What the C library's `pthread_atfork` is made of.
    fn __register_atfork(
        prepare: Callback,
        parent: Callback,
        child: Callback,
        object: *mut c_void,
    ) -> c_int;
}

static INSIDE: AtomicBool = AtomicBool::new(false);
static GO_ON: AtomicBool = AtomicBool::new(false);

/// A child that waits for somebody who is not there is ended by then.
const SECONDS: c_uint = 5;

#[unsafe(no_mangle)]
extern "C" fn pthread_atfork(prepare: Callback, parent: Callback, child: Callback) -> c_int {
    if !INSIDE.swap(true, SeqCst) {
        while !GO_ON.load(SeqCst) {
            thread::yield_now();
        }
    }
    // SAFETY: as the caller promises; no object: the handlers are never taken back.
    unsafe { __register_atfork(prepare, parent, child, ptr::null_mut()) }
}

/// Whether that holds in a child, which has to come to its end.
fn holds_in_a_child(f: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls nothing but what is to be tested, and ends without this process's ends.
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0, "no child");
        if pid == 0 {
            libc::alarm(SECONDS);
            libc::_exit(c_int::from(!f()));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }
}

#[test]
fn s72_a_child_is_noticed_and_waits_for_nobody_while_the_first_serializer_is_made() {
    let first = thread::spawn(|| drop(Domain::process()));
    while !INSIDE.load(SeqCst) {
        thread::yield_now();
    }
    let host = Host::default();
    let serializer = Serializer::<Host>::builder()
        .domain(Domain::new())
        .build(host);
    let is_left = || serializer.enable().is_err();
    let noticed = holds_in_a_child(is_left);
    let waits_for_nobody = holds_in_a_child(|| Domain::process().pending() == 0);
    GO_ON.store(true, SeqCst);
    first.join().unwrap();
    assert!(noticed, "the child does not know that it is one");
    assert!(
        waits_for_nobody,
        "the child waits for a thread that is not there"
    );
    assert!(holds_in_a_child(is_left));
    assert!(!is_left(), "the parent goes on");
}
