//! A. Transitions, barriers and the life of their signals.

use crate::spy::{Moment, Seat};
use crate::stage::{SEEDS, Threaded, Virtual, bounded, short, toggle};
use harness::Load;
use hsa_serializer::Transition;
use softgpu::{Config, Kernel};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

#[test]
fn s3_a_queue_that_waits_is_granted_after_a_pause_and_its_signals_are_reset() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let (q0, q1) = (v.queue(), v.queue());
        let (goes_on, done) = (v.signal(1), v.signal(2));
        v.rig().enable().unwrap();
        let running = Kernel::until(goes_on).completion(done);
        q0.submit(&[running.packet()]).unwrap();
        v.until(|_| q0.running() == 1);
        q1.submit(&[short(done).packet()]).unwrap();
        v.until(|v| v.seat(&q1) == Seat::Waiting);
        v.rig().disable().unwrap();
        assert_eq!(v.seat(&q1), Seat::Waiting);
        v.store(goes_on, 0);
        v.idle();
        assert_eq!(v.load(done), 0);
        assert_eq!((v.seat(&q0), v.seat(&q1)), (Seat::Idle, Seat::Idle));
        let end = v.finish((q0, q1));
        assert_eq!((end.of().grants, end.of().grants_contended), (2, 1));
    }
}

#[test]
fn s4_completions_after_a_pause_are_delivered() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let (q0, q1) = (v.queue(), v.queue());
        let done = v.signal(4);
        v.rig().enable().unwrap();
        for queue in [&q0, &q1] {
            queue.submit(&[short(done).packet(); 2]).unwrap();
        }
        let some = v.draw(12);
        v.steps(some);
        let under_way = v.load(done) > 0;
        v.rig().disable().unwrap();
        v.idle();
        assert!(under_way);
        assert_eq!(v.load(done), 0);
        let end = v.finish((q0, q1));
        assert_eq!((end.of().dispatches, end.of().completions), (4, 4));
        assert_eq!(end.of().transitions_that_counted, 1);
    }
}

#[test]
fn s9_enabling_three_times_before_any_queue_is_enabling_once() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let changes = [true, true, true].map(|on| toggle(v.rig(), on));
        assert_eq!(changes, [true, false, false]);
        let (q0, q1) = (v.queue(), v.queue());
        let done = v.signal(8);
        for queue in [&q0, &q1] {
            queue.submit(&[short(done).packet(); 2]).unwrap();
        }
        assert!(toggle(v.rig(), false));
        assert!(!toggle(v.rig(), false));
        for queue in [&q0, &q1] {
            queue.submit(&[short(done).packet(); 2]).unwrap();
        }
        v.idle();
        assert_eq!(v.load(done), 0);
        let end = v.finish((q0, q1));
        assert_eq!((end.of().grants, end.of().tags), (4, 2));
        assert_eq!(end.of().transitions, 2);
    }
}

#[test]
fn s14_a_kernel_runs_once_whenever_its_dispatch_is_overtaken_by_a_transition() {
    for moment in [Moment::Entered, Moment::Counted] {
        for seed in SEEDS {
            let mut v = Virtual::new(seed);
            let queues = [v.queue(), v.queue()];
            let done = v.signal(40);
            let (weak, on) = (Arc::downgrade(v.rig()), AtomicBool::new(false));
            // Between the interceptor's entry and the doorbell.
            v.rig().serializer().on_dispatch(move |at, _| {
                if at == moment {
                    toggle(&weak.upgrade().unwrap(), !on.fetch_xor(true, SeqCst));
                }
            });
            for _ in 0..40 {
                let queue = &queues[v.draw(2) as usize];
                queue.submit(&[short(done).packet()]).unwrap();
                let some = v.draw(8);
                v.steps(some);
            }
            v.idle();
            assert_eq!(v.load(done), 0);
            let end = v.finish(queues);
            assert_eq!((end.kernels.started, end.kernels.ended), (40, 40));
            assert_eq!(end.of().transitions, 40);
            assert!(end.of().tags > 0 && end.of().transitions_that_counted > 0);
        }
    }
}

#[test]
fn s14_r1_r2_dispatches_and_completions_race_with_transitions_on_threads() {
    const KERNELS: i64 = 3_000;
    bounded(|| {
        let t = Threaded::new(Config::default());
        let queues = [t.queue(), t.queue(), t.queue()];
        let done = t.signal(KERNELS);
        // A transition gets its chance between entry and count, and between count and doorbell.
        let rig = t.rig().clone();
        rig.serializer().on_dispatch(|_, _| thread::yield_now());
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut on = false;
                while !stop.load(SeqCst) {
                    on = !on;
                    toggle(&rig, on);
                    thread::yield_now();
                }
            });
            let submitters = queues.each_ref().map(|queue| {
                scope.spawn(move || {
                    for _ in 0..KERNELS / 3 {
                        queue.submit(&[short(done).packet()]).unwrap();
                    }
                })
            });
            for submitter in submitters {
                submitter.join().unwrap();
            }
            stop.store(true, SeqCst);
        });
        drop(rig);
        t.idle();
        assert_eq!(t.load(done), 0);
        let end = t.finish(queues);
        assert_eq!(end.kernels.started, KERNELS as u64);
        let stats = end.of();
        assert!(
            stats.transitions_that_counted > 10 && stats.tags > 10,
            "{stats:?}"
        );
        assert!(stats.retired_after_drain > 0, "{stats:?}");
    });
}

#[test]
fn s15_a_kernel_that_was_in_flight_at_the_stop_releases_the_token() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let (q0, q1) = (v.queue(), v.queue());
        let (goes_on, done) = (v.signal(1), v.signal(3));
        v.rig().enable().unwrap();
        q0.submit(&[Kernel::until(goes_on).completion(done).packet()])
            .unwrap();
        v.until(|_| q0.running() == 1);
        q1.submit(&[short(done).packet()]).unwrap();
        v.until(|v| v.seat(&q1) == Seat::Waiting);
        v.rig().disable().unwrap();
        v.rig().serializer().inner().begin_shutdown();
        v.store(goes_on, 0);
        v.idle();
        assert_eq!(v.stats().contenders, 0);
        // What comes after the stop is not serialized and not counted.
        q1.submit(&[short(done).packet()]).unwrap();
        v.idle();
        assert_eq!(v.rig().passed_on(), 1);
        assert_eq!(v.load(done), 0);
        let end = v.finish((q0, q1));
        assert_eq!((end.of().dispatches, end.of().completions), (2, 2));
    }
}

#[test]
fn s20_whatever_was_toggled_before_the_first_queue_the_last_word_counts() {
    for toggles in 0..16_u32 {
        let mut v = Virtual::new(u64::from(toggles));
        let mut on = false;
        for bit in 0..4 {
            let wanted = toggles >> bit & 1 == 1;
            assert_eq!(toggle(v.rig(), wanted), wanted != on);
            on = wanted;
        }
        let queues = [v.queue(), v.queue(), v.queue()];
        let done = v.signal(12);
        for queue in &queues {
            queue
                .submit(&[Kernel::lasting(50_000).completion(done).packet(); 4])
                .unwrap();
        }
        v.idle();
        assert_eq!(v.load(done), 0);
        let end = v.finish(queues);
        assert_eq!(end.of().grants, if on { 12 } else { 0 });
        assert_eq!(end.kernels.most_running == 1, on);
    }
}

fn load(seed: u64, kernels: u64, toggles: u64) -> Load {
    Load {
        kernels,
        toggles,
        seed,
        ..Load::default()
    }
}

#[test]
fn s1_r0_no_handle_is_armed_again_under_a_packet_over_thousands_of_transitions() {
    let mut transitions = 0;
    for seed in 0..6 {
        let run = harness::run_virtual(&load(seed, 1_600, 400), harness::crate_serializer, &|_| {});
        let run = run.unwrap_or_else(|failed| panic!("seed {seed}: {failed}"));
        assert_eq!(run.violations.total(), 0, "{:?}", run.examples);
        assert_eq!(run.untested(true), None, "{run:?}");
        assert_eq!((run.reports.len(), run.passed_on), (0, 0));
        transitions += run.counters.transitions;
    }
    assert!(transitions >= 2_000, "{transitions}");
}

/// The fixture sees the fault: the yardstick, under the same loads, waits for ever for a handle
/// that was recycled.
#[test]
fn s1_r0_the_same_loads_catch_the_eager_yardstick() {
    let mut stale = 0;
    for seed in 0..6 {
        let load = load(seed, 1_600, 400);
        let (waits, run) = match harness::run_virtual(&load, harness::eager_serializer, &|_| {}) {
            Ok(run) => (None, run),
            Err(harness::Failed::Stuck(stuck)) => (Some(stuck.0), stuck.1),
            Err(failed) => panic!("seed {seed}: {failed}"),
        };
        let failed = waits.is_some() || run.violations.stale_packets > 0;
        assert!(failed, "seed {seed}: unnoticed");
        stale += run.violations.stale_packets;
    }
    assert!(
        stale > 0,
        "none of them failed for the reason that is looked for"
    );
}

/// The fixture again: with its fix the yardstick has no stale packet in the same loads.
#[test]
fn s1_r0_the_drained_yardstick_has_no_stale_packet() {
    for seed in 0..6 {
        let load = load(seed, 1_600, 400);
        let run = match harness::run_virtual(&load, harness::drained_serializer, &|_| {}) {
            Ok(run) => run,
            Err(harness::Failed::Stuck(stuck)) => stuck.1,
            Err(failed) => panic!("seed {seed}: {failed}"),
        };
        assert_eq!(
            run.violations.stale_packets, 0,
            "seed {seed}: {:?}",
            run.examples
        );
    }
}

#[test]
fn r3_mixtures_of_kernels_are_all_counted_and_all_waited_for() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let queues = [v.queue(), v.queue(), v.queue()];
        let (done, bad) = (v.signal(1_000), v.signal(1));
        let (mut told, mut on) = (0, false);
        for _ in 0..120 {
            let queue = &queues[v.draw(3) as usize];
            let lasts = Kernel::lasting(v.draw(5_000));
            let kernel = match v.draw(5) {
                0 => lasts,
                1 => lasts.ends(softgpu::Ends::Badly(-7)).completion(bad),
                2 => lasts.barrier().completion(done),
                _ => lasts.completion(done),
            };
            told += i64::from(Kernel::of(&kernel.packet()) == Some(kernel) && is_of(kernel, done));
            queue.submit(&[kernel.packet()]).unwrap();
            if v.draw(4) == 0 {
                on = !on;
                toggle(v.rig(), on);
            }
            let some = v.draw(6);
            v.steps(some);
        }
        v.idle();
        assert_eq!((v.load(done), v.load(bad)), (1_000 - told, -7));
        let end = v.finish(queues);
        let stats = end.of();
        assert_eq!((stats.dispatches, stats.completions), (120, 120));
        assert!(stats.grants > 0 && stats.transitions_that_counted > 0);
    }
}

fn is_of(kernel: Kernel, signal: hsa_sys::hsa_signal_t) -> bool {
    kernel.packet().completion_signal() == signal
}

/// A host that forgets a completion holds up its own agent, and no longer than the queue lives.
#[test]
fn r3_a_kernel_that_is_never_reported_holds_nobody_up_once_its_queue_is_gone() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let (q0, q1) = (v.queue(), v.queue());
        let done = v.signal(1);
        let forgotten = AtomicU64::new(0);
        v.gpu().faults().change(|plan| plan.handlers_dead = true);
        q0.submit(&[Kernel::lasting(10).packet()]).unwrap();
        v.until(|_| q0.read_index() == 1 && q0.running() == 0);
        forgotten.fetch_add(v.rig().in_flight() as u64, SeqCst);
        v.rig().enable().unwrap();
        q1.submit(&[short(done).packet()]).unwrap();
        assert!(v.waits().is_some(), "the transition counts the kernel");
        assert_eq!(v.load(done), 1);
        v.rig().destroy_queue(&q0).unwrap();
        v.gpu().faults().change(|plan| plan.handlers_dead = false);
        v.idle();
        assert_eq!((v.load(done), forgotten.into_inner()), (0, 1));
        assert_eq!(v.finish((q0, q1)).of().transitions_that_counted, 1);
    }
}

/// One that comes while another has the lock waits for it, and is not turned away.
#[test]
fn s14_two_transitions_at_once_come_one_after_the_other() {
    let v = Virtual::new(1);
    let (serializer, (says, said)) = (v.serializer().downgrade(), mpsc::channel());
    let second = Mutex::new(Some(says));
    let (between, waits) = mpsc::channel();
    // A barrier that counts nothing is cleared under the lock.
    v.spy().on_write(move |_, _| {
        let Some(says) = second.lock().unwrap().take() else {
            return;
        };
        let serializer = serializer.upgrade().unwrap();
        let (begins, begun) = mpsc::channel();
        thread::spawn(move || {
            begins.send(()).unwrap();
            let second = serializer.disable();
            // Not the last handle: that is for the test to drop.
            drop(serializer);
            says.send(second).unwrap();
        });
        begun.recv_timeout(Duration::from_secs(60)).unwrap();
        thread::sleep(Duration::from_millis(100));
        between.send(()).unwrap();
    });
    v.rig().enable().unwrap();
    waits.try_recv().expect("nothing was stored");
    let second = said.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(second, Ok(Transition::Changed { waiting_for: 0 }));
    assert_eq!(v.stats().transitions, 2);
    v.finish(());
}
