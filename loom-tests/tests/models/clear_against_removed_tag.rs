//! Invariant 3: a signal is not destroyed while somebody is about to store to it.
//!
//! What it fears: who clears a barrier has settled it and is about to store 0 to its signal, when
//! the only queue with a tag is destroyed: the barrier is safe to destroy, and the signal goes.
//! What holds it: reclamation is deferred until who clears has unpinned.

use super::world::{World, dispatch};
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let world = World::new();
    let (mut q0, mut q1) = (world.queue(), world.queue());
    let (t0, _) = dispatch(&mut q0, &world.sim);
    let barrier = world.set.arm(|_| {}).expect("a signal");
    let (t1, packet) = dispatch(&mut q1, &world.sim);
    let packet = packet.expect("the barrier is armed");
    let (set, sim, gone) = (world.set.clone(), world.sim.clone(), q1.id());
    together(
        &world.domain,
        move || {
            // The runtime's destroy has returned: its packets are no more.
            sim.lose(packet);
            set.queue_destroyed(gone).expect("alive");
        },
        || world.set.complete(t0).expect("counted"),
    );
    let sim = &world.sim;
    sim.raise();
    sim.expect(barrier.is_cleared(), "the barrier did not clear");
    sim.expect(barrier.is_safe_to_destroy(), "a tag was left");
    // The kernel was under way when its queue went, and is reported late.
    world.set.complete(t1).expect("harmless");
    drop((q0, q1, barrier));
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "clear against a removed tag",
    bound: 4,
    quick: 3,
    run,
    controls: &[(Step::DeferReclaim, "a destroyed signal was stored to")],
};
