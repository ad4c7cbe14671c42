//! Invariants 5 and 6, where everything is let through: a queue that waits for the token is destroyed.
//!
//! What it fears: completions don't give the token on any more, so a queue that is removed meanwhile
//! gives it back where it did not have it, or is left among the ready ones and keeps its slot. What
//! holds it: the queues' states stay what they were, and a removal releases only what was granted.

use super::agent::Agent;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let (q0, t0, block0) = agent.arrived();
    let (q1, t1, block1) = agent.arrived();
    let gone = q1.id();
    agent.ready(q0.id());
    agent.ready(gone);
    agent.sim.run(block0);
    let (s, sim) = (agent.serializer.clone(), agent.sim.clone());
    let ((), ()) = together(
        &agent.domain,
        move || {
            sim.lose(block1);
            s.queue_destroyed(gone).expect("alive");
        },
        || agent.serializer.release_all(),
    );
    agent.complete(t0);
    // Its kernel was under way, and is reported late.
    agent.complete(t1);
    agent.shut_down(vec![q0, q1]);
}

pub(crate) static MODEL: Model = Model {
    name: "release against removal",
    bound: 3,
    quick: 2,
    run,
    controls: &[(
        Step::ReleaseOnlyIfGranted,
        "given back too often or not often enough",
    )],
};
