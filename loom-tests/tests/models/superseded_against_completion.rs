//! Invariant 2, where a barrier is superseded: what it was waiting for, the new barrier waits for.
//!
//! What it fears: the last counted dispatch completes while its target moves from the old barrier to
//! the new one, and the new one waits for ever, or the old one ends twice. What holds it: completion
//! and move race for the entry by compare-exchange.

use super::world::{World, dispatch};
use hsa_serializer::{Outcome, Step};
use loom_tests::{Model, together};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn run() {
    let world = World::new();
    let mut q0 = world.queue();
    let (t0, _) = dispatch(&mut q0, &world.sim);
    let ends = Arc::new(AtomicUsize::new(0));
    let count = |weight| {
        let ends = ends.clone();
        move |_: Outcome| {
            ends.fetch_add(weight, Ordering::Relaxed);
        }
    };
    let first = world.set.arm(count(1)).expect("a signal");
    let set = world.set.clone();
    let (_, second) = together(
        &world.domain,
        move || set.complete(t0).expect("counted"),
        || world.set.arm(count(16)).expect("a signal"),
    );
    let sim = &world.sim;
    sim.expect(second.is_cleared(), "the second barrier did not clear");
    sim.expect(
        first.is_cleared() != first.is_superseded(),
        "the first barrier did not end, or ended twice",
    );
    sim.expect(
        ends.load(Ordering::Relaxed) == 17,
        "an end was not told once",
    );
    sim.raise();
    drop((q0, first, second));
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "superseded against completion",
    bound: 2,
    quick: 2,
    run,
    controls: &[
        (Step::TransferByExchange, "the second barrier did not clear"),
        (Step::PublisherRereads, "the second barrier did not clear"),
    ],
};
