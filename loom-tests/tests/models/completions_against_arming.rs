//! Invariant 2: a barrier clears once, after its last counted dispatch and not before.
//!
//! What it fears: one of two completions comes between the stamp and the publishing of its queue's
//! target, and either nobody gives that unit back, or it is the last one while another queue has
//! not been looked at; or a queue is taken for idle whose kernel runs. What holds it: the publisher
//! reads the count again, the completer reads what is due after counting, the arming holds a unit of
//! the gate until it is through, and passes over only what has completed everything.

use super::world::{World, dispatch};
use hsa_serializer::Step;
use loom_tests::{Model, together3};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn run() {
    let world = World::new();
    let (mut q0, mut q1) = (world.queue(), world.queue());
    let (t0, _) = dispatch(&mut q0, &world.sim);
    let (t1, _) = dispatch(&mut q1, &world.sim);
    // Not loom's: it is for looking at, and must order nothing.
    let ended = Arc::new(AtomicUsize::new(0));
    let complete = |ticket| {
        let (set, ended) = (world.set.clone(), ended.clone());
        move || {
            ended.fetch_add(1, Ordering::Relaxed);
            set.complete(ticket).expect("counted");
        }
    };
    let (sim, seen) = (world.sim.clone(), ended.clone());
    let arm = || {
        world.set.arm(move |_| {
            let all = seen.load(Ordering::Relaxed) == 2;
            sim.expect(all, "the barrier cleared before its last dispatch ended");
        })
    };
    let ((), (), barrier) = together3(&world.domain, complete(t0), complete(t1), arm);
    let barrier = barrier.expect("a signal");
    world.sim.raise();
    world
        .sim
        .expect(barrier.is_cleared(), "the barrier did not clear");
    world
        .sim
        .expect(barrier.is_safe_to_destroy(), "a tag was left");
    drop((q0, q1, barrier));
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "two completions against arming",
    bound: 2,
    quick: 2,
    run,
    controls: &[
        (Step::ArmingUnit, "cleared before its last dispatch"),
        (Step::IdleIfReached, "cleared before its last dispatch"),
        (Step::PublisherRereads, "did not clear"),
        (Step::CompleterReadsDue, "did not clear"),
    ],
};
