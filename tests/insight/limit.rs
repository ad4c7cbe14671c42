//! The limit on run-ahead.

use crate::host::{Rig, in_time, serializer};
use crate::lane::Lane;
use hsa_serializer::{AqlPacket, DispatchError, MAX_PACKETS};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

#[test]
fn a_refused_dispatch_changes_nothing() {
    let rig = Rig::default();
    let s = serializer(&rig);
    let mut lane = Lane::new(&s);
    for on in [false, true] {
        if on {
            s.enable().unwrap();
        }
        for n in 0..3 {
            assert_eq!(lane.queue.in_flight(), n);
            assert_eq!(lane.try_dispatch(3), Ok(on));
        }
        let before = s.statistics();
        let full = Err(DispatchError::Full { in_flight: 3 });
        assert_eq!(lane.try_dispatch(3), full);
        assert_eq!(lane.try_dispatch(1), full);
        assert_eq!(lane.try_dispatch(0), full);
        assert_eq!(s.statistics(), before);
        // Without a limit, and with a higher one, it goes on.
        assert_eq!(lane.try_dispatch(4), Ok(on));
        for _ in 0..4 {
            lane.end();
        }
        let none = Err(DispatchError::Full { in_flight: 0 });
        assert_eq!(lane.try_dispatch(0), none);
    }
    let mut few = [AqlPacket::INVALID; MAX_PACKETS - 1];
    let given = few.len();
    assert_eq!(
        lane.queue.try_dispatch(&mut few, 1).map(|_| ()),
        Err(DispatchError::TooFewPackets { given })
    );
    lane.destroy();
}

#[test]
fn once_it_has_ended_nobody_is_told_to_wait() {
    let rig = Rig::default();
    let s = serializer(&rig);
    let mut lane = Lane::new(&s);
    let mut gone = Lane::new(&s);
    lane.dispatch();
    s.enable().unwrap();
    gone.dispatch();
    s.queue_destroyed(gone.id()).unwrap();
    let why = DispatchError::QueueGone(gone.id());
    assert_eq!(gone.queue.in_flight(), 0);
    assert_eq!(gone.try_dispatch(1), Err(why));
    s.begin_shutdown();
    assert_eq!(lane.try_dispatch(1), Err(DispatchError::ShutDown));
    assert_eq!(lane.queue.in_flight(), 1);
    lane.end();
    lane.destroy();
}

/// 20,000 kernels, capped, on and off: they finish, and never more than the cap are in flight.
#[test]
fn s32_a_capped_backlog_finishes_also_with_a_cap_of_one() {
    const KERNELS: u64 = 20_000;
    for cap in [1, 2, 64] {
        let rig = Rig::default();
        let s = serializer(&rig);
        let mut lanes = [Lane::new(&s), Lane::new(&s)];
        let (mut refused, mut most) = (0, 0);
        for n in 0..KERNELS {
            if n % 500 == 0 {
                if n / 500 % 2 == 0 {
                    s.enable().unwrap();
                } else {
                    s.disable().unwrap();
                }
            }
            let at = (n % 2) as usize;
            while let Err(e) = lanes[at].try_dispatch(cap) {
                assert_eq!(e, DispatchError::Full { in_flight: cap });
                refused += 1;
                // Whichever can: the one that is full may wait for the other.
                let mut ran = false;
                for lane in &mut lanes {
                    if lane.reach() {
                        lane.end();
                        ran = true;
                    }
                }
                assert!(ran, "nothing moves, and it is full");
            }
            most = most.max(lanes[at].queue.in_flight());
        }
        assert!(refused > 0 && most == cap);
        while lanes.iter().any(|lane| lane.queue.in_flight() > 0) {
            for lane in &mut lanes {
                if lane.reach() {
                    lane.end();
                }
            }
        }
        let counted = s.statistics();
        assert_eq!(
            (counted.dispatches, counted.completions),
            (KERNELS, KERNELS)
        );
        lanes.into_iter().for_each(Lane::destroy);
        drop(s);
        rig.is_left_by_all();
    }
}

/// One producer, one completing thread, and a bound: the producer waits outside of everything.
#[test]
fn s32_a_cap_holds_while_completions_come_from_another_thread() {
    const KERNELS: u64 = 20_000;
    const CAP: u64 = 4;
    in_time(|| {
        let s = serializer(&Rig::default());
        let mut queue = s.add_queue().unwrap();
        let (tickets, ends) = mpsc::channel();
        let completing = {
            let s = s.clone();
            thread::spawn(move || {
                for ticket in ends {
                    s.complete(ticket).unwrap();
                }
            })
        };
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let (mut sent, mut refused) = (0, 0_u64);
        while sent < KERNELS {
            match queue.try_dispatch(&mut packets, CAP) {
                Ok(d) => {
                    tickets.send(d.ticket).unwrap();
                    sent += 1;
                }
                Err(DispatchError::Full { in_flight }) => {
                    assert_eq!(in_flight, CAP);
                    refused += 1;
                    thread::sleep(Duration::from_micros(5));
                }
                Err(e) => panic!("{e}"),
            }
        }
        drop(tickets);
        completing.join().unwrap();
        assert!(refused > 0 && queue.in_flight() == 0);
    });
}

#[test]
fn s38_a_queue_at_its_bound_holds_back_no_other() {
    const FAST: u64 = 100_000;
    let s = serializer(&Rig::default());
    let (mut slow, mut fast) = (Lane::new(&s), Lane::new(&s));
    while slow.try_dispatch(7).is_ok() {}
    for _ in 0..FAST {
        fast.try_dispatch(7).unwrap();
        fast.end();
    }
    assert_eq!(
        (slow.queue.in_flight(), s.statistics().completions),
        (7, FAST)
    );
    slow.destroy();
    fast.destroy();
}
