//! A `ready` callback that comes twice, on two threads, makes its queue ready once.
//!
//! What it fears: the queue is pushed twice and granted twice. What holds it: the exchange of
//! `ready` from -1 to 1, which one callback wins.

use super::agent::Agent;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let (q0, t0, block0) = agent.arrived();
    let id = q0.id();
    let s = agent.serializer.clone();
    let (_, ()) = together(
        &agent.domain,
        move || {
            let _ = s.ready(id);
        },
        || agent.ready(id),
    );
    let contenders = agent.serializer.statistics().contenders;
    agent
        .sim
        .expect(contenders == 1, "the queue was counted twice");
    agent.run_all(vec![(t0, block0)]);
    drop(q0);
    agent.finish(vec![id]);
}

pub(crate) static MODEL: Model = Model {
    name: "repeated callback",
    bound: 4,
    quick: 3,
    run,
    controls: &[(Step::ReadyByExchange, "ready fired")],
};
