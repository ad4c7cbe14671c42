//! Invariant 2, for two transitions in a row: the kernel that both wait for ends at any moment of them,
//! and each barrier ends once.
//!
//! What it fears: the completion comes between stamp and target of the one, or while its target moves
//! to the other, and one of the two waits for ever, clears early or ends twice. What holds it: who
//! publishes reads the count again, who completes reads what is due afterwards, and completion and move
//! race for one entry by compare-exchange.

use super::world::{World, dispatch};
use hsa_serializer::{Outcome, Step};
use loom_tests::{Model, together};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn run() {
    let world = World::new();
    let mut q0 = world.queue();
    let (t0, _) = dispatch(&mut q0, &world.sim);
    // Not loom's: they are for looking at, and must order nothing.
    let ends = Arc::new(AtomicUsize::new(0));
    let completed = Arc::new(AtomicUsize::new(0));
    let set = world.set.clone();
    let begun = completed.clone();
    let (_, [first, second]) = together(
        &world.domain,
        move || {
            begun.store(1, Ordering::Relaxed);
            set.complete(t0).expect("counted")
        },
        || {
            [1, 16].map(|weight| {
                let (ends, completed, sim) = (ends.clone(), completed.clone(), world.sim.clone());
                let barrier = world.set.arm(move |outcome: Outcome| {
                    ends.fetch_add(weight, Ordering::Relaxed);
                    let ended = completed.load(Ordering::Relaxed) == 1;
                    let early = outcome == Outcome::Cleared && !ended;
                    sim.expect(!early, "a barrier cleared before its last dispatch ended");
                });
                barrier.expect("a signal")
            })
        },
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
    let safe = [&first, &second].map(|b| b.is_safe_to_destroy());
    sim.expect(safe == [true, true], "a gate stays shut");
    sim.raise();
    drop((q0, first, second));
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "two transitions against completion",
    bound: 2,
    quick: 1,
    run,
    controls: &[
        (Step::TransferByExchange, "the second barrier did not clear"),
        (Step::PublisherRereads, "the second barrier did not clear"),
        (Step::CompleterReadsDue, "the second barrier did not clear"),
    ],
};
