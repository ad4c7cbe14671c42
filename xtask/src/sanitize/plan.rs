//! What is run in a lane, and what is left out of one and why.

use super::Lane;
use crate::build;
use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::MetadataCommand;
use std::fmt;

/// The packages whose tests are run.
const TESTED: [&str; 4] = [
    "hsa-serializer",
    "softgpu",
    "harness",
    "hsa-serializer-capi",
];

fn packages(names: &[&str]) -> Vec<String> {
    let each = names.iter().flat_map(|name| ["--package", name]);
    // Always the same, so that each crate is built once.
    each.chain(["--features", "hsa-serializer/hsa"])
        .map(str::to_owned)
        .collect()
}

/// What cargo is told to build: first the programs, then the tests that are not left out.
pub(super) fn built(lane: Lane, quick: bool) -> Result<[Vec<String>; 2]> {
    let mut programs = vec!["build".to_owned(), "--bins".into(), "--examples".into()];
    programs.extend(packages(&["hsa-serializer", "stress"]));
    let mut tests = vec!["test".to_owned(), "--no-run".into(), "--lib".into()];
    tests.extend(packages(&TESTED));
    let metadata = MetadataCommand::new()
        .current_dir(build::workspace())
        .no_deps()
        .exec()
        .context("cargo doesn't tell what there is")?;
    let tested = metadata
        .packages
        .iter()
        .filter(|p| TESTED.contains(&&*p.name));
    let targets = tested.flat_map(|p| &p.targets);
    let names: Vec<_> = targets
        .filter(|target| target.is_test())
        .map(|target| target.name.as_str())
        .collect();
    for l in &LEFT_OUT {
        ensure!(
            names.contains(&l.program),
            "there is no test {} to leave out",
            l.program
        );
    }
    for name in names {
        let left_out = left_out_of(name, lane, quick);
        if left_out.iter().all(|l| l.test.is_some()) {
            tests.extend(["--test".into(), name.to_owned()]);
        }
    }
    Ok([programs, tests])
}

/// What is left out.
pub(super) struct LeftOut {
    /// Under which sanitizers; none stands for all.
    lanes: &'static [Lane],
    quick_only: bool,
    /// The test target or the program.
    program: &'static str,
    /// One test of it; all of it, if none.
    pub(super) test: Option<&'static str>,
    why: &'static str,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.test.unwrap_or("all of it");
        write!(f, "{}, {all}: {}", self.program, self.why)
    }
}

const ONE_THREAD: &str = "it has one thread, so nothing to race with; without --quick it is run";

/// What the quick thread lane does without.
const fn one_thread(program: &'static str) -> LeftOut {
    LeftOut {
        lanes: &[Lane::Thread],
        quick_only: true,
        program,
        test: None,
        why: ONE_THREAD,
    }
}

/// What the thread lane always does without.
const fn held_back(test: &'static str) -> LeftOut {
    LeftOut {
        lanes: &[Lane::Thread],
        quick_only: false,
        program: "lifecycle",
        test: Some(test),
        why: "the sanitizer holds signals back until the thread calls something: there is no storm",
    }
}

/// Tests of the C interface that run compilers, or look at files.
const fn no_code_of_ours(program: &'static str) -> LeftOut {
    LeftOut {
        lanes: &[],
        quick_only: false,
        program,
        test: None,
        why: "what it runs is not built by this lane; `cargo xtask capi` has C and C++ under sanitizers",
    }
}

/// All that is left out, by name.
const LEFT_OUT: [LeftOut; 23] = [
    LeftOut {
        lanes: &[Lane::Thread],
        quick_only: false,
        program: "misuse",
        test: None,
        why: "handles are looked up through arc-swap, whose fences the sanitizer does not understand",
    },
    no_code_of_ours("cpp"),
    no_code_of_ours("exports"),
    no_code_of_ours("header"),
    LeftOut {
        lanes: &[],
        quick_only: false,
        program: "costs",
        test: None,
        why: "it counts allocations, and crossbeam-epoch's bags are smaller under a sanitizer",
    },
    LeftOut {
        lanes: &[],
        quick_only: false,
        program: "first_fork",
        test: None,
        why: "its `pthread_atfork` stands in for the C library's, which a sanitizer calls as it begins",
    },
    held_back("s78_waits_and_transitions_under_a_storm_of_sigalrm"),
    held_back("s72_s78_a_signal_handler_may_leave"),
    LeftOut {
        lanes: &[],
        quick_only: false,
        program: "lifecycle_soak",
        test: None,
        why: "the program `stress` does the same, and is run",
    },
    LeftOut {
        lanes: &[Lane::Thread],
        quick_only: true,
        program: "profiler",
        test: None,
        why: "its serializer is the emulated GPU's own, under one lock, and takes minutes; without --quick it is run",
    },
    LeftOut {
        lanes: &[],
        quick_only: true,
        program: "determinism",
        test: None,
        why: "it repeats for minutes what others do once; without --quick it is run",
    },
    one_thread("random"),
    one_thread("replay"),
    one_thread("seed"),
    one_thread("serializer"),
    one_thread("handlers"),
    one_thread("packets"),
    one_thread("checks"),
    one_thread("queues"),
    one_thread("signals"),
    one_thread("stuck"),
    one_thread("punctual"),
    one_thread("interceptor"),
];

/// What a lane does without.
pub(super) fn left_out(lane: Lane, quick: bool) -> impl Iterator<Item = &'static LeftOut> {
    LEFT_OUT.iter().filter(move |l| {
        (l.lanes.is_empty() || l.lanes.contains(&lane)) && (quick || !l.quick_only)
    })
}

/// What of that is of this program.
pub(super) fn left_out_of(program: &str, lane: Lane, quick: bool) -> Vec<&'static LeftOut> {
    let all = left_out(lane, quick);
    all.filter(|l| l.program == program).collect()
}

/// Tests in which something is left on purpose, by program and name: a child of a fork leaves what it has
/// inherited as it is. They run by themselves, and nobody looks for leaks.
pub(super) const LEAVING: [(&str, &str); 1] = [("lifecycle", "fork::")];

/// The tests' own measures of how much they do.
pub(super) fn environment(quick: bool) -> [(&'static str, &'static str); 3] {
    let pick = |of_quick, of_all| if quick { of_quick } else { of_all };
    [
        ("RANDOM_CASES", "2000"),
        ("SOAK_SECONDS", pick("5", "30")),
        ("LIFECYCLE_BACKLOG", pick("2000", "20000")),
    ]
}

/// The programs that are no tests, with their arguments.
pub(super) fn programs(quick: bool) -> Result<Vec<(&'static str, Vec<String>)>> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    let pick = |of_quick, of_all| words(if quick { of_quick } else { of_all });
    let mut all = vec![
        // What was freed is kept by a sanitizer: its memory can't be judged.
        (
            "stress",
            pick("--no-memory --seconds 20", "--no-memory --seconds 120"),
        ),
        (
            "pause_resume",
            pick(
                "--kernels 3000 --toggles 300",
                "--kernels 100000 --toggles 10000",
            ),
        ),
        ("stall", Vec::new()),
    ];
    for trace in traces()? {
        let mut arguments = vec![trace];
        all.push(("replay", arguments.clone()));
        arguments.extend(["--pause-every".into(), "0.05".into()]);
        all.push(("replay", arguments));
        if quick {
            break;
        }
    }
    Ok(all)
}

/// The real traces, where they are.
fn traces() -> Result<Vec<String>> {
    let directory = build::workspace().join("../shared/traces");
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter(|entry| entry.file_name() != "README.md")
        .map(|entry| entry.path().to_string_lossy().into_owned())
        .collect();
    files.sort();
    if files.is_empty() {
        if std::env::var_os("CI").is_some() {
            bail!("there are no traces in ../shared/traces");
        }
        println!("SKIPPED: replay, for there are no traces in ../shared/traces");
    }
    Ok(files)
}
