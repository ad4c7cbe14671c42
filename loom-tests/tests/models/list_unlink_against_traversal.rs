//! The list: who stands on a node that goes comes to the end all the same.
//!
//! What it fears: the node is reclaimed under the traversal, or the traversal misses what comes behind
//! it; or the node can still be reached when it is reclaimed. What holds it: the marked node keeps its
//! successor; it is reclaimed by a deferred function, which waits for every pin; and before that is
//! deferred the remover has walked until the list is without its node. A traversal that has to start
//! again forgets what it has seen, or it would see it twice.

use hsa_serializer::{Chain, Domain, Step};
use loom_tests::{Model, drain, together};

fn run() {
    let domain = Domain::new();
    let chain = Chain::new(&domain, 3);
    let remover = chain.clone();
    let ((), seen) = together(
        &domain,
        move || {
            remover.remove(1);
            remover.collect();
        },
        || chain.walk(),
    );
    let ends: Vec<_> = seen.into_iter().filter(|place| *place != 1).collect();
    assert_eq!(ends, [0, 2], "a node was passed over, or seen twice");
    drain(&domain, || chain.collect());
    assert_eq!(chain.walk(), [0, 2], "a removed node was found");
}

pub(crate) static MODEL: Model = Model {
    name: "list: unlink against traversal",
    bound: 3,
    quick: 3,
    run,
    controls: &[
        (Step::DeferReclaim, "a reclaimed node was used"),
        (Step::CollectOnce, "a node was passed over, or seen twice"),
        (Step::WalkUntilUnlinked, "a reclaimed node was used"),
    ],
};
