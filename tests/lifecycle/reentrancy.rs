//! What may be called from where, as the guide to integrating says: from an interceptor, a handler, a
//! method of the runtime, a barrier's callback.

use crate::script::everywhere;
use crate::shutdown::finishes;
use crate::spy::Moment;
use crate::stage::{Expect, Rig, Threaded, Virtual, bounded, short, toggle};
use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{
    BarrierSet, Domain, Handler, MAX_PACKETS, Mode, Outcome, Serializer, StallPolicy, Ticket,
};
use hsa_sys::{AqlPacket, SignalCondition};
use softgpu::{Config, Kernel, Queue, QueueState};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What a call within a callback has at hand.
struct At<'a> {
    rig: &'a Rig,
    /// A queue that the callback may destroy.
    other: &'a Queue,
    /// Kernels of a queue without a GPU that are in flight.
    tickets: &'a Mutex<Vec<Ticket>>,
}

impl At<'_> {
    fn serializer(&self) -> &Serializer<crate::spy::Spy> {
        self.rig.serializer().inner()
    }
}

type Call = (&'static str, fn(&At));

/// What an interceptor may call, whatever queue it is of.
const IN_AN_INTERCEPTOR: [Call; 9] = [
    ("mode", |at| {
        let _ = at.serializer().mode();
    }),
    ("complete", |at| {
        if let Some(ticket) = at.tickets.lock().unwrap().pop() {
            at.serializer().complete(ticket).unwrap();
        }
    }),
    ("ready", |at| {
        if let Some(id) = at.rig.id_of(at.other) {
            assert_eq!(at.serializer().ready(id), Handler::Keep);
        }
    }),
    ("queue_destroyed", |at| {
        if at.other.state() == QueueState::Active {
            at.rig.destroy_queue(at.other).unwrap();
        }
    }),
    ("enable", |at| drop(at.rig.enable())),
    ("disable", |at| drop(at.rig.disable())),
    ("cut", |at| drop(at.serializer().cut().unwrap())),
    ("begin_shutdown", |at| at.serializer().begin_shutdown()),
    ("release_all", |at| at.serializer().release_all()),
];

/// What only a handler, or a thread of the host's own, may call besides.
const IN_A_HANDLER: [Call; 7] = [
    ("add_queue and its whole life", |at| {
        let Ok(mut queue) = at.serializer().add_queue() else {
            return;
        };
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        if let Ok(dispatch) = queue.dispatch(&mut packets) {
            dispatch.ticket.abandon();
        }
        at.serializer().queue_destroyed(queue.id()).unwrap();
    }),
    ("collect", |at| at.serializer().collect()),
    ("statistics", |at| {
        let _ = at.serializer().statistics();
    }),
    ("check_stalls", |at| {
        let policy = StallPolicy::Report;
        let mut watch = at.serializer().watch_stalls(Duration::ZERO, policy);
        let _ = watch.check_stalls(Duration::ZERO);
    }),
    ("try_finish_shutdown", |at| {
        let _ = at.serializer().try_finish_shutdown();
    }),
    ("a handle dropped", |at| drop(at.serializer().clone())),
    ("debug", |at| {
        assert!(!format!("{:?}", at.serializer()).is_empty());
    }),
];

/// A queue without a GPU, whose kernels end when somebody says so.
fn phantom(
    v: &Virtual,
) -> (
    hsa_serializer::Queue<crate::spy::Spy>,
    Arc<Mutex<Vec<Ticket>>>,
) {
    let mut queue = v.serializer().add_queue().unwrap();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let tickets = (0..4).map(|_| queue.dispatch(&mut packets).unwrap().ticket);
    let tickets = Arc::new(Mutex::new(tickets.collect()));
    (queue, tickets)
}

/// The end of a scenario in which anything may have been called.
fn ends(
    mut v: Virtual,
    queues: [Queue; 3],
    half: hsa_serializer::Queue<crate::spy::Spy>,
    released: bool,
) {
    v.idle();
    assert_eq!(v.rig().serializer().in_flight(), []);
    let _ = v.serializer().queue_destroyed(half.id());
    finishes(&mut v);
    drop(half);
    // What is passed on, or let through all at once, may run beside anything.
    let overlaps = v.rig().passed_on() > 0 || released;
    v.finish_as(
        Expect {
            misuse: 0,
            overlaps,
        },
        queues,
    );
}

#[test]
fn s14_s42_an_interceptor_may_call_what_it_may_call() {
    for (name, call) in IN_AN_INTERCEPTOR {
        for moment in [Moment::Entered, Moment::Counted] {
            for seed in 0..25 {
                println!("{name}, {moment:?}, seed {seed}");
                let mut v = Virtual::with(Config {
                    signals: 512,
                    ..Config::seed(seed)
                });
                let queues = [v.queue(), v.queue(), v.queue()];
                let (half, tickets) = phantom(&v);
                toggle(v.rig(), seed % 2 == 0);
                let done = v.signal(14);
                let (weak, calls) = (Arc::downgrade(v.rig()), AtomicU64::new(0));
                let (other, kernels) = (queues[2].clone(), tickets.clone());
                let other_id = v.id(&other);
                let nth = v.draw(7) + 2;
                v.rig().serializer().on_dispatch(move |at, id| {
                    if at != moment || id == other_id || calls.fetch_add(1, SeqCst) != nth {
                        return;
                    }
                    let rig = weak.upgrade().unwrap();
                    call(&At {
                        rig: &rig,
                        other: &other,
                        tickets: &kernels,
                    });
                });
                for n in 0..14 {
                    if n == 7 {
                        let _ = v.rig().disable();
                    }
                    let _ = queues[n % 3].submit(&[short(done).packet()]);
                    let some = v.draw(8);
                    v.steps(some);
                }
                v.rig().serializer().on_dispatch(|_, _| {});
                for ticket in tickets.lock().unwrap().drain(..) {
                    v.serializer().complete(ticket).unwrap();
                }
                v.idle();
                if name != "queue_destroyed" {
                    assert_eq!(v.load(done), 0);
                }
                ends(v, queues, half, name == "release_all");
            }
        }
    }
}

#[test]
fn s42_a_handler_may_call_everything_that_does_not_wait() {
    for (name, call) in IN_AN_INTERCEPTOR.into_iter().chain(IN_A_HANDLER) {
        for seed in 0..25 {
            println!("{name}, seed {seed}");
            let mut v = Virtual::with(Config {
                signals: 512,
                ..Config::seed(seed)
            });
            let queues = [v.queue(), v.queue(), v.queue()];
            let (half, tickets) = phantom(&v);
            toggle(v.rig(), seed % 2 == 0);
            let (app, done) = (v.signal(1), v.signal(13));
            let (weak, other) = (Arc::downgrade(v.rig()), queues[2].clone());
            let kernels = tickets.clone();
            let handler = move |_| {
                let rig = weak.upgrade().unwrap();
                call(&At {
                    rig: &rig,
                    other: &other,
                    tickets: &kernels,
                });
                false
            };
            let (signals, below) = (v.gpu().signals().clone(), SignalCondition::Lt);
            signals.on_signal(app, below, 1, Box::new(handler)).unwrap();
            let nth = v.draw(10) as usize;
            for n in 0..14 {
                if n == 7 {
                    let _ = v.rig().disable();
                }
                let tells = if n == nth { app } else { done };
                let _ = queues[n % 2].submit(&[short(tells).packet()]);
                let some = v.draw(8);
                v.steps(some);
            }
            // The kernels that tell the handler are behind those without a GPU.
            while let Some(ticket) = tickets.lock().unwrap().pop() {
                v.serializer().complete(ticket).unwrap();
            }
            v.idle();
            assert_eq!((v.load(app), v.load(done)), (0, 0), "{name}");
            ends(v, queues, half, name == "release_all");
        }
    }
}

/// The handlers' thread does all of it while other threads do the same: nobody waits for anybody.
#[test]
fn s42_on_threads_handlers_and_applications_call_everything_at_once() {
    bounded(|| {
        let t = Threaded::new(Config {
            handler_threads: 2,
            ..Config::default()
        });
        let queues = [t.queue(), t.queue(), t.queue()];
        let calls: Vec<Call> = IN_AN_INTERCEPTOR.into_iter().chain(IN_A_HANDLER).collect();
        // Not what ends it all.
        let goes_on = |call: &Call| {
            let ends = ["begin_shutdown", "release_all", "try_finish_shutdown"];
            !ends.contains(&call.0) && call.0 != "queue_destroyed"
        };
        let calls: Vec<Call> = calls.into_iter().filter(goes_on).collect();
        let signals = t.gpu().signals().clone();
        let called = Arc::new(AtomicU64::new(0));
        thread::scope(|scope| {
            for (n, queue) in queues.iter().enumerate() {
                let (t, calls, signals, called) = (&t, &calls, &signals, &called);
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(n as u64);
                    let none = Arc::new(Mutex::new(Vec::new()));
                    for _ in 0..200 {
                        let app = t.signal(1);
                        let (in_handler, here) = (rng.choice(calls), rng.choice(calls));
                        let (in_handler, here) = (in_handler.unwrap().1, here.unwrap().1);
                        let (weak, other) = (Arc::downgrade(t.rig()), queue.clone());
                        let (called, kernels) = (called.clone(), none.clone());
                        let handler = move |_| {
                            let rig = weak.upgrade().unwrap();
                            in_handler(&At {
                                rig: &rig,
                                other: &other,
                                tickets: &kernels,
                            });
                            called.fetch_add(1, SeqCst);
                            false
                        };
                        let below = SignalCondition::Lt;
                        signals.on_signal(app, below, 1, Box::new(handler)).unwrap();
                        queue
                            .submit(&[Kernel::lasting(2_000).completion(app).packet()])
                            .unwrap();
                        here(&At {
                            rig: t.rig(),
                            other: queue,
                            tickets: &none,
                        });
                        while t.rig().in_flight() > 30 {
                            thread::yield_now();
                        }
                    }
                });
            }
        });
        t.idle();
        assert_eq!(called.load(SeqCst), 600);
        t.finish(queues);
    });
}

/// `mode` and `leave` within every call of the runtime's, the one after the other.
#[test]
fn s72_left_within_any_call_of_the_runtimes_nothing_more_is_called() {
    let (mut left, mut calls) = (0, 0);
    for nth in 0.. {
        let mut script = crate::script::Script::new(nth);
        let record = script.v.spy().record().clone();
        let serializer = Arc::new(Mutex::new(Some(script.v.serializer().clone())));
        let seen = Arc::new(AtomicU64::new(0));
        let hook = {
            let (record, serializer, seen) = (record.clone(), serializer.clone(), seen.clone());
            move || {
                let handle = serializer.lock().unwrap();
                let Some(serializer) = &*handle else { return };
                let _ = serializer.mode();
                if seen.fetch_add(1, SeqCst) == nth {
                    serializer.leave();
                    record.ends();
                }
            }
        };
        let writes = hook.clone();
        script.v.spy().on_write(move |_, _| writes());
        let creates = hook.clone();
        script.v.spy().on_create(move |_| creates());
        script.v.spy().on_report(move |_| hook());
        while record.late().is_empty() && seen.load(SeqCst) <= nth && script.moves_on() {}
        let has_left = seen.load(SeqCst) > nth;
        // What the host does afterwards does nothing.
        let _ = script.v.serializer().enable();
        for queue in &script.queues {
            script.v.rig().destroy_queue(queue).unwrap();
        }
        script.v.steps(100);
        calls = seen.load(SeqCst);
        let last = serializer.lock().unwrap().take();
        drop((last, script));
        assert!(
            !has_left || record.late().is_empty(),
            "call {nth}: {:?}",
            record.late()
        );
        if !has_left {
            break;
        }
        left += 1;
    }
    assert!(left > 30, "{left} of {calls}");
}

#[test]
fn s67_the_mode_may_be_asked_within_every_call_of_the_runtimes() {
    everywhere(|mut script| {
        let weak = script.v.serializer().downgrade();
        let kept = Mutex::new(weak.upgrade());
        let asks = Arc::new(move || {
            if let Some(serializer) = &*kept.lock().unwrap() {
                assert!(matches!(serializer.mode(), Mode::Enabled | Mode::Disabled));
            }
        });
        let (writes, creates) = (asks.clone(), asks);
        script.v.spy().on_write(move |_, _| writes());
        script.v.spy().on_create(move |_| creates());
        script.rest();
        script.assert_done();
        script.v.spy().on_write(|_, _| {});
        script.v.spy().on_create(|_| {});
        script.end(Expect::default());
    });
}

type SetCall = (&'static str, fn(&BarrierSet<Host>));

const IN_A_CALLBACK: [SetCall; 6] = [
    ("arm", |set| drop(set.arm(|_| {}).unwrap())),
    ("add_queue and its whole life", |set| {
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let mut queue = set.add_queue().unwrap();
        let dispatch = queue.dispatch(&mut packets).unwrap();
        if dispatch.packets == 0 {
            set.complete(dispatch.ticket).unwrap();
        } else {
            dispatch.ticket.abandon();
        }
        set.queue_destroyed(queue.id()).unwrap();
    }),
    ("collect", BarrierSet::collect),
    ("statistics", |set| {
        let _ = set.statistics();
    }),
    ("debug", |set| assert!(!format!("{set:?}").is_empty())),
    ("a handle dropped", |set| drop(set.clone())),
];

/// A barrier's callback calls each of these; it ends by a completion, by the death of its queue, at
/// once, and by being superseded.
#[test]
fn s42_a_barriers_callback_may_call_everything() {
    for (name, call) in IN_A_CALLBACK {
        for ends_by in 0..4 {
            let host = Host::default();
            let builder = Serializer::<Host>::builder().domain(Domain::new());
            let set = BarrierSet::with(builder, host.clone());
            let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
            let mut queue = set.add_queue().unwrap();
            let ticket = (ends_by != 2).then(|| queue.dispatch(&mut packets).unwrap().ticket);
            let outcomes = Arc::new(Mutex::new(Vec::new()));
            let (told, used) = (outcomes.clone(), set.clone());
            let barrier = set
                .arm(move |outcome| {
                    call(&used);
                    told.lock().unwrap().push(outcome);
                })
                .unwrap();
            let expected = match ends_by {
                0 | 2 => Outcome::Cleared,
                1 => {
                    set.queue_destroyed(queue.id()).unwrap();
                    Outcome::Cleared
                }
                _ => {
                    drop(set.arm(|_| {}).unwrap());
                    Outcome::Superseded
                }
            };
            if let Some(ticket) = ticket {
                set.complete(ticket).unwrap();
            }
            assert_eq!(*outcomes.lock().unwrap(), [expected], "{name}, {ends_by}");
            assert!(barrier.is_safe_to_destroy(), "{name}, {ends_by}");
            drop((barrier, queue, set));
            assert_eq!(host.live_signals(), 0, "{name}, {ends_by}");
            assert_eq!(host.reports(), []);
        }
    }
}
