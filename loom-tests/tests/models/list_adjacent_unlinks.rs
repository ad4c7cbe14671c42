//! The list: of two neighbours that go at once both go.
//!
//! What it fears: the second one is unlinked by its predecessor's link, which has just been taken out
//! of the list with the first one; so it stays in the list and is reclaimed there. What holds it: the
//! predecessor's link is frozen before it is unlinked, so unlinking behind it fails; and who fails
//! starts again from the head.

use hsa_serializer::{Chain, Domain, Step};
use loom_tests::{Model, drain, together};

fn run() {
    let domain = Domain::new();
    let chain = Chain::new(&domain, 4);
    let remover = chain.clone();
    together(&domain, move || remover.remove(1), || chain.remove(2));
    drain(&domain, || chain.collect());
    assert_eq!(chain.walk(), [0, 3], "a removed node was found");
}

pub(crate) static MODEL: Model = Model {
    name: "list: two adjacent unlinks",
    bound: 4,
    quick: 3,
    run,
    controls: &[
        (Step::RestartOnChange, "a reclaimed node was used"),
        (Step::MarkFirst, "a reclaimed node was used"),
    ],
};
