//! Invariants 5 and 6: the queue that holds the token is destroyed, while its kernel is reported.
//!
//! What it fears: both the completion and the removal release the token, or neither does; or the
//! completion stores to signals that are gone. What holds it: completing and removing race for the
//! queue's state by compare-exchange and swap, and the signals go after who was pinned.

use super::agent::Agent;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let (q0, t0, block0) = agent.arrived();
    let (q1, t1, block1) = agent.arrived();
    let ids = [q0.id(), q1.id()];
    agent.ready(ids[0]);
    agent.ready(ids[1]);
    agent.sim.run(block0);
    let (s, gone) = (agent.serializer.clone(), ids[0]);
    let ((), ()) = together(
        &agent.domain,
        move || {
            s.queue_destroyed(gone).expect("alive");
            let _ = s.ready(gone);
        },
        || {
            agent.serializer.complete(t0).expect("harmless");
        },
    );
    agent.run_all(vec![(t1, block1)]);
    drop((q0, q1));
    agent.finish(vec![ids[1]]);
}

pub(crate) static MODEL: Model = Model {
    name: "removal of the granted queue",
    bound: 3,
    quick: 2,
    run,
    controls: &[
        (Step::FinishByExchange, "given back too often"),
        (Step::DeferSignals, "a destroyed signal was read"),
    ],
};
