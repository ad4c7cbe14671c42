//! Queues that go, at every moment and by thousands; whose place is used again; and that nobody has
//! told the host about yet.

use crate::script::{Script, everywhere};
use crate::shutdown::finishes;
use crate::stage::{Expect, SEEDS, Threaded, Virtual, bounded, short, toggle};
use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{
    Completion, DispatchError, Domain, Handler, MAX_PACKETS, Mode, QueueId, Serializer, Ticket,
};
use hsa_sys::{AqlPacket, SignalCondition, hsa_barrier_and_packet_t};
use softgpu::{Config, Ends, Kernel, QueueConfig, QueueState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// Tickets of the queue that are under way.
fn tickets_of(script: &Script, id: QueueId) -> Vec<[u64; 2]> {
    let under_way = script.v.rig().serializer().under_way();
    let of_it = under_way.into_iter().filter(|raw| raw[0] == id.to_raw());
    of_it.collect()
}

#[test]
fn s41_s66_a_queue_that_goes_at_any_moment_lets_the_others_go_on() {
    for dies in 0..3 {
        for inactivated in [false, true] {
            everywhere(|mut script| {
                let queue = script.queues[dies].clone();
                let id = script.v.id(&queue);
                let lost = tickets_of(&script, id);
                if inactivated {
                    script.v.rig().inactivate_queue(&queue).unwrap();
                    let some = script.v.draw(10);
                    script.v.steps(some);
                }
                script.v.rig().destroy_queue(&queue).unwrap();
                // Its completions come late, each that had not come before.
                let before = script.v.stats();
                for raw in lost {
                    let late = script.v.serializer().complete(Ticket::from_raw(raw));
                    assert_eq!(late.unwrap(), Completion::QueueGone);
                }
                assert_eq!(script.v.stats(), before);
                // The next owner of its place inherits nothing.
                let (next, done) = (script.v.queue(), script.v.signal(2));
                assert_ne!(script.v.id(&next), id);
                next.submit(&[short(done).packet(); 2]).unwrap();
                script.rest();
                assert_eq!(script.v.rig().serializer().in_flight(), []);
                assert_eq!((script.v.load(done), script.v.rig().passed_on()), (0, 0));
                assert_eq!(script.v.serializer().ready(id), Handler::Drop);
                let end = script.end(Expect::default());
                assert_eq!((end.of().queues_gone, end.of().contenders), (4, 0));
            });
        }
    }
}

/// The packet behind the kernel, which tells the application directly.
fn tells(done: hsa_sys::hsa_signal_t) -> AqlPacket {
    let packet = AqlPacket::from(hsa_barrier_and_packet_t::default());
    packet.with_barrier_bit().with_completion_signal(done)
}

#[test]
fn s41_an_application_may_destroy_a_queue_before_the_hosts_handler_has_run() {
    let (mut before, mut after) = (0, 0);
    for seed in 0..200 {
        let mut v = Virtual::new(seed);
        let (dies, stays) = (v.queue(), v.queue());
        let (told, done) = (v.signal(1), v.signal(4));
        toggle(v.rig(), seed % 2 == 0);
        let heard = std::sync::Arc::new(AtomicU64::new(u64::MAX));
        let (weak, queue) = (std::sync::Arc::downgrade(v.rig()), dies.clone());
        let (hears, below) = (heard.clone(), SignalCondition::Lt);
        let destroys = move |_| {
            let rig = weak.upgrade().unwrap();
            hears.store(rig.serializer().under_way().len() as u64, SeqCst);
            rig.destroy_queue(&queue).unwrap();
            false
        };
        let signals = v.gpu().signals().clone();
        signals
            .on_signal(told, below, 1, Box::new(destroys))
            .unwrap();
        dies.submit(&[Kernel::lasting(10).packet(), tells(told)])
            .unwrap();
        v.until(|_| heard.load(SeqCst) != u64::MAX);
        match heard.load(SeqCst) {
            0 => after += 1,
            _ => before += 1,
        }
        v.rig().disable().unwrap();
        stays.submit(&[short(done).packet(); 2]).unwrap();
        v.rig().enable().unwrap();
        stays.submit(&[short(done).packet(); 2]).unwrap();
        v.idle();
        assert_eq!(v.load(done), 0);
        v.finish((dies, stays));
    }
    assert!(before > 20 && after > 20, "{before} {after}");
}

#[test]
fn s46_a_cooperative_queue_created_twice_and_destroyed_once_is_still_tracked() {
    let cooperative = || QueueConfig {
        cooperative: true,
        ..QueueConfig::default()
    };
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let queue = v.queue_with(cooperative());
        let id = v.id(&queue);
        // The runtime gives the same queue again: the host counts it and adds none.
        let same = v.gpu().create_queue(v.gpu().agent(0), cooperative());
        let same = same.unwrap();
        assert_eq!(same.id(), queue.id());
        let (goes_on, done) = (v.signal(1), v.signal(6));
        for one in [&queue, &same] {
            one.submit(&[short(done).packet()]).unwrap();
        }
        v.gpu().destroy_queue(&same).unwrap();
        drop(same);
        // Destroyed once: it runs, it is counted, it is waited for.
        assert_eq!((queue.state(), v.id(&queue)), (QueueState::Active, id));
        queue
            .submit(&[Kernel::until(goes_on).completion(done).packet()])
            .unwrap();
        let other = v.queue();
        v.rig().enable().unwrap();
        assert_eq!(v.stats().transitions_that_counted, 1);
        other.submit(&[short(done).packet()]).unwrap();
        assert!(v.waits().is_some());
        assert_eq!(v.load(done), 4);
        v.store(goes_on, 0);
        queue.submit(&[short(done).packet()]).unwrap();
        v.idle();
        assert_eq!((v.load(done), v.stats().queues), (1, 2));
        assert_eq!(v.stats().dispatches, 5);
        v.rig().destroy_queue(&queue).unwrap();
        assert_eq!(
            (queue.state(), v.stats().queues),
            (QueueState::Destroyed, 1)
        );
        v.idle();
        v.finish((queue, other));
    }
}

#[test]
fn s45_a_fault_in_the_middle_of_a_shutdown_ends_it_none_the_later() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let (q0, q1) = (v.queue(), v.queue());
        let (faults, done) = (v.signal(1), v.signal(1));
        v.rig().enable().unwrap();
        let kernel = Kernel::until(faults).ends(Ends::Fault);
        q0.submit(&[kernel.packet(), Kernel::lasting(5).packet()])
            .unwrap();
        v.until(|_| q0.running() == 1);
        q1.submit(&[short(done).packet()]).unwrap();
        v.serializer().begin_shutdown();
        assert!(v.waits().is_some());
        let left = v.serializer().try_finish_shutdown().unwrap_err();
        assert_eq!(left.queues, [(v.id(&q0), 2), (v.id(&q1), 1)]);
        v.store(faults, 0);
        v.idle();
        assert_eq!((q0.state(), v.load(done)), (QueueState::Faulted, 0));
        finishes(&mut v);
        v.finish((q0, q1));
    }
}

/// The host removes what a shutdown gives up at the same time.
#[test]
fn s41_s47_removed_by_the_host_and_by_the_shutdown_at_once_it_goes_once() {
    bounded(|| {
        for round in 0..150 {
            let t = Threaded::new(Config {
                signals: 1_024,
                ..Config::default()
            });
            let queues = [t.queue(), t.queue()];
            toggle(t.rig(), round % 2 == 0);
            for queue in &queues {
                queue.submit(&[Kernel::lasting(5_000).packet(); 2]).unwrap();
            }
            thread::scope(|scope| {
                for queue in &queues {
                    scope.spawn(|| {
                        thread::sleep(Duration::from_micros(fastrand::u64(..300)));
                        t.rig().destroy_queue(queue).unwrap();
                    });
                }
                let finished = t.serializer().finish_shutdown(Duration::from_secs(20));
                assert_eq!(finished, Ok(()));
            });
            t.spy().record().ends();
            assert_eq!(t.stats().queues_gone, 2);
            t.idle();
            t.finish(queues);
        }
    });
}

/// A queue's life without a GPU. What is behind a barrier, or serialized, never runs.
fn lives(
    s: &Serializer<Host>,
    late: &mpsc::Sender<(QueueId, Vec<Ticket>)>,
    dispatches: u64,
    highest: &AtomicU64,
) {
    let mut queue = s.add_queue().unwrap();
    let id = queue.id();
    let text = id.to_string();
    let place = text["queue ".len()..].split('.').next().unwrap();
    highest.fetch_max(place.parse().unwrap(), SeqCst);
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let (mut runs, mut kept) = (true, Vec::new());
    for n in 0..dispatches {
        let dispatch = queue.dispatch(&mut packets).unwrap();
        runs &= dispatch.packets == 0 && dispatch.ticket.mode() == Mode::Disabled;
        if !runs {
            dispatch.ticket.abandon();
        } else if n % 3 == 2 {
            kept.push(dispatch.ticket);
        } else {
            let counted = s.complete(dispatch.ticket).unwrap();
            assert_eq!(counted, Completion::Counted);
        }
    }
    s.queue_destroyed(id).unwrap();
    assert_eq!(s.ready(id), Handler::Drop);
    late.send((id, kept)).unwrap();
}

#[test]
fn s66_places_are_used_again_by_thousands_while_late_calls_come_for_their_former_owners() {
    const LIVES: u64 = 4_000;
    bounded(|| {
        let host = Host::default();
        let builder = Serializer::<Host>::builder().domain(Domain::new());
        let s = builder.build(host.clone());
        let (highest, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let (late, comes) = mpsc::channel();
        thread::scope(|scope| {
            let (s, highest, stop) = (&s, &highest, &stop);
            let owners = [(); 3].map(|()| {
                let late = late.clone();
                scope.spawn(move || {
                    for n in 0..LIVES {
                        lives(s, &late, n % 7, highest);
                    }
                })
            });
            drop(late);
            scope.spawn(move || {
                // All of it is for queues that have gone, whose places have other owners.
                for (id, tickets) in comes {
                    assert_eq!(s.ready(id), Handler::Drop);
                    assert!(s.queue_destroyed(id).is_err());
                    for ticket in tickets {
                        assert_eq!(s.complete(ticket).unwrap(), Completion::QueueGone);
                    }
                }
            });
            scope.spawn(move || {
                while !stop.load(SeqCst) {
                    s.enable().unwrap();
                    s.disable().unwrap();
                    thread::sleep(Duration::from_micros(50));
                }
            });
            for owner in owners {
                owner.join().unwrap();
            }
            stop.store(true, SeqCst);
        });
        s.disable().unwrap();
        while s.statistics().reclaim_pending > 0 {
            s.collect();
        }
        let stats = s.statistics();
        assert_eq!(
            (stats.queues_added, stats.queues_gone),
            (3 * LIVES, 3 * LIVES)
        );
        assert_eq!((stats.queues, stats.barriers_live, stats.misuse), (0, 0, 0));
        assert_eq!(stats.barriers, stats.reclaimed);
        assert!(stats.transitions > 10 && stats.tags > 0, "{stats:?}");
        // How many places it takes depends on how long threads are interrupted while pinned.
        let used_again = 3 * LIVES - highest.load(SeqCst);
        assert!(
            used_again > 3_000,
            "only {used_again} places were used again"
        );
        drop(s);
        assert_eq!(host.live_signals(), 0);
        assert_eq!(host.reports(), []);
    });
}

const DISPATCHES: u64 = 100_000;

/// So many queues have to be destroyed meanwhile; on a busy machine that takes longer.
const DESTROYED: u64 = 20;

/// Dispatches so often, on a new queue each time that somebody has destroyed the one before.
fn keeps_dispatching(
    s: &Serializer<Host>,
    slot: &Mutex<QueueId>,
    dead: &AtomicBool,
    destroyed: &AtomicU64,
) {
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let mut queue = s.add_queue().unwrap();
    *slot.lock().unwrap() = queue.id();
    let mut completes = true;
    let mut n = 0;
    while n < DISPATCHES || destroyed.load(SeqCst) <= DESTROYED {
        if n % 1_000 == 0 {
            thread::yield_now();
        }
        n += 1;
        match queue.dispatch(&mut packets) {
            Ok(dispatch) => {
                completes &= dispatch.packets == 0 && !dispatch.serialized;
                if completes {
                    s.complete(dispatch.ticket).unwrap();
                } else {
                    dispatch.ticket.abandon();
                }
            }
            Err(e) => assert_eq!(e, DispatchError::QueueGone(queue.id())),
        }
        if dead.load(SeqCst) {
            queue = s.add_queue().unwrap();
            completes = true;
            *slot.lock().unwrap() = queue.id();
            dead.store(false, SeqCst);
        }
    }
    // It may have been destroyed a moment ago.
    let id = *slot.lock().unwrap();
    if s.queue_destroyed(id).is_ok() {
        assert_eq!(s.ready(id), Handler::Drop);
    }
}

#[test]
fn s40_sixteen_threads_dispatch_a_hundred_thousand_times_each_while_their_queues_are_destroyed() {
    bounded(|| {
        let host = Host::default();
        let builder = Serializer::<Host>::builder().domain(Domain::new());
        let s = builder.build(host.clone());
        let none = s.add_queue().unwrap();
        let slots: [_; 16] = std::array::from_fn(|_| Mutex::new(none.id()));
        let dead: [_; 16] = std::array::from_fn(|_| AtomicBool::new(false));
        s.queue_destroyed(none.id()).unwrap();
        assert_eq!(s.ready(none.id()), Handler::Drop);
        drop(none);
        let (stop, destroyed) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            let (s, slots, dead, stop) = (&s, &slots, &dead, &stop);
            let destroyed = &destroyed;
            let threads: [_; 16] = std::array::from_fn(|n| {
                scope.spawn(move || keeps_dispatching(s, &slots[n], &dead[n], destroyed))
            });
            scope.spawn(move || {
                while !stop.load(SeqCst) {
                    s.enable().unwrap();
                    s.disable().unwrap();
                    thread::sleep(Duration::from_millis(1));
                }
            });
            scope.spawn(move || {
                let mut n = 0;
                while !stop.load(SeqCst) {
                    n = (n + 7) % 16;
                    let id = *slots[n].lock().unwrap();
                    if !dead[n].load(SeqCst) && s.queue_destroyed(id).is_ok() {
                        assert_eq!(s.ready(id), Handler::Drop);
                        dead[n].store(true, SeqCst);
                        destroyed.fetch_add(1, SeqCst);
                    }
                    thread::yield_now();
                }
            });
            for thread in threads {
                thread.join().unwrap();
            }
            stop.store(true, SeqCst);
        });
        while s.statistics().reclaim_pending > 0 {
            s.collect();
        }
        let (stats, destroyed) = (s.statistics(), destroyed.load(SeqCst));
        assert!(destroyed > DESTROYED, "{destroyed}, {stats:?}");
        assert_eq!((stats.queues, stats.barriers_live, stats.misuse), (0, 0, 0));
        // What a dead queue's dispatching half still counts is nobody's.
        assert!(stats.dispatches > 8 * DISPATCHES, "{stats:?}");
        drop(s);
        assert_eq!((host.live_signals(), host.reports()), (0, vec![]));
    });
}

/// The handler says Drop and everybody lets go of the queue while a repeated call is between its looks.
#[test]
fn s66_a_repeated_call_that_everybody_overtakes_is_no_misuse() {
    let v = Virtual::new(1);
    let half = v.serializer().add_queue().unwrap();
    let id = half.id();
    let (serializer, half) = (v.serializer().downgrade(), Mutex::new(Some(half)));
    let (ready, _) = v.spy().seat_signals(id);
    v.spy().on_write(move |signal, value| {
        if (signal, value) != (ready, 1) {
            return;
        }
        let Some(half) = half.lock().unwrap().take() else {
            return;
        };
        let serializer = serializer.upgrade().unwrap();
        let goes = thread::spawn(move || {
            serializer.queue_destroyed(id).unwrap();
            // Not through the exchange: the queue is removed.
            assert_eq!(serializer.ready(id), Handler::Drop);
            drop(half);
        });
        goes.join().unwrap();
    });
    assert_eq!(v.serializer().ready(id), Handler::Drop);
    assert_eq!(v.stats().misuse, 0);
    v.finish(());
}
