//! Agents: one that is made while all are requested is serialized, whoever of the two comes first.
//!
//! What it fears: who makes it sees no request, and who requests sees no agent. What holds it: both say
//! what they do first, and look afterwards.

use super::agent::Agent;
use hsa_serializer::{Agents, Mode, Serializer, Step};
use loom_tests::{Model, Sim, together};

fn run() {
    // Its domain and its runtime are the agents', too.
    let agent = Agent::disabled();
    let (sim, domain) = (agent.sim.clone(), agent.domain.clone());
    let agents = Agents::new(move |_| {
        let builder = Serializer::<Sim>::builder().domain(domain.clone());
        builder.build(sim.clone())
    });
    let maker = agents.clone();
    let (touched, request) = together(
        &agent.domain,
        move || maker.of(7).is_ok(),
        || agents.request_all().expect("a signal"),
    );
    agent.sim.expect(touched, "no signal for the agent");
    let mode = || agents.get(7).map(Serializer::mode);
    agent.sim.expect(
        mode() == Some(Mode::Enabled),
        "an agent has not heard of the request of all",
    );
    drop(request);
    agent.sim.expect(
        mode() == Some(Mode::Disabled),
        "an agent has not heard of its end",
    );
    drop(agents);
    agent.finish(Vec::new());
}

pub(crate) static MODEL: Model = Model {
    name: "agent made against request of all",
    bound: 3,
    quick: 2,
    run,
    controls: &[
        (Step::LookAfterPublish, "has not heard of the request"),
        (Step::CountBeforeWalk, "has not heard of the request"),
    ],
};
