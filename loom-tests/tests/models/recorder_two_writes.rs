//! The recorder: two writers who meet in a slot, since the ring has gone round, leave a whole record.
//!
//! What it fears: both write, and the words are those of one and of the other. What holds it: one of them
//! claims the slot, by compare-exchange; the other gives its record up, and waits for nobody.

use hsa_serializer::{Domain, Records, Step};
use loom_tests::{Model, together};

fn run() {
    let records = Records::new();
    let other = records.clone();
    together(&Domain::new(), move || other.write(1), || records.write(2));
    let kept = records.read();
    assert!(kept == [[1; 4]] || kept == [[2; 4]], "a record was torn");
    assert!(records.lost() < 2, "both gave up");
}

pub(crate) static MODEL: Model = Model {
    name: "recorder: two writes",
    bound: 5,
    quick: 4,
    run,
    controls: &[
        (Step::ClaimByExchange, "a record was torn"),
        (Step::RecordClaimed, "a record was torn"),
    ],
};
