//! The C interface's lease: a queue is removed while its interceptor is in a call, or about to make one.
//!
//! What it fears: the value is dropped under its user; or each leaves it to the other. What holds it: two
//! store-buffering pairs, the ender's look, and the user's look when it leaves.

use hsa_serializer::Domain;
use loom_tests::{LeaseStep, Leased, Model, together};

fn run() {
    let lease = Leased::new();
    let its = lease.clone();
    let ((first, second), ended) = together(
        &Domain::new(),
        move || (its.enter(), its.come_and_go()),
        || lease.end(),
    );
    assert!(ended, "somebody else ended it");
    assert!(first || !second, "it was entered after it had ended");
    lease.has_ended();
}

pub(crate) static MODEL: Model<LeaseStep> = Model {
    name: "lease: use against end",
    bound: 4,
    quick: 3,
    run,
    controls: &[
        (LeaseStep::HeavyFence, "the value was"),
        (LeaseStep::EnderLooks, "the value was dropped"),
        (LeaseStep::UserLooks, "the value was never dropped"),
    ],
};
