//! The child of a fork: its copies reach nobody and wait for nobody, and the parent goes on.

use crate::busy::Busy;
use crate::child::{Exit, forked, in_child};
use crate::guarded::Guarded;
use crate::pinned::Pinned;
use hsa_serializer::{
    AddQueueError, BarrierSet, Domain, GapError, Handler, MAX_PACKETS, Serializer, StallPolicy,
    Ticket, TransitionError,
};
use hsa_sys::AqlPacket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

const SOON: Duration = Duration::from_millis(100);

const EXITS: [Exit; 2] = [Exit::Normally, Exit::AtOnce];

type Call = fn(&mut Busy);

/// Each call that a child may make.
const CALLS: [(&str, Call); 19] = [
    ("nothing", |_| {}),
    ("mode", |busy| {
        let _ = busy.serializer.mode();
    }),
    ("enable", |busy| {
        assert_eq!(busy.serializer.enable(), Err(TransitionError::ShutDown));
    }),
    ("disable", |busy| {
        assert_eq!(busy.serializer.disable(), Err(TransitionError::ShutDown));
    }),
    ("add_queue", |busy| {
        let added = busy.serializer.add_queue().map(|queue| queue.id());
        assert_eq!(added, Err(AddQueueError::ShutDown));
    }),
    ("begin_shutdown", |busy| busy.serializer.begin_shutdown()),
    ("try_finish_shutdown", |busy| {
        assert_eq!(busy.serializer.try_finish_shutdown(), Ok(()));
    }),
    ("finish_shutdown", |busy| {
        assert_eq!(busy.serializer.finish_shutdown(SOON), Ok(()));
    }),
    ("release_all", |busy| busy.serializer.release_all()),
    ("leave", |busy| busy.serializer.leave()),
    ("statistics", |busy| {
        assert!(busy.serializer.statistics().transitions >= 2);
    }),
    ("collect", |busy| busy.serializer.collect()),
    ("drain", |busy| drop(busy.serializer.drain(SOON))),
    ("debug", |busy| {
        let text = format!("{:?} {:?}", busy.serializer, busy.queues);
        assert!(!text.is_empty());
    }),
    ("ready", |busy| {
        for id in busy.ids() {
            assert_eq!(busy.serializer.ready(id), Handler::Drop);
        }
    }),
    ("complete, queue_destroyed", |busy| {
        for ticket in busy.first.drain(..) {
            drop(busy.serializer.complete(ticket));
        }
        for id in busy.ids() {
            let _ = busy.serializer.queue_destroyed(id);
        }
    }),
    ("misuse", |busy| {
        let nobodys = Ticket::from_raw([7, 7]);
        let error = busy.serializer.complete(nobodys).unwrap_err();
        let _ = error.ticket.into_raw();
    }),
    ("dispatch, gap", |busy| {
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        for queue in &mut busy.queues {
            if let Ok(dispatch) = queue.dispatch(&mut packets) {
                dispatch.ticket.abandon();
            }
            let gap = queue.gap(&mut packets);
            assert!(matches!(gap, Err(GapError::Dispatch(_))), "{gap:?}");
        }
    }),
    ("check_stalls", |busy| {
        let mut watch = busy
            .serializer
            .watch_stalls(Duration::ZERO, StallPolicy::Release);
        for n in 0..3 {
            let _ = watch.check_stalls(Duration::from_secs(n));
        }
    }),
];

/// Makes each call in a forked child of its own, and then all of them in one.
fn each_call_in_a_fork(busy: Busy) -> Busy {
    let mut busy = Some(busy);
    for exit in EXITS {
        for (name, call) in CALLS {
            println!("{name}, {exit:?}");
            // What the closure owns is the child's copy; the parent's goes on.
            let copy = &mut busy;
            forked(exit, || {
                let mut busy = copy.take().unwrap();
                call(&mut busy);
                drop(busy);
            });
        }
        println!("everything, {exit:?}");
        let copy = &mut busy;
        forked(exit, || {
            let mut busy = copy.take().unwrap();
            for (_, call) in CALLS {
                call(&mut busy);
            }
            drop(busy);
        });
    }
    busy.unwrap()
}

#[test]
fn s72_a_forked_child_may_call_anything_and_nothing_happens() {
    in_child(
        s72_a_forked_child_may_call_anything_and_nothing_happens,
        || {
            for domain in [Domain::new(), Domain::process()] {
                each_call_in_a_fork(Busy::new(domain)).end();
            }
        },
    );
}

/// A thread that is not in the child holds the transition lock, and is pinned.
#[test]
fn s72_a_child_forked_while_another_thread_holds_the_transition_lock_does_not_hang() {
    in_child(
        s72_a_child_forked_while_another_thread_holds_the_transition_lock_does_not_hang,
        || {
            let mut busy = Busy::new(Domain::new());
            // With nothing in flight, a transition stores under its lock.
            for ticket in busy.first.drain(..) {
                busy.serializer.complete(ticket).unwrap();
            }
            for id in busy.ids() {
                busy.serializer.queue_destroyed(id).unwrap();
                assert_eq!(busy.serializer.ready(id), Handler::Drop);
            }
            let toggles = busy.serializer.clone();
            let runtime = busy.serializer.runtime();
            runtime.stores_stay.store(true, SeqCst);
            let toggler = thread::spawn(move || toggles.enable().unwrap());
            while runtime.storing.load(SeqCst) == 0 {
                thread::yield_now();
            }
            let mut busy = each_call_in_a_fork(busy);
            busy.serializer.runtime().stores_stay.store(false, SeqCst);
            toggler.join().unwrap();
            busy.queues.clear();
            busy.end();
        },
    );
}

/// What was retired and is held back by a pin is not run in a child, whose copy of that pin never
/// ends.
#[test]
fn s80_a_child_forked_with_garbage_and_a_pin_drops_both() {
    in_child(s80_a_child_forked_with_garbage_and_a_pin_drops_both, || {
        let domain = Domain::new();
        let busy = Busy::new(domain.clone());
        let pinned = Pinned::new(&domain);
        for _ in 0..50 {
            busy.serializer.enable().unwrap();
            busy.serializer.disable().unwrap();
        }
        assert!(domain.pending() > 50);
        let busy = each_call_in_a_fork(busy);
        drop(pinned);
        busy.end();
    });
}

#[test]
fn s72_children_forked_again_and_again_while_other_threads_do_everything() {
    in_child(
        s72_children_forked_again_and_again_while_other_threads_do_everything,
        || {
            let busy = Busy::new(Domain::new());
            let serializer = busy.serializer.clone();
            let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
            let mut kept = Some(busy);
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        while !stop.load(SeqCst) {
                            serializer.enable().unwrap();
                            serializer.disable().unwrap();
                            done.fetch_add(1, SeqCst);
                        }
                    });
                }
                scope.spawn(|| {
                    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
                    while !stop.load(SeqCst) {
                        let mut queue = serializer.add_queue().unwrap();
                        for _ in 0..20 {
                            let dispatch = queue.dispatch(&mut packets).unwrap();
                            dispatch.ticket.abandon();
                        }
                        serializer.queue_destroyed(queue.id()).unwrap();
                        assert_eq!(serializer.ready(queue.id()), Handler::Drop);
                    }
                });
                for round in 0..150 {
                    let copy = &mut kept;
                    forked(EXITS[round % 2], || {
                        let mut busy = copy.take().unwrap();
                        for (_, call) in &CALLS[round % CALLS.len()..] {
                            call(&mut busy);
                        }
                        drop(busy);
                    });
                }
                stop.store(true, SeqCst);
            });
            assert!(done.load(SeqCst) > 100);
            drop(serializer);
            kept.unwrap().end();
        },
    );
}

#[test]
fn s72_what_a_child_makes_itself_is_its_own() {
    in_child(s72_what_a_child_makes_itself_is_its_own, || {
        let busy = Busy::new(Domain::process());
        let pinned = Pinned::new(&Domain::process());
        for exit in EXITS {
            forked(exit, || {
                let own = Busy::new(Domain::new());
                own.end();
                // And its children are children again.
                let own = Busy::new(Domain::new());
                forked(exit, || {
                    own.serializer.release_all();
                    assert_eq!(own.serializer.finish_shutdown(SOON), Ok(()));
                });
            });
        }
        drop(pinned);
        busy.end();
    });
}

#[test]
fn s72_a_forked_childs_barrier_sets_are_left_as_well() {
    in_child(s72_a_forked_childs_barrier_sets_are_left_as_well, || {
        let set = BarrierSet::with(
            Serializer::<Guarded>::builder().domain(Domain::new()),
            Guarded::new(),
        );
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let mut queue = set.add_queue().unwrap();
        let before = queue.dispatch(&mut packets).unwrap();
        let barrier = set.arm(|_| {}).unwrap();
        let behind = queue.dispatch(&mut packets).unwrap();
        let (before, behind) = (before.ticket.into_raw(), behind.ticket.into_raw());
        for exit in EXITS {
            let (set, barrier) = (set.clone(), &barrier);
            forked(exit, || {
                let armed = set.arm(|_| {});
                assert_eq!(armed.map(|_| ()), Err(TransitionError::ShutDown));
                for raw in [before, behind] {
                    let ticket = Ticket::from_raw(raw);
                    drop(set.complete(ticket));
                }
                let _ = barrier.drain_queue(queue.id());
                let _ = set.queue_destroyed(queue.id());
                set.collect();
                let _ = set.statistics();
                drop(set);
            });
        }
        for raw in [before, behind] {
            let ticket = Ticket::from_raw(raw);
            set.complete(ticket).unwrap();
        }
        assert!(barrier.is_safe_to_destroy());
        let host = set.runtime().host.clone();
        drop((barrier, queue, set));
        assert_eq!(host.live_signals(), 0);
    });
}
