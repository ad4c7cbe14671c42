//! The client's scenarios as processes, and what is expected of them.

// Each of the test programs uses its part of it.
#![allow(dead_code)]

#[path = "../native/again.rs"]
mod again;

use hsa_tests::app::SHUTTING_DOWN;
use serde_json::Value;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use xtask::softgpu::{Outcome, Runtime, build_bin, run, runtimes};

/// The exit code of a scenario that stands still.
pub(crate) const STUCK: i32 = 3;

/// Handlers and waiters hear of one event in five up to 3 ms late, and of one in five twice.
pub(crate) const LATE_EVENTS: (&str, &str) = (
    "SOFTGPU_FAULTS",
    "event_late=0.2,late_by=3000000,event_twice=0.2",
);

fn client() -> &'static Path {
    static CLIENT: OnceLock<PathBuf> = OnceLock::new();
    CLIENT.get_or_init(|| build_bin("hsa-tests", "client"))
}

fn tool() -> &'static Path {
    static TOOL: OnceLock<PathBuf> = OnceLock::new();
    TOOL.get_or_init(|| build_bin("hsa-test-tool", "hsa_test_tool"))
}

/// A process of the client.
pub(crate) struct Ran {
    runtime: Runtime,
    arguments: String,
    pub(crate) outcome: Outcome,
    /// Its line.
    pub(crate) line: Value,
}

impl Ran {
    /// Runs the client, whose tool keeps the runtime's table.
    pub(crate) fn new(runtime: Runtime, arguments: &str, environment: &[(&str, &str)]) -> Self {
        let save = [("HSA_TEST_TOOL", "save")];
        Self::of(runtime, arguments, &[&save, environment].concat())
    }

    fn of(runtime: Runtime, arguments: &str, environment: &[(&str, &str)]) -> Self {
        let once = || Self::once(runtime, arguments, environment);
        again::unless_it_died_in_shut_down(runtime, arguments, once, Self::died_in_shut_down)
    }

    fn once(runtime: Runtime, arguments: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = runtime.command(client());
        command
            .args(arguments.split_whitespace())
            .env("HSA_TOOLS_LIB", tool())
            .envs(environment.iter().copied());
        let long = Duration::from_secs(soak_seconds()) + Duration::from_secs(120);
        let outcome = run(command, long);
        let last = outcome.stdout.lines().last().unwrap_or_default();
        let line = serde_json::from_str(last).unwrap_or(Value::Null);
        Self {
            runtime,
            arguments: arguments.to_owned(),
            outcome,
            line,
        }
    }

    /// Whether it died in 6.1.2's own fault: see [`again`].
    fn died_in_shut_down(&self) -> bool {
        let hangs = self.outcome.status.code() == Some(STUCK);
        hangs && self.line["stage"] == SHUTTING_DOWN || self.outcome.stderr.contains(again::NOTICED)
    }

    #[track_caller]
    pub(crate) fn expect(&self, holds: bool, what: &str) {
        let (runtime, arguments) = (self.runtime.name(), &self.arguments);
        assert!(holds, "{runtime}: {arguments}: {what}\n{}", self.outcome);
    }

    /// It went well, and these numbers are not 0: the run has tested something.
    #[track_caller]
    pub(crate) fn passed(self, not_zero: &[&str]) -> Self {
        self.expect(self.outcome.succeeded(), "failed");
        self.expect(self.line["ok"] == true, "not ok");
        for path in not_zero {
            let value = self.line.pointer(path).and_then(Value::as_u64);
            self.expect(value > Some(0), &format!("{path} is {value:?}"));
        }
        self
    }

    /// It stands still, and says so.
    #[track_caller]
    pub(crate) fn stuck(self) -> Self {
        self.expect(self.outcome.status.code() == Some(STUCK), "is not stuck");
        self.expect(self.line["stuck"] == true, "does not say that it is stuck");
        self
    }

    /// A check has found what is wrong, by one of these consequences.
    #[track_caller]
    pub(crate) fn found(self, consequences: &[&str]) -> Self {
        self.expect(self.outcome.status.code() == Some(1), "found nothing");
        let error = self.line["error"].as_str().unwrap_or_default();
        let one = consequences.iter().any(|what| error.contains(what));
        self.expect(one, "found something else");
        self
    }
}

pub(crate) fn each(test: impl Fn(Runtime)) {
    runtimes().into_iter().for_each(test);
}

pub(crate) fn soak_seconds() -> u64 {
    let seconds = env::var("HSA_TESTS_SOAK_SECONDS").ok();
    seconds.map_or(5, |s| {
        let parsed = s.parse();
        parsed.unwrap_or_else(|_| panic!("HSA_TESTS_SOAK_SECONDS={s}: no whole number of seconds"))
    })
}

/// Runs the client as such a program under the tool, which serializes; with the tool's summary.
pub(crate) fn serialized(runtime: Runtime, arguments: &str, toggle_us: &str) -> (Ran, Value) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "{}-{}.json",
        std::process::id(),
        NUMBER.fetch_add(1, Relaxed)
    );
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let environment = [
        ("HSA_TEST_TOOL", "serialize"),
        ("HSA_TEST_TOGGLE_US", toggle_us),
        ("HSA_TEST_SUMMARY", file.to_str().expect("a path of ours")),
    ];
    let ran = Ran::of(runtime, arguments, &environment);
    let summary = fs::read_to_string(&file).unwrap_or_default();
    // It may not be there, which the caller sees.
    let _ = fs::remove_file(&file);
    let summary = serde_json::from_str(&summary).unwrap_or(Value::Null);
    (ran, summary)
}
