//! The list: two neighbours go while a traversal, which unlinks what it finds marked, passes them.
//!
//! What it fears: of three who change the same links one undoes what another has done, so that a
//! removed node comes back into the list; or the traversal leaves it by a node that is out of it. What
//! holds it: a marked link is never written again, and who finds a link changed starts again from the
//! head.

use hsa_serializer::{Chain, Domain, Step};
use loom_tests::{Model, drain, together3};

fn run() {
    let domain = Domain::new();
    let chain = Chain::new(&domain, 4);
    let (first, second) = (chain.clone(), chain.clone());
    let ((), (), seen) = together3(
        &domain,
        move || first.remove(1),
        move || second.remove(2),
        || chain.walk(),
    );
    let ends: Vec<_> = seen.into_iter().filter(|p| [0, 3].contains(p)).collect();
    assert_eq!(ends, [0, 3], "a node was passed over");
    drain(&domain, || chain.collect());
    assert_eq!(chain.walk(), [0, 3], "a removed node was found");
}

pub(crate) static MODEL: Model = Model {
    name: "list: two unlinks and a traversal",
    bound: 2,
    quick: 1,
    run,
    controls: &[(Step::RestartOnChange, "a reclaimed node was used")],
};
