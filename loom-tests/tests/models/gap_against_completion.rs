//! Invariants 2 and 4, where work has passed unseen: the transition of a gap waits for the marker and
//! for what was in flight, and for nothing else.
//!
//! What it fears: a kernel that was in flight is reported between the stamp and the publishing of its
//! queue's target, and the barrier waits for it for ever, or clears before the marker was looked at.
//! What holds it: what holds every transition.

use super::agent::Agent;
use super::ending::{gap, try_dispatch};
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let (mut q0, t0, block0) = agent.arrived();
    let mut q1 = agent.queue();
    agent.ready(q0.id());
    agent.sim.run(block0);
    let s = agent.serializer.clone();
    let (_, (marker, _)) = together(
        &agent.domain,
        move || s.complete(t0).expect("counted"),
        || gap(&mut q1, &agent.sim),
    );
    let sim = &agent.sim;
    sim.raise();
    let (t1, p1) = try_dispatch(&mut q0, sim).expect("open");
    let waits = p1.len() == 3 && !sim.can_run(&p1[0]);
    sim.expect(waits, "a kernel of the new epoch runs beside unknown work");
    sim.raise();
    agent.complete(marker);
    agent.run_through((t1, p1));
    agent.shut_down(vec![q0, q1]);
}

pub(crate) static MODEL: Model = Model {
    name: "gap against completion",
    bound: 3,
    quick: 2,
    run,
    controls: &[
        (Step::PublisherRereads, "a packet waits for ever"),
        (Step::CompleterReadsDue, "a packet waits for ever"),
    ],
};
