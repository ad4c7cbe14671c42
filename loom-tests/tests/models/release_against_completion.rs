//! After the kill switch a kernel needs no token, and the host is told of no misuse that is none.
//!
//! What it fears: a kernel is let through, runs and is reported while the serializer still believes
//! in turns: a completion of a queue that was not granted. What holds it: the serializer says of
//! itself that all is released before it opens the first packet.

use super::agent::Agent;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let (q0, t0, block0) = agent.arrived();
    let (q1, t1, block1) = agent.arrived();
    agent.ready(q0.id());
    agent.ready(q1.id());
    agent.sim.run(block0);
    let (s, sim) = (agent.serializer.clone(), agent.sim.clone());
    let (waiting, ()) = together(
        &agent.domain,
        move || {
            let waiting = if sim.can_run(&block1) {
                sim.run(block1);
                s.complete(t1).expect("counted");
                None
            } else {
                Some((t1, vec![block1]))
            };
            s.complete(t0).expect("counted");
            waiting
        },
        || agent.serializer.release_all(),
    );
    agent.sim.raise();
    if let Some(waiting) = waiting {
        agent.run_through(waiting);
    }
    agent.shut_down(vec![q0, q1]);
}

pub(crate) static MODEL: Model = Model {
    name: "release against completion",
    bound: 3,
    quick: 2,
    run,
    controls: &[
        (Step::StageBeforeEscape, "without having been granted"),
        (Step::EscapeOpens, "a packet waits for ever"),
    ],
};
