//! Draining: waiting for what was in flight, for all of it, and for nothing else.

use crate::script::{Script, everywhere};
use crate::spy::Seat;
use crate::stage::{Expect, Threaded, Virtual, bounded, short, toggle};
use hsa_serializer::{Cut, DrainError, MAX_PACKETS, Mode, QueueId, SignalError};
use hsa_sys::AqlPacket;
use softgpu::{Config, Failure, Kernel};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);

/// The cut's kernels that are still under way, by queue.
fn left_of(cut: &HashSet<[u64; 2]>, now: &HashSet<[u64; 2]>) -> Vec<(QueueId, u64)> {
    let mut left = std::collections::BTreeMap::<u64, u64>::new();
    for ticket in cut.intersection(now) {
        *left.entry(ticket[0]).or_default() += 1;
    }
    let named = left.into_iter().map(|(id, n)| (QueueId::from_raw(id), n));
    named.collect()
}

fn says(cut: &Cut<crate::spy::Spy>) -> Vec<(QueueId, u64)> {
    let mut said = cut.in_flight();
    said.sort_by_key(|(id, _)| id.to_raw());
    said
}

#[test]
fn s17_a_cut_at_any_moment_counts_what_was_in_flight_and_nothing_later() {
    let mut counted = 0;
    everywhere(|mut script| {
        let hooked = |script: &Script| script.v.rig().serializer().under_way();
        let before = hooked(&script);
        let mode = script.v.serializer().mode();
        let cut = script.v.serializer().cut().unwrap();
        assert_eq!(script.v.serializer().mode(), mode, "the mode is kept");
        loop {
            // After every single step, whatever is dispatched meanwhile.
            let left = left_of(&before, &hooked(&script));
            assert_eq!(says(&cut), left);
            counted += left.len();
            if !script.moves_on() {
                break;
            }
        }
        assert_eq!(says(&cut), []);
        script.assert_done();
        drop(cut);
        script.end(Expect::default());
    });
    assert!(counted > 0);
}

#[test]
fn s17_two_cuts_wait_for_their_own() {
    let mut v = Virtual::new(1);
    let queue = v.queue();
    let (first, second) = (v.signal(1), v.signal(1));
    let id = v.id(&queue);
    queue.submit(&[Kernel::until(first).packet()]).unwrap();
    let one = v.serializer().cut().unwrap();
    queue.submit(&[Kernel::until(second).packet()]).unwrap();
    let two = v.serializer().cut().unwrap();
    queue.submit(&[Kernel::lasting(5).packet()]).unwrap();
    assert!(v.waits().is_some());
    assert_eq!((says(&one), says(&two)), (vec![(id, 1)], vec![(id, 2)]));
    v.store(first, 0);
    assert!(v.waits().is_some());
    assert_eq!((says(&one), says(&two)), (vec![], vec![(id, 1)]));
    v.store(second, 0);
    v.idle();
    assert_eq!((says(&one), says(&two)), (vec![], vec![]));
    drop((one, two));
    v.finish(queue);
}

#[test]
fn s17_a_drain_ends_while_the_application_dispatches_for_ever() {
    bounded(|| {
        let t = Threaded::new(Config::default());
        let queues = [t.queue(), t.queue(), t.queue()];
        let (stop, submitted) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            for queue in &queues {
                scope.spawn(|| {
                    while !stop.load(SeqCst) {
                        queue
                            .submit(&[Kernel::lasting(20_000).packet(); 2])
                            .unwrap();
                        submitted.fetch_add(2, SeqCst);
                        // There is always something in flight.
                        while t.rig().in_flight() > 30 && !stop.load(SeqCst) {
                            thread::yield_now();
                        }
                    }
                });
            }
            let mut during = 0;
            for round in 0..100 {
                toggle(t.rig(), round % 2 == 0);
                while t.rig().in_flight() < 10 {
                    thread::yield_now();
                }
                let before = submitted.load(SeqCst);
                assert_eq!(t.serializer().drain(LONG), Ok(()));
                during += submitted.load(SeqCst) - before;
            }
            stop.store(true, SeqCst);
            assert!(during > 100, "{during}");
        });
        t.idle();
        let end = t.finish(queues);
        assert!(end.of().transitions_that_counted > 100, "{:?}", end.of());
    });
}

/// The drain that most hosts want: off, and everything that ran serialized heard of.
#[test]
fn s17_s70_when_a_drain_has_returned_no_callback_of_that_time_is_still_to_come() {
    bounded(|| {
        let t = Threaded::new(Config {
            handler_threads: 2,
            ..Config::default()
        });
        let queues = [t.queue(), t.queue(), t.queue()];
        for _ in 0..200 {
            toggle(t.rig(), true);
            for queue in &queues {
                queue.submit(&[Kernel::lasting(3_000).packet(); 3]).unwrap();
            }
            toggle(t.rig(), false);
            assert_eq!(t.serializer().drain(LONG), Ok(()));
            // All were handed back before it returned.
            assert_eq!(t.rig().serializer().in_flight(), []);
            let (grants, calls) = (t.stats().grants, t.stats().completions);
            assert_eq!(grants, calls, "each was granted and completed");
            thread::sleep(Duration::from_micros(fastrand::u64(..300)));
            assert_eq!((t.stats().grants, t.stats().completions), (grants, calls));
        }
        t.idle();
        t.finish(queues);
    });
}

#[test]
fn s18_on_time_out_a_drain_says_who_is_stuck() {
    bounded(|| {
        let t = Threaded::new(Config::default());
        let queues = [t.queue(), t.queue(), t.queue()];
        let done = t.signal(6);
        let endless = Kernel::endless().packet();
        queues[0].submit(&[short(done).packet(); 2]).unwrap();
        queues[1].submit(&[endless, endless]).unwrap();
        t.until(|t| t.load(done) == 4 && queues[1].running() == 2);
        let stuck = vec![(t.id(&queues[1]), 2)];
        for on in [false, true] {
            toggle(t.rig(), on);
            let since = Instant::now();
            let timeout = Duration::from_millis(30);
            let error = t.serializer().drain(timeout).unwrap_err();
            assert!(since.elapsed() >= timeout && since.elapsed() < LONG);
            assert_eq!(error, DrainError::TimedOut(stuck.clone()));
            let text = error.to_string();
            assert!(text.contains(&format!("2 of {}", stuck[0].0)), "{text}");
        }
        // What was dispatched behind it waits; it is not lost, and nobody waits under a lock.
        for queue in [&queues[0], &queues[2]] {
            queue.submit(&[short(done).packet(); 2]).unwrap();
        }
        thread::scope(|scope| {
            let drains = scope.spawn(|| t.serializer().drain(LONG));
            thread::sleep(Duration::from_millis(5));
            let since = Instant::now();
            t.rig().disable().unwrap();
            t.rig().enable().unwrap();
            let added = t.queue();
            t.rig().destroy_queue(&added).unwrap();
            assert!(t.serializer().statistics().transitions >= 4);
            assert!(since.elapsed() < LONG && !drains.is_finished());
            t.rig().destroy_queue(&queues[1]).unwrap();
            assert_eq!(drains.join().unwrap(), Ok(()));
        });
        assert_eq!(t.load(done), 0);
        t.idle();
        t.finish(queues);
    });
}

/// A kernel in flight needs a later one: a cut deadlocks the program, and withdrawing it does not.
#[test]
fn s18_a_cut_that_is_withdrawn_lets_later_work_go() {
    for on in [false, true] {
        let mut v = Virtual::new(1);
        let (q0, q1) = (v.queue(), v.queue());
        let (later, done) = (v.signal(1), v.signal(1));
        q0.submit(&[Kernel::until(later).packet()]).unwrap();
        let drained = v.serializer().drain(Duration::ZERO);
        assert_eq!(drained, Err(DrainError::TimedOut(vec![(v.id(&q0), 1)])));
        let cut = v.serializer().cut().unwrap();
        q1.submit(&[Kernel::lasting(5).completion(later).packet()])
            .unwrap();
        q1.submit(&[short(done).packet()]).unwrap();
        assert!(v.waits().is_some());
        if on {
            // What it held back is a transition's affair now.
            v.rig().enable().unwrap();
            q0.submit(&[Kernel::lasting(5).packet()]).unwrap();
        }
        assert!(cut.withdraw());
        v.idle();
        assert_eq!((v.load(later), v.load(done)), (0, 0));
        assert!(v.stats().forced > 0, "it is counted");
        v.finish((q0, q1));
    }
}

#[test]
fn s18_withdrawing_a_cut_takes_nothing_from_a_transition() {
    let mut v = Virtual::new(1);
    let (q0, q1) = (v.queue(), v.queue());
    let (late, done) = (v.signal(1), v.signal(1));
    q0.submit(&[Kernel::until(late).packet()]).unwrap();
    let ended = v.serializer().cut().unwrap();
    v.rig().enable().unwrap();
    q1.submit(&[short(done).packet()]).unwrap();
    assert!(!ended.withdraw(), "the transition has superseded it");
    assert!(v.waits().is_some());
    assert_eq!(v.load(done), 1);
    let ended = v.serializer().cut().unwrap();
    v.store(late, 0);
    v.idle();
    assert_eq!(v.load(done), 0);
    assert!(!ended.withdraw(), "it has cleared");
    assert_eq!(v.stats().forced, 0);
    v.serializer().release_all();
    let ended = v.serializer().cut().unwrap();
    assert!(!ended.withdraw(), "nothing waits for it");
    v.finish((q0, q1));
}

#[test]
fn s18_a_queue_that_goes_is_not_waited_for() {
    let mut v = Virtual::new(1);
    let (q0, q1) = (v.queue(), v.queue());
    for queue in [&q0, &q1] {
        queue.submit(&[Kernel::endless().packet()]).unwrap();
    }
    let cut = v.serializer().cut().unwrap();
    v.rig().destroy_queue(&q0).unwrap();
    assert_eq!(says(&cut), [(v.id(&q1), 1)]);
    v.rig().inactivate_queue(&q1).unwrap();
    assert_eq!(says(&cut), []);
    drop(cut);
    v.idle();
    v.finish((q0, q1));
}

#[test]
fn s63_a_cut_that_gets_no_signal_does_nothing() {
    for failure in [Failure::OutOfResources, Failure::NullHandle] {
        for on in [false, true] {
            let mut v = Virtual::new(1);
            let queue = v.queue();
            let done = v.signal(4);
            toggle(v.rig(), on);
            queue.submit(&[short(done).packet(); 2]).unwrap();
            let (before, live) = (v.stats(), v.gpu().signals().stats().live);
            v.gpu().faults().fail_next_creates(1, failure);
            let error = v.serializer().drain(LONG).unwrap_err();
            match failure {
                Failure::NullHandle => {
                    assert_eq!(error, DrainError::Signal(SignalError::NullHandle));
                }
                Failure::OutOfResources => {
                    assert!(matches!(error, DrainError::Signal(SignalError::Status(_))));
                }
            }
            assert_eq!(v.stats(), before);
            assert_eq!(v.gpu().signals().stats().live, live);
            let mode = if on { Mode::Enabled } else { Mode::Disabled };
            assert_eq!(v.serializer().mode(), mode);
            queue.submit(&[short(done).packet(); 2]).unwrap();
            v.idle();
            assert_eq!(v.load(done), 0);
            // The next one can be had.
            assert_eq!(v.serializer().drain(LONG), Ok(()));
            v.finish(queue);
        }
    }
}

#[test]
fn s70_with_nothing_in_flight_a_drain_returns_at_once() {
    let v = Virtual::new(1);
    assert_eq!(v.serializer().drain(Duration::ZERO), Ok(()));
    let queue = v.queue();
    for on in [true, false] {
        toggle(v.rig(), on);
        assert_eq!(v.serializer().drain(Duration::ZERO), Ok(()));
    }
    v.finish(queue);
}

#[test]
fn s64_ten_thousand_cuts_take_a_bounded_number_of_signals() {
    const ROUNDS: u64 = 10_000;
    for on in [false, true] {
        let mut v = Virtual::new(1);
        let (q0, q1) = (v.queue(), v.queue());
        let (goes_on, done) = (v.signal(1), v.signal(ROUNDS as i64 / 100));
        toggle(v.rig(), on);
        q0.submit(&[Kernel::until(goes_on).packet()]).unwrap();
        for n in 0..ROUNDS {
            drop(v.serializer().cut().unwrap());
            if n % 100 == 99 {
                q1.submit(&[short(done).packet()]).unwrap();
                v.steps(10);
            }
        }
        assert_eq!(v.load(done), ROUNDS as i64 / 100, "all behind the first");
        v.store(goes_on, 0);
        v.idle();
        assert_eq!(v.load(done), 0);
        let end = v.finish((q0, q1));
        // One for each epoch with a kernel that waits, and what waits to be reclaimed.
        assert!(
            end.of().barriers_live_most <= ROUNDS / 100 + 2,
            "{:?}",
            end.of()
        );
        assert!(end.signals.most_live < 500, "{:?}", end.signals);
    }
}

/// A superseded barrier stays in the list as long as a queue that dies, and is not settled yet, names
/// it. Older ones that are armed must not be forced in its name.
#[test]
fn s18_a_cut_that_a_dying_queue_still_names_is_not_withdrawn_once_it_is_superseded() {
    let mut v = Virtual::new(1);
    let queues = [(); 3].map(|()| v.queue());
    let [dies, waits, late] = &queues;
    let done = v.signal(2);
    v.rig().enable().unwrap();
    dies.submit(&[Kernel::endless().packet()]).unwrap();
    v.until(|_| dies.running() == 1);
    waits.submit(&[short(done).packet()]).unwrap();
    v.until(|v| v.seat(waits) == Seat::Waiting);
    // Armed, and of an epoch that was dispatched in: no transition supersedes it.
    v.rig().disable().unwrap();
    late.submit(&[short(done).packet()]).unwrap();
    let cut = Mutex::new(Some(v.serializer().cut().unwrap()));
    let (_, block) = v.spy().seat_signals(v.id(waits));
    let (serializer, withdrawn) = (v.serializer().downgrade(), Arc::new(OnceLock::new()));
    let said = withdrawn.clone();
    v.spy().on_write(move |signal, value| {
        // The queue is dead, gives the token on, and is settled after that.
        if (signal, value) != (block, 0) {
            return;
        }
        let cut = cut.lock().unwrap().take().unwrap();
        let serializer = serializer.upgrade().unwrap();
        let between = thread::spawn(move || {
            serializer.enable().unwrap();
            cut.withdraw()
        });
        said.set(between.join().unwrap()).unwrap();
    });
    v.rig().destroy_queue(dies).unwrap();
    assert_eq!(
        withdrawn.get(),
        Some(&false),
        "the transition holds all back"
    );
    assert_eq!((v.stats().forced, v.stats().superseded), (0, 1));
    v.idle();
    assert_eq!(v.load(done), 0);
    v.finish(queues);
}

/// Its barrier was cleared by force, and the last tag has drained; a queue still has to reach its count.
#[test]
fn s18_a_withdrawn_cuts_barrier_stays_as_long_as_a_queue_names_it() {
    let v = Virtual::new(1);
    let mut halves = [(); 2].map(|()| v.serializer().add_queue().unwrap());
    let mut dispatch = |n: usize| {
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        halves[n].dispatch(&mut packets).unwrap().ticket
    };
    let before = dispatch(0);
    let cut = v.serializer().cut().unwrap();
    let behind = dispatch(1);
    assert!(cut.withdraw());
    v.serializer().complete(behind).unwrap();
    assert_eq!(v.stats().retired, 0);
    v.serializer().complete(before).unwrap();
    assert_eq!((v.stats().retired, v.stats().retired_after_drain), (1, 0));
    for half in halves {
        v.serializer().queue_destroyed(half.id()).unwrap();
    }
    v.finish(());
}
