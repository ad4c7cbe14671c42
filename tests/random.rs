//! Random operations against a sequential model, every invariant checked after every step.
//!
//! `RANDOM_CASES` is how many cases are run (2,000 unless told, 10,000 in release), and
//! `RANDOM_SEED` is what they are drawn from. A case that fails is shrunk, printed as a list of
//! operations and kept in `proptest-regressions`, from where it is run first from then on.

use model::{Case, Fault, Rule, Tally, Violation, cases, run, run_with};
use proptest::test_runner::{
    Config, FileFailurePersistence, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner,
};
use std::cell::{Cell, RefCell};

/// Cases, unless told.
const CASES: u32 = if cfg!(debug_assertions) {
    2_000
} else {
    10_000
};

/// Operations of the longest case.
const OPERATIONS: usize = 160;

fn from_environment(name: &str, default: u32) -> u32 {
    let value = std::env::var(name).ok();
    value.map_or(default, |v| {
        v.parse().unwrap_or_else(|e| panic!("{name} is {v:?}: {e}"))
    })
}

fn runner(config: Config, seed: u32) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

#[test]
fn every_invariant_holds_after_every_step_of_random_operations() {
    let config = Config {
        cases: from_environment("RANDOM_CASES", CASES),
        max_shrink_iters: 20_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(
            "proptest-regressions/random.txt",
        ))),
        ..Config::default()
    };
    let seed = from_environment("RANDOM_SEED", 1);
    let total = RefCell::new(Tally::default());
    let found = runner(config, seed).run(&cases(OPERATIONS), |case| {
        let tally = run(&case).map_err(|violation| TestCaseError::fail(violation.to_string()))?;
        total.borrow_mut().add(&tally);
        Ok(())
    });
    match found {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => panic!("seed {seed}: {why}\n{case:?}"),
        Err(TestError::Abort(why)) => panic!("seed {seed}: {why}"),
    }
    let total = total.into_inner();
    println!("seed {seed}\n{total}");
    let zeros = total.zeros();
    assert!(zeros.is_empty(), "never happened: {zeros:?}\n{total}");
}

/// The first violation that random cases find under a planted fault, and after how many cases.
fn first_violation(fault: Fault) -> Option<(u32, Violation)> {
    let config = Config {
        cases: 1_000,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..Config::default()
    };
    let tried = Cell::new(0);
    let found = RefCell::new(None);
    // The error says that a violation was found, which is in `found`.
    let _ = runner(config, 1).run(&cases(OPERATIONS), |case: Case| {
        tried.set(tried.get() + 1);
        run_with(&case, Some(fault)).map(drop).map_err(|violation| {
            let reason = violation.to_string();
            found.borrow_mut().get_or_insert(violation);
            TestCaseError::fail(reason)
        })
    });
    Some((tried.get(), found.into_inner()?))
}

#[test]
fn each_planted_fault_is_noticed_by_its_rule() {
    let mut fired: Vec<Rule> = Vec::new();
    for fault in Fault::ALL {
        let (cases, violation) =
            first_violation(fault).unwrap_or_else(|| panic!("{fault:?} went unnoticed"));
        println!("{fault:?}, after {cases} cases: {violation}");
        assert!(
            fault.noticed_by().contains(&violation.rule),
            "{fault:?} was noticed for another reason: {violation}"
        );
        fired.push(violation.rule);
    }
    let silent: Vec<_> = Rule::ALL.iter().filter(|r| !fired.contains(r)).collect();
    assert!(silent.is_empty(), "never seen to fire: {silent:?}");
}
