//! Programs in C and C++ over the libraries that cargo has built for this very test: compiled, and run with a time
//! limit.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use xtask::process::{self, Outcome};
use xtask::softgpu::missing;

/// What one compilation or run may take, on a machine that does other things besides.
const PATIENCE: Duration = Duration::from_secs(400);

/// The C++ compiler: `CXX`, or `c++`. None, said aloud, if there is none; a failure in CI.
pub(crate) fn cxx() -> Option<OsString> {
    let compiler = env::var_os("CXX").unwrap_or_else(|| "c++".into());
    is_there("tests in C++", &compiler).then_some(compiler)
}

/// Whether a program can be started; if not, that is said aloud, and is a failure in CI.
pub(crate) fn is_there(what: &str, program: &(impl AsRef<std::ffi::OsStr> + ?Sized)) -> bool {
    let program = program.as_ref();
    match Command::new(program).arg("--version").output() {
        Ok(_) => true,
        Err(error) => {
            let name = program.to_string_lossy();
            missing(what, &anyhow::anyhow!("{name}: {error}"));
            false
        }
    }
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Where cargo has put the libraries of this build: beside the test.
pub(crate) fn libraries() -> PathBuf {
    let test = env::current_exe().expect("the test knows its place");
    test.parent().expect("it is in a directory").to_path_buf()
}

/// How a program is compiled and linked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    /// Its name, for files.
    pub(crate) name: &'static str,
    pub(crate) options: &'static [&'static str],
    /// Whether the library is linked in.
    pub(crate) statically: bool,
}

/// The compiler in the repository's root, with the directories of headers, and every warning an error.
pub(crate) fn compiler(compiler: &OsString) -> Command {
    let mut command = Command::new(compiler);
    command
        .current_dir(root())
        .args(["-g", "-pthread", "-Werror"])
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow"])
        .args(["-Icapi/include", "-Isoftgpu/c/include", "-Iexamples/cpp"]);
    command
}

/// Compiles sources (of the repository) into a program.
///
/// # Panics
/// With what the compiler says, if it refuses them.
pub(crate) fn compile(
    compiler: &OsString,
    program: &str,
    sources: &[&str],
    variant: &Variant,
) -> PathBuf {
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{program}-{}", variant.name));
    let libraries = libraries();
    let mut command = self::compiler(compiler);
    command
        .args(variant.options)
        .args(sources)
        .arg("-o")
        .arg(&to);
    if variant.statically {
        command.arg(libraries.join("libhsa_serializer_capi.a"));
    } else {
        command.arg(libraries.join("libhsa_serializer_capi.so"));
    }
    // Always shared: two static libraries of Rust's have the same symbols of its runtime.
    command
        .arg(libraries.join("libsoftgpu_c.so"))
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .args(["-ldl", "-lm"]);
    let outcome = process::run(command, PATIENCE);
    assert!(outcome.succeeded(), "{program}: {outcome}");
    to
}

/// A command for a program, run by a runner or by itself.
pub(crate) fn command(runner: &[&str], program: &Path) -> Command {
    match runner {
        [] => Command::new(program),
        [first, options @ ..] => {
            let mut command = Command::new(first);
            command.args(options).arg(program);
            command
        }
    }
}

/// Runs it to its end, or that of our patience.
pub(crate) fn run(command: &mut Command) -> Outcome {
    process::run(command, PATIENCE)
}
