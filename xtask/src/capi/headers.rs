//! The headers, each by itself, as every language that they are for, with all warnings as errors.

use super::{has, step};
use crate::process;
use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

/// What a header in C has to be, and one in C++.
const C: &[&str] = &["c99", "c11"];
const CPP: &[&str] = &["c++17", "c++20"];

/// What a program includes. Others are parts of these.
const HEADERS: &[(&str, &[&[&str]])] = &[
    ("hsa_serializer.h", &[C, CPP]),
    ("hsa_serializer.hpp", &[CPP]),
];

const WARNINGS: &[&str] = &["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c"];

pub(super) fn check(root: &Path) -> Result<()> {
    // gcc has to be there, clang may.
    let mut compilers = vec!["g++"];
    if Command::new("clang++").arg("--version").output().is_ok() {
        compilers.push("clang++");
    }
    ensure!(
        has("g++", Command::new("g++").arg("--version"))?,
        "the headers can't be compiled"
    );
    for compiler in compilers {
        step(&format!("the headers, by {compiler}"), || {
            // Something that these warnings refuse, or they prove nothing.
            for language in C.iter().chain(CPP) {
                let refused = compile(
                    compiler,
                    language,
                    root,
                    "static int unused(void) { return 0; }\n",
                );
                ensure!(
                    !refused.succeeded(),
                    "{compiler} lets anything pass as {language}"
                );
            }
            for (header, languages) in HEADERS {
                for language in languages.iter().copied().flatten() {
                    // Twice, for the guards.
                    let source = format!(
                        "#include <{header}>\n#include <{header}>\nint main(void) {{ return 0; }}\n"
                    );
                    let outcome = compile(compiler, language, root, &source);
                    ensure!(outcome.succeeded(), "{header} as {language}: {outcome}");
                    println!("   {header} as {language}");
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn compile(compiler: &str, language: &str, root: &Path, source: &str) -> process::Outcome {
    let name = if language.contains('+') { "c++" } else { "c" };
    let file = root.join(format!("target/header.{name}"));
    fs::write(&file, source).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut command = Command::new(compiler);
    command
        .args(["-x", name, &format!("-std={language}")])
        .args(WARNINGS)
        .arg("-I")
        .arg(root.join("capi/include"))
        .arg(&file)
        // Not -fsyntax-only, with which some warnings do not come.
        .args(["-o", "/dev/null"]);
    process::run(command, PATIENCE)
}
