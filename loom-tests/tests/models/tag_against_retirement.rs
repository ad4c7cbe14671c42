//! Invariant 3: no signal is destroyed while a packet that refers to it may be unexecuted.
//!
//! What it fears: the barrier clears and is retired between a dispatch's look at it and its tag, so
//! that the packet waits for a signal that is about to be destroyed and given out again. What holds
//! it: retiring closes the barrier by a compare-exchange from zero tags, and a dispatch that finds
//! it closed takes its tag back. And the dispatch may be looking at a barrier that is being reclaimed:
//! what holds that is that reclaiming is deferred, and the dispatch is pinned.

use super::world::{World, dispatch};
use hsa_serializer::Step;
use loom_tests::{Model, drain, together};

fn run() {
    let world = World::new();
    let (mut q0, mut q1) = (world.queue(), world.queue());
    let (t0, _) = dispatch(&mut q0, &world.sim);
    let barrier = world.set.arm(|_| {}).expect("a signal");
    let (set, sim) = (world.set.clone(), world.sim.clone());
    let ((t1, packet, q1), ()) = together(
        &world.domain,
        move || {
            let (ticket, packet) = dispatch(&mut q1, &sim);
            (ticket, packet, q1)
        },
        move || {
            set.complete(t0).expect("counted");
        },
    );
    let sim = &world.sim;
    sim.expect(barrier.is_cleared(), "the barrier did not clear");
    // What was retired is reclaimed now, and the packet has still not executed.
    drain(&world.domain, || world.set.collect());
    sim.raise();
    if let Some(packet) = packet {
        sim.expect(!barrier.is_safe_to_destroy(), "a packet stands untagged");
        sim.run(packet);
    }
    world.set.complete(t1).expect("counted");
    sim.expect(barrier.is_safe_to_destroy(), "a tag was left");
    drop((q0, q1, barrier));
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "tag against retirement",
    bound: 3,
    quick: 3,
    run,
    controls: &[
        (Step::ClosedCheck, "was not safe to destroy"),
        (Step::CloseIfUntagged, "was not safe to destroy"),
        (Step::DeferReclaim, "a reclaimed barrier was used"),
    ],
};
