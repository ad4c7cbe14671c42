//! Invariant 7: after a shutdown has finished nothing calls the runtime; here with somebody letting
//! everything through.
//!
//! What it fears: who releases has read the escape signal's handle, and stores to it when it was
//! destroyed, or when the shutdown has said that it has finished. What holds it: it reads the handle
//! under its pin, and the last signals are destroyed, and the end is told, a grace period after the
//! handle was taken away.

use super::agent::Agent;
use super::ending::try_finish;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let q0 = agent.queue();
    // Two attempts: its queue is removed, and its handler has said Drop.
    try_finish(&agent.serializer, &agent.sim, 1);
    let s = agent.serializer.clone();
    together(
        &agent.domain,
        move || s.release_all(),
        || try_finish(&agent.serializer, &agent.sim, 2),
    );
    agent.shut_down(vec![q0]);
}

pub(crate) static MODEL: Model = Model {
    name: "finish against release",
    bound: 3,
    quick: 2,
    run,
    controls: &[(
        Step::GraceBeforeFinished,
        "the runtime was called after its end",
    )],
};
