//! Invariant 6: a queue may be destroyed at any moment; here while a transition counts it.
//!
//! What it fears: the transition publishes the target of a queue whose removal has just looked
//! through its targets, and waits for kernels that will never complete; also where the queue's slot
//! has been left by everybody meanwhile. What holds it: the transition reads the count again after
//! publishing, and finds it infinite.

use super::world::{World, dispatch};
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let world = World::new();
    let mut q0 = world.queue();
    let (t0, _) = dispatch(&mut q0, &world.sim);
    let (set, gone) = (world.set.clone(), q0.id());
    let ((), barrier) = together(
        &world.domain,
        move || {
            set.queue_destroyed(gone).expect("alive");
            drop(q0);
        },
        || world.set.arm(|_| {}).expect("a signal"),
    );
    let sim = &world.sim;
    sim.expect(barrier.is_cleared(), "the barrier did not clear");
    sim.raise();
    world.set.complete(t0).expect("harmless");
    drop(barrier);
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "removal against transition",
    bound: 3,
    quick: 2,
    run,
    controls: &[
        (Step::PublisherRereads, "the barrier did not clear"),
        (Step::SettleWhatWasLeft, "the barrier did not clear"),
    ],
};
