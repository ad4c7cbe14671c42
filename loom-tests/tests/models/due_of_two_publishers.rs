//! Invariant 3, the drain: a tag whose packet has executed is drained.
//!
//! What it fears: a completion looks through what is pending, a dispatch publishes a tag behind its
//! back, and then the completion takes the announcement away: nobody will ever look at that tag.
//! What holds it: what is due is taken away before looking, so whoever publishes later announces it
//! anew.

use super::world::{World, dispatch};
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let world = World::new();
    let mut q0 = world.queue();
    let (t0, _) = dispatch(&mut q0, &world.sim);
    let barrier = world.set.arm(|_| {}).expect("a signal");
    let (set, sim) = (world.set.clone(), world.sim.clone());
    let ((t1, packet, q0), _) = together(
        &world.domain,
        move || {
            let (ticket, packet) = dispatch(&mut q0, &sim);
            (ticket, packet, q0)
        },
        move || set.complete(t0).expect("counted"),
    );
    let sim = &world.sim;
    sim.expect(barrier.is_cleared(), "the barrier did not clear");
    if let Some(packet) = packet {
        sim.run(packet);
    }
    world.set.complete(t1).expect("counted");
    sim.expect(barrier.is_safe_to_destroy(), "a drained tag was left");
    sim.raise();
    drop((q0, barrier));
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "due: tag against completion",
    bound: 4,
    quick: 3,
    run,
    controls: &[(Step::DueTakenFirst, "a drained tag was left")],
};
