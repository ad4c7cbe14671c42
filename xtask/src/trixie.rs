//! A second version of AMD's runtime beside the installed one: Debian trixie's, as a tree of files.
//!
//! Neither root nor a chroot is needed: apt, with a configuration of its own and nothing called
//! installed, chooses and verifies the packages, which are only unpacked. Programs run in the tree
//! by its own dynamic loader ([`Tree::command`]), on the host's file system.

use crate::build;
use anyhow::{Context, Result, bail, ensure};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What is in the tree, besides what these depend on.
const PACKAGES: &[&str] = &["libhsa-runtime64-1", "libhsa-runtime-dev", "libamdhip64-5"];

/// Where Debian's libraries for this architecture are.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// Written last: the packages and versions in the tree. Without it a tree doesn't count.
const STAMP: &str = "complete";

/// Written first: a directory with other contents and without this is somebody's, and not touched.
const MARK: &str = ".made-by-xtask-trixie";
const MARKED: &str = "This directory is made, and removed, by `cargo xtask trixie`.\n";

/// Releases by which a host's entry is known to be of Debian's main archive.
const RELEASES: &[&str] = &[
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "sid",
    "oldoldstable",
    "oldstable",
    "stable",
    "testing",
    "unstable",
];

/// The tree.
#[derive(Clone, Debug)]
pub struct Tree {
    directory: PathBuf,
}

impl Tree {
    /// Where it is, or would be: in HSA_TRIXIE_DIR, or else in the target directory.
    pub fn locate() -> Result<Self> {
        let directory = match env::var_os("HSA_TRIXIE_DIR").filter(|d| !d.is_empty()) {
            Some(directory) => std::path::absolute(directory)?,
            None => build::target_directory()?.join("trixie"),
        };
        Ok(Self { directory })
    }

    /// Its root directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether all of it is there.
    pub fn is_complete(&self) -> bool {
        self.stamp().is_some_and(|s| s.starts_with(&wanted()))
    }

    /// The version of a package in it, as Debian writes it.
    pub fn version(&self, package: &str) -> Option<String> {
        let stamp = self.stamp()?;
        let mut pairs = stamp.lines().filter_map(|l| l.split_once(' '));
        Some(pairs.find(|&(name, _)| name == package)?.1.to_owned())
    }

    fn stamp(&self) -> Option<String> {
        fs::read_to_string(self.directory.join(STAMP)).ok()
    }

    /// A command that runs a program in the tree, with the libraries of `first` in front of the
    /// tree's. `/proc/self/exe` is then the loader.
    pub fn command(&self, first: &Path, program: &Path) -> Command {
        let libraries = self.directory.join(LIBRARIES);
        let mut path = OsString::from(first);
        path.push(":");
        path.push(&libraries);
        let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
        // The cache is the host's, and would lead to the host's libraries.
        command.args(["--inhibit-cache", "--library-path"]);
        command.arg(path).arg("--argv0").arg(program).arg(program);
        // The host's libraries, by way of cargo: not for this C library.
        command.env_remove("LD_LIBRARY_PATH");
        command
    }

    /// Makes the tree, unless it is complete and `force` is not given.
    pub fn make(&self, force: bool) -> Result<()> {
        if self.is_complete() && !force {
            println!(
                "{} is complete (--force makes it anew)",
                self.directory.display()
            );
            return Ok(());
        }
        ensure!(
            cfg!(target_arch = "x86_64"),
            "the tree is for x86-64, which this machine is not"
        );
        let Some(name) = self.directory.file_name() else {
            bail!(
                "{} is no name for a new directory",
                self.directory.display()
            );
        };
        let mut partial = name.to_owned();
        partial.push(".partial");
        let partial = self.directory.with_file_name(partial);
        ours(&self.directory)?;
        ours(&partial)?;
        for tool in ["apt-get", "dpkg-deb"] {
            require(tool)?;
        }
        let start = Instant::now();
        // It gets its name when nothing is missing any more.
        remove(&partial)?;
        fs::create_dir_all(&partial)?;
        fs::write(partial.join(MARK), MARKED)?;
        fill(&partial).with_context(|| {
            format!(
                "Debian trixie's tree could not be made; what there is of it: {}",
                partial.display()
            )
        })?;
        remove(&self.directory)?;
        fs::rename(&partial, &self.directory)?;
        println!(
            "{} made in {:.0} s, with the runtime's version {}",
            self.directory.display(),
            start.elapsed().as_secs_f64(),
            self.version(PACKAGES[0]).unwrap_or_default()
        );
        Ok(())
    }
}

/// The stamp's first line.
fn wanted() -> String {
    format!("packages: {}\n", PACKAGES.join(", "))
}

fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            Err(e).with_context(|| format!("{} can't be removed", directory.display()))
        }
        _ => Ok(()),
    }
}

fn require(tool: &str) -> Result<()> {
    let found = Command::new(tool)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    ensure!(
        found.is_ok(),
        "{tool} is missing: the tree is made of Debian's packages, by apt-get and dpkg-deb"
    );
    Ok(())
}

/// Whether a directory may be removed: it is not there, it is empty, or it is of our own making.
fn ours(directory: &Path) -> Result<()> {
    let Ok(mut entries) = fs::read_dir(directory) else {
        ensure!(
            !directory.exists(),
            "{} is no directory: not touched",
            directory.display()
        );
        return Ok(());
    };
    let marked = fs::read_to_string(directory.join(MARK)).is_ok_and(|text| text == MARKED);
    ensure!(
        marked || entries.next().is_none(),
        "{} is not empty and was not made by this command: not touched",
        directory.display()
    );
    Ok(())
}

fn fill(tree: &Path) -> Result<()> {
    let work = tree.join("apt");
    for directory in ["state/lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(work.join(directory))?;
    }
    let mirror = mirror()?;
    println!("downloading {} from {mirror}", PACKAGES.join(", "));
    fs::write(
        work.join("sources.list"),
        format!("deb [{}] {mirror} trixie main\n", source_options()),
    )?;
    // Nothing is installed in the tree, so that everything that is needed is downloaded.
    fs::write(work.join("status"), "")?;

    perform(apt(&work).arg("update")).context(
        "apt-get update, for trixie (NO_PUBKEY: the package debian-archive-keyring is too old; an \
         address that can't be reached: HSA_TRIXIE_MIRROR names another)",
    )?;
    let mut download = apt(&work);
    download.args([
        "install",
        "--download-only",
        "--no-install-recommends",
        "--yes",
    ]);
    perform(download.args(PACKAGES)).context("apt-get, downloading the packages")?;

    let mut stamp = wanted();
    let mut archives = fs::read_dir(work.join("cache/archives"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    archives.retain(|a| a.extension().is_some_and(|e| e == "deb"));
    archives.sort();
    println!("unpacking {} packages", archives.len());
    for archive in archives {
        perform(
            Command::new("dpkg-deb")
                .arg("--extract")
                .args([&archive, tree]),
        )
        .with_context(|| format!("unpacking {}", archive.display()))?;
        stamp.push_str(&package_and_version(&archive).context("the name of a package's file")?);
    }
    remove(&work)?;
    for file in [
        "ld-linux-x86-64.so.2",
        "libhsa-runtime64.so.1",
        "libamdhip64.so.5",
    ] {
        let file = tree.join(LIBRARIES).join(file);
        ensure!(file.exists(), "{} is not in the packages", file.display());
    }
    fs::write(tree.join(STAMP), stamp)?;
    Ok(())
}

/// As a line of the stamp, from NAME_VERSION_ARCHITECTURE.deb.
fn package_and_version(archive: &Path) -> Option<String> {
    let mut parts = archive.file_stem()?.to_str()?.split('_');
    let (package, version) = (parts.next()?, parts.next()?);
    Some(format!("{package} {}\n", version.replace("%3a", ":")))
}

/// apt-get with directories of its own. What the host's configuration says besides holds: a proxy.
fn apt(work: &Path) -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("LC_ALL", "C.UTF-8")
        .args(["--quiet", "--quiet"]);
    let mut set = |name: &str, value: OsString| {
        let mut option = OsString::from(name);
        option.push("=");
        option.push(value);
        command.arg("-o").arg(option);
    };
    set("Dir::State", work.join("state").into());
    set("Dir::State::status", work.join("status").into());
    set("Dir::Cache", work.join("cache").into());
    set("Dir::Etc::sourcelist", work.join("sources.list").into());
    for name in ["sourceparts", "preferences", "preferencesparts"] {
        set(&format!("Dir::Etc::{name}"), "/dev/null".into());
    }
    set("APT::Architecture", "amd64".into());
    set("APT::Architectures", "amd64".into());
    // Without it, an index that can't be fetched is a warning.
    set("APT::Update::Error-Mode", "any".into());
    set("Acquire::Languages", "none".into());
    // Where root runs this, apt's own user may have no access to the directory.
    set("APT::Sandbox::User", "root".into());
    command
}

/// Only the index of packages, and Debian's keys, which sign all of its releases.
fn source_options() -> String {
    let mut options = "arch=amd64 target=Packages".to_owned();
    for keys in ["gpg", "pgp"].map(|e| format!("/usr/share/keyrings/debian-archive-keyring.{e}")) {
        if Path::new(&keys).exists() {
            options = format!("{options} signed-by={keys}");
            break;
        }
    }
    options
}

/// The host's own mirror of Debian.
fn mirror() -> Result<String> {
    if let Ok(mirror) = env::var("HSA_TRIXIE_MIRROR") {
        return Ok(mirror);
    }
    let output = Command::new("apt-get")
        .args([
            "indextargets",
            "--format",
            "$(RELEASE) $(COMPONENT) $(REPO_URI)",
        ])
        .arg("Created-By: Packages")
        .output()
        .context("apt-get indextargets")?;
    let text = String::from_utf8_lossy(&output.stdout);
    debian(&text).with_context(|| {
        "none of this machine's apt sources is Debian's main archive: HSA_TRIXIE_MIRROR=ADDRESS \
         names a mirror"
    })
}

/// The mirror, in lines of a release, a component and an address.
fn debian(targets: &str) -> Option<String> {
    targets.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (release, component, address) = (words.next()?, words.next()?, words.next()?);
        let is =
            RELEASES.contains(&release) && component == "main" && !address.starts_with("cdrom");
        is.then(|| address.to_owned())
    })
}

fn perform(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status()?;
    ensure!(
        status.success(),
        "{:?} failed ({status})",
        command.get_program()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_main_archive_of_a_release() {
        let targets = "x-bookworm main http://other.invalid/apt/\n\
                       bookworm-security main http://mirror.invalid/debian-security/\n\
                       bookworm contrib http://mirror.invalid/contrib/\n\
                       bookworm main http://mirror.invalid/debian/\n";
        assert_eq!(
            debian(targets).as_deref(),
            Some("http://mirror.invalid/debian/")
        );
        assert_eq!(debian("noble main http://mirror.invalid/ubuntu/\n"), None);
    }

    #[test]
    fn versions_are_in_the_names() {
        let line = package_and_version(Path::new("a/zlib1g_1%3a1.3.1-1_amd64.deb"));
        assert_eq!(line.as_deref(), Some("zlib1g 1:1.3.1-1\n"));
    }
}
