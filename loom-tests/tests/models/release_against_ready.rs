//! Invariant 10: after the kill switch nobody's packet waits for ever; here those of a queue whose
//! handler is under way.
//!
//! What it fears: the queue takes part in the token's protocol for half of a round, and what comes
//! behind it waits for the other half, or fires where nobody expects it. What holds it: the packets
//! behind it wait for the escape signal as well, and a handler that comes after the switch, knowing
//! that nobody's state means anything any more, does nothing.

use super::agent::Agent;
use super::ending::try_dispatch;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let (mut q0, t0, block0) = agent.arrived();
    let id = q0.id();
    // `ready` is 1, 0 and -1 in turn when the next two have let themselves through.
    let next: Vec<_> = (0..2)
        .filter_map(|_| try_dispatch(&mut q0, &agent.sim))
        .collect();
    let s = agent.serializer.clone();
    together(
        &agent.domain,
        move || {
            let _ = s.ready(id);
        },
        || agent.serializer.release_all(),
    );
    agent.run_through((t0, vec![block0]));
    for kernel in next {
        agent.run_through(kernel);
    }
    agent.shut_down(vec![q0]);
}

pub(crate) static MODEL: Model = Model {
    name: "release against ready",
    bound: 3,
    quick: 2,
    run,
    controls: &[
        (Step::EscapeOpens, "a packet waits for ever"),
        (Step::ReleasedIsNotReady, "ready fired"),
    ],
};
