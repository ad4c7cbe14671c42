//! Invariant 10: after the kill switch nobody's packet waits for ever; here that of a dispatch under
//! way.
//!
//! What it fears: a dispatch has taken its number and not yet written its packets when everything is
//! let through. They wait for a barrier, a turn and a grant, of which nobody will hear any more. What
//! holds it: each of them waits for the escape signal as well, and that stays open.

use super::agent::Agent;
use super::ending::try_dispatch;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::disabled();
    let (mut q0, mut q1) = (agent.queue(), agent.queue());
    let old = try_dispatch(&mut q0, &agent.sim).expect("open");
    agent.serializer.enable().expect("a signal");
    let sim = agent.sim.clone();
    let (new, (q0, q1)) = {
        let s = agent.serializer.clone();
        together(
            &agent.domain,
            move || s.release_all(),
            move || (try_dispatch(&mut q1, &sim), (q0, q1)),
        )
        .1
    };
    if let Some(new) = new {
        agent.run_through(new);
    }
    agent.run_through(old);
    let counted = agent.serializer.statistics();
    agent.sim.expect(
        counted.dispatches == counted.completions,
        "a dispatch was turned away and counted",
    );
    agent.shut_down(vec![q0, q1]);
}

pub(crate) static MODEL: Model = Model {
    name: "release against dispatch",
    bound: 3,
    quick: 2,
    run,
    controls: &[(Step::EscapeOpens, "a packet waits for ever")],
};
