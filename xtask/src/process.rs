//! Programs that may hang.

use std::borrow::BorrowMut;
use std::fmt;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// How a program ended, and what it had written by then.
#[derive(Clone, Debug)]
#[must_use]
pub struct Outcome {
    /// Its exit status; after a timeout, that of having been killed.
    pub status: ExitStatus,
    /// What it wrote, however it ended.
    pub stdout: String,
    /// What it wrote to its standard error.
    pub stderr: String,
    /// Whether it was still running at the timeout, and was killed.
    pub timed_out: bool,
    /// How long it ran.
    pub took: Duration,
}

impl Outcome {
    /// Whether it ended by itself, with exit code 0.
    pub fn succeeded(&self) -> bool {
        !self.timed_out && self.status.success()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        if self.timed_out {
            writeln!(f, "HUNG: killed after {seconds:.1} s")?;
        } else {
            writeln!(f, "{} after {seconds:.1} s", self.status)?;
        }
        writeln!(f, "---- its standard output\n{}", self.stdout)?;
        write!(f, "---- its standard error\n{}", self.stderr)
    }
}

/// Runs a program to its end or to the timeout, when it is killed with all of its process group.
///
/// # Panics
/// If it can't be started.
pub fn run(mut command: impl BorrowMut<Command>, timeout: Duration) -> Outcome {
    let command = command.borrow_mut();
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|e| panic!("{:?} can't be started: {e}", command.get_program()));
    let stdout = Reader::of(child.stdout.take());
    let stderr = Reader::of(child.stderr.take());
    let mut timed_out = false;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if !timed_out && start.elapsed() >= timeout => {
                timed_out = true;
                kill_group(&child);
            }
            Ok(None) => thread::sleep(Duration::from_millis(5)),
            Err(e) => panic!("{:?} can't be waited for: {e}", command.get_program()),
        }
    };
    Outcome {
        status,
        took: start.elapsed(),
        stdout: stdout.finish(),
        stderr: stderr.finish(),
        timed_out,
    }
}

/// The child leads its own group. It was not waited for yet, so the id is still its own.
fn kill_group(child: &Child) {
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return;
    };
    // It may have ended just now.
    let _ = kill_process_group(group, Signal::KILL);
}

/// Empties a pipe, so that the program never waits for us.
struct Reader {
    read: Arc<Mutex<Vec<u8>>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Reader {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let read = Arc::new(Mutex::new(Vec::new()));
        let thread = pipe.map(|mut pipe| {
            let read = read.clone();
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(n @ 1..) = pipe.read(&mut buffer) {
                    let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
                    read.extend_from_slice(&buffer[..n]);
                }
            })
        });
        Self { read, thread }
    }

    /// A grandchild that lives on may keep the pipe open; it is not waited for long.
    fn finish(self) -> String {
        let deadline = Instant::now() + Duration::from_secs(2);
        if let Some(thread) = self.thread {
            while !thread.is_finished() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(1));
            }
        }
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&read).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_code_of_one_that_ends() {
        let outcome = run(shell("echo a; echo b >&2; exit 7"), Duration::from_secs(20));
        assert_eq!(outcome.status.code(), Some(7));
        assert_eq!((&*outcome.stdout, &*outcome.stderr), ("a\n", "b\n"));
        assert!(!outcome.timed_out && !outcome.succeeded());
    }

    #[test]
    fn one_that_hangs_is_ended_with_its_children_and_what_it_wrote_is_kept() {
        let script = "echo before; sleep 1000 & echo $!; wait";
        let outcome = run(shell(script), Duration::from_millis(300));
        assert!(outcome.timed_out && !outcome.succeeded());
        assert!(outcome.to_string().starts_with("HUNG"), "{outcome}");
        let mut lines = outcome.stdout.lines();
        assert_eq!(lines.next(), Some("before"));
        let stat = format!("/proc/{}/stat", lines.next().unwrap_or_default());
        // It was killed, and ends when it is next to run. Gone, or not yet reaped by init.
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let state = std::fs::read_to_string(&stat).unwrap_or_else(|_| "() Z".into());
            if state.contains(") Z") {
                break;
            }
            assert!(Instant::now() < deadline, "{state}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn one_that_writes_much_does_not_wait_for_us() {
        let outcome = run(shell("yes | head -c 1000000"), Duration::from_secs(20));
        assert_eq!(outcome.stdout.len(), 1_000_000);
    }
}
