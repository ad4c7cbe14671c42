//! Tests that end the process that they run in, or fork it: each runs in a child, which is this binary
//! once more, for that one test.

use std::any::type_name_of_val;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Set in the child, to the test's name.
const CHILD: &str = "LIFECYCLE_CHILD";

const BEGINS: &str = "the child begins";

/// No child takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

fn name_of<F: Fn()>(test: &F) -> &'static str {
    let full = type_name_of_val(test);
    full.split_once("::").map_or(full, |(_, name)| name)
}

/// Runs the body of `test` in a child of its own and expects that to end well.
///
/// `test` is the test that calls this, as the child will. The body may end the process.
pub(crate) fn in_child<F: Fn()>(test: F, body: impl FnOnce()) {
    in_child_with(test, &[], body);
}

/// The same, with an environment; what the child wrote, for the parent to see.
pub(crate) fn in_child_with<F: Fn()>(
    test: F,
    environment: &[(&str, &str)],
    body: impl FnOnce(),
) -> Option<String> {
    let name = name_of(&test);
    if std::env::var(CHILD).is_ok_and(|child| child == name) {
        println!("{BEGINS}");
        body();
        return None;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, name)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own, so that what it forked can be ended with it.
        .process_group(0)
        .spawn()
        .unwrap();
    let group = child.id() as libc::pid_t;
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let readers = [reads(stdout), reads(stderr)];
    let end = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if Instant::now() > end => break None,
            None => thread::sleep(Duration::from_millis(2)),
        }
    };
    // Where it has ended, whatever of its group is left is one that it should have waited for.
    // SAFETY: no memory is concerned; the group is the child's, which has it to itself.
    unsafe { libc::kill(-group, libc::SIGKILL) };
    let status = status.unwrap_or_else(|| child.wait().unwrap());
    let text: String = readers.map(|reader| reader.join().unwrap()).concat();
    assert!(status.success(), "{name}: {status}, after:\n{text}");
    assert!(text.contains(BEGINS), "{name} is no test: {text}");
    Some(text)
}

fn reads(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// How a forked process ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Exit {
    /// With what C, and the thread's own storage, have to do at the end.
    Normally,
    /// At once.
    AtOnce,
}

/// Forks; the child does `body` and exits, well; waits for that, for a bounded time.
///
/// To be used in a process of its own ([`in_child`]).
pub(crate) fn forked(exit: Exit, body: impl FnOnce()) {
    // SAFETY: the child goes on with one thread. It takes no lock that another thread of the parent
    // may hold: whether the library does is what is tested, and waited for a bounded time only.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork");
    if pid == 0 {
        let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok();
        let code = if well { 0 } else { 1 };
        match exit {
            // SAFETY: ends the process.
            Exit::Normally => unsafe { libc::exit(code) },
            // SAFETY: ends the process.
            Exit::AtOnce => unsafe { libc::_exit(code) },
        }
    }
    let end = Instant::now() + Duration::from_secs(60);
    let mut status = 0;
    loop {
        // SAFETY: the process is our own child, not waited for yet, and `status` may be written.
        let ended = unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) };
        if ended == pid {
            break;
        }
        if Instant::now() > end {
            // SAFETY: it is our own child, and has not been waited for.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            panic!("a forked child hangs");
        }
        thread::sleep(Duration::from_micros(200));
    }
    let well = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
    assert!(well, "a forked child ended with {status:#x}");
}
