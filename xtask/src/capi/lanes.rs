//! The examples under AddressSanitizer with UndefinedBehaviorSanitizer, and under Valgrind.
//!
//! First come faults that are planted in a program of their own, each of which a lane has to report, and the same
//! program without them, which it has to pass.

use super::clone::Clone;
use super::{PATIENCE, has};
use crate::process;
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is built, by CMake.
const PROJECTS: &[&str] = &["examples/c", "examples/cpp"];

struct Lane {
    name: &'static str,
    flags: &'static str,
    /// What programs are run by.
    runner: &'static [&'static str],
    /// The planted faults, and a word of the report on each.
    faults: &'static [(&'static str, &'static str)],
}

const LANES: &[Lane] = &[
    Lane {
        name: "sanitizers",
        flags: "-g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all",
        runner: &[],
        faults: &[
            ("use-after-free", "heap-use-after-free"),
            ("leak", "LeakSanitizer"),
            ("overflow", "signed integer overflow"),
        ],
    },
    Lane {
        name: "valgrind",
        flags: "-g -O1",
        runner: &[
            "valgrind",
            "--quiet",
            // Threads that wait in turns get theirs.
            "--fair-sched=yes",
            "--error-exitcode=9",
            "--leak-check=full",
            // The collector marks its pointers: what they point to is "possibly lost".
            "--show-leak-kinds=definite,indirect",
            "--errors-for-leak-kinds=definite,indirect",
        ],
        faults: &[
            ("use-after-free", "Invalid read"),
            ("leak", "definitely lost"),
            ("uninitialized", "uninitialised value"),
        ],
    },
];

/// Over the library that is installed there, of which the planted program has to say that it is `build`.
pub(super) fn run(clone: &Clone, prefix: &Path, build: &str) -> Result<()> {
    for lane in LANES {
        if let [program, ..] = lane.runner {
            if !has(program, Command::new(program).arg("--version"))? {
                continue;
            }
        }
        lane.catches(clone, prefix, build)?;
        for project in PROJECTS {
            lane.project(clone, prefix, build, project)?;
        }
    }
    Ok(())
}

impl Lane {
    fn command(&self, program: &Path) -> Command {
        match self.runner {
            [] => Command::new(program),
            [runner, options @ ..] => {
                let mut command = Command::new(runner);
                command.args(options).arg(program);
                command
            }
        }
    }

    fn catches(&self, clone: &Clone, prefix: &Path, build: &str) -> Result<()> {
        let program = self.planted(clone, prefix)?;
        let run =
            |arguments: &[&str]| process::run(self.command(&program).args(arguments), PATIENCE);
        let which = run(&["build"]);
        ensure!(
            which.succeeded() && which.stdout.trim() == build,
            "this is no {build} build: {which}"
        );
        for (fault, report) in self.faults {
            let caught = run(&[fault]);
            ensure!(
                !caught.succeeded() && !caught.timed_out && caught.stderr.contains(report),
                "{}: the planted {fault} was not caught: {caught}",
                self.name
            );
            let mended = run(&[fault, "--mended"]);
            ensure!(
                mended.succeeded(),
                "{}: without the fault, {fault} was reported all the same: {mended}",
                self.name
            );
            println!(
                "   {}, {build}: caught {fault}, by \"{report}\"; not without the fault",
                self.name
            );
        }
        Ok(())
    }

    fn planted(&self, clone: &Clone, prefix: &Path) -> Result<PathBuf> {
        let program = clone.root().join(format!("target/planted-{}", self.name));
        let mut compile = Command::new("cc");
        compile
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror"])
            .args(self.flags.split(' '))
            .args(["capi/tests/c/planted.c", "-o"])
            .arg(&program)
            .arg(format!("-I{}", prefix.join("include").display()))
            .arg(format!("-L{0}/lib", prefix.display()))
            .args([
                "-lhsa_serializer",
                &format!("-Wl,-rpath,{}/lib", prefix.display()),
            ]);
        clone.run(&mut compile)?;
        Ok(program)
    }

    fn project(&self, clone: &Clone, prefix: &Path, build: &str, project: &str) -> Result<()> {
        let directory = format!("target/lanes/{}-{build}/{project}", self.name);
        let mut configure = Command::new("cmake");
        configure
            .args(["-S", project, "-B", &directory])
            .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()))
            .arg(format!("-DCMAKE_C_FLAGS={}", self.flags))
            .arg(format!("-DCMAKE_CXX_FLAGS={}", self.flags))
            // What tests are run by.
            .arg(format!(
                "-DCMAKE_CROSSCOMPILING_EMULATOR={}",
                self.runner.join(";")
            ));
        clone.run(&mut configure)?;
        clone.run(Command::new("cmake").args(["--build", &directory]))?;
        let mut tests = Command::new("ctest");
        tests.args([
            "--test-dir",
            &directory,
            "--output-on-failure",
            "--no-tests=error",
        ]);
        let output = clone.run(&mut tests)?;
        let counted = output.lines().find(|line| line.contains("tests passed"));
        println!(
            "   {}, {build}: {project}: {}",
            self.name,
            counted.unwrap_or("no tests were counted")
        );
        Ok(())
    }
}
