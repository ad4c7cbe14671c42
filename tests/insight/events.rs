//! Each event comes, in its order; and without an observer, and after the end, none does.

use crate::host::{Rig, serializer};
use crate::lane::Lane;
use hsa_serializer::{Event, Mode, QueueId, Serializer, StallPolicy, StallWatch};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

fn watched() -> (Rig, Serializer<Rig>) {
    let rig = Rig::default();
    rig.watch();
    let s = serializer(&rig);
    (rig, s)
}

/// What has happened, without the signals' handles.
fn told(rig: &Rig) -> Vec<Event> {
    let none = hsa_serializer::hsa_signal_t::NULL;
    let events = rig.events().into_iter();
    let without = |event| match event {
        Event::Made { epoch, .. } => Event::Made {
            epoch,
            signal: none,
        },
        Event::Reclaimed { epoch, .. } => Event::Reclaimed {
            epoch,
            signal: none,
        },
        other => other,
    };
    events.map(without).collect()
}

fn begins(epoch: u32, waits_for: u32) -> [Event; 3] {
    let mode = [Mode::Disabled, Mode::Enabled][epoch as usize % 2];
    let signal = hsa_serializer::hsa_signal_t::NULL;
    [
        Event::Transition { epoch, mode },
        Event::Made { epoch, signal },
        Event::Armed { epoch, waits_for },
    ]
}

fn ends(epoch: u32) -> [Event; 2] {
    let signal = hsa_serializer::hsa_signal_t::NULL;
    [Event::Retired { epoch }, Event::Reclaimed { epoch, signal }]
}

fn granted(queue: QueueId) -> Event {
    Event::Granted {
        queue,
        waited: Duration::ZERO,
    }
}

#[test]
fn a_barrier_is_made_armed_tagged_cleared_drained_retired_and_reclaimed() {
    let (rig, s) = watched();
    let (mut old, mut new) = (Lane::new(&s), Lane::new(&s));
    let added = [old.id(), new.id()].map(Event::QueueAdded);
    assert_eq!(told(&rig), added);
    old.dispatch();
    assert_eq!(told(&rig), []);
    s.enable().unwrap();
    assert_eq!(told(&rig), begins(1, 1));
    new.dispatch();
    let tagged = Event::Tagged {
        epoch: 1,
        queue: new.id(),
        dispatch: 0,
    };
    assert_eq!(told(&rig), [tagged]);
    old.end();
    assert_eq!(told(&rig), [Event::Cleared { epoch: 1 }]);
    assert!(new.reach());
    assert_eq!(told(&rig), [Event::Ready(new.id()), granted(new.id())]);
    new.end();
    let drained = Event::Drained {
        epoch: 1,
        queue: new.id(),
    };
    let mut expected = vec![Event::Released(new.id()), drained];
    expected.extend(ends(1));
    assert_eq!(told(&rig), expected);
    let gone = [old.id(), new.id()].map(Event::QueueGone);
    old.destroy();
    new.destroy();
    assert_eq!(told(&rig), gone);
}

#[test]
fn one_that_waits_for_nobody_clears_at_once_and_one_that_nobody_looks_for_is_superseded() {
    let (rig, s) = watched();
    let mut lane = Lane::new(&s);
    rig.events();
    s.enable().unwrap();
    let mut expected = begins(1, 0).to_vec();
    expected.push(Event::Cleared { epoch: 1 });
    expected.extend(ends(1));
    assert_eq!(told(&rig), expected);
    s.disable().unwrap();
    rig.events();
    lane.dispatch();
    s.enable().unwrap();
    assert_eq!(told(&rig), begins(3, 1));
    s.disable().unwrap();
    let [transition, made, armed] = begins(4, 1);
    let superseded = Event::Superseded { epoch: 3 };
    let mut expected = vec![transition, made, superseded];
    expected.push(Event::Retired { epoch: 3 });
    expected.push(armed);
    expected.push(ends(3)[1]);
    assert_eq!(told(&rig), expected);
    lane.end();
    lane.destroy();
}

#[test]
fn turns_are_told_in_order_and_a_holder_that_goes_gives_its_turn_back() {
    let (rig, s) = watched();
    s.enable().unwrap();
    let (mut a, mut b, mut c) = (Lane::new(&s), Lane::new(&s), Lane::new(&s));
    let [qa, qb, qc] = [a.id(), b.id(), c.id()];
    for lane in [&mut a, &mut b, &mut c] {
        lane.dispatch();
    }
    rig.events();
    assert!(a.reach() && !b.reach() && !c.reach());
    let expected = [
        Event::Ready(qa),
        granted(qa),
        Event::Ready(qb),
        Event::Ready(qc),
    ];
    assert_eq!(told(&rig), expected);
    a.end();
    assert_eq!(told(&rig), [Event::Released(qa), granted(qb)]);
    b.destroy();
    let expected = [Event::QueueGone(qb), Event::Released(qb), granted(qc)];
    assert_eq!(told(&rig), expected);
    assert!(c.reach());
    c.end();
    assert_eq!(told(&rig), [Event::Released(qc)]);
    a.destroy();
    c.destroy();
}

/// The stall that the watch names; released.
fn release(watch: &mut StallWatch<Rig>) {
    let second = Duration::from_secs(1);
    assert!(watch.check_stalls(second).is_empty());
    let stalls = watch.check_stalls(3 * second);
    assert!(stalls.iter().any(|stall| stall.released));
}

#[test]
fn what_is_let_go_before_its_time_is_told() {
    let (rig, s) = watched();
    let mut watch = s.watch_stalls(Duration::from_secs(1), StallPolicy::Release);
    let (mut old, mut new) = (Lane::new(&s), Lane::new(&s));
    let (qo, qn) = (old.id(), new.id());
    old.dispatch();
    s.enable().unwrap();
    new.dispatch();
    rig.events();
    release(&mut watch);
    assert_eq!(told(&rig), [Event::Forced { epoch: 1 }]);
    assert!(new.reach());
    old.dispatch();
    old.end();
    assert!(!old.reach());
    rig.events();
    release(&mut watch);
    assert_eq!(told(&rig), [Event::Overtaken(qn), granted(qo)]);
    // Its end gives nothing back.
    new.end();
    assert!(!told(&rig).contains(&Event::Released(qn)));
    assert!(old.reach());
    old.end();
    new.dispatch();
    rig.events();
    s.release_all();
    assert!(told(&rig).contains(&Event::LetThrough));
    old.destroy();
    new.destroy();
}

#[test]
fn after_the_end_nobody_is_told_anything() {
    let (rig, s) = watched();
    let mut lane = Lane::new(&s);
    lane.dispatch();
    s.enable().unwrap();
    s.leave();
    rig.events();
    lane.end();
    lane.destroy();
    s.release_all();
    assert!(s.enable().is_err());
    drop(s);
    assert_eq!(rig.events(), []);
}

/// The order of one barrier and of one queue, whatever threads do: a look at thousands of each.
#[test]
fn lives_are_told_in_order_on_threads() {
    let (rig, s) = watched();
    crate::host::in_time({
        let s = s.clone();
        move || {
            let running = AtomicU64::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut on = false;
                    while running.load(SeqCst) > 0 {
                        on = !on;
                        let turned = if on { s.enable() } else { s.disable() };
                        turned.unwrap();
                        std::thread::sleep(Duration::from_micros(200));
                    }
                });
                for _ in 0..2 {
                    scope.spawn(|| {
                        let mut lane = Lane::new(&s);
                        let end = Instant::now() + Duration::from_millis(300);
                        while Instant::now() < end {
                            lane.dispatch();
                            while !lane.reach() {
                                std::thread::yield_now();
                            }
                            lane.end();
                        }
                        lane.destroy();
                        running.fetch_sub(1, SeqCst);
                    });
                }
            });
        }
    });
    drop(s);
    let events = rig.events();
    let at = |wanted: Event| events.iter().position(|event| *event == wanted);
    let (mut barriers, mut grants) = (0, 0);
    for event in &events {
        if let Event::Made { epoch, signal } = *event {
            let made = at(*event).unwrap();
            let transition = events
                .iter()
                .position(|e| matches!(e, Event::Transition { epoch: e, .. } if *e == epoch));
            let reclaimed = at(Event::Reclaimed { epoch, signal }).unwrap();
            let retired = at(Event::Retired { epoch }).unwrap();
            assert!(transition.unwrap() < made && made < retired && retired < reclaimed);
            let ended = at(Event::Cleared { epoch }).xor(at(Event::Superseded { epoch }));
            assert!(ended.unwrap() > made);
            barriers += 1;
        }
    }
    let mut holder = None;
    for event in events {
        match event {
            Event::Granted { queue, .. } => {
                assert_eq!(holder.replace(queue), None, "two turns at once");
                grants += 1;
            }
            Event::Released(queue) => assert_eq!(holder.take(), Some(queue)),
            _ => {}
        }
    }
    assert!(barriers > 0 && grants > 0 && holder.is_none());
    rig.is_left_by_all();
}
