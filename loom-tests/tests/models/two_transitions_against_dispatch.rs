//! Invariants 1 and 4, for two transitions in a row: a dispatch between them waits for the first, one
//! before them is waited for by both, and one behind them waits for the second.
//!
//! What it fears: the dispatch has its number of the middle epoch and has not looked for that epoch's
//! barrier, when the second transition comes, and takes the first barrier away, or is found in its
//! place. What holds it: number and epoch are one word; each barrier is in the list before its first
//! stamp; and the first one is superseded only where no stamp shows a dispatch of its epoch.

use super::world::{World, dispatch};
use hsa_serializer::{Step, Ticket};
use loom_tests::{Model, together};

fn run() {
    let world = World::new();
    let (mut q0, mut q1) = (world.queue(), world.queue());
    let (t0, _) = dispatch(&mut q0, &world.sim);
    let (set, sim) = (world.set.clone(), world.sim.clone());
    let ((t1, packet, q1), [first, second]) = together(
        &world.domain,
        move || {
            let (ticket, packet) = dispatch(&mut q1, &sim);
            (ticket, packet, q1)
        },
        move || [0, 1].map(|_| set.arm(|_| {}).expect("a signal")),
    );
    let sim = &world.sim;
    let [queue, word] = t1.into_raw();
    let t1 = Ticket::from_raw([queue, word]);
    // The low half of a word is its epoch; a set of barriers counts by two, from 0.
    let epoch = word as u32;
    sim.expect(
        packet.is_some() == (epoch != 0),
        "a dispatch was counted and carries a packet, or neither",
    );
    sim.expect(
        first.is_superseded() == (epoch != 2),
        "a barrier was superseded that a dispatch looks for, or was not that nobody does",
    );
    sim.raise();
    world.set.complete(t0).expect("counted");
    // The first one counts one kernel more than the second, or as many.
    sim.expect(
        first.is_cleared() == (epoch == 2),
        "the first barrier waits for something else",
    );
    sim.expect(
        second.is_cleared() == (epoch == 4),
        "the second barrier waits for something else",
    );
    if let Some(packet) = packet {
        sim.run(packet);
    }
    world.set.complete(t1).expect("counted");
    sim.expect(second.is_cleared(), "the second barrier did not clear");
    let safe = [&first, &second].map(|b| b.is_safe_to_destroy());
    sim.expect(safe == [true, true], "a tag was left");
    drop((q0, q1, first, second));
    world.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "two transitions against dispatch",
    bound: 3,
    quick: 2,
    run,
    controls: &[
        (Step::OneWord, "that a dispatch looks for"),
        (Step::PushBeforeStamp, "a dispatch was counted and carries"),
        (Step::SupersedeOnlyUnused, "that a dispatch looks for"),
    ],
};
