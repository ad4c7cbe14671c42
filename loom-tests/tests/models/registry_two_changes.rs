//! The registry: of two changes none undoes the other.
//!
//! What it fears: both copy the same table, and the one that is put in its place last is without the
//! other's change. What holds it: a table is replaced by compare-exchange, from the start where another
//! change came first.

use hsa_serializer::{Numbers, Step};
use loom_tests::{Model, drain, together};

fn run() {
    let numbers = Numbers::new();
    numbers.insert(1, 10);
    let other = numbers.clone();
    together(
        &numbers.domain(),
        move || other.insert(2, 20),
        || numbers.remove(1),
    );
    let found = [1, 2].map(|number| numbers.find(number));
    assert_eq!(found, [None, Some(20)], "a change was undone");
    numbers.remove(2);
    assert_eq!(numbers.find(2), None, "a change was undone");
    numbers.remove(1);
    drain(&numbers.domain(), || numbers.collect());
}

pub(crate) static MODEL: Model = Model {
    name: "registry: two changes",
    bound: 2,
    quick: 1,
    run,
    controls: &[(Step::TableByExchange, "a change was undone")],
};
