//! The recorder: who reads while a slot is written again gets a whole record, or none.
//!
//! What it fears: words of two records. What holds it: a slot is claimed before it is written, and its
//! stamp is read again after its words.

use hsa_serializer::{Domain, Records, Step};
use loom_tests::{Model, together};

fn run() {
    let records = Records::new();
    records.write(1);
    let writer = records.clone();
    let ((), seen) = together(&Domain::new(), move || writer.write(2), || records.read());
    let torn = seen
        .iter()
        .any(|words| words.iter().any(|w| *w != words[0]));
    assert!(!torn, "a record was torn");
    assert_eq!(
        records.read(),
        [[2; 4]],
        "the record that was written last is not there"
    );
}

pub(crate) static MODEL: Model = Model {
    name: "recorder: write against read",
    bound: 5,
    quick: 4,
    run,
    controls: &[
        (Step::RecordClaimed, "a record was torn"),
        (Step::StampReadAgain, "a record was torn"),
    ],
};
