//! The committed seeds and findings of each fuzz target, through the target's own code.

use fuzz_tests::TARGETS;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// No input takes nearly as long, on a busy machine either.
const EACH: Duration = Duration::from_secs(20);

/// The files of a directory of `fuzz/`, which has to be there.
fn files(directory: &str) -> Vec<PathBuf> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let directory = fuzz.join(directory);
    let entries = fs::read_dir(&directory)
        .unwrap_or_else(|e| panic!("{} is missing: {e}", directory.display()));
    let paths = entries.map(|entry| entry.expect("a directory can be read").path());
    let mut files: Vec<_> = paths.collect();
    files.sort();
    files
}

fn inputs(kind: &str, target: &str) -> Vec<PathBuf> {
    let mut inputs = files(&format!("{kind}/{target}"));
    inputs.retain(|path| path.file_name().is_some_and(|name| name != "README.md"));
    inputs
}

/// Runs every input; says which panicked, or did not end.
fn replay(run: fn(&[u8]), inputs: &[PathBuf], each: Duration) -> Vec<PathBuf> {
    let mut failed = Vec::new();
    for path in inputs {
        let data = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let (tell, told) = mpsc::channel();
        // One that hangs is left behind: the process ends soon.
        thread::spawn(move || {
            let passed = panic::catch_unwind(|| run(&data)).is_ok();
            // Nobody listens any more where it took too long.
            let _ = tell.send(passed);
        });
        match told.recv_timeout(each) {
            Ok(true) => {}
            Ok(false) => failed.push(path.clone()),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                eprintln!("{} did not end within {each:?}", path.display());
                failed.push(path.clone());
                break;
            }
        }
    }
    failed
}

#[test]
fn every_target_of_the_fuzzer_is_replayed() {
    let mut replayed = TARGETS.map(|(target, _)| target);
    replayed.sort_unstable();
    let targets = files("fuzz_targets");
    let names: Vec<_> = targets.iter().filter_map(|path| path.file_stem()).collect();
    assert_eq!(names, replayed);
}

#[test]
fn every_seed_and_every_finding_passes() {
    for (target, run) in TARGETS {
        let seeds = inputs("seeds", target);
        assert!(!seeds.is_empty(), "{target} has no seeds");
        let findings = inputs("findings", target);
        println!(
            "{target}: {} seeds, {} findings",
            seeds.len(),
            findings.len()
        );
        for inputs in [seeds, findings] {
            let failed = replay(run, &inputs, EACH);
            assert!(failed.is_empty(), "{target} fails with {failed:?}");
        }
    }
}

#[test]
fn an_input_that_panics_and_one_that_hangs_are_named() {
    let seeds = inputs("seeds", "aql_rings");
    let (first, each) = (&seeds[..1], Duration::from_millis(200));
    assert_eq!(replay(|_| panic!("planted"), first, each), first);
    let hangs = |_: &[u8]| loop {
        thread::park();
    };
    assert_eq!(replay(hangs, first, each), first);
    assert!(replay(|_| {}, first, EACH).is_empty());
}
