//! Completions overtake each other: the later dispatch's is counted first.
//!
//! What it fears: who comes second sees the count and not the dispatch that it is of, and takes its own
//! completion for one too many. What holds it: with the count it acquires what was completed.

use super::world::{World, dispatch};
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let world = World::new();
    let mut queue = world.queue();
    let (first, _) = dispatch(&mut queue, &world.sim);
    let set = world.set.clone();
    let (sim, other) = (world.sim.clone(), world.sim.clone());
    let ((), ()) = together(
        &world.domain,
        move || {
            let counted = set.complete(first).is_ok();
            sim.expect(counted, "a completion was refused");
        },
        || {
            let (second, _) = dispatch(&mut queue, &other);
            let counted = world.set.complete(second).is_ok();
            other.expect(counted, "a completion was refused");
        },
    );
    world.sim.raise();
    drop((queue, other));
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "completion overtaken",
    bound: 3,
    quick: 3,
    run,
    controls: &[(Step::OvertakenAcquires, "with no dispatch left to complete")],
};
