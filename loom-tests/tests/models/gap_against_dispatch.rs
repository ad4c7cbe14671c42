//! Invariant 4, where work has passed unseen: nobody of the new epoch runs before it has ended.
//!
//! What it fears: another queue dispatches while the marker that stands for the unknown work is
//! counted, and neither is counted with it nor waits for it; or the marker is left out of the
//! transition that it makes. What holds it: the marker is counted first, then the barrier is pushed,
//! then the queues are stamped.

use super::agent::Agent;
use super::ending::{gap, try_dispatch};
use hsa_serializer::{Step, Ticket};
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let (mut q0, mut q1) = (agent.queue(), agent.queue());
    let sim = agent.sim.clone();
    let ((t1, mut p1, q1), (marker, front)) = together(
        &agent.domain,
        move || {
            let (ticket, packets) = try_dispatch(&mut q1, &sim).expect("open");
            (ticket, packets, q1)
        },
        || gap(&mut q0, &agent.sim),
    );
    let sim = &agent.sim;
    sim.expect(front.is_empty(), "the marker waits for itself");
    let [queue, word] = t1.into_raw();
    let t1 = Ticket::from_raw([queue, word]);
    // The low half of a word is its epoch; enabling made the first.
    let is_new = word as u32 == 3;
    let runs = p1.len() == 2 || sim.can_run(&p1[0]);
    sim.expect(
        is_new != runs,
        "a kernel of the new epoch runs beside unknown work",
    );
    // What follows the marker waits for it, and for the other one if that came before.
    let (t2, mut p2) = try_dispatch(&mut q0, sim).expect("open");
    let waits = p2.len() == 3 && !sim.can_run(&p2[0]);
    sim.expect(waits, "a kernel of the new epoch runs beside unknown work");
    sim.raise();
    agent.complete(marker);
    if !is_new {
        sim.expect(!sim.can_run(&p2[0]), "a counted dispatch is not waited for");
        agent.run_through((t1, p1));
        agent.run_through((t2, p2));
    } else {
        for packets in [&mut p1, &mut p2] {
            sim.run(packets.remove(0));
        }
        agent.run_through((t2, p2));
        agent.run_through((t1, p1));
    }
    agent.shut_down(vec![q0, q1]);
}

pub(crate) static MODEL: Model = Model {
    name: "gap against dispatch",
    bound: 3,
    quick: 3,
    run,
    controls: &[
        (Step::MarkerBeforeStamp, "runs beside unknown work"),
        (Step::PushBeforeStamp, "runs beside unknown work"),
    ],
};
