//! Requests: the mode agrees with them in the end, whoever comes and goes at once.
//!
//! What it fears: who goes has seen that nobody is left, and turns it off after somebody has come who found
//! it on. What holds it: whether anybody requests it is read under the transition lock, where it can't
//! change any more without being followed by another look.

use super::agent::Agent;
use hsa_serializer::{Mode, Step};
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::disabled();
    let goes = agent.serializer.request().expect("a signal");
    let s = agent.serializer.clone();
    let (comes, ()) = together(
        &agent.domain,
        move || s.request().expect("a signal"),
        || drop(goes),
    );
    let agrees = |mode| {
        let agrees = agent.serializer.mode() == mode;
        agent
            .sim
            .expect(agrees, "the mode disagrees with the requests");
    };
    agrees(Mode::Enabled);
    drop(comes);
    agrees(Mode::Disabled);
    agent.finish(Vec::new());
}

pub(crate) static MODEL: Model = Model {
    name: "requests against each other",
    bound: 1,
    quick: 1,
    run,
    controls: &[(Step::CountUnderLock, "disagrees with the requests")],
};
