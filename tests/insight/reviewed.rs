//! Bad moments that a review of all this found.

use crate::host::{Rig, halt, serializer};
use crate::lane::Lane;
use hsa_serializer::{Agents, Domain, Event, Mode, Serializer};
use std::thread;
use std::time::Duration;

/// Holds the first grant of queue 0 between its exchange and its record.
#[test]
fn a_grant_whose_queue_goes_meanwhile_takes_no_other_ones_record() {
    let rig = Rig::default();
    rig.watch();
    let s = serializer(&rig);
    s.enable().unwrap();
    let (mut a, mut b) = (Lane::new(&s), Lane::new(&s));
    let ids = [a.id(), b.id()];
    a.dispatch();
    b.dispatch();
    let (stop, enters, goes_on) = halt();
    rig.on_event(move |event| {
        if matches!(event, Event::Granted { queue, .. } if queue == ids[0]) {
            stop();
        }
    });
    let granter = thread::spawn(move || {
        a.reach();
        a
    });
    enters.recv_timeout(Duration::from_secs(20)).unwrap();
    // Destroyed with its kernel: the token goes on.
    s.queue_destroyed(ids[0]).unwrap();
    assert!(b.reach(), "b is granted at once");
    goes_on.send(()).unwrap();
    let a = granter.join().unwrap();
    let now = s.snapshot();
    let granted: Vec<_> = now
        .recent
        .iter()
        .filter_map(|r| match r.event {
            Event::Granted { queue, .. } => Some(queue),
            _ => None,
        })
        .collect();
    assert_eq!(now.statistics.grants, 2);
    assert_eq!(
        granted.len() as u64 + now.records_lost,
        2,
        "a grant is neither recorded nor counted as lost: {granted:?}"
    );
    rig.let_go();
    a.was_destroyed();
    b.end();
    b.destroy();
    drop(s);
    rig.is_left_by_all();
}

#[test]
fn a_snapshot_within_a_stuck_transition_has_the_new_modes_time() {
    let rig = Rig::default();
    let s = serializer(&rig);
    rig.pass(Duration::from_secs(3600));
    let (stop, enters, goes_on) = halt();
    rig.on_store(move |_| stop());
    let turner = {
        let s = s.clone();
        thread::spawn(move || s.enable())
    };
    enters.recv_timeout(Duration::from_secs(20)).unwrap();
    let now = s.snapshot();
    goes_on.send(()).unwrap();
    turner.join().unwrap().unwrap();
    rig.let_go();
    assert!(now.in_transition);
    assert_eq!(now.mode, Mode::Enabled);
    assert_eq!(
        (
            now.mode_for,
            now.statistics.serialized,
            s.statistics().serialized
        ),
        (Duration::ZERO, 0, 0),
        "turned on just now"
    );
}

/// The runtime hangs in the very store that lets the kernel go.
#[test]
fn a_snapshot_within_a_grant_that_hangs_says_how_long() {
    let rig = Rig::default();
    let s = serializer(&rig);
    s.enable().unwrap();
    let mut a = Lane::new(&s);
    a.dispatch();
    rig.pass(Duration::from_secs(3600));
    let (stop, enters, goes_on) = halt();
    rig.on_store(move |_| stop());
    let granter = thread::spawn(move || {
        a.reach();
        a
    });
    enters.recv_timeout(Duration::from_secs(20)).unwrap();
    let now = s.snapshot();
    goes_on.send(()).unwrap();
    rig.let_go();
    granter.join().unwrap().destroy();
    let lasts = now.queues[0].lasts;
    assert!(
        lasts.is_none_or(|l| l.is_zero()),
        "granted just now: {lasts:?}\n{now}"
    );
}

/// One agent's serializer is left while its signals are being made.
#[test]
fn an_agent_that_is_left_meanwhile_is_passed_over() {
    let rig = Rig::default();
    let made = rig.clone();
    let agents = Agents::new(move |agent| {
        let builder = Serializer::<Rig>::builder().agent(agent);
        builder.domain(Domain::new()).build(made.clone())
    });
    let weak = agents.of(1).unwrap().downgrade();
    rig.on_create(move |_| {
        if let Some(s) = weak.upgrade() {
            s.leave();
        }
    });
    let all = agents.request_all();
    rig.let_go();
    assert!(all.is_ok(), "one agent has ended: {all:?}");
}
