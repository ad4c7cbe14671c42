//! Invariant 6: a queue may be destroyed at any moment; here while it dispatches.
//!
//! What it fears: the removal looks through the queue's tags before the dispatch has published its
//! own, and the barrier keeps that tag for ever. What holds it: the dispatch reads the count again
//! after publishing, and finds it infinite.

use super::world::{World, dispatch, try_dispatch};
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let world = World::new();
    let (mut q0, mut q1) = (world.queue(), world.queue());
    let (t0, _) = dispatch(&mut q0, &world.sim);
    let barrier = world.set.arm(|_| {}).expect("a signal");
    let (set, sim, gone) = (world.set.clone(), world.sim.clone(), q1.id());
    let (q1, ()) = together(
        &world.domain,
        move || {
            if let Some((_, packet)) = try_dispatch(&mut q1, &sim) {
                // It is written to a queue that is no more.
                packet.into_iter().for_each(|p| sim.lose(p));
            }
            q1
        },
        move || set.queue_destroyed(gone).expect("alive"),
    );
    let sim = &world.sim;
    world.set.complete(t0).expect("counted");
    sim.expect(barrier.is_cleared(), "the barrier did not clear");
    sim.expect(
        barrier.is_safe_to_destroy(),
        "a removed queue's tag was left",
    );
    sim.raise();
    drop((q0, q1, barrier));
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "removal against dispatch",
    bound: 4,
    quick: 3,
    run,
    controls: &[(Step::PublisherRereads, "a removed queue's tag was left")],
};
