//! Whichever handle goes last, and whoever was pinned when the others went: every signal is destroyed.

#[path = "lifecycle/pinned.rs"]
mod pinned;

use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{
    AqlPacket, BarrierSet, Domain, Handler, MAX_PACKETS, Queue, Serializer, StallPolicy,
};
use pinned::Pinned;
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

/// Lives; without the last handle's care some of them left their signals.
const LIVES: usize = 3_000;

fn serializer(host: &Host) -> Serializer<Host> {
    Serializer::<Host>::builder()
        .domain(Domain::new())
        .build(host.clone())
}

fn run_one(serializer: &Serializer<Host>, queue: &mut Queue<Host>) {
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let dispatch = queue.dispatch(&mut packets).unwrap();
    drop(serializer.cut().unwrap());
    serializer.complete(dispatch.ticket).unwrap();
}

fn destroyed(serializer: &Serializer<Host>, queue: &Queue<Host>) {
    serializer.queue_destroyed(queue.id()).unwrap();
    assert_eq!(serializer.ready(queue.id()), Handler::Drop);
}

/// The handles go at the same moment, one of them after a call in which its thread was pinned.
fn race(last: impl FnOnce(&Barrier) + Send, others: impl FnOnce(&Barrier)) {
    let start = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| last(&start));
        others(&start);
    });
}

/// After each of many lives nothing is left of what it had.
#[track_caller]
fn leaves_nothing(life: impl Fn(&Host)) {
    let leave = (0..LIVES).filter(|_| {
        let host = Host::default();
        life(&host);
        host.live_signals() != 0
    });
    assert_eq!(leave.count(), 0, "of {LIVES} lives");
}

#[test]
fn a_watch_for_stalls() {
    leaves_nothing(|host| {
        let serializer = serializer(host);
        let mut queue = serializer.add_queue().unwrap();
        let mut watch = serializer.watch_stalls(Duration::from_secs(9), StallPolicy::Report);
        race(
            |start| {
                start.wait();
                for _ in 0..3 {
                    assert!(watch.check_stalls(Duration::ZERO).is_empty());
                }
                drop(watch);
            },
            |start| {
                run_one(&serializer, &mut queue);
                start.wait();
                run_one(&serializer, &mut queue);
                destroyed(&serializer, &queue);
                drop((queue, serializer));
            },
        );
    });
}

#[test]
fn a_cut() {
    leaves_nothing(|host| {
        let serializer = serializer(host);
        let mut queue = serializer.add_queue().unwrap();
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let dispatch = queue.dispatch(&mut packets).unwrap();
        let cut = serializer.cut().unwrap();
        race(
            |start| {
                start.wait();
                let _ = cut.withdraw();
            },
            |start| {
                start.wait();
                serializer.complete(dispatch.ticket).unwrap();
                destroyed(&serializer, &queue);
                drop((queue, serializer));
            },
        );
    });
}

#[test]
fn a_queues_dispatching_half() {
    leaves_nothing(|host| {
        let serializer = serializer(host);
        let mut queue = serializer.add_queue().unwrap();
        race(
            |start| {
                start.wait();
                drop(queue.gap(&mut [AqlPacket::INVALID; MAX_PACKETS]));
                drop(queue);
            },
            |start| {
                serializer.enable().unwrap();
                start.wait();
                serializer.disable().unwrap();
                drop(serializer);
            },
        );
    });
}

#[test]
fn a_barrier_of_a_set() {
    leaves_nothing(|host| {
        let builder = Serializer::<Host>::builder().domain(Domain::new());
        let set = BarrierSet::with(builder, host.clone());
        let mut queue = set.add_queue().unwrap();
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let before = queue.dispatch(&mut packets).unwrap();
        let barrier = set.arm(drop).unwrap();
        let behind = queue.dispatch(&mut packets).unwrap();
        let id = queue.id();
        race(
            |start| {
                start.wait();
                let _ = barrier.drain_queue(id);
                drop(barrier);
            },
            |start| {
                set.complete(before.ticket).unwrap();
                start.wait();
                set.complete(behind.ticket).unwrap();
                set.queue_destroyed(id).unwrap();
                drop((queue, set));
            },
        );
    });
}

/// What can't be reclaimed is left to others: the last handle goes all the same.
#[test]
fn somebody_who_stays_pinned_is_not_waited_for() {
    let host = Host::default();
    let domain = Domain::new();
    let serializer = Serializer::<Host>::builder()
        .domain(domain.clone())
        .build(host.clone());
    let pinned = Pinned::new(&domain);
    for _ in 0..20 {
        serializer.enable().unwrap();
        serializer.disable().unwrap();
    }
    let (gone, goes) = mpsc::channel();
    thread::spawn(move || {
        drop(serializer);
        gone.send(()).unwrap();
    });
    goes.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(host.live_signals() > 0);
    drop(pinned);
}
