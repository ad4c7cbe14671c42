//! Builds what tells ThreadSanitizer of the standard library's order: see `xtask/sanitize/std_order.rs`.

use super::lane::{TARGET, nightly};
use crate::build;
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Functions of the standard library's that order threads and are not inlined: what the source calls
/// them, and what their mangled names hold.
const FUNCTIONS: [(&str, &str, &str); 7] = [
    (
        "LOCK_CONTENDED",
        "3std3sys4sync5mutex5futex",
        "5Mutex14lock_contended",
    ),
    (
        "READ_CONTENDED",
        "3std3sys4sync6rwlock5futex",
        "6RwLock14read_contended",
    ),
    (
        "WRITE_CONTENDED",
        "3std3sys4sync6rwlock5futex",
        "6RwLock15write_contended",
    ),
    (
        "CONDVAR_WAIT",
        "3std3sys4sync7condvar5futex",
        "7Condvar4wait",
    ),
    (
        "CONDVAR_WAIT_TIMEOUT",
        "3std3sys4sync7condvar5futex",
        "7Condvar12wait_timeout",
    ),
    ("ONCE_CALL", "3std3sys4sync4once5futex", "4Once4call"),
    (
        "SCOPED_THREAD_ENDED",
        "3std6thread6scoped",
        "9ScopeData29decrement_num_running_threads",
    ),
];

/// Those of the sanitizer's own that it wraps besides.
const INTERFACE: [&str; 2] = ["__tsan_atomic64_fetch_sub", "__tsan_atomic_thread_fence"];

fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("{:?} can't be started", command.get_program()))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The nightly's compiled standard library.
fn library() -> Result<PathBuf> {
    let sysroot = output(nightly("rustc").args(["--print", "sysroot"]))?;
    let directory = Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(TARGET)
        .join("lib");
    let files =
        std::fs::read_dir(&directory).with_context(|| format!("{}", directory.display()))?;
    for file in files {
        let path = file?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.starts_with("libstd-") && name.ends_with(".rlib") {
            return Ok(path);
        }
    }
    bail!("there is no standard library in {}", directory.display())
}

/// Compiles it into this directory; the flags that link it.
pub(super) fn link(directory: &Path) -> Result<OsString> {
    std::fs::create_dir_all(directory).with_context(|| format!("{}", directory.display()))?;
    let table = output(
        Command::new("readelf")
            .args(["--symbols", "--wide"])
            .arg(library()?),
    )?;
    let mut names = Vec::new();
    let source = build::workspace().join("xtask/sanitize/std_order.rs");
    // Cargo sees the flags, and not what they name.
    let mut hasher = DefaultHasher::new();
    std::fs::read(&source)?.hash(&mut hasher);
    let object = directory.join(format!("std_order-{:016x}.o", hasher.finish()));
    let mut rustc = nightly("rustc");
    for (variable, module, function) in FUNCTIONS {
        let global = table.lines().filter(|line| line.contains(" GLOBAL "));
        let symbols = global.filter_map(|line| line.split_whitespace().last());
        let mut found: Vec<_> = symbols
            .filter(|s| s.contains(module) && s.ends_with(function))
            .collect();
        found.dedup();
        ensure!(
            found.len() == 1,
            "the nightly's standard library has not one {function} in {module}, but {found:?}"
        );
        rustc.env(variable, found[0]);
        names.push(found[0]);
    }
    rustc
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "obj"])
        .args(["-C", "opt-level=2", "--target", TARGET, "-o"])
        .arg(&object)
        .arg(source);
    output(&mut rustc)?;
    let mut flags = OsString::from(" -Clink-arg=");
    flags.push(&object);
    for name in names.into_iter().chain(INTERFACE) {
        flags.push(format!(" -Clink-arg=-Wl,--wrap={name}"));
    }
    Ok(flags)
}
