//! What was installed: each time the same.

use super::succeed;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The files, what the shared library says of itself, and what a program is linked with, statically.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Installed {
    files: BTreeSet<String>,
    soname: String,
    linked_with: BTreeSet<String>,
}

pub(super) fn installed(prefix: &Path) -> Result<Installed> {
    let mut files = BTreeSet::new();
    list(prefix, prefix, &mut files)?;
    let mut readelf = Command::new("readelf");
    let dynamic = succeed(readelf.args(["-dW", "lib/libhsa_serializer.so"]), prefix)?;
    let soname = dynamic
        .lines()
        .find(|line| line.contains("(SONAME)"))
        .and_then(|line| line.rsplit_once('[')?.1.strip_suffix(']'))
        .with_context(|| format!("the shared library has no soname: {dynamic}"))?;
    ensure!(
        soname != "libhsa_serializer.so" && prefix.join("lib").join(soname).exists(),
        "what asks for {soname} gets nothing, or any version"
    );
    ensure!(
        dynamic.contains("NODELETE"),
        "the shared library could be unloaded: {dynamic}"
    );
    let mut pkg_config = Command::new("pkg-config");
    pkg_config
        .args(["--static", "--libs-only-l", "hsa_serializer"])
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let libraries = succeed(&mut pkg_config, prefix)?;
    Ok(Installed {
        files,
        soname: soname.to_owned(),
        linked_with: libraries.split_whitespace().map(str::to_owned).collect(),
    })
}

fn list(prefix: &Path, directory: &Path, files: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            list(prefix, &path, files)?;
        } else {
            files.insert(path.strip_prefix(prefix)?.display().to_string());
        }
    }
    Ok(())
}

/// What is installed by cargo-c has rustc's own word on the libraries; the package's list is written down.
pub(super) fn compare(one: &Installed, other: &Installed) -> Result<()> {
    ensure!(
        one == other,
        "not the same was installed:\n{one:#?}\n{other:#?}"
    );
    println!("   the same {} files, {}", one.files.len(), one.soname);
    Ok(())
}
