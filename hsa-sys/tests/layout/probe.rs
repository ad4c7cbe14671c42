//! The C++ program: made, compiled, run, and its answer read.

use crate::declared::Declared;
use hsa_sys::CALLBACKS;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is compared, by its kind and name.
pub(crate) type Values = BTreeMap<String, i128>;

/// Where the headers are.
pub(crate) struct Headers {
    directory: PathBuf,
    text: String,
}

impl Headers {
    /// Those of `HSA_INCLUDE_DIR`, or the installed ones.
    pub(crate) fn find() -> Result<Self, String> {
        let given = std::env::var_os("HSA_INCLUDE_DIR").map(PathBuf::from);
        let installed = ["/usr/include/hsa", "/opt/rocm/include/hsa"].map(PathBuf::from);
        let candidates = match &given {
            Some(directory) => vec![directory.clone(), directory.join("hsa")],
            None => installed.to_vec(),
        };
        let directory = candidates.into_iter().find(|d| d.join("hsa.h").is_file());
        let Some(directory) = directory else {
            // Who names a directory means it.
            assert!(given.is_none(), "there is no hsa.h in {given:?}");
            return Err("there are no HSA headers (libhsa-runtime-dev)".to_owned());
        };
        let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap_or_default();
        let text = read("hsa.h") + &read("hsa_ext_amd.h");
        Ok(Self { directory, text })
    }

    /// Whether some header has that constant.
    fn has(&self, constant: &str) -> bool {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        self.text
            .match_indices(constant)
            .any(|(at, _)| !self.text[at + constant.len()..].starts_with(word))
    }
}

/// Constants that the older of the supported versions have not got.
pub(crate) const LATER: &[&str] = &[
    "HSA_STATUS_ERROR_OUT_OF_REGISTERS",
    "HSA_STATUS_ERROR_RESOURCE_BUSY",
];

/// A Rust type of our lists as C++ writes it.
fn cpp_type(rust: &str) -> String {
    // `stringify!` puts blanks where it likes.
    let rust: String = rust.split_whitespace().collect();
    let rust = rust.as_str();
    if let Some(target) = rust.strip_prefix("*mut") {
        return format!("{}*", cpp_type(target));
    }
    if let Some(target) = rust.strip_prefix("*const") {
        return format!("{} const*", cpp_type(target));
    }
    if let Some(inner) = rust
        .strip_prefix("Option<")
        .and_then(|r| r.strip_suffix('>'))
    {
        return cpp_type(inner);
    }
    let callback = CALLBACKS.iter().any(|(name, _, _)| *name == rust);
    match rust {
        "()" | "c_void" => "void",
        "c_char" => "char",
        "c_int" => "int",
        "bool" => "bool",
        "u16" => "uint16_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        // Ours, which is compared with the header's where that has a name for it.
        _ if callback => return format!("here::{rust}"),
        named => named,
    }
    .to_owned()
}

/// Callbacks that the headers have a name for, too.
pub(crate) const NAMED_CALLBACKS: &[&str] = &[
    "hsa_amd_signal_handler",
    "hsa_amd_queue_intercept_packet_writer",
    "hsa_amd_queue_intercept_handler",
    "hsa_amd_runtime_queue_notifier",
];

const PROLOGUE: &str = r#"
#define AMD_INTERNAL_BUILD 1
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>
#include "hsa.h"
#include "hsa_ext_amd.h"
#include "hsa_api_trace.h"
#include "amd_hsa_queue.h"
#include "amd_hsa_signal.h"
#define SAY(key, value) std::printf(key "=%lld\n", (long long)(value))
#define TABLE(name, version) \
  SAY("table " #name ".size", sizeof(name)); \
  SAY("table " #name ".major", version)
#define FIELD(name, field) \
  SAY("offset " #name "." #field, offsetof(name, field)); \
  SAY("field " #name "." #field, sizeof(((name*)0)->field))
#define SLOT(table, function) \
  SAY("slot " #table "." #function, \
      (offsetof(table, function##_fn) - sizeof(ApiTableVersion)) / sizeof(void*))
"#;

const TABLES: &str = "\
TABLE(HsaApiTable, HSA_API_TABLE_MAJOR_VERSION);
TABLE(CoreApiTable, HSA_CORE_API_TABLE_MAJOR_VERSION);
TABLE(AmdExtTable, HSA_AMD_EXT_API_TABLE_MAJOR_VERSION);
";

fn source(headers: &Headers, declared: &Declared) -> String {
    let mut lines = vec![PROLOGUE.to_owned(), "namespace here {".to_owned()];
    for (name, parameters, returns) in CALLBACKS {
        let parameters: Vec<_> = parameters.iter().map(|p| cpp_type(p)).collect();
        let returns = cpp_type(returns);
        lines.push(format!(
            "typedef {returns} (*{name})({});",
            parameters.join(", ")
        ));
    }
    lines.push("}\nint main() {".to_owned());
    lines.push(TABLES.to_owned());
    for (name, _) in &declared.constants {
        if headers.has(name) || !LATER.contains(name) {
            lines.push(format!("SAY(\"constant {name}\", {name});"));
        }
    }
    for (name, _) in &declared.types {
        lines.push(format!("SAY(\"size {name}\", sizeof({name}));"));
    }
    for structure in &declared.structures {
        let name = structure.name;
        if Declared::is_complete(structure) {
            lines.push(format!("SAY(\"size {name}\", sizeof({name}));"));
        }
        lines.push(format!("SAY(\"align {name}\", alignof({name}));"));
        for (field, _, _) in Declared::fields(structure) {
            lines.push(format!("FIELD({name}, {field});"));
        }
    }
    for (table, function) in declared.slots() {
        lines.push(format!("SLOT({table}, {function});"));
    }
    let mut same = |name: &str, ours: &str, theirs: &str| {
        lines.push(format!(
            "SAY(\"signature {name}\", (std::is_same<{ours}, {theirs}>::value));"
        ));
    };
    for name in NAMED_CALLBACKS {
        same(name, &format!("here::{name}"), &format!("::{name}"));
    }
    for function in &declared.functions {
        let parameters: Vec<_> = function.parameters.iter().map(|p| cpp_type(p)).collect();
        let ours = format!(
            "{} (*)({})",
            cpp_type(function.returns),
            parameters.join(", ")
        );
        same(
            function.name,
            &ours,
            &format!("decltype(&::{})", function.name),
        );
    }
    lines.push("}".to_owned());
    lines.join("\n")
}

/// Compiles the program, runs it, and reads what it printed.
///
/// # Errors
/// Where there is no compiler. A program that does not compile is a failure: the headers have not
/// got something that is declared here.
pub(crate) fn run(headers: &Headers, declared: &Declared, name: &str) -> Result<Values, String> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = directory.join(format!("layout-{name}"));
    let file = program.with_extension("cpp");
    std::fs::write(&file, source(headers, declared)).expect("writing the probe");
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let compiled = Command::new(&compiler)
        .args(["-std=c++11", "-w", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(&headers.directory)
        .arg(&file)
        .output()
        .map_err(|e| format!("the C++ compiler {compiler:?} can't be run: {e}"))?;
    assert!(
        compiled.status.success(),
        "the probe {} does not compile:\n{}",
        file.display(),
        String::from_utf8_lossy(&compiled.stderr)
    );
    let ran = Command::new(&program).output().expect("running the probe");
    assert!(ran.status.success(), "the probe failed: {ran:?}");
    let printed = String::from_utf8(ran.stdout).expect("the probe prints ASCII");
    Ok(printed
        .lines()
        .map(|line| {
            let (key, value) = line.split_once('=').expect("key=value");
            (key.to_owned(), value.parse().expect("a number"))
        })
        .collect())
}

/// One line for each value that the headers have otherwise, or not at all.
pub(crate) fn compare(here: &Values, headers: &Values) -> Vec<String> {
    let differs = |(key, ours): (&String, &i128)| match headers.get(key) {
        Some(theirs) if theirs == ours => None,
        Some(theirs) => Some(format!("{key}: {ours} here, {theirs} in the headers")),
        None => Some(format!("{key}: {ours} here, nothing in the headers")),
    };
    here.iter().filter_map(differs).collect()
}
