//! Random rings on stable: the fuzz target's own generator and rules, driven by proptest.
//!
//! `RINGS_CASES` is how many cases are run, and `RINGS_SEED` what they are drawn from. A case that
//! fails is shrunk and printed as a list of operations; as bytes it goes to `fuzz/findings`.

use arbitrary::{Arbitrary, Unstructured};
use fuzz_tests::rings::{Case, Mutant, RECORD, Rule, SETUP, Tally, Violation, run, run_with};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::cell::{Cell, RefCell};

/// Operations of the longest case.
const OPERATIONS: usize = 120;

fn from_environment(name: &str, default: u32) -> u32 {
    let value = std::env::var(name).ok();
    value.map_or(default, |v| {
        v.parse().unwrap_or_else(|e| panic!("{name} is {v:?}: {e}"))
    })
}

fn runner(cases: u32, shrinks: u32, seed: u32) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases,
        max_shrink_iters: shrinks,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// A fuzzer's bytes. They shrink by losing whole operations.
fn inputs() -> impl Strategy<Value = Vec<u8>> {
    let setup = any::<[u8; SETUP]>();
    (setup, vec(any::<[u8; RECORD]>(), 0..=OPERATIONS))
        .prop_map(|(setup, records)| [&setup[..], records.as_flattened()].concat())
}

fn case(input: &[u8]) -> Case {
    Case::arbitrary_take_rest(Unstructured::new(input)).expect("any bytes are a case")
}

#[test]
fn the_gpu_does_what_hsa_says_with_random_rings() {
    let seed = from_environment("RINGS_SEED", 1);
    let total = RefCell::new(Tally::default());
    let found =
        runner(from_environment("RINGS_CASES", 3_000), 20_000, seed).run(&inputs(), |input| {
            let tally = run(&case(&input)).map_err(|v| TestCaseError::fail(v.to_string()))?;
            total.borrow_mut().add(&tally);
            Ok(())
        });
    match found {
        Ok(()) => {}
        Err(TestError::Fail(why, input)) => {
            panic!("seed {seed}: {why}\n{:?}\n{input:?}", case(&input))
        }
        Err(TestError::Abort(why)) => panic!("seed {seed}: {why}"),
    }
    let total = total.into_inner();
    println!("seed {seed}\n{total}");
    let zeros = total.zeros();
    assert!(zeros.is_empty(), "never happened: {zeros:?}\n{total}");
}

/// The first rule that random cases find broken by a planted fault, and after how many cases.
fn first_violation(mutant: Mutant) -> Option<(u32, Violation)> {
    let tried = Cell::new(0);
    let found = RefCell::new(None);
    // The error says that a violation was found, which is in `found`.
    let _ = runner(2_000, 0, 1).run(&inputs(), |input| {
        tried.set(tried.get() + 1);
        run_with(&case(&input), Some(mutant))
            .map(drop)
            .map_err(|violation| {
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
    for mutant in Mutant::ALL {
        let (cases, violation) =
            first_violation(mutant).unwrap_or_else(|| panic!("{mutant:?} went unnoticed"));
        println!("{mutant:?}, after {cases} cases: {violation}");
        assert!(
            mutant.noticed_by().contains(&violation.rule),
            "{mutant:?} was noticed for another reason: {violation}"
        );
        fired.push(violation.rule);
    }
    let silent: Vec<_> = Rule::ALL.iter().filter(|r| !fired.contains(r)).collect();
    assert!(silent.is_empty(), "never seen to fire: {silent:?}");
}
