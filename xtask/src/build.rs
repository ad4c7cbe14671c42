//! What is built by cargo while a command or a test runs, and where it is.

use anyhow::{Context, Result, bail};
use cargo_metadata::{Message, MetadataCommand};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The root of the workspace.
pub fn workspace() -> &'static Path {
    // The directory above this crate's own.
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// A command that runs cargo in the workspace.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace());
    command
}

/// Cargo's target directory, wherever the environment or a configuration has put it.
pub fn target_directory() -> Result<&'static Path> {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    if let Some(directory) = DIRECTORY.get() {
        return Ok(directory);
    }
    let metadata = MetadataCommand::new()
        .current_dir(workspace())
        .no_deps()
        .exec()
        .context("cargo doesn't tell its target directory")?;
    Ok(DIRECTORY.get_or_init(|| metadata.target_directory.into()))
}

/// Builds a package in release mode; the file that its target of this name became: the program of a
/// binary, the shared object of a `cdylib`.
pub fn artifact(package: &str, target: &str) -> Result<PathBuf> {
    let _patience = Patience::new(package);
    let output = cargo()
        .args(["build", "--release", "--quiet", "--package", package])
        .arg("--message-format=json-render-diagnostics")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cargo can't be started")?;
    if !output.status.success() {
        bail!("{package} could not be built ({})", output.status);
    }
    let mut built = Vec::new();
    for message in Message::parse_stream(&output.stdout[..]) {
        let Message::CompilerArtifact(artifact) = message.context("cargo's messages")? else {
            continue;
        };
        let shared = || {
            artifact
                .filenames
                .iter()
                .find(|f| f.extension() == Some("so"))
        };
        let Some(file) = artifact.executable.as_ref().or_else(shared) else {
            continue;
        };
        if artifact.target.name == target {
            return Ok(file.into());
        }
        built.push(artifact.target.name);
    }
    bail!(
        "{package} has no program or shared object {target}; it has: {}",
        built.join(", ")
    )
}

/// Says after a while what is waited for: cargo may wait for another cargo, and was told to be quiet.
struct Patience(mpsc::Sender<()>);

impl Patience {
    fn new(package: &str) -> Self {
        let (done, over) = mpsc::channel();
        let text = format!("cargo builds {package}, or waits for another cargo");
        thread::spawn(move || {
            if over.recv_timeout(Duration::from_secs(3)) == Err(RecvTimeoutError::Timeout) {
                eprintln!("== {text}");
            }
        });
        Self(done)
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        // It is gone if it has said so already.
        let _ = self.0.send(());
    }
}

/// [`artifact`] for tests.
///
/// # Panics
/// Where it can't be built.
pub fn build_bin(package: &str, target: &str) -> PathBuf {
    artifact(package, target).unwrap_or_else(|e| panic!("{e:#}"))
}
