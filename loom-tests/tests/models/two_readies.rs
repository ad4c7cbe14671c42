//! Invariant 5: every ready queue is granted.
//!
//! What it fears: a queue has been counted as ready and not yet pushed when the holder releases;
//! the holder sees that somebody is ready, and finds nobody to grant. What holds it: a ready queue
//! is pushed before it is counted. And that both find the token free and take it; it is taken by
//! compare-exchange.

use super::agent::Agent;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let (q0, t0, block0) = agent.arrived();
    let (q1, t1, block1) = agent.arrived();
    let (id0, id1) = (q0.id(), q1.id());
    let (s, sim) = (agent.serializer.clone(), agent.sim.clone());
    let (mut waiting, ()) = together(
        &agent.domain,
        move || {
            let _ = s.ready(id0);
            if !sim.can_run(&block0) {
                return vec![(t0, block0)];
            }
            sim.run(block0);
            s.complete(t0).expect("counted");
            Vec::new()
        },
        || agent.ready(id1),
    );
    waiting.push((t1, block1));
    agent.run_all(waiting);
    drop((q0, q1));
    agent.finish(vec![id0, id1]);
}

pub(crate) static MODEL: Model = Model {
    name: "two readies",
    bound: 4,
    quick: 3,
    run,
    controls: &[
        (Step::PushBeforeAdd, "a granter found no ready queue"),
        (Step::TakeByExchange, "a granter found no ready queue"),
    ],
};
