//! The header is what the source makes of it.

use std::path::Path;

/// Set to write it.
const WRITE: &str = "HSA_SERIALIZER_WRITE_HEADER";

#[test]
fn the_committed_header_is_that_of_the_source() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(package.join("cbindgen.toml")).unwrap();
    let mut made = Vec::new();
    cbindgen::Builder::new()
        .with_crate(package)
        .with_config(config)
        .generate()
        .unwrap()
        .write(&mut made);
    let made = clean(&String::from_utf8(made).unwrap());
    let path = package.join("include/hsa_serializer.h");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some((line, (there, here))) = (1..)
        .zip(committed.lines().zip(made.lines()))
        .find(|(_, (a, b))| a != b)
    {
        panic!(
            "line {line} of the header is\n{there}\nand has to be\n{here}\n({WRITE}=1 writes it)"
        );
    }
    assert_eq!(
        committed.len(),
        made.len(),
        "the header is out of date ({WRITE}=1 writes it)"
    );
}

/// What is said to Rust alone goes: the sections on safety.
fn clean(header: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut in_safety = false;
    for line in header.lines() {
        let text = line.trim_start_matches([' ', '*']);
        if text == "# Safety" {
            in_safety = true;
            while lines.last().is_some_and(|line| line.trim() == "*") {
                lines.pop();
            }
        }
        if line.trim() == "*/" {
            in_safety = false;
        }
        if !in_safety {
            lines.push(line);
        }
    }
    lines.join("\n") + "\n"
}
