//! After a stall was released everything is exact again: late completions do no harm, the next
//! transition is right, and there is one token.

use crate::script::everywhere;
use crate::shutdown::finishes;
use crate::spy::Seat;
use crate::stage::{Expect, SEEDS, Threaded, Virtual, bounded, short, toggle};
use crate::stalls::{OVERLAPS, is_exact, stalls, watch};
use hsa_serializer::{Stall, StallPolicy, Stalled};
use softgpu::{Config, Kernel, Queue};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn the_late_completion_of_an_overtaken_kernel_releases_nothing_and_the_next_transition_counts_it() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let queues = [v.queue(), v.queue(), v.queue()];
        let (late, second, done) = (v.signal(1), v.signal(1), v.signal(5));
        v.rig().enable().unwrap();
        let overtaken = Kernel::until(late).completion(done);
        queues[0].submit(&[overtaken.packet()]).unwrap();
        v.until(|v| v.seat(&queues[0]) == Seat::Running);
        let holds = Kernel::until(second).completion(done);
        queues[1].submit(&[holds.packet()]).unwrap();
        v.until(|v| v.seat(&queues[1]) == Seat::Waiting);
        let mut releases = watch(&v, StallPolicy::Release);
        let mut clock = Duration::ZERO;
        assert!(stalls(&mut releases, &mut clock)[0].released);
        v.until(|v| v.seat(&queues[1]) == Seat::Running);
        queues[2].submit(&[short(done).packet()]).unwrap();
        v.until(|v| v.seat(&queues[2]) == Seat::Waiting);
        // It ends while another one holds the token.
        v.store(late, 0);
        assert!(v.waits().is_some());
        assert_eq!(v.load(done), 4);
        assert_eq!(v.seat(&queues[2]), Seat::Waiting, "there is one token");
        assert_eq!(v.seat(&queues[0]), Seat::Idle);
        // The queue that was overtaken is one like any other.
        queues[0].submit(&[short(done).packet()]).unwrap();
        v.until(|v| v.seat(&queues[0]) == Seat::Waiting);
        v.rig().disable().unwrap();
        queues[0].submit(&[short(done).packet()]).unwrap();
        assert!(v.waits().is_some());
        assert_eq!(v.load(done), 4);
        v.store(second, 0);
        v.idle();
        assert_eq!(v.load(done), 0);
        assert_eq!(v.stats().overtaken, 1);
        is_exact(&mut v, &queues);
        drop(releases);
        v.finish_as(OVERLAPS, queues);
    }
}

#[test]
fn an_overtaken_kernel_that_still_runs_is_in_flight_at_the_next_transition() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let queues = [v.queue(), v.queue(), v.queue()];
        let (late, done) = (v.signal(1), v.signal(3));
        v.rig().enable().unwrap();
        queues[0]
            .submit(&[Kernel::until(late).completion(done).packet()])
            .unwrap();
        v.until(|v| v.seat(&queues[0]) == Seat::Running);
        queues[2].submit(&[short(done).packet()]).unwrap();
        v.until(|v| v.seat(&queues[2]) == Seat::Waiting);
        let mut releases = watch(&v, StallPolicy::Release);
        let mut clock = Duration::ZERO;
        assert!(stalls(&mut releases, &mut clock)[0].released);
        v.rig().disable().unwrap();
        queues[1].submit(&[short(done).packet()]).unwrap();
        assert!(v.waits().is_some());
        assert_eq!(v.load(done), 2, "it waits for the one that was overtaken");
        v.store(late, 0);
        v.idle();
        assert_eq!(v.load(done), 0);
        is_exact(&mut v, &queues);
        drop(releases);
        v.finish_as(OVERLAPS, queues);
    }
}

#[test]
fn an_overtaken_queue_that_goes_takes_no_token_along() {
    for seed in SEEDS {
        for (held, inactivated) in [(false, false), (true, false), (true, true)] {
            let mut v = Virtual::new(seed);
            let queues = [v.queue(), v.queue(), v.queue()];
            let (second, done) = (v.signal(i64::from(held)), v.signal(2));
            v.rig().enable().unwrap();
            queues[0].submit(&[Kernel::endless().packet()]).unwrap();
            v.until(|v| v.seat(&queues[0]) == Seat::Running);
            let holds = Kernel::until(second).completion(done);
            queues[1].submit(&[holds.packet()]).unwrap();
            v.until(|v| v.seat(&queues[1]) == Seat::Waiting);
            let mut releases = watch(&v, StallPolicy::Release);
            let mut clock = Duration::ZERO;
            assert!(stalls(&mut releases, &mut clock)[0].released);
            assert!(v.waits().is_some());
            // Somebody else has the token, or nobody.
            assert_eq!(v.stats().contenders, u64::from(held));
            if held {
                queues[2].submit(&[short(done).packet()]).unwrap();
                v.until(|v| v.seat(&queues[2]) == Seat::Waiting);
            }
            if inactivated {
                v.rig().inactivate_queue(&queues[0]).unwrap();
            }
            v.rig().destroy_queue(&queues[0]).unwrap();
            if held {
                assert!(v.waits().is_some());
                assert_eq!(v.seat(&queues[2]), Seat::Waiting, "there is one token");
                v.store(second, 0);
            } else {
                queues[2].submit(&[short(done).packet()]).unwrap();
            }
            v.idle();
            assert_eq!((v.load(done), v.stats().contenders), (0, 0));
            v.rig().disable().unwrap();
            is_exact(&mut v, &queues[1..]);
            drop(releases);
            v.finish_as(OVERLAPS, queues);
        }
    }
}

/// Whatever can be released is, at any moment of a healthy run: it costs exclusiveness and nothing
/// else.
#[test]
fn releasing_at_any_moment_loses_exclusiveness_and_nothing_else() {
    let (mut forced, mut overtaken) = (0, 0);
    everywhere(|mut script| {
        let policy = StallPolicy::Release;
        let mut releases = script.v.serializer().watch_stalls(Duration::ZERO, policy);
        for n in 0.. {
            let stalls = releases.check_stalls(Duration::ZERO);
            for stall in &stalls {
                names_what_is_there(&script.v, &script.queues, stall);
            }
            if !stalls.iter().any(|stall| stall.released) {
                break;
            }
            assert!(n < 20, "{stalls:?}");
        }
        drop(releases);
        script.rest();
        script.assert_done();
        is_exact(&mut script.v, &script.queues);
        let stats = script.v.stats();
        forced += stats.forced;
        overtaken += stats.overtaken;
        let overlaps = stats.forced + stats.overtaken > 0;
        finishes(&mut script.v);
        script.end(Expect {
            misuse: 0,
            overlaps,
        });
    });
    assert!(forced > 50 && overtaken > 50, "{forced} {overtaken}");
}

fn names_what_is_there(v: &Virtual, queues: &[Queue], stall: &Stall) {
    let ids: Vec<_> = queues.iter().map(|queue| v.id(queue)).collect();
    match &stall.what {
        Stalled::Holder { queue, waiting, .. } => {
            assert!(ids.contains(queue) && !waiting.contains(queue), "{stall}");
        }
        Stalled::Barrier {
            waits_for,
            holds_back,
            ..
        } => {
            assert!(!waits_for.is_empty(), "an armed one waits: {stall}");
            assert!(waits_for.iter().all(|w| w.completed < w.until), "{stall}");
            assert!(waits_for.iter().all(|w| ids.contains(&w.queue)), "{stall}");
            assert!(holds_back.iter().all(|(id, _)| ids.contains(id)), "{stall}");
        }
        what => panic!("{what:?}"),
    }
}

/// Programs that deadlock, one after the other, with a watch on a thread of its own.
#[test]
fn on_threads_a_watch_gets_every_program_through() {
    bounded(|| {
        const ROUNDS: i64 = 60;
        let t = Threaded::new(Config::default());
        let queues = [t.queue(), t.queue()];
        let done = t.signal(2 * ROUNDS);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let policy = StallPolicy::Release;
                let after = Duration::from_millis(3);
                let (mut watch, start) =
                    (t.serializer().watch_stalls(after, policy), Instant::now());
                let mut released = 0;
                while !stop.load(SeqCst) {
                    let stalls = watch.check_stalls(start.elapsed());
                    released += stalls.iter().filter(|stall| stall.released).count();
                    thread::sleep(Duration::from_millis(1));
                }
                released as u64
            });
            for round in 0..ROUNDS {
                let written = t.signal(1);
                let writes = short(done).writes(written, 0).packet();
                queues[0]
                    .submit(&[Kernel::until(written).completion(done).packet()])
                    .unwrap();
                t.until(|_| queues[0].running() == 1);
                toggle(t.rig(), round % 2 == 0);
                queues[1].submit(&[writes]).unwrap();
                t.until(|t| t.load(done) <= 2 * (ROUNDS - 1 - round));
            }
            stop.store(true, SeqCst);
            let released = watcher.join().unwrap();
            let stats = t.stats();
            assert_eq!(stats.forced + stats.overtaken, released);
            assert!(released >= ROUNDS as u64, "{stats:?}");
        });
        t.idle();
        t.finish_as(OVERLAPS, queues);
    });
}
