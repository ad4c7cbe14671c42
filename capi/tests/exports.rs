//! What the shared object shows to those who link with it.

use object::elf::{DF_1_NODELETE, DT_FLAGS_1, FileHeader64};
use object::read::elf::{Dyn, FileHeader, Sym};
use object::{Endianness, elf};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds it: cargo makes no shared object for a test.
fn shared_object() -> PathBuf {
    let tests = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let directory = tests.parent().expect("the target directory");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--lib", "--target-dir"])
        .arg(directory)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .status()
        .expect("cargo starts");
    assert!(status.success(), "{status}");
    directory.join("debug/libhsa_serializer_capi.so")
}

/// What the file says of itself.
#[derive(Debug, Default)]
struct Shown {
    exported: BTreeSet<String>,
    stays_mapped: bool,
}

fn shown(file: &[u8]) -> Shown {
    let header = FileHeader64::<Endianness>::parse(file).unwrap();
    let endian = header.endian().unwrap();
    let sections = header.sections(endian, file).unwrap();
    let symbols = sections.symbols(endian, file, elf::SHT_DYNSYM).unwrap();
    let mut shown = Shown::default();
    for symbol in symbols.iter().filter(|s| !s.is_undefined(endian)) {
        let name = symbol.name(endian, symbols.strings()).unwrap();
        if !name.is_empty() {
            let name = String::from_utf8(name.to_vec()).unwrap();
            shown.exported.insert(name);
        }
    }
    let (entries, _) = sections.dynamic(endian, file).unwrap().expect("one");
    for entry in entries {
        if entry.tag(endian) == DT_FLAGS_1 {
            shown.stays_mapped = entry.d_val(endian) as u32 & DF_1_NODELETE != 0;
        }
    }
    shown
}

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/hsa_serializer.h");
    let header = std::fs::read_to_string(path).unwrap();
    let code = header.lines().map(str::trim_start);
    code.filter(|line| !line.starts_with(['*', '/', '#']) && !line.starts_with("typedef"))
        .filter_map(|line| {
            let (before, _) = line.split_once('(')?;
            let name = before.split([' ', '*']).next_back()?;
            name.starts_with("hsa_serializer_").then(|| name.to_owned())
        })
        .collect()
}

#[test]
fn the_shared_object_exports_what_the_header_declares_and_nothing_else() {
    let shown = shown(&std::fs::read(shared_object()).unwrap());
    let declared = declared();
    assert!(declared.len() > 50, "{declared:?}");
    assert_eq!(shown.exported, declared);
    assert!(shown.stays_mapped, "it could be unloaded under its threads");
}

#[test]
fn the_cmake_package_has_the_crates_version() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("cmake/hsa_serializerConfigVersion.cmake");
    let file = std::fs::read_to_string(path).unwrap();
    let line = format!("set(PACKAGE_VERSION \"{}\")", env!("CARGO_PKG_VERSION"));
    assert!(file.lines().any(|l| l == line), "it does not say {line}");
}

#[test]
fn the_guide_says_of_every_function_from_where_it_may_be_called() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/embedding.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let (_, section) = guide
        .split_once("# Threads: which function from where")
        .unwrap();
    let table = section.lines().filter(|line| line.starts_with("| "));
    // The functions are the last column's words in code.
    let cells = table.filter_map(|line| line.trim_end_matches(" |").rsplit_once("| "));
    let named: Vec<String> = cells
        .skip(1)
        .flat_map(|(_, cell)| cell.split('`').skip(1).step_by(2))
        .map(|name| format!("hsa_serializer_{name}"))
        .collect();
    let once: BTreeSet<String> = named.iter().cloned().collect();
    assert_eq!(once, declared());
    assert_eq!(once.len(), named.len(), "one is named twice: {named:?}");
}
