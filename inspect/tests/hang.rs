//! A process that hangs prints what it hangs on, for a debugger and without one.
//!
//! This program is run again as its own child: there a thread hangs inside of the runtime, under the
//! transition lock and with the standard error stream locked, and the main thread waits for it.

mod common;

use common::Held;
use hsa_serializer_inspect::hsa_serializer_print_all;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Says in a child what it is to do.
const CHILD: &str = "INSPECT_TESTS_CHILD";
const PATIENCE: Duration = Duration::from_secs(60);

/// What has to be said of the child's serializer.
const SAID: [&str; 4] = [
    "GPU 0xa001 ",
    "A thread is inside of turning it on or off",
    "queue 0 holds up the others: its kernel 0 was let go ",
    "queue 1: kernel 0 is ready, and has waited for its turn",
];

/// Does nothing, but in a child.
#[test]
fn child() {
    let Ok(what) = std::env::var(CHILD) else {
        return;
    };
    let held = Held::new();
    let (hangs, is_hanging) = mpsc::channel();
    let (never, comes) = mpsc::channel::<()>();
    let comes = std::sync::Mutex::new(comes);
    held.serializer.runtime().on_now(move || {
        let stream = std::io::stderr().lock();
        hangs.send(()).unwrap();
        let _ = comes.lock().unwrap().recv();
        drop(stream);
    });
    let serializer = held.serializer.clone();
    let hanging = thread::spawn(move || serializer.disable());
    is_hanging.recv().unwrap();
    if what == "thread" {
        // As the debugger would, on a thread of its own.
        thread::spawn(|| hsa_serializer_print_all()).join().unwrap();
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "hanging").unwrap();
    out.flush().unwrap();
    // Until it is killed; should nobody do that, it ends.
    thread::sleep(3 * PATIENCE);
    drop(never);
    let _ = hanging.join();
}

struct Hanging(Child);

impl Hanging {
    /// A child that hangs by now.
    fn new(what: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(CHILD, what)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = child.stdout.take().unwrap();
        let (is_hanging, hangs) = mpsc::channel();
        thread::spawn(move || {
            let found = BufReader::new(out)
                .lines()
                .map_while(Result::ok)
                .any(|line| line.contains("hanging"));
            let _ = is_hanging.send(found);
        });
        let hanging = Self(child);
        assert_eq!(
            hangs.recv_timeout(PATIENCE),
            Ok(true),
            "it does not get there"
        );
        hanging
    }

    /// What it has printed; and it is killed.
    fn end(mut self) -> String {
        self.0.kill().unwrap();
        let mut text = String::new();
        let stream = self.0.stderr.take().unwrap();
        BufReader::new(stream).read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
fn says_all(text: &str) {
    for said in SAID {
        assert!(text.contains(said), "{said:?} is missing in\n{text}");
    }
}

#[test]
fn a_thread_of_the_process_can_print_it() {
    says_all(&Hanging::new("thread").end());
}

#[test]
fn a_debugger_can_print_it() {
    let version = Command::new("gdb").arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: there is no gdb");
        return;
    }
    let hanging = Hanging::new("debugger");
    let pid = hanging.0.id().to_string();
    let call = "call (void) hsa_serializer_print_all()";
    let mut gdb = Command::new("gdb")
        .args(["-nx", "-p", &pid, "-batch", "-ex", call])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let end = Instant::now() + PATIENCE;
    while gdb.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            let _ = gdb.kill();
            panic!("the call does not return");
        }
        thread::sleep(Duration::from_millis(20));
    }
    let mut said = String::new();
    gdb.stderr.unwrap().read_to_string(&mut said).unwrap();
    if said.contains("Operation not permitted") {
        eprintln!("SKIPPED: this system lets nobody attach to a process");
        return;
    }
    says_all(&hanging.end());
}
