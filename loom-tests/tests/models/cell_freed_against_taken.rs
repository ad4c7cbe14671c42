//! Invariant 6: a queue's cell goes to one next owner, who inherits nothing.
//!
//! What it fears: a queue is added while the cell of one that is gone becomes free: two queues get one
//! cell, or a late completion of the former owner counts for the next one. What holds it: the free cells
//! are in a queue of which each is taken once, though its pusher may not have written it when somebody
//! comes for it; and the generation.

use super::world::{World, dispatch};
use hsa_serializer::Step;
use loom_tests::{Model, drain, together};

fn run() {
    let world = World::new();
    let mut old = world.queue();
    let gone = old.id();
    let (late, _) = dispatch(&mut old, &world.sim);
    let set = world.set.clone();
    let ((), mut new) = together(
        &world.domain,
        move || {
            set.queue_destroyed(gone).expect("alive");
            drop(old);
            set.collect();
        },
        || world.queue(),
    );
    drain(&world.domain, || world.set.collect());
    let mut third = world.queue();
    let sim = &world.sim;
    // The next owner of the first cell, whichever of the two it is.
    if third.id().to_string() == "queue 0.1" {
        std::mem::swap(&mut new, &mut third);
    }
    let names = [&new, &third].map(|q| q.id().to_string());
    sim.expect(
        names == ["queue 0.1", "queue 1"],
        "a cell was lost, or was given to two",
    );
    let (t0, _) = dispatch(&mut new, sim);
    let (t1, _) = dispatch(&mut third, sim);
    world.set.complete(late).expect("harmless");
    let barrier = world.set.arm(|_| {}).expect("a signal");
    world.set.complete(t1).expect("counted");
    sim.expect(!barrier.is_cleared(), "counted for the slot's next owner");
    sim.raise();
    world.set.complete(t0).expect("counted");
    sim.expect(barrier.is_cleared(), "the barrier did not clear");
    drop((new, third, barrier));
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "cell: freed against taken",
    bound: 3,
    quick: 2,
    run,
    controls: &[(Step::GenerationCheck, "counted for the slot's next owner")],
};
