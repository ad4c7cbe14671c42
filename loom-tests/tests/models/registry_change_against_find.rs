//! The registry: who looks reads a table that is there.
//!
//! What it fears: the table is replaced and destroyed while somebody looks through it. What holds it: a
//! replaced table is destroyed by a deferred function, which waits for who was pinned.

use hsa_serializer::{Numbers, Step};
use loom_tests::{Model, drain, together};

fn run() {
    let numbers = Numbers::new();
    numbers.insert(1, 10);
    let other = numbers.clone();
    let ((), found) = together(
        &numbers.domain(),
        move || other.insert(2, 20),
        || [1, 2].map(|number| numbers.find(number)),
    );
    assert_eq!(found[0], Some(10), "an entry was passed over");
    assert!([None, Some(20)].contains(&found[1]));
    assert_eq!(numbers.find(2), Some(20), "an entry was lost");
    numbers.remove(1);
    drain(&numbers.domain(), || numbers.collect());
}

pub(crate) static MODEL: Model = Model {
    name: "registry: change against find",
    bound: 3,
    quick: 2,
    run,
    controls: &[(Step::DeferTable, "a reclaimed table was used")],
};
