//! Invariant 7, for several who finish at once: each returns when it is true.
//!
//! What it fears: one is about to destroy the last signals, another finds nothing left to do, and
//! says that the shutdown has finished. What holds it: one of them starts the grace period, under the
//! lock, and all wait for it to pass.

use super::agent::Agent;
use super::ending::try_finish;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let q0 = agent.queue();
    try_finish(&agent.serializer, &agent.sim, 1);
    let (s, sim) = (agent.serializer.clone(), agent.sim.clone());
    together(
        &agent.domain,
        move || try_finish(&s, &sim, 1),
        || try_finish(&agent.serializer, &agent.sim, 1),
    );
    agent.shut_down(vec![q0]);
}

pub(crate) static MODEL: Model = Model {
    name: "two finishers",
    bound: 2,
    quick: 1,
    run,
    controls: &[(Step::AllWaitForGrace, "called after its end")],
};
