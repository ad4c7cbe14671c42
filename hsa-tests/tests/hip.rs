//! A HIP program that knows nothing of the serializer, on Debian's HIP and AMD's runtime over the
//! emulated GPU: bare, and with everything serialized under it. What it does stands in `hip/`.

mod native;

use native::{Compiler, Run, Scenario, Tool};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

fn client() -> Option<&'static Path> {
    static CLIENT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let compiler = Compiler {
        program: "c++",
        options: &["-std=c++17", "-D__HIP_PLATFORM_AMD__"],
        language: "c++",
        header: "hip/hip_runtime_api.h",
        library: "-lamdhip64",
        packages: "g++, libamdhip64-dev",
    };
    CLIENT
        .get_or_init(|| compiler.client("hip", "cpp"))
        .as_deref()
}

fn check(name: &str, gpus: u32) -> Vec<Run> {
    let Some(client) = client() else {
        return Vec::new();
    };
    let tools = &[Tool::Bare, Tool::Serialize, Tool::Toggle(300)];
    Scenario {
        client,
        name,
        gpus,
        tools,
    }
    .check()
}

#[test]
fn copies() {
    check("copies", 1);
}

#[test]
fn streams() {
    check("streams", 1);
}

#[test]
fn threads() {
    check("threads", 2);
}

#[test]
fn events() {
    check("events", 1);
}

#[test]
fn chains_of_streams() {
    check("chains", 1);
}

#[test]
fn memsets() {
    for run in check("memsets", 1) {
        // HIP's queues are intercepted, and its kernels serialized.
        if run.tool == Tool::Serialize {
            assert!(run.summary.serialized > 20, "{:?}", run.summary);
        }
    }
}
