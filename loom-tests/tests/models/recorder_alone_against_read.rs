//! The recorder of grants: who reads while a slot is written again gets a whole record, or none.
//!
//! What it fears: words of two records, as the claim is a relaxed store. What holds it: who has read a word
//! of the later record sees the claim when it reads the stamp again.

use hsa_serializer::{Domain, Records, Step};
use loom_tests::{Model, together};

fn run() {
    let records = Records::new();
    assert!(records.claim_alone(1), "nobody else is there");
    records.complete(1);
    let writer = records.clone();
    let ((), seen) = together(
        &Domain::new(),
        move || {
            assert!(writer.claim_alone(2), "nobody else writes");
            writer.complete(2);
        },
        || records.read(),
    );
    let torn = seen
        .iter()
        .any(|words| words.iter().any(|w| *w != words[0]));
    assert!(!torn, "a record was torn");
    assert_eq!(records.read(), [[2; 4]], "the last record is not there");
}

pub(crate) static MODEL: Model = Model {
    name: "recorder: alone against read",
    bound: 5,
    quick: 4,
    run,
    controls: &[(Step::StampReadAgain, "a record was torn")],
};
