//! Invariant 2: a barrier clears once; here where it is cleared by force as its last counted dispatch
//! completes.
//!
//! What it fears: both clear it, and its end is told twice, or its signal is stored to again when it
//! may be another barrier's; or the completion retires it while who forces is about to store. What
//! holds it: both settle it in its life word, which one of them finds armed; and its signal goes after
//! who was pinned.

use super::world::{World, dispatch};
use hsa_serializer::{Outcome, Step, Ticket};
use loom_tests::{Model, together};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn run() {
    let world = World::new();
    world.sim.is_misused();
    let mut q0 = world.queue();
    let (t0, _) = dispatch(&mut q0, &world.sim);
    // Not loom's: they are for looking at, and must order nothing.
    let ends = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let told = ends.clone();
    let count = move |outcome| {
        told[usize::from(outcome == Outcome::Forced)].fetch_add(1, Ordering::Relaxed);
    };
    let barrier = world.set.arm(count).expect("a signal");
    let set = world.set.clone();
    let (refused, _) = together(
        &world.domain,
        // A ticket of nobody's is misuse, and everything is let through.
        move || set.complete(Ticket::from_raw([0, 0])),
        || world.set.complete(t0).expect("counted"),
    );
    let sim = &world.sim;
    sim.expect(refused.is_err(), "a foreign ticket was counted");
    let [cleared, forced] = [0, 1].map(|i| ends[i].load(Ordering::Relaxed) as u64);
    sim.expect(cleared + forced == 1, "an end was not told once");
    let counted = world.set.statistics();
    sim.expect(
        (counted.cleared, counted.forced) == (cleared, forced),
        "an end was told as another",
    );
    sim.expect(barrier.is_safe_to_destroy(), "the gate stays shut");
    drop((q0, barrier));
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "force against clearing",
    bound: 2,
    quick: 2,
    run,
    controls: &[
        (Step::ClearIfArmed, "a barrier was cleared twice"),
        (Step::DeferReclaim, "a reclaimed barrier was used"),
    ],
};
