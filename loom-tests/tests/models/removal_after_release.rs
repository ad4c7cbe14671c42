//! Invariant 6, where everything is let through: a queue that is destroyed lets go of everything,
//! its handler included.
//!
//! What it fears: a handler of the queue's has begun when the queue is removed, and takes for the
//! queue's turn the -1 that removal has stored for the handler's last call. Since all is released it
//! does nothing, and it is not called again: its signal is never destroyed and the shutdown never
//! finishes. What holds it: who takes the -1 looks again whether the queue was removed.

use super::agent::Agent;
use super::ending::handlers;
use hsa_serializer::{Handler, Step};
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let (q0, t0, block0) = agent.arrived();
    let id = q0.id();
    let (s, sim) = (agent.serializer.clone(), agent.sim.clone());
    agent.serializer.release_all();
    let ((), ()) = together(
        &agent.domain,
        move || {
            if s.ready(id) == Handler::Drop {
                sim.unwatch(id);
            }
        },
        || {
            agent.sim.lose(block0);
            agent.serializer.queue_destroyed(id).expect("alive");
        },
    );
    // Its kernel was under way, and is reported late.
    agent.complete(t0);
    handlers(&agent.serializer, &agent.sim);
    agent.shut_down(vec![q0]);
}

pub(crate) static MODEL: Model = Model {
    name: "removal after release",
    bound: 2,
    quick: 1,
    run,
    controls: &[(Step::RemovedIsSeen, "the shutdown never finishes")],
};
