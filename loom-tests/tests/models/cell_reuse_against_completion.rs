//! Invariants 5 and 6: who was about to end a queue's grant does not end that of its cell's next owner.
//!
//! What it fears: a completion has been counted and has not come to the token, when its queue is
//! destroyed and the cell has a new owner, whose kernel is granted: the completion takes the token away
//! from it. What holds it: a cell becomes free a grace period after everybody has let go of it, and the
//! completion is pinned.

use super::agent::Agent;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let (q0, t0, block0) = agent.arrived();
    let gone = q0.id();
    agent.ready(gone);
    agent.sim.run(block0);
    let next = Agent {
        sim: agent.sim.clone(),
        domain: agent.domain.clone(),
        serializer: agent.serializer.clone(),
    };
    let ((q1, t1, block1), _) = together(
        &agent.domain,
        move || {
            next.serializer.queue_destroyed(gone).expect("alive");
            let _ = next.serializer.ready(gone);
            drop(q0);
            next.serializer.collect();
            let (q1, t1, block1) = next.arrived();
            next.ready(q1.id());
            (q1, t1, block1)
        },
        || agent.serializer.complete(t0).expect("harmless"),
    );
    agent.run_all(vec![(t1, block1)]);
    let id = q1.id();
    drop(q1);
    agent.finish(vec![id]);
}

pub(crate) static MODEL: Model = Model {
    name: "cell: reuse against completion",
    bound: 2,
    quick: 1,
    run,
    controls: &[(Step::DeferFree, "without having been granted")],
};
