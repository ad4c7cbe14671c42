//! Programs on AMD's real HSA runtime over the emulated GPU.

use crate::{build, trixie};
use anyhow::{Context, Result, anyhow, ensure};
use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub use crate::build::build_bin;
pub use crate::process::{Outcome, run};

/// The emulated GPU, built and installed under the name by which the runtime looks for it.
#[derive(Clone, Debug)]
pub struct Thunk {
    /// Where `libhsakmt.so.1` is, and nothing else.
    pub directory: PathBuf,
}

/// The emulated GPU; built at the first call of a process.
///
/// # Errors
/// Where that failed; it is not tried again.
pub fn thunk() -> Result<&'static Thunk> {
    static THUNK: OnceLock<Result<Thunk, String>> = OnceLock::new();
    let built = THUNK.get_or_init(|| make_thunk().map_err(|e| format!("{e:#}")));
    built.as_ref().map_err(|e| anyhow!("{e}"))
}

fn make_thunk() -> Result<Thunk> {
    let built = build::artifact("softgpu-thunk", "hsakmt")?;
    let directory = build::target_directory()?.join("softgpu");
    install(&built, &directory.join("libhsakmt.so.1"))
        .with_context(|| format!("the emulated GPU can't be put into {}", directory.display()))?;
    Ok(Thunk { directory })
}

/// Another process may have the file mapped, or be about to: it is replaced, never written to.
fn install(from: &Path, to: &Path) -> Result<()> {
    let new = fs::read(from)?;
    if fs::read(to).is_ok_and(|old| old == new) {
        return Ok(());
    }
    if let Some(directory) = to.parent() {
        fs::create_dir_all(directory)?;
    }
    let written = to.with_extension(std::process::id().to_string());
    fs::write(&written, new)?;
    fs::rename(&written, to)?;
    Ok(())
}

/// A version of AMD's runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Runtime {
    /// The machine's.
    Installed,
    /// Debian trixie's, in the tree that `cargo xtask trixie` makes.
    Trixie,
}

impl Runtime {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Trixie => "trixie",
        }
    }

    /// Its version, as its package has it; empty if nobody knows.
    pub fn version(self) -> String {
        match self {
            Self::Installed => installed_version(),
            Self::Trixie => trixie::Tree::locate()
                .ok()
                .and_then(|t| t.version("libhsa-runtime64-1")),
        }
        .unwrap_or_default()
    }

    /// Whether it can be used; the error says what is missing.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Installed => ensure!(
                is_installed("libhsa-runtime64.so.1"),
                "AMD's HSA runtime is not installed (in Debian: libhsa-runtime64-1)"
            ),
            Self::Trixie => ensure!(
                trixie::Tree::locate()?.is_complete(),
                "there is no tree of Debian trixie: `cargo xtask trixie` makes it"
            ),
        }
        Ok(())
    }

    /// Whether it can be used.
    pub fn is_available(self) -> bool {
        self.check().is_ok()
    }

    /// A command that runs a program with this runtime on the emulated GPU. The variables that the
    /// emulated GPU reads (SOFTGPU_...) are the caller's to add.
    ///
    /// # Panics
    /// If the emulated GPU can't be built: see [`thunk`].
    pub fn command(self, program: &Path) -> Command {
        let thunk = thunk().unwrap_or_else(|e| panic!("{e:#}"));
        match self {
            Self::Installed => {
                let mut path = vec![thunk.directory.clone()];
                if let Some(more) = env::var_os("LD_LIBRARY_PATH") {
                    path.extend(env::split_paths(&more));
                }
                let mut command = Command::new(program);
                if let Ok(path) = env::join_paths(path) {
                    command.env("LD_LIBRARY_PATH", path);
                }
                command
            }
            Self::Trixie => trixie::Tree::locate()
                .unwrap_or_else(|e| panic!("{e:#}"))
                .command(&thunk.directory, program),
        }
    }
}

/// The runtimes to test with. One that is missing is said to be skipped; where CI is set in the
/// environment, nothing is to be skipped.
///
/// # Panics
/// In CI, if one is missing.
pub fn runtimes() -> Vec<Runtime> {
    let mut wanted = vec![Runtime::Installed];
    if env::var_os("HSA_TESTS_SKIP_TRIXIE").is_none_or(|v| v != "1") {
        wanted.push(Runtime::Trixie);
    }
    wanted.retain(|runtime| match runtime.check() {
        Ok(()) => true,
        Err(e) => {
            missing(runtime.name(), &e);
            false
        }
    });
    wanted
}

/// What is done where something that a test needs is missing: skipped aloud, or, in CI, a failure.
///
/// # Panics
/// In CI.
pub fn missing(what: &str, why: &anyhow::Error) {
    let ci = env::var_os("CI").is_some_and(|v| !v.is_empty());
    assert!(!ci, "{what}: {why:#}; in CI nothing is skipped");
    // Not by eprintln, which the test harness hides where the test passes.
    let _ = writeln!(io::stderr(), "SKIPPED: {what}: {why:#}");
}

/// Whether the dynamic loader would find a library.
pub fn is_installed(library: &str) -> bool {
    let listed = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    if env::split_paths(&listed).any(|d| d.join(library).exists()) {
        return true;
    }
    // Not in everybody's PATH.
    let cache = Command::new("/sbin/ldconfig").arg("-p").output();
    cache.is_ok_and(|c| {
        let text = String::from_utf8_lossy(&c.stdout);
        text.lines()
            .any(|l| l.split_whitespace().next() == Some(library))
    })
}

fn installed_version() -> Option<String> {
    let output = Command::new("dpkg-query")
        .args(["--show", "--showformat=${Version}", "libhsa-runtime64-1"])
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
