//! Invariant 7: after a shutdown has finished nothing calls the runtime; here with the last kernel
//! being reported.
//!
//! What it fears: the completion has been counted, so that nothing is in flight any more, and is
//! about to store to its queue's signals, or in a call that does, when they are destroyed and the
//! shutdown says that it has finished. What holds it: a queue's signals are destroyed by deferred
//! functions, which wait for the completion's pin, and for which finishing waits.

use super::agent::Agent;
use super::ending::try_finish;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let (q0, t0, block0) = agent.arrived();
    agent.ready(q0.id());
    agent.sim.run(block0);
    let s = agent.serializer.clone();
    together(
        &agent.domain,
        move || s.complete(t0).expect("counted"),
        || try_finish(&agent.serializer, &agent.sim, 5),
    );
    agent.shut_down(vec![q0]);
}

pub(crate) static MODEL: Model = Model {
    name: "finish against completion",
    bound: 2,
    quick: 2,
    run,
    controls: &[(Step::DeferSignals, "a destroyed signal was read")],
};
