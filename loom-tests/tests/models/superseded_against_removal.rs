//! Invariant 3, where a barrier is superseded while a queue that it counts is destroyed.
//!
//! What it fears: the transition passes over the queue, which is dead, and retires the old barrier
//! while the queue's entry still names it: who settles the queue later takes a unit from freed
//! memory. What holds it: a barrier is not closed before its gate was opened, superseded or not.

use super::world::{World, dispatch};
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let world = World::new();
    let mut q0 = world.queue();
    let (t0, _) = dispatch(&mut q0, &world.sim);
    let first = world.set.arm(|_| {}).expect("a signal");
    let (set, gone) = (world.set.clone(), q0.id());
    let sim = world.sim.clone();
    let ((), (first, sim)) = together(
        &world.domain,
        move || set.queue_destroyed(gone).expect("alive"),
        || {
            drop(world.set.arm(|_| {}).expect("a signal"));
            let closed = first.is_safe_to_destroy();
            // The gate shows in what is printed of a barrier.
            let open = format!("{first:?}").contains("gate: 0");
            sim.expect(
                !closed || open,
                "a barrier was closed while an entry names it",
            );
            (first, sim)
        },
    );
    sim.raise();
    sim.expect(first.is_safe_to_destroy(), "the first barrier stays");
    world.set.complete(t0).expect("harmless");
    drop((q0, first, sim));
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "superseded against removal",
    bound: 2,
    quick: 2,
    run,
    controls: &[(Step::CloseIfOpen, "closed while an entry names it")],
};
