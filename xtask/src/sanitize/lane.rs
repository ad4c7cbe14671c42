//! Each sanitizer's flags, options and words.

use super::std_order;
use crate::build;
use crate::process::Outcome;
use anyhow::Result;
use clap::ValueEnum;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The only one that is built for: a sanitizer needs that a target is named.
pub(super) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Fast enough to get far, with every assertion, and with lines in the reports.
pub(super) const PROFILE: [(&str, &str); 3] = [
    ("CARGO_PROFILE_DEV_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_DEV_DEBUG", "line-tables-only"),
    ("CARGO_INCREMENTAL", "0"),
];

/// A program of the nightly toolchain's.
pub(super) fn nightly(program: &str) -> Command {
    let mut command = Command::new("rustup");
    command
        .args(["run", "nightly", program])
        .current_dir(build::workspace())
        // They are another toolchain's, if cargo has started us.
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .env_remove("RUSTUP_TOOLCHAIN");
    command
}

/// One sanitizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lane {
    /// ThreadSanitizer: data races.
    Thread,
    /// AddressSanitizer: memory that is not, or no longer, one's own. Leaks, too.
    Address,
    /// LeakSanitizer by itself, at the programs' own speed.
    Leak,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Lane {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Thread, Self::Address, Self::Leak];

    fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Address => "address",
            Self::Leak => "leak",
        }
    }

    /// Where everything is built.
    pub(super) fn directory(self) -> Result<PathBuf> {
        Ok(build::target_directory()?.join(format!("sanitize-{self}")))
    }

    /// What `RUSTFLAGS` is, for a build in this directory.
    pub(super) fn flags(self, directory: &Path) -> Result<OsString> {
        let mut flags = OsString::from(format!("-Zsanitizer={self}"));
        if self == Self::Thread {
            // The standard library is not built with it. What of it is generic has to be compiled into
            // the program, where it is.
            flags.push(" -Cunsafe-allow-abi-mismatch=sanitizer -Zshare-generics=n");
            flags.push(std_order::link(directory)?);
        }
        Ok(flags)
    }

    /// The environment of each program.
    pub(super) fn options(self) -> Vec<(&'static str, String)> {
        let file = |name: &str| {
            let path = build::workspace().join("xtask/sanitize").join(name);
            format!("suppressions={}", path.display())
        };
        let leaks = ("LSAN_OPTIONS", file("leak.supp"));
        match self {
            // A report in a child that ends at once would be lost otherwise.
            Self::Thread => {
                // It sleeps for a second at each exit, of which tests with children have hundreds.
                let options = "halt_on_error=1:second_deadlock_stack=1:atexit_sleep_ms=0";
                vec![("TSAN_OPTIONS", format!("{options}:{}", file("thread.supp")))]
            }
            Self::Address => vec![("ASAN_OPTIONS", "detect_leaks=1".into()), leaks],
            Self::Leak => vec![leaks],
        }
    }

    /// Whether it looks for leaks.
    pub(super) fn finds_leaks(self) -> bool {
        self != Self::Thread
    }

    /// The planted faults that it catches, and the report of each.
    pub(super) fn faults(self) -> &'static [(&'static str, &'static str)] {
        const RACE: &str = "WARNING: ThreadSanitizer: data race";
        const FREED: &str = "ERROR: AddressSanitizer: heap-use-after-free";
        const LEAK: &str = "ERROR: LeakSanitizer: detected memory leaks";
        match self {
            Self::Thread => &[
                ("race-published", RACE),
                ("race-freed", RACE),
                ("race-beside-lock", RACE),
                ("race-last-handle", RACE),
            ],
            Self::Address => &[("use-after-unpin", FREED), ("leak", LEAK)],
            Self::Leak => &[("leak", LEAK)],
        }
    }
}

/// Whether a sanitizer has reported something, whatever the program ended with.
pub(super) fn reported(outcome: &Outcome) -> bool {
    let all = [
        "WARNING: ThreadSanitizer",
        "ERROR: AddressSanitizer",
        "ERROR: LeakSanitizer",
    ];
    let texts = [&outcome.stdout, &outcome.stderr];
    all.iter()
        .any(|report| texts.iter().any(|text| text.contains(report)))
}
