//! A directory as a fresh clone is: the tracked files, those that are about to be, and nothing that was built.

use super::succeed;
use crate::build;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory.
#[derive(Debug)]
pub(super) struct Clone(PathBuf);

impl Clone {
    /// Makes it anew.
    pub(super) fn make() -> Result<Self> {
        let root = build::target_directory()?.join("capi/clone");
        if root.exists() {
            fs::remove_dir_all(&root).with_context(|| format!("{}", root.display()))?;
        }
        let mut list = Command::new("git");
        list.args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let listed = succeed(&mut list, build::workspace())?;
        for name in listed.split('\0').filter(|name| !name.is_empty()) {
            let from = build::workspace().join(name);
            // One that was deleted and is tracked still.
            if !from.exists() {
                continue;
            }
            let to = root.join(name);
            fs::create_dir_all(to.parent().unwrap_or(&root))?;
            fs::copy(&from, &to).with_context(|| format!("{}", from.display()))?;
        }
        fs::create_dir_all(root.join("target"))?;
        Ok(Self(root))
    }

    /// One that is there already.
    #[cfg(test)]
    pub(super) fn at(root: PathBuf) -> Self {
        Self(root)
    }

    pub(super) fn root(&self) -> &Path {
        &self.0
    }

    /// Runs a command in it, as somebody who has only just got it.
    pub(super) fn run(&self, command: &mut Command) -> Result<String> {
        // Where these are built must not be mistaken for where we were.
        for variable in [
            "CARGO_TARGET_DIR",
            "CMAKE_PREFIX_PATH",
            "PKG_CONFIG_PATH",
            "LD_LIBRARY_PATH",
        ] {
            command.env_remove(variable);
        }
        succeed(command, &self.0)
    }

    /// Removes a directory of it.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        fs::remove_dir_all(self.0.join(name)).with_context(|| name.to_owned())
    }
}
