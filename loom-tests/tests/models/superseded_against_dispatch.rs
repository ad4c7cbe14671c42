//! Invariant 4: no kernel of a new mode overlaps one of the old.
//!
//! What it fears: a dispatch has taken its number in an epoch and not yet looked for that epoch's
//! barrier, when the next transition supersedes it: the dispatch finds nothing to wait for and runs
//! beside what the barrier counted. What holds it: a barrier is superseded only if no queue's stamp
//! shows a dispatch in its epoch.

use super::world::{World, dispatch};
use hsa_serializer::{Step, Ticket};
use loom_tests::{Model, together};

fn run() {
    let world = World::new();
    let (mut q0, mut q1) = (world.queue(), world.queue());
    let (t0, _) = dispatch(&mut q0, &world.sim);
    let first = world.set.arm(|_| {}).expect("a signal");
    let (set, sim) = (world.set.clone(), world.sim.clone());
    let ((t1, packet, q1), second) = together(
        &world.domain,
        move || {
            let (ticket, packet) = dispatch(&mut q1, &sim);
            (ticket, packet, q1)
        },
        move || set.arm(|_| {}).expect("a signal"),
    );
    let sim = &world.sim;
    let [queue, word] = t1.into_raw();
    let t1 = Ticket::from_raw([queue, word]);
    // The low half of a word is its epoch; a set of barriers counts by two, from 0.
    let in_first_epoch = word as u32 == 2;
    sim.expect(
        !(in_first_epoch && first.is_superseded()),
        "a barrier was superseded that a dispatch of its epoch looks for",
    );
    sim.expect(
        packet.is_some(),
        "a kernel runs beside one of an older epoch",
    );
    sim.raise();
    world.set.complete(t0).expect("counted");
    // Whichever barrier it waits for, that one has cleared.
    if let Some(packet) = packet {
        sim.run(packet);
    }
    world.set.complete(t1).expect("counted");
    sim.expect(second.is_cleared(), "the second barrier did not clear");
    sim.expect(
        first.is_cleared() != first.is_superseded(),
        "the first barrier did not end, or ended twice",
    );
    drop((q0, q1, first, second));
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "superseded against dispatch",
    bound: 4,
    quick: 3,
    run,
    controls: &[(
        Step::SupersedeOnlyUnused,
        "a barrier was superseded that a dispatch",
    )],
};
