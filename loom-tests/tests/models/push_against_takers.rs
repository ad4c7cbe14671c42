//! What is due on a queue: nothing is resolved before its count.
//!
//! What it fears: a pair is appended while somebody looks through what is there, who finds its barrier
//! and not yet its count; also where the pair is the first of a new block. What holds it: the barrier,
//! which makes the entry one, is stored last.

use hsa_serializer::{Domain, Duties, Step};
use loom_tests::{Model, drain, together};

fn run() {
    let domain = Domain::new();
    let duties = Duties::new(&domain);
    duties.push(1, 0);
    let taker = duties.clone();
    let (taken, ()) = together(
        &domain,
        move || taker.take(1),
        || {
            duties.push(2, 1);
            duties.push(3, 2);
        },
    );
    assert_eq!(taken, [0], "an entry was resolved before its count");
    assert_eq!(duties.take(2), [1], "an entry was lost");
    assert_eq!(duties.take(3), [2], "an entry was lost");
    drain(&domain, || duties.collect());
}

pub(crate) static MODEL: Model = Model {
    name: "pending: push against a taker",
    bound: 4,
    quick: 4,
    run,
    controls: &[(
        Step::DueBeforeBarrier,
        "an entry was resolved before its count",
    )],
};
