//! The C interface as those who use it get it: from a fresh clone, by the commands of `docs/embedding.md`.
//!
//! | module | holds |
//! |---|---|
//! | `clone` | the clean directory that stands for a fresh clone |
//! | `guide` | the guide's commands |
//! | `headers` | the headers, compiled as each language |
//! | `lanes` | the examples under sanitizers and Valgrind |
//! | `parts` | what was installed, compared |

mod clone;
mod guide;
mod headers;
mod lanes;
mod parts;

use crate::process;
use anyhow::{Result, ensure};
use clone::Clone;
use guide::Kind;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// No step takes longer, the builds among them.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// Where the guide has what it builds by CMake.
const BUILT: &str = "target/cmake";

/// All of it; stops at the first failure.
///
/// # Errors
/// That failure. What is not installed is left out aloud, and is an error where `CI` is set.
pub fn run() -> Result<()> {
    let start = Instant::now();
    let clone = Clone::make()?;
    headers::check(clone.root())?;

    let commands = guide::read(clone.root())?;
    let mut kinds = vec![Kind::Always, Kind::CMake];
    if has_hsa(clone.root())? {
        kinds.push(Kind::Hsa);
    }
    let prefix = step("the guide, installing by CMake", || {
        guide::run(&clone, &commands, &kinds)
    })?;
    let by_cmake = parts::installed(&prefix)?;
    step("sanitizers and Valgrind", || {
        lanes::run(&clone, &prefix, "plain")
    })?;

    let checked = step("a checked build, installed and moved", || {
        install_checked(&clone)
    })?;
    parts::compare(&by_cmake, &parts::installed(&checked)?)?;
    step("sanitizers and Valgrind, checked", || {
        lanes::run(&clone, &checked, "checked")
    })?;

    if has("cargo-c", Command::new("cargo-cinstall").arg("--version"))? {
        clone.remove(BUILT)?;
        fs::remove_dir_all(&prefix)?;
        kinds[1] = Kind::CargoC;
        let prefix = step("the guide, installing by cargo-c", || {
            guide::run(&clone, &commands, &kinds)
        })?;
        parts::compare(&by_cmake, &parts::installed(&prefix)?)?;
    }
    println!("== passed in {} s: capi", start.elapsed().as_secs());
    Ok(())
}

/// Moved, since what was installed may be.
fn install_checked(clone: &Clone) -> Result<PathBuf> {
    let (directory, first) = (format!("{BUILT}/capi"), "target/prefix-first");
    let configure = [
        "-S",
        "capi",
        "-B",
        &directory,
        "-DHSA_SERIALIZER_CHECKED=ON",
    ];
    clone.run(Command::new("cmake").args(configure))?;
    clone.run(Command::new("cmake").args(["--build", &directory]))?;
    clone.run(Command::new("cmake").args(["--install", &directory, "--prefix", first]))?;
    let moved = clone.root().join("target/prefix-checked");
    fs::rename(clone.root().join(first), &moved)?;
    Ok(moved)
}

/// Says what is done and how long it took.
fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("== {name}");
    let start = Instant::now();
    let done = work()?;
    println!("   {:.0} s", start.elapsed().as_secs_f64());
    Ok(done)
}

/// Whether a program is there, by a command that succeeds then.
fn has(name: &str, probe: &mut Command) -> Result<bool> {
    let found = probe.output().is_ok_and(|output| output.status.success());
    ensure!(
        found || env::var_os("CI").is_none(),
        "{name} is missing, and this is CI"
    );
    if !found {
        eprintln!("SKIPPED: what needs {name}, which is missing");
    }
    Ok(found)
}

/// Whether programs that use AMD's runtime can be built.
fn has_hsa(directory: &Path) -> Result<bool> {
    let source = directory.join("target/hsa.c");
    fs::write(
        &source,
        "#include <hsa/hsa_ext_amd.h>\nint main(void) { return hsa_init(); }\n",
    )?;
    let mut probe = Command::new("cc");
    probe
        .arg(&source)
        .arg("-o")
        .arg(directory.join("target/hsa"));
    has("libhsa-runtime-dev", probe.arg("-lhsa-runtime64"))
}

/// Runs it in that directory, and returns its output; all that it wrote is shown if it fails.
fn succeed(command: &mut Command, directory: &Path) -> Result<String> {
    let outcome = process::run(command.current_dir(directory), PATIENCE);
    ensure!(outcome.succeeded(), "{command:?}: {outcome}");
    Ok(outcome.stdout)
}
