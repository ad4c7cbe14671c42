//! A queue is removed, and all let go of it, while it is granted.
//!
//! What it fears: the grant is told of the cell's next generation, a queue that there is not. What holds it: the
//! generation is read before the grant; until then the cell is that queue's.

use super::agent::Agent;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let (q1, t1, block1) = agent.arrived();
    let (q0, t0, block0) = agent.arrived();
    let ids = [q0.id(), q1.id()];
    agent.ready(ids[1]);
    agent.ready(ids[0]);
    agent.sim.run(block1);
    agent.sim.lose(block0);
    t0.abandon();
    agent.sim.grants_are_to(ids);
    let (s, gone) = (agent.serializer.clone(), ids[0]);
    let ((), ()) = together(
        &agent.domain,
        move || {
            s.queue_destroyed(gone).expect("alive");
            drop(q0);
            let _ = s.ready(gone);
        },
        || agent.complete(t1),
    );
    agent.sim.raise();
    drop(q1);
    agent.finish(vec![ids[1]]);
}

pub(crate) static MODEL: Model = Model {
    name: "grant names its queue",
    bound: 3,
    quick: 3,
    run,
    controls: &[(
        Step::GenerationFirst,
        "a queue was granted that there is not",
    )],
};
