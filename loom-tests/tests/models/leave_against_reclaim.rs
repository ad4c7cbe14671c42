//! After `leave` has returned, a call that begins does not call the runtime; one that is under way
//! ends as it would.
//!
//! What it fears: what another thread's call has deferred comes to who has left it all, with its next
//! call, and a signal of a runtime that is gone is destroyed. What holds it: who destroys a signal,
//! and who stores to one, has looked whether everything is left.

use super::agent::Agent;
use super::ending::try_dispatch;
use hsa_serializer::Step;
use loom_tests::{Model, drain, together};

fn run() {
    let agent = Agent::disabled();
    let mut q0 = agent.queue();
    let (t0, _) = try_dispatch(&mut q0, &agent.sim).expect("open");
    agent.serializer.enable().expect("a signal");
    let (s, sim, id) = (agent.serializer.clone(), agent.sim.clone(), q0.id());
    together(
        &agent.domain,
        move || {
            s.leave();
            sim.is_over_for_me();
            s.collect();
            let _ = s.ready(id);
        },
        // Clears the barrier and retires it, and is under way.
        || agent.serializer.complete(t0).expect("counted"),
    );
    drop(q0);
    drain(&agent.domain, || agent.serializer.collect());
    drop(agent.serializer);
    agent.sim.finish_left();
}

pub(crate) static MODEL: Model = Model {
    name: "leave against reclaim",
    bound: 3,
    quick: 2,
    run,
    controls: &[
        (Step::LeftIsRead, "called after its end"),
        (Step::OpenReadUnderPin, "called after its end"),
    ],
};
