//! Agents: two who touch one for the first time at once get the same serializer, and that of another agent
//! that is made beside it is not lost.
//!
//! What it fears: both search the list, find nothing and push; then the agent has two serializers, each of
//! which grants on its own. What holds it: a node is pushed by compare-exchange against the front of the
//! list that was searched.

use super::agent::Agent;
use hsa_serializer::{Agents, Serializer, Step};
use loom_tests::{Model, Sim, together3};

fn run() {
    let agent = Agent::disabled();
    let (sim, domain) = (agent.sim.clone(), agent.domain.clone());
    let agents = Agents::new(move |_| {
        let builder = Serializer::<Sim>::builder().domain(domain.clone());
        builder.build(sim.clone())
    });
    let touch = |of: u64| {
        let agents = agents.clone();
        move || {
            let serializer = agents.of(of).expect("no signal is needed");
            std::ptr::from_ref(serializer).addr()
        }
    };
    let (first, second, other) = together3(&agent.domain, touch(7), touch(7), touch(8));
    agent
        .sim
        .expect(first == second, "an agent has two serializers");
    let found = [7, 8].map(|of| agents.get(of).map(|s| std::ptr::from_ref(s).addr()));
    agent.sim.expect(
        found == [Some(first), Some(other)],
        "an agent's serializer was lost",
    );
    agent
        .sim
        .expect(agents.iter().count() == 2, "an agent is there twice");
    drop(agents);
    agent.finish(Vec::new());
}

pub(crate) static MODEL: Model = Model {
    name: "two first touches",
    bound: 2,
    quick: 1,
    run,
    controls: &[(Step::AgentByExchange, "an agent")],
};
