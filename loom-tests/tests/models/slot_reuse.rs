//! Invariant 6: the next owner of a queue's slot inherits nothing.
//!
//! What it fears: a kernel of a destroyed queue is reported late, and counts as a completion of the
//! queue that has its slot by then, whose own kernel is still running. What holds it: a completion
//! counts by compare-exchange against a word that holds the slot's generation.

use super::world::{World, dispatch};
use hsa_serializer::{Completion, Step};
use loom_tests::{Model, drain, together};

fn run() {
    let world = World::new();
    let mut old = world.queue();
    let gone = old.id();
    let (late, _) = dispatch(&mut old, &world.sim);
    let (set, domain, sim) = (world.set.clone(), world.domain.clone(), world.sim.clone());
    let (completion, (new, t1)) = together(
        &world.domain,
        {
            let set = world.set.clone();
            move || set.complete(late).expect("harmless")
        },
        move || {
            set.queue_destroyed(gone).expect("alive");
            drop(old);
            drain(&domain, || set.collect());
            let mut new = set.add_queue().expect("there is room");
            let (ticket, _) = dispatch(&mut new, &sim);
            (new, ticket)
        },
    );
    let sim = &world.sim;
    let barrier = world.set.arm(|_| {}).expect("a signal");
    sim.expect(
        !barrier.is_cleared(),
        "a late completion counted for the slot's next owner",
    );
    sim.raise();
    // Counted for the old one, or not at all.
    let _: Completion = completion;
    world.set.complete(t1).expect("counted");
    sim.expect(barrier.is_cleared(), "the barrier did not clear");
    drop((new, barrier));
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "slot reuse",
    bound: 3,
    quick: 2,
    run,
    controls: &[(Step::GenerationCheck, "counted for the slot's next owner")],
};
