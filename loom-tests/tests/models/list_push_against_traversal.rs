//! The list: who comes to a node sees what is in it.
//!
//! What it fears: a traversal reaches a node whose fields it does not see yet; or it misses a node that
//! was there before. What holds it: linking a node releases what its pusher has written.

use hsa_serializer::{Chain, Domain, Step};
use loom_tests::{Model, together};

fn run() {
    let domain = Domain::new();
    let chain = Chain::new(&domain, 1);
    let pusher = chain.clone();
    let ((), seen) = together(
        &domain,
        move || {
            pusher.push(1);
            pusher.push(2);
        },
        || chain.walk(),
    );
    assert!([0, 1, 2].starts_with(&seen), "a node was passed over");
    assert!(!seen.is_empty(), "a node was passed over");
    assert_eq!(chain.walk(), [0, 1, 2], "a pushed node was lost");
}

pub(crate) static MODEL: Model = Model {
    name: "list: push against traversal",
    bound: 4,
    quick: 4,
    run,
    controls: &[(Step::LinkReleases, "Causality violation")],
};
