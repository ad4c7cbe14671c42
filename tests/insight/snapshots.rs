//! Snapshots, in every state and while everything runs.

use crate::host::{Rig, halt, in_time, serializer};
use crate::lane::Lane;
use crate::pinned::Pinned;
use hsa_serializer::{
    AqlPacket, BarrierState, Domain, EndState, Event, MAX_PACKETS, Mode, Party, QueueActivity,
    Serializer, Snapshot, StallPolicy, Ticket, Wait,
};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Every line of the text that is asked for is there.
#[track_caller]
fn says(snapshot: &Snapshot, expected: &[&str]) {
    let text = snapshot.to_string();
    for line in expected {
        assert!(text.contains(line), "{line:?} is missing in\n{text}");
    }
}

#[test]
fn a_holder_that_does_not_end_is_the_cause_and_who_waits_for_it_is_named() {
    let rig = Rig::default();
    let builder = Serializer::<Rig>::builder().agent(0xa001);
    let s = builder.domain(Domain::new()).build(rig.clone());
    s.enable().unwrap();
    let (mut a, mut b) = (Lane::new(&s), Lane::new(&s));
    a.dispatch();
    a.dispatch();
    b.dispatch();
    assert!(a.reach() && !b.reach());
    rig.pass(Duration::from_millis(200));
    let now = s.snapshot();
    assert_eq!(
        (now.agent, now.mode, now.epoch, now.end),
        (Some(0xa001), Mode::Enabled, 1, EndState::Open)
    );
    let views: Vec<_> = now.queues.iter().collect();
    assert_eq!(
        (
            views[0].dispatched,
            views[0].completed,
            views[0].in_flight()
        ),
        (2, 0, 2)
    );
    let [holder, waiter] = [a.id(), b.id()].map(Party::Queue);
    let waits: Vec<_> = now.waits().iter().map(|w| (w.who, w.whom)).collect();
    assert_eq!(waits, [(waiter, holder)]);
    assert_eq!(now.roots(), [(holder, vec![waiter])]);
    says(
        &now,
        &[
            "GPU 0xa001 ",
            ": kernels run one at a time, for 200.0ms now",
            "queue 0 holds up the others: its kernel 0 was let go 200.0ms ago, and has not ended.",
            "    queue 1: kernel 0 is ready, and has waited for its turn for 200.0ms",
            "What has to happen: kernel 0 of queue 0 ends; then these go on by themselves.",
            "It never ends if it waits for a kernel that is held up here",
            "then this is a deadlock, which serializing makes",
            "Done about it: nothing, so far (",
            "transition 1: kernels from now on run one at a time",
        ],
    );
    a.destroy();
    b.destroy();
}

#[test]
fn what_was_in_flight_at_a_transition_is_the_cause_through_its_barrier() {
    let rig = Rig::default();
    let s = serializer(&rig);
    let (mut old, mut new) = (Lane::new(&s), Lane::new(&s));
    old.dispatch();
    s.enable().unwrap();
    new.dispatch();
    assert!(!new.reach());
    let now = s.snapshot();
    let [root, waiter] = [old.id(), new.id()].map(Party::Queue);
    let barrier = Party::Barrier(1);
    let waits: Vec<_> = now.waits().iter().map(|w| (w.who, w.whom)).collect();
    assert_eq!(waits, [(waiter, barrier), (barrier, root)]);
    assert_eq!(now.roots(), [(root, vec![barrier, waiter])]);
    let view = &now.barriers[0];
    assert_eq!((view.state, view.tags), (BarrierState::Armed, 1));
    assert_eq!(view.holds_back, [(new.id(), 0)]);
    assert_eq!(
        (view.waits_for[0].completed, view.waits_for[0].until),
        (0, 1)
    );
    assert_eq!(now.queues[1].tags, [(1, 0)]);
    says(
        &now,
        &[
            "queue 0 holds up others: 1 kernel of it, dispatched before the change ",
            " ago (serializing turned on or off, or a cut), has not ended.",
            "queue 1: kernel 0 waits until barrier 1 lets it through",
            "What has to happen: what is left of queue 0 from before ends; then these go on by themselves.",
            "It never ends if it waits for a kernel that is held up here",
        ],
    );
    // Cleared, and kept: its packet has not executed as far as anybody knows.
    old.end();
    let now = s.snapshot();
    assert_eq!(now.barriers[0].state, BarrierState::Cleared);
    assert!(now.roots().is_empty());
    old.destroy();
    new.destroy();
}

#[test]
fn each_state_is_named() {
    let rig = Rig::default();
    let s = serializer(&rig);
    says(
        &s.snapshot(),
        &[
            "No kernel waits because of it: no kernel is in flight.",
            "No queues.",
        ],
    );
    let (mut old, mut new) = (Lane::new(&s), Lane::new(&s));
    let request = s.request().unwrap();
    says(&s.snapshot(), &["; requested 1 times"]);
    drop(request);
    old.dispatch();
    s.enable().unwrap();
    new.dispatch();
    let mut watch = s.watch_stalls(Duration::from_secs(1), StallPolicy::Release);
    let mut check = |seconds| watch.check_stalls(Duration::from_secs(seconds));
    check(0);
    check(2);
    let now = s.snapshot();
    assert_eq!(now.barriers[0].state, BarrierState::Forced);
    says(
        &now,
        &["opened by force", "Let go before its time: 1 times."],
    );
    assert!(new.reach());
    old.end();
    old.dispatch();
    assert!(!old.reach());
    check(3);
    check(5);
    let now = s.snapshot();
    assert_eq!(now.queues[1].activity, QueueActivity::Overtaken);
    says(&now, &["lost its turn to others, and may still be running"]);
    let mut third = Lane::new(&s);
    third.dispatch();
    assert!(!third.reach());
    says(
        &s.snapshot(),
        &["Done about it: of what stood still before, 2 let go."],
    );
    s.begin_shutdown();
    assert_eq!(s.snapshot().end, EndState::ShuttingDown);
    s.release_all();
    let now = s.snapshot();
    assert_eq!(now.end, EndState::LetThrough);
    says(&now, &["Done about it: everything was let through."]);
    assert_eq!(
        now.recent.last().map(|record| record.event),
        Some(Event::LetThrough)
    );
    says(
        &now,
        &[
            "Everything was let through",
            "everything let through, for good",
        ],
    );
    s.leave();
    assert_eq!(s.snapshot().end, EndState::Left);
    for lane in [old, new, third] {
        lane.destroy();
    }
}

/// Somebody hangs inside of the runtime, under the transition lock.
#[test]
fn it_waits_for_nobody_who_hangs_in_a_transition() {
    let rig = Rig::default();
    let s = serializer(&rig);
    s.enable().unwrap();
    assert!(!s.snapshot().in_transition);
    let (stop, is_inside, go) = halt();
    let hangs = AtomicBool::new(true);
    rig.on_store(move |_| {
        if hangs.swap(false, SeqCst) {
            stop();
        }
    });
    let other = s.clone();
    let transition = thread::spawn(move || other.disable().unwrap());
    is_inside.recv().unwrap();
    let looks = s.clone();
    let now = in_time(move || looks.snapshot());
    assert!(now.in_transition);
    says(&now, &["A thread is inside of turning it on or off"]);
    go.send(()).unwrap();
    transition.join().unwrap();
    assert!(!s.snapshot().in_transition);
    rig.let_go();
}

/// What is due to be reclaimed is left to others, however often somebody looks: a debugger's thread must not
/// call the runtime.
#[test]
fn it_reclaims_nothing() {
    let rig = Rig::default();
    let domain = Domain::new();
    let s = Serializer::<Rig>::builder()
        .domain(domain.clone())
        .build(rig.clone());
    let pinned = Pinned::new(&domain);
    for _ in 0..20 {
        s.enable().unwrap();
        s.disable().unwrap();
    }
    let left = pinned.ends();
    let signals = rig.host().live_signals();
    assert!(signals >= 40 && domain.pending() >= 40);
    // Every 128th pin of a thread collects.
    for _ in 0..1_000 {
        let _ = s.snapshot();
    }
    assert_eq!(rig.host().live_signals(), signals);
    s.collect();
    assert_eq!((rig.host().live_signals(), domain.pending()), (0, 0));
    drop((left, s));
    rig.is_left_by_all();
}

/// It leaves things to others only while it looks.
#[test]
fn who_has_looked_reclaims_again() {
    let rig = Rig::default();
    let domain = Domain::new();
    let s = Serializer::<Rig>::builder()
        .domain(domain.clone())
        .build(rig.clone());
    let _ = s.snapshot();
    let pinned = Pinned::new(&domain);
    for _ in 0..20 {
        s.enable().unwrap();
        s.disable().unwrap();
    }
    let left = pinned.ends();
    let signals = rig.host().live_signals();
    assert!(signals >= 40);
    // Each of these pins, and does not ask for what was left to others.
    let mut watch = s.watch_stalls(Duration::from_secs(1), StallPolicy::Report);
    for _ in 0..1_000 {
        let _ = watch.check_stalls(Duration::ZERO);
    }
    assert!(rig.host().live_signals() < signals);
    drop((left, watch, s));
    rig.is_left_by_all();
}

/// What came before a grant is recorded before it, and what came after it behind it.
#[test]
fn grants_stand_among_the_other_records_where_they_were_given() {
    let rig = Rig::default();
    let s = serializer(&rig);
    let mut lane = Lane::new(&s);
    for _ in 0..3 {
        s.enable().unwrap();
        lane.dispatch();
        lane.end();
        s.disable().unwrap();
    }
    let recent = s.snapshot().recent;
    let kinds = recent.iter().filter_map(|record| match record.event {
        Event::Transition { epoch, .. } => Some(u64::from(epoch)),
        Event::Granted { .. } => Some(0),
        _ => None,
    });
    assert_eq!(kinds.collect::<Vec<_>>(), [1, 0, 2, 3, 0, 4, 5, 0, 6]);
    lane.destroy();
    drop(s);
    rig.is_left_by_all();
}

/// What did not happen is not in the text.
#[test]
fn how_long_it_takes_and_what_it_cost_is_said() {
    const MS: Duration = Duration::from_millis(1);
    let rig = Rig::default();
    let s = serializer(&rig);
    let (mut old, mut new) = (Lane::new(&s), Lane::new(&s));
    let nothing = "No kernel waits because of it: no kernel is in flight.";
    says(&s.snapshot(), &[nothing]);
    old.dispatch();
    let text = s.snapshot().to_string();
    assert!(text.contains("No kernel waits because of it.\n"), "{text}");
    for costs in ["added up", "one at a time: ", "Let go", "broken the rules"] {
        assert!(!text.contains(costs), "{costs:?} is in\n{text}");
    }

    s.enable().unwrap();
    new.dispatch();
    rig.pass(3 * MS);
    says(
        &s.snapshot(),
        &[
            "dispatched before the change 3.0ms ago",
            "barrier 1: kernels from after a change 3.0ms ago wait for those from before it",
        ],
    );
    old.end();
    old.dispatch();
    says(
        &s.snapshot(),
        &["1 in flight, of which none has asked for its turn"],
    );
    assert!(new.reach());
    rig.pass(2 * MS);
    assert!(!old.reach());
    rig.pass(MS);
    says(&s.snapshot(), &["its kernel 0 was let go 3.0ms ago"]);
    new.end();
    assert!(old.reach());
    old.end();
    s.disable().unwrap();
    for _ in 0..2 {
        new.dispatch();
        new.end();
        old.dispatch();
        old.end();
    }
    old.dispatch();
    says(
        &s.snapshot(),
        &[
            "kernels ran one at a time: 6.0ms\n",
            "queues waited for their turn, all added up: 1.0ms, 1.0ms at most\n",
            "held back what came after them, all added up: 3.0ms, 3.0ms at most\n",
            "1 in flight\n",
        ],
    );
    old.end();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let raw = old.queue.dispatch(&mut packets).unwrap().ticket.into_raw();
    s.complete(Ticket::from_raw(raw)).unwrap();
    assert!(s.complete(Ticket::from_raw(raw)).is_err());
    says(&s.snapshot(), &["has broken the rules 1 times"]);
    old.destroy();
    new.destroy();
}

/// Everything runs, queues come and go, and a reader looks: nothing that it reads contradicts itself
/// within one number, and nobody notices.
#[test]
fn it_may_be_taken_while_everything_runs() {
    let rig = Rig::default();
    let s = serializer(&rig);
    let over = AtomicBool::new(false);
    let mut looks = 0_u64;
    thread::scope(|scope| {
        let runs: Vec<_> = (0..2)
            .map(|thread| {
                let s = &s;
                scope.spawn(move || {
                    for n in 0..300 {
                        let mut lane = Lane::new(s);
                        if (n + thread) % 3 == 0 {
                            let _ = s.enable();
                        } else if n % 3 == 1 {
                            let _ = s.disable();
                        }
                        for _ in 0..10 {
                            lane.dispatch();
                        }
                        for _ in 0..n % 10 {
                            while !lane.reach() {
                                thread::yield_now();
                            }
                            lane.end();
                        }
                        lane.destroy();
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut looks = 0_u64;
            while !over.load(SeqCst) {
                let now = s.snapshot();
                for queue in &now.queues {
                    assert!(queue.in_flight() <= 10, "{queue:?}");
                }
                for Wait { who, whom, .. } in now.waits() {
                    assert_ne!(who, whom);
                }
                assert!(!now.to_string().is_empty());
                assert!(now.recent.is_sorted_by_key(|r| r.at));
                looks += 1;
            }
            looks
        });
        for run in runs {
            run.join().unwrap();
        }
        over.store(true, SeqCst);
        looks = reader.join().unwrap();
    });
    assert!(looks > 0);
    drop(s);
    rig.is_left_by_all();
}
