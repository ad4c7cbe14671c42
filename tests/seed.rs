//! The fault that this crate exists to end (docs/scenarios.md, 1; the seed's three tests), on barriers
//! by themselves and a handle allocator that is last in, first out.

use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{AqlPacket, BarrierSet, Domain, Drain, Outcome, Queue, Report, Serializer};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

fn set(host: &Host) -> BarrierSet<Host> {
    BarrierSet::with(
        Serializer::<Host>::builder().domain(Domain::new()),
        host.clone(),
    )
}

fn dispatch(queue: &mut Queue<Host>) -> (hsa_serializer::Ticket, Option<u64>) {
    let mut packets = [AqlPacket::INVALID; 4];
    let dispatch = queue.dispatch(&mut packets).unwrap();
    let waits_for = (dispatch.packets == 1).then(|| packets[0].dependencies().unwrap()[0].handle);
    (dispatch.ticket, waits_for)
}

#[test]
fn s1_retirement_is_gated_on_the_drain() {
    let host = Host::default();
    let set = set(&host);
    let mut q0 = set.add_queue().unwrap();
    let mut q1 = set.add_queue().unwrap();
    let (before, _) = dispatch(&mut q0);
    let barrier = set.arm(|_| {}).unwrap();
    let (tagged, waits_for) = dispatch(&mut q1);
    assert_eq!(waits_for, Some(barrier.signal().handle));
    assert_eq!(barrier.drain_queue(q1.id()), Drain::Armed);

    set.complete(before).unwrap();
    assert!(barrier.is_cleared());
    assert!(!barrier.is_safe_to_destroy());
    assert_eq!(barrier.drain_queue(q1.id()), Drain::Outstanding);
    set.collect();
    assert_eq!(
        host.value(barrier.signal()),
        Some(0),
        "destroyed under its packet"
    );
    assert_eq!(set.statistics().barriers_live, 1);

    set.complete(tagged).unwrap();
    assert!(barrier.is_safe_to_destroy());
    assert_eq!(barrier.drain_queue(q1.id()), Drain::Drained);
    set.collect();
    assert_eq!(host.value(barrier.signal()), None, "leaked");
    let s = set.statistics();
    assert_eq!(
        (s.barriers_live, s.reclaimed, s.retired_after_drain),
        (0, 1, 1)
    );
}

#[test]
fn s1_teardown_of_a_queue_takes_its_tags_along() {
    let host = Host::default();
    let set = set(&host);
    let mut q0 = set.add_queue().unwrap();
    let mut q1 = set.add_queue().unwrap();
    let (before, _) = dispatch(&mut q0);
    let barrier = set.arm(|_| {}).unwrap();
    let (tagged, _) = dispatch(&mut q1);
    set.complete(before).unwrap();
    assert_eq!(barrier.tags(), 1);
    set.queue_destroyed(q1.id()).unwrap();
    assert!(barrier.is_safe_to_destroy());
    set.collect();
    assert_eq!(host.live_signals(), 0);
    // Its late completion is harmless.
    assert_eq!(
        set.complete(tagged).unwrap(),
        hsa_serializer::Completion::QueueGone
    );
}

#[test]
fn s1_a_handle_is_not_recycled_while_a_packet_waits_for_it() {
    let host = Host::default();
    let set = set(&host);
    let mut q0 = set.add_queue().unwrap();
    let mut q1 = set.add_queue().unwrap();
    let (before, _) = dispatch(&mut q0);
    let t1 = set.arm(|_| {}).unwrap();
    let (waiting, waits_for) = dispatch(&mut q1);
    set.complete(before).unwrap();
    set.collect();
    // T2 is armed while q1's packet for T1 has not executed.
    let (_in_flight, _) = dispatch(&mut q0);
    let t2 = set.arm(|_| {}).unwrap();
    assert_ne!(t2.signal(), t1.signal());
    assert_eq!(
        host.value(t1.signal()),
        Some(0),
        "T1 never sees a re-armed handle"
    );
    assert_eq!(waits_for, Some(t1.signal().handle));
    set.complete(waiting).unwrap();
    set.collect();
    // Now it may be recycled, and is.
    let t3 = set.arm(|_| {}).unwrap();
    assert_eq!(t3.signal(), t1.signal());
}

#[test]
fn the_destructor_reports_a_tag_and_destroys_the_signal_all_the_same() {
    let host = Host::default();
    let set = set(&host);
    let mut q0 = set.add_queue().unwrap();
    let (_before, _) = dispatch(&mut q0);
    let barrier = set.arm(|_| {}).unwrap();
    let (_tagged, _) = dispatch(&mut q0);
    let signal = barrier.signal();
    drop((barrier, q0, set));
    assert_eq!(host.live_signals(), 0);
    assert!(
        matches!(
            host.reports()[..],
            [Report::TaggedAtDestruction { signal: s, tags: 1, .. }] if s == signal
        ),
        "{:?}",
        host.reports()
    );
}

#[test]
fn a_barrier_with_nothing_in_flight_clears_at_once_and_callbacks_are_called_once() {
    let host = Host::default();
    let set = set(&host);
    let mut queue = set.add_queue().unwrap();
    let ended = Arc::new(Mutex::new(Vec::new()));
    let note = |n: usize| {
        let ended = ended.clone();
        move |outcome| ended.lock().unwrap().push((n, outcome))
    };
    let _ = set.arm(note(0)).unwrap();
    let (first, _) = dispatch(&mut queue);
    let _ = set.arm(note(1)).unwrap();
    let _ = set.arm(note(2)).unwrap();
    let _ = set.arm(note(3)).unwrap();
    set.complete(first).unwrap();
    assert_eq!(
        *ended.lock().unwrap(),
        [
            (0, Outcome::Cleared),
            (1, Outcome::Superseded),
            (2, Outcome::Superseded),
            (3, Outcome::Cleared)
        ]
    );
}

#[test]
fn live_barriers_are_bounded_by_what_is_in_flight() {
    let host = Host::default();
    let set = set(&host);
    let mut queue = set.add_queue().unwrap();
    let (long, _) = dispatch(&mut queue);
    for _ in 0..10_000 {
        let _ = set.arm(|_| {}).unwrap();
    }
    let s = set.statistics();
    assert_eq!(s.barriers_live_most, 2);
    assert_eq!(s.superseded, 9_999);
    assert!(host.live_signals() <= 4, "{}", host.live_signals());
    set.complete(long).unwrap();
    set.collect();
    assert_eq!(host.live_signals(), 0);
}

#[test]
fn a_callback_may_arm_again() {
    let host = Host::default();
    let set = set(&host);
    let mut queue = set.add_queue().unwrap();
    let (first, _) = dispatch(&mut queue);
    let calls = Arc::new(AtomicUsize::new(0));
    let (again, counted) = (set.clone(), calls.clone());
    let _ = set
        .arm(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            let counted = counted.clone();
            let _ = again
                .arm(move |_| {
                    counted.fetch_add(1, Ordering::Relaxed);
                })
                .unwrap();
        })
        .unwrap();
    set.complete(first).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[test]
fn tags_for_more_than_a_thousand_queues() {
    let host = Host::default();
    let set = set(&host);
    let mut queues: Vec<_> = (0..1_500).map(|_| set.add_queue().unwrap()).collect();
    let (long, _) = dispatch(&mut queues[0]);
    let barrier = set.arm(|_| {}).unwrap();
    queues.extend((0..100).map(|_| set.add_queue().unwrap()));
    let tickets: Vec<_> = queues
        .iter_mut()
        .map(|q| {
            let (ticket, waits_for) = dispatch(q);
            assert_eq!(waits_for, Some(barrier.signal().handle));
            ticket
        })
        .collect();
    assert_eq!(barrier.tags(), 1_600);
    set.complete(long).unwrap();
    for ticket in tickets {
        assert!(!barrier.is_safe_to_destroy());
        set.complete(ticket).unwrap();
    }
    assert!(barrier.is_safe_to_destroy());
    set.collect();
    assert_eq!(host.live_signals(), 0);
}
