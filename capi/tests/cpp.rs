//! The tests in C++ (`cpp/`), against the libraries of this build, with which they are compiled here: as they are,
//! with the static library, under sanitizers, and under Valgrind; and the skeletons (`examples/c`, `examples/cpp`)
//! as tools of AMD's runtime.

mod native;

use anyhow::anyhow;
use native::Variant;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use xtask::softgpu::{self, Runtime};

const PROGRAMS: &[&str] = &["transitions", "queues", "ends", "objects", "classes"];
/// Tests that end their process.
const EXITS: &[&str] = &[
    "s72_exit_with_work_queued_and_a_static_serializer",
    "s72_exit_without_a_word",
    "s72_exit_after_the_runtime_has_gone",
];

fn compile(compiler: &OsString, program: &str, variant: &Variant) -> PathBuf {
    let source = format!("capi/tests/cpp/{program}.cpp");
    let sources = [source.as_str(), "capi/tests/cpp/check.cpp"];
    native::compile(compiler, program, &sources, variant)
}

fn check(programs: &[&str], variant: &Variant) {
    let Some(compiler) = native::cxx() else {
        return;
    };
    for program in programs {
        let built = compile(&compiler, program, variant);
        let outcome = native::run(&mut native::command(&[], &built));
        assert!(outcome.succeeded(), "{program}: {outcome}");
        // Each line is a test that has passed.
        let passed = outcome.stdout.lines().filter(|l| l.ends_with(" ok"));
        let (passed, lines) = (passed.count(), outcome.stdout.lines().count());
        assert!(passed > 0 && passed == lines, "{program}: {outcome}");
        if *program == "ends" {
            for exit in EXITS {
                // What a process leaves behind that ends with work queued is no leak.
                let mut command = native::command(&[], &built);
                command.arg(exit).env("ASAN_OPTIONS", "detect_leaks=0");
                let outcome = native::run(&mut command);
                assert!(outcome.succeeded(), "{exit}: {outcome}");
                assert!(outcome.stdout.contains(exit), "it was not run: {outcome}");
            }
        }
    }
}

#[test]
fn as_they_are() {
    check(
        PROGRAMS,
        &Variant {
            name: "plain",
            options: &["-std=c++17"],
            statically: false,
        },
    );
}

#[test]
fn as_cpp_20_with_the_static_library() {
    check(
        &["objects"],
        &Variant {
            name: "static",
            options: &["-std=c++20", "-O2"],
            statically: true,
        },
    );
}

#[test]
fn under_the_sanitizers_of_addresses_and_undefined_behaviour() {
    check(
        PROGRAMS,
        &Variant {
            name: "sanitized",
            options: &[
                "-std=c++17",
                "-O1",
                "-fno-omit-frame-pointer",
                "-fsanitize=address,undefined",
                "-fno-sanitize-recover=all",
            ],
            statically: false,
        },
    );
}

/// The code of docs/migrating.md, all of it one after the other.
#[test]
fn what_the_guide_to_migrating_shows() {
    let Some(compiler) = native::cxx() else {
        return;
    };
    let guide = fs::read_to_string(native::root().join("docs/migrating.md")).unwrap();
    let blocks: Vec<_> = guide.split("```cpp\n").skip(1).collect();
    assert!(blocks.len() >= 9, "{} blocks of code", blocks.len());
    let mut source = String::from("#include \"capi/tests/cpp/migrating.hpp\"\n");
    for block in blocks {
        source += block.split("```").next().unwrap();
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("migrating.cpp");
    fs::write(&file, source).unwrap();
    let mut command = native::compiler(&compiler);
    command
        .args(["-std=c++17", "-c", "-I.", "-o", "/dev/null"])
        .arg(file);
    let outcome = native::run(&mut command);
    assert!(outcome.succeeded(), "{outcome}");
}

#[test]
fn under_valgrind() {
    let Some(compiler) = native::cxx() else {
        return;
    };
    if !native::is_there("tests in C++ under Valgrind", "valgrind") {
        return;
    }
    let variant = Variant {
        name: "valgrind",
        options: &["-std=c++17", "-O1"],
        statically: false,
    };
    let runner = [
        "valgrind",
        "--quiet",
        // Threads that wait in turns get theirs.
        "--fair-sched=yes",
        "--error-exitcode=9",
        "--leak-check=full",
        // The collector marks its pointers: what they point to is "possibly lost".
        "--show-leak-kinds=definite,indirect",
        "--errors-for-leak-kinds=definite,indirect",
    ];
    for program in ["objects", "classes"] {
        let built = compile(&compiler, program, &variant);
        let outcome = native::run(&mut native::command(&runner, &built));
        assert!(outcome.succeeded(), "{program}: {outcome}");
    }
}

/// Sources in C (of the repository), for AMD's runtime.
fn in_c(name: &str, options: &[&str], sources: &[&str]) -> PathBuf {
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let library = native::libraries().join("libhsa_serializer_capi.so");
    let mut command = native::compiler(&"cc".into());
    // These are no headers, which have to do with all warnings of all hosts.
    command
        .args([
            "-std=gnu11",
            "-Wno-pedantic",
            "-Wno-conversion",
            "-Wno-shadow",
        ])
        .args(options)
        .args(sources)
        .arg("-o")
        .args([&to, &library])
        .arg(format!("-Wl,-rpath,{}", native::libraries().display()))
        .arg("-lhsa-runtime64");
    let outcome = native::run(&mut command);
    assert!(outcome.succeeded(), "{name}: {outcome}");
    to
}

/// Applications that do what is unusual go on as they would without a skeleton, and their kernels are counted.
#[test]
fn the_skeletons_under_applications_of_amds_runtime() {
    let Some(compiler) = native::cxx() else {
        return;
    };
    let mut headers = native::compiler(&compiler);
    headers.args([
        "-fsyntax-only",
        "-x",
        "c++",
        "-include",
        "hsa/hsa_ext_amd.h",
    ]);
    if !native::run(headers.arg("/dev/null")).succeeded() {
        let why = anyhow!("no hsa/hsa_ext_amd.h (in Debian: libhsa-runtime-dev)");
        softgpu::missing("the skeletons on AMD's runtime", &why);
        return;
    }
    const SHARED: &[&str] = &["-shared", "-fPIC", "-Wl,-z,nodelete"];
    let shared = Variant {
        name: "shared",
        options: &["-std=c++17", "-shared", "-fPIC", "-Wl,-z,nodelete"],
        statically: false,
    };
    let source = ["examples/cpp/hsa_tool.cpp"];
    let skeleton_in_cpp = native::compile(&compiler, "hsa_tool", &source, &shared);
    let skeleton_in_c = in_c("skeleton_tool", SHARED, &["examples/c/tool.c"]);
    let refuses = in_c("refuses", SHARED, &["capi/tests/skeletons/refuses.c"]);
    let sources = [
        "capi/tests/skeletons/program.c",
        "hsa-tests/c/client.c",
        "hsa-tests/c/errors.c",
        "hsa-tests/c/profiled.c",
    ];
    let program = in_c("program", &[], &sources);
    let run = |runtime: Runtime, scenario: &str, tools: &str| {
        let mut command = runtime.command(&program);
        command
            .args([scenario, "120"])
            .env("HSA_TOOLS_LIB", tools)
            .env("HSA_EXAMPLE_TOGGLE_US", "0");
        let outcome = native::run(&mut command);
        let what = format!("{scenario} on {} under {tools}", runtime.name());
        assert!(outcome.succeeded(), "{what}: {outcome}");
        move |said: &str| assert!(outcome.stderr.contains(said), "{what}: {outcome}")
    };
    let under = |runtime: Runtime, skeleton: &Path| {
        // With the kernels that are counted, where that is no matter of time: some of a queue that fails are not.
        for (scenario, before, kernels) in [
            ("cpu-queue", None, Some(1)),
            ("first-handler", None, Some(110)),
            ("fault", None, None),
            ("refused", Some(&*refuses), Some(10)),
        ] {
            let tools = before.into_iter().chain([skeleton]);
            let tools: Vec<_> = tools.map(Path::to_string_lossy).collect();
            let tools = tools.join(" ");
            let told = kernels.map_or_else(
                || " kernels, ".to_owned(),
                |n| format!(": {n} kernels, {n} "),
            );
            run(runtime, scenario, &tools)(&told);
        }
    };
    for runtime in softgpu::runtimes() {
        under(runtime, &skeleton_in_c);
        // It has the table by AMD's own header, which is the installed runtime's: with another one it stays out.
        if runtime == Runtime::Installed {
            under(runtime, &skeleton_in_cpp);
        } else {
            let skeleton = skeleton_in_cpp.to_string_lossy();
            run(runtime, "cpu-queue", &skeleton)("the headers of another version");
        }
    }
}
