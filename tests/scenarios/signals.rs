//! D. Signals, failures of the runtime, memory.

use crate::spy::Seat;
use crate::stage::{SEEDS, Virtual, short, toggle};
use crate::token::deep;
use hsa_serializer::Mode;
use softgpu::{Config, Failure, Kernel};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

#[test]
fn s63_a_toggle_that_gets_no_signal_does_not_happen_and_the_application_runs_on() {
    let mut failed = 0;
    for (seed, failure) in SEEDS.zip(
        [Failure::OutOfResources, Failure::NullHandle]
            .iter()
            .cycle(),
    ) {
        let mut v = Virtual::new(seed);
        let queues = [v.queue(), v.queue()];
        let done = v.signal(60);
        let mut on = false;
        for n in 0..60 {
            let queue = &queues[v.draw(2) as usize];
            queue.submit(&[short(done).packet()]).unwrap();
            let some = v.draw(8);
            v.steps(some);
            if n % 2 == 0 {
                v.gpu().faults().fail_next_creates(1, *failure);
                let before = v.gpu().signals().stats().failed;
                let outcome = if on {
                    v.rig().disable()
                } else {
                    v.rig().enable()
                };
                let hit = v.gpu().signals().stats().failed > before;
                v.gpu()
                    .faults()
                    .change(|plan| plan.fail_next_creates = None);
                // Turning off has its signal in reserve.
                assert_eq!((outcome.is_err(), hit), (!on, !on));
                failed += u64::from(hit);
                assert_eq!(v.rig().serializer().inner().mode(), Mode::Disabled);
                on = false;
            } else if n % 4 == 1 {
                on = toggle(v.rig(), true);
            }
        }
        v.idle();
        assert_eq!((v.load(done), v.rig().passed_on()), (0, 0));
        let end = v.finish(queues);
        assert_eq!(end.of().transitions, 30);
    }
    assert!(failed > 500, "{failed}");
}

#[test]
fn s64_a_hundred_thousand_toggles_take_a_bounded_number_of_signals() {
    const TOGGLES: u64 = 100_000;
    let mut v = Virtual::new(1);
    let (q0, q1) = (v.queue(), v.queue());
    let (goes_on, done) = (v.signal(1), v.signal(TOGGLES as i64 / 100));
    let mut long = None;
    for n in 0..TOGGLES {
        // For some thousand toggles at a time a kernel runs all through.
        match n % 10_000 {
            2_000 => {
                v.store(goes_on, 1);
                q0.submit(&[Kernel::until(goes_on).packet()]).unwrap();
                long = Some(n);
            }
            7_000 => {
                v.store(goes_on, 0);
                v.idle();
                long = None;
            }
            _ => {}
        }
        toggle(v.rig(), n % 2 == 0);
        if n % 100 == 99 {
            q1.submit(&[short(done).packet()]).unwrap();
            if long.is_none() {
                v.idle();
            }
        }
    }
    v.idle();
    assert_eq!(v.load(done), 0);
    let end = v.finish((q0, q1));
    let stats = end.of();
    assert_eq!(stats.transitions, TOGGLES);
    assert!(stats.superseded > 10_000, "{stats:?}");
    // 50 epochs with a kernel behind each long one, and what waits to be reclaimed.
    assert!(stats.barriers_live_most <= 52, "{stats:?}");
    assert!(end.signals.most_live_interrupt <= 100, "{:?}", end.signals);
    assert!(end.signals.most_live <= 250, "{:?}", end.signals);
    assert!(end.signals.recycled > TOGGLES / 2);
}

#[test]
fn s65_a_hundred_thousand_completions_may_wait_for_the_host() {
    const KERNELS: usize = 100_000;
    let mut v = Virtual::with(deep(1, KERNELS));
    let (q0, q1) = (v.queue(), v.queue());
    let (old, new) = (v.signal(KERNELS as i64), v.signal(20));
    v.gpu().faults().change(|plan| plan.handlers_dead = true);
    for n in 0..KERNELS / 100 {
        let queue = if n % 2 == 0 { &q0 } else { &q1 };
        queue
            .submit(&[Kernel::lasting(10).completion(old).packet(); 100])
            .unwrap();
    }
    assert!(
        v.waits().is_none(),
        "the GPU is through, and nobody has heard of it"
    );
    assert_eq!(
        (v.load(old), v.rig().in_flight()),
        (KERNELS as i64, KERNELS)
    );
    for n in 0..10 {
        toggle(v.rig(), n % 2 == 0);
        for queue in [&q0, &q1] {
            queue.submit(&[short(new).packet()]).unwrap();
        }
    }
    assert!(v.waits().is_some());
    v.gpu().faults().change(|plan| plan.handlers_dead = false);
    v.idle();
    assert_eq!((v.load(old), v.load(new)), (0, 0));
    let end = v.finish((q0, q1));
    assert_eq!((end.of().tags, end.of().transitions_that_counted), (20, 10));
    assert_eq!(end.of().completions, KERNELS as u64 + 20);
}

#[test]
fn s68_one_completion_signal_and_a_ring_of_one_slot_make_progress() {
    for seed in SEEDS {
        // The queue's `ready`, the application's own, and one for a completion.
        let mut v = Virtual::with(Config {
            interrupt_signals: 3,
            ..Config::seed(seed)
        });
        let (queue, done) = (v.ring(1), v.signal(15));
        for n in 0..6 {
            // What got no signal is passed on, and is the host's own affair: no more than one
            // kernel at a time is under way where somebody toggles.
            let batch = if n % 2 == 0 { 4 } else { 1 };
            queue.submit(&vec![short(done).packet(); batch]).unwrap();
            v.idle();
            toggle(v.rig(), n % 2 == 0);
        }
        assert_eq!((v.load(done), v.rig().passed_on()), (0, 9));
        let end = v.finish(queue);
        assert_eq!((end.of().dispatches, end.of().grants), (6, 3));
    }
}

/// Has a queue's `ready` dealt with on a thread of its own, which stays in the runtime, pinned, while `meanwhile`
/// runs.
fn while_pinned(v: &mut Virtual, queue: &softgpu::Queue, meanwhile: impl FnOnce(&mut Virtual)) {
    let (entered, enters) = mpsc::channel();
    let (goes_on, until) = mpsc::channel();
    let (once, until) = (AtomicBool::new(true), Mutex::new(until));
    v.rig().enable().unwrap();
    queue.submit(&[Kernel::lasting(1).packet()]).unwrap();
    v.gpu().faults().change(|plan| plan.handlers_dead = true);
    v.until(|v| v.seat(queue) == Seat::Reached);
    let rig = v.rig().clone();
    let id = rig.id_of(queue).unwrap();
    let thread = thread::spawn(move || {
        let serializer = rig.serializer().inner();
        let granter = thread::current().id();
        serializer.runtime().on_write(move |_, _| {
            if thread::current().id() == granter && once.swap(false, SeqCst) {
                entered.send(()).unwrap();
                until.lock().unwrap().recv().unwrap();
            }
        });
        assert!(serializer.ready(id).keep());
    });
    enters.recv().unwrap();
    meanwhile(v);
    goes_on.send(()).unwrap();
    thread.join().unwrap();
    v.rig().serializer().inner().runtime().on_write(|_, _| {});
    v.gpu().faults().change(|plan| plan.handlers_dead = false);
    v.idle();
}

const RETIRES: u64 = 100_000;

#[test]
fn s79_what_a_long_pin_holds_back_is_reported_and_goes_when_it_ends() {
    let mut v = Virtual::with(Config {
        signals: 2 * RETIRES as usize,
        ..Config::seed(1)
    });
    let queue = v.queue();
    while_pinned(&mut v, &queue, |v| {
        let before = v.stats();
        for n in 0..RETIRES {
            toggle(v.rig(), n % 2 == 1);
        }
        let stats = v.stats();
        let retired = stats.retired - before.retired;
        assert!(retired >= RETIRES - 2, "{stats:?}");
        assert!(stats.barriers_live <= 2, "{stats:?}");
        assert!(stats.reclaim_pending >= retired, "{stats:?}");
        // Bounded by what was retired.
        let live = v.gpu().signals().stats().live;
        assert!(
            live <= stats.reclaim_pending + 10,
            "{live} signals, {stats:?}"
        );
    });
    let end = v.finish(queue);
    assert_eq!(end.of().transitions, RETIRES + 1);
}

#[test]
fn s79_what_a_long_pin_held_back_does_not_outlive_the_serializer() {
    let mut v = Virtual::new(1);
    let queue = v.queue();
    while_pinned(&mut v, &queue, |v| {
        for n in 0..200 {
            toggle(v.rig(), n % 2 == 1);
        }
    });
    v.rig().destroy_queue(&queue).unwrap();
    v.idle();
    v.gpu().witness().assert_clean();
    let gpu = v.gpu().clone();
    drop((v, queue));
    assert_eq!(
        gpu.signals().stats().live,
        0,
        "signals that nobody destroyed"
    );
}
