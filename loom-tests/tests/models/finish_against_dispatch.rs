//! Invariant 3, at the end: a dispatch is waited for, or turned away, and nothing is counted for it.
//!
//! What it fears: the shutdown finds that nothing is in flight on a queue and gives it up while a
//! dispatch has taken its number: its packets refer to signals that are destroyed. What holds it:
//! closing stamps the queue like a transition, and a dispatch that finds its epoch closed takes its
//! number back.

use super::agent::Agent;
use super::ending::{try_dispatch, try_finish};
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let mut q0 = agent.queue();
    let sim = agent.sim.clone();
    let (_, (dispatched, q0)) = {
        let s = agent.serializer.clone();
        let finisher = agent.sim.clone();
        together(
            &agent.domain,
            move || try_finish(&s, &finisher, 2),
            move || (try_dispatch(&mut q0, &sim), q0),
        )
    };
    agent.sim.raise();
    if let Some((ticket, packets)) = dispatched {
        let [ready, block] = <[_; 2]>::try_from(packets).expect("a gate of each kind");
        agent.sim.run(ready);
        agent.ready(q0.id());
        agent.run_through((ticket, vec![block]));
    }
    let counted = agent.serializer.statistics();
    agent.sim.expect(
        counted.dispatches == counted.completions,
        "a dispatch was turned away and counted",
    );
    agent.shut_down(vec![q0]);
}

pub(crate) static MODEL: Model = Model {
    name: "finish against dispatch",
    bound: 3,
    quick: 2,
    run,
    controls: &[(Step::ClosedIsRead, "handed out for a destroyed signal")],
};
