//! A drain ends: here with the last dispatch that it waits for completing as it begins.
//!
//! What it fears: the completion comes between the stamp and the publishing of its queue's target, and
//! the cut's barrier holds back all later work for ever. What holds it: the publisher reads the count
//! again, the completer reads what is due after counting.

use super::agent::Agent;
use super::ending::try_dispatch;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::disabled();
    let mut q0 = agent.queue();
    let (t0, _) = try_dispatch(&mut q0, &agent.sim).expect("open");
    let s = agent.serializer.clone();
    let (_, cut) = together(
        &agent.domain,
        move || s.complete(t0).expect("counted"),
        || agent.serializer.cut().expect("a signal"),
    );
    agent
        .sim
        .expect(cut.in_flight().is_empty(), "a drain waits for ever");
    drop(cut);
    let next = try_dispatch(&mut q0, &agent.sim).expect("open");
    agent.run_through(next);
    agent.shut_down(vec![q0]);
}

pub(crate) static MODEL: Model = Model {
    name: "cut against completion",
    bound: 3,
    quick: 2,
    run,
    controls: &[
        (Step::PublisherRereads, "a packet waits for ever"),
        (Step::CompleterReadsDue, "a packet waits for ever"),
    ],
};
