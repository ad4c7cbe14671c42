//! The list: what is pushed is in it, though the node in front of it goes.
//!
//! What it fears: the pusher links its node behind the last one while that is being unlinked, and the
//! node goes with it; or it comes by the list's tail to a node that was reclaimed. What holds it: a node
//! is marked before it is unlinked, which freezes its link; and the tail is emptied before its node may
//! be reclaimed.

use hsa_serializer::{Chain, Domain, Step};
use loom_tests::{Model, drain, together};

fn run() {
    let domain = Domain::new();
    let chain = Chain::new(&domain, 2);
    let remover = chain.clone();
    together(
        &domain,
        move || {
            remover.remove(1);
            remover.collect();
        },
        || chain.push(2),
    );
    drain(&domain, || chain.collect());
    assert_eq!(chain.walk(), [0, 2], "a pushed node was lost");
    chain.push(3);
    assert_eq!(chain.walk(), [0, 2, 3], "a pushed node was lost");
}

pub(crate) static MODEL: Model = Model {
    name: "list: push against unlink",
    bound: 4,
    quick: 3,
    run,
    controls: &[
        (Step::MarkFirst, "a pushed node was lost"),
        (Step::TailEmptied, "a reclaimed node was used"),
    ],
};
