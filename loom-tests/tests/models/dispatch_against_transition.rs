//! Invariant 1: a dispatch is counted by a transition, or carries its packet; never both, never
//! neither.
//!
//! What it fears: the dispatch takes its number of the new epoch before the new barrier can be
//! found, and runs beside the kernels that the barrier waits for. What holds it: number and epoch
//! are one word, and the barrier is in the list before the first word is stamped.

use super::world::{World, dispatch};
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let world = World::new();
    let (mut q0, mut q1) = (world.queue(), world.queue());
    let (t0, _) = dispatch(&mut q0, &world.sim);
    let (set, sim) = (world.set.clone(), world.sim.clone());
    let ((t1, packet, q1), barrier) = together(
        &world.domain,
        move || {
            let (ticket, packet) = dispatch(&mut q1, &sim);
            (ticket, packet, q1)
        },
        move || set.arm(|_| {}).expect("a signal"),
    );
    let sim = &world.sim;
    world.set.complete(t0).expect("counted");
    let counted = !barrier.is_cleared();
    sim.expect(
        counted || packet.is_some(),
        "a dispatch was neither counted nor carries the packet",
    );
    sim.expect(
        !counted || packet.is_none(),
        "a dispatch was counted and carries the packet",
    );
    sim.raise();
    if let Some(packet) = packet {
        sim.run(packet);
    }
    world.set.complete(t1).expect("counted");
    sim.expect(barrier.is_cleared(), "the barrier did not clear");
    sim.expect(barrier.is_safe_to_destroy(), "a tag was left");
    drop((q0, q1, barrier));
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "dispatch against transition",
    bound: 4,
    quick: 3,
    run,
    controls: &[
        (Step::PushBeforeStamp, "neither counted nor carries"),
        (Step::OneWord, "was counted and carries the packet"),
    ],
};
