//! What is due on a queue: each pair is resolved once, and a block of them is not reclaimed under
//! somebody who looks through it.
//!
//! What it fears: of two who settle a queue one takes the block's last entry and unlinks the block, while
//! the other stands in it; or both resolve one entry. What holds it: entries are taken by
//! compare-exchange, and blocks are reclaimed by a deferred function.

use hsa_serializer::{Domain, Duties, Step};
use loom_tests::{Model, drain, together};

fn run() {
    let domain = Domain::new();
    let duties = Duties::new(&domain);
    // A block holds two under loom.
    for number in 0..3 {
        duties.push(number as u64 + 1, number);
    }
    let other = duties.clone();
    let (mut taken, by_this) = together(&domain, move || other.take(2), || duties.take(2));
    taken.extend(by_this);
    taken.sort_unstable();
    assert_eq!(taken, [0, 1], "an entry was resolved twice or never");
    assert_eq!(duties.take(3), [2], "an entry was resolved twice or never");
    drain(&domain, || duties.collect());
}

pub(crate) static MODEL: Model = Model {
    name: "pending: block against takers",
    bound: 4,
    quick: 3,
    run,
    controls: &[(Step::DeferBlocks, "a reclaimed block was used")],
};
