//! The recorder of grants: who claims a slot alone meets the one before, who has not completed its record.
//!
//! What it fears: both write, and the words are those of one and of the other. What holds it: a slot that
//! is still being written is not claimed, and the later record is lost.

use hsa_serializer::{Domain, Records, Step};
use loom_tests::{Model, together};

fn run() {
    let records = Records::new();
    assert!(records.claim_alone(1), "nobody else is there");
    let late = records.clone();
    together(
        &Domain::new(),
        move || late.complete(1),
        || {
            if records.claim_alone(2) {
                records.complete(2);
            }
        },
    );
    let kept = records.read();
    assert!(kept == [[1; 4]] || kept == [[2; 4]], "a record was torn");
}

pub(crate) static MODEL: Model = Model {
    name: "recorder: alone against late",
    bound: 5,
    quick: 4,
    run,
    controls: &[(Step::AloneIfFree, "a record was torn")],
};
