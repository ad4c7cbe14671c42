//! What a drain waits for was dispatched before it, and all of that; what comes later waits for it.
//!
//! What it fears: a dispatch is neither waited for nor held back, so that its completion passes for
//! that of an earlier one; or it is both, and waits for itself. What holds it: what holds every
//! transition: number and epoch are one word, and the barrier is in the list before the first word is
//! stamped.

use super::agent::Agent;
use super::ending::try_dispatch;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::disabled();
    let (mut q0, mut q1) = (agent.queue(), agent.queue());
    let (t0, _) = try_dispatch(&mut q0, &agent.sim).expect("open");
    let (ids, sim) = ([q0.id(), q1.id()], agent.sim.clone());
    let ((t1, p1, q1), cut) = together(
        &agent.domain,
        move || {
            let (ticket, packets) = try_dispatch(&mut q1, &sim).expect("open");
            (ticket, packets, q1)
        },
        || agent.serializer.cut().expect("a signal"),
    );
    let sim = &agent.sim;
    let waited_for = cut.in_flight();
    sim.expect(waited_for.contains(&(ids[0], 1)), "a dispatch was missed");
    let is_old = waited_for.contains(&(ids[1], 1));
    let held_back = p1.first().is_some_and(|packet| !sim.can_run(packet));
    sim.expect(
        is_old || held_back,
        "a dispatch is neither waited for nor held back",
    );
    sim.expect(
        !is_old || p1.is_empty(),
        "a dispatch is waited for and held back",
    );
    sim.raise();
    agent.complete(t0);
    sim.expect(
        cut.in_flight().is_empty() != is_old,
        "a drain waits for something else",
    );
    agent.run_through((t1, p1));
    sim.expect(cut.in_flight().is_empty(), "a drain waits for ever");
    drop(cut);
    agent.shut_down(vec![q0, q1]);
}

pub(crate) static MODEL: Model = Model {
    name: "cut against dispatch",
    bound: 3,
    quick: 3,
    run,
    controls: &[
        (Step::PushBeforeStamp, "neither waited for nor held back"),
        (Step::OneWord, "waited for and held back"),
    ],
};
