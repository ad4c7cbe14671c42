//! The C interface's lease: two threads say that a queue is gone, while its interceptor is in a call.
//!
//! What it fears: both end it, and the value is dropped twice. What holds it: who takes the value out has ended it.

use hsa_serializer::Domain;
use loom_tests::{LeaseStep, Leased, Model, together3};

fn run() {
    let lease = Leased::new();
    let (its, others) = (lease.clone(), lease.clone());
    let (_, first, second) = together3(
        &Domain::new(),
        move || its.come_and_go(),
        move || others.end(),
        || lease.end(),
    );
    assert!(first != second, "of two one ends it");
    lease.has_ended();
}

pub(crate) static MODEL: Model<LeaseStep> = Model {
    name: "lease: end against end",
    bound: 3,
    quick: 2,
    run,
    controls: &[
        (LeaseStep::HeavyFence, "the value was"),
        (LeaseStep::EnderLooks, "the value was dropped"),
        (LeaseStep::UserLooks, "the value was never dropped"),
    ],
};
