//! Waiting times, on a clock that the test turns.

use crate::host::{Rig, serializer};
use crate::lane::Lane;
use hsa_serializer::{BarrierState, Event};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

#[test]
fn queues_wait_for_their_turn_from_being_ready_to_being_granted() {
    let rig = Rig::default();
    let s = serializer(&rig);
    rig.pass(100 * MS);
    s.enable().unwrap();
    let (mut a, mut b, mut c) = (Lane::new(&s), Lane::new(&s), Lane::new(&s));
    for lane in [&mut a, &mut b, &mut c] {
        lane.dispatch();
    }
    // Not ready: what the GPU does before it gets there is no waiting for a turn.
    rig.pass(5 * MS);
    assert!(a.reach() && !b.reach());
    rig.pass(3 * MS);
    assert!(!c.reach());
    rig.pass(4 * MS);
    let now = s.snapshot();
    assert_eq!(now.queues[0].lasts, Some(7 * MS));
    assert_eq!(now.waiting()[0].lasts, Some(7 * MS));
    assert_eq!(now.waiting()[1].lasts, Some(4 * MS));
    a.end();
    assert!(b.reach());
    rig.pass(MS);
    // A turn lasts from its grant on, not from when it was waited for.
    let now = s.snapshot();
    let holder = now.holders().map(|queue| (queue.queue, queue.lasts));
    assert!(holder.eq([(b.id(), Some(MS))]));
    b.end();
    assert!(c.reach());
    c.end();
    let counted = s.statistics();
    // b: 3 + 4; c: 4 + 1.
    assert_eq!(counted.token_waited, 12_000_000);
    assert_eq!(counted.token_waited_most, 7_000_000);
    assert_eq!(counted.serialized, 13_000_000);
    rig.pass(2 * MS);
    s.disable().unwrap();
    rig.pass(50 * MS);
    assert_eq!(s.statistics().serialized, 15_000_000);
    let records = s.snapshot().recent;
    let waited = records.iter().filter_map(|record| match record.event {
        Event::Granted { waited, .. } => Some((record.at, waited)),
        _ => None,
    });
    let expected = [
        (105 * MS, Duration::ZERO),
        (112 * MS, 7 * MS),
        (113 * MS, 5 * MS),
    ];
    assert!(waited.eq(expected));
    [a, b, c].into_iter().for_each(Lane::destroy);
}

#[test]
fn barriers_are_armed_until_they_clear_or_are_superseded() {
    let rig = Rig::default();
    let s = serializer(&rig);
    let mut lane = Lane::new(&s);
    lane.dispatch();
    s.enable().unwrap();
    rig.pass(2 * MS);
    assert_eq!(s.snapshot().barriers[0].age, 2 * MS);
    s.disable().unwrap();
    rig.pass(5 * MS);
    let now = s.snapshot();
    assert_eq!(now.barriers.len(), 1, "the first one was superseded");
    assert_eq!(
        (now.barriers[0].state, now.barriers[0].age),
        (BarrierState::Armed, 5 * MS)
    );
    lane.end();
    rig.pass(9 * MS);
    let counted = s.statistics();
    assert_eq!(
        (counted.barriers_armed, counted.barriers_armed_most),
        (7_000_000, 5_000_000)
    );
    lane.destroy();
}

#[test]
fn from_the_beginning_of_the_end_kernels_are_not_counted_as_serialized() {
    for (on, counted) in [(true, 2_000_000), (false, 0)] {
        let rig = Rig::default();
        let s = serializer(&rig);
        if on {
            s.enable().unwrap();
        }
        rig.pass(Duration::from_millis(2));
        s.begin_shutdown();
        rig.pass(Duration::from_millis(5));
        assert_eq!(s.statistics().serialized, counted);
        s.finish_shutdown(Duration::ZERO).unwrap();
        rig.pass(Duration::from_millis(5));
        assert_eq!(s.statistics().serialized, counted);
        let text = s.snapshot().to_string();
        let how = match on {
            true => ": kernels ran one at a time until the end began.\n",
            false => ": kernels ran as the application likes until the end began.\n",
        };
        assert!(text.contains(how), "{text}");
    }
}
