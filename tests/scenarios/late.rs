//! C, D. Completions and handlers that come when their queue is on its way out, or gone.

use crate::spy::Seat;
use crate::stage::{SEEDS, Threaded, Virtual, bounded, short, toggle};
use softgpu::{Config, Kernel};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

#[test]
fn s66_s69_late_handlers_of_queues_that_are_gone_are_harmless_and_destroy_nothing_twice() {
    let (mut late, mut repeated) = (0, 0);
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        v.gpu().faults().change(|plan| {
            plan.handler_twice = 0.3;
            plan.handler_late = 0.3;
            plan.late_by = 50_000;
            plan.handler_after_destroy = 0.5;
        });
        let done = v.signal(1_000);
        let mut queues = vec![v.queue(), v.queue(), v.queue()];
        for n in 0..40 {
            toggle(v.rig(), n % 4 < 2);
            for queue in &queues {
                queue.submit(&[short(done).packet(); 2]).unwrap();
            }
            let some = v.draw(30);
            v.steps(some);
            let dies = v.draw(3) as usize;
            if n % 3 == 0 {
                v.rig().inactivate_queue(&queues[dies]).unwrap();
            }
            v.rig().destroy_queue(&queues[dies]).unwrap();
            queues[dies] = v.queue();
        }
        v.idle();
        late += v.gpu().handlers().late;
        repeated += v.gpu().handlers().repeated;
        let end = v.finish(queues);
        assert!(end.signals.recycled > 0);
        assert_eq!(end.of().queues_gone, 43);
    }
    assert!(late > 0 && repeated > 0);
}

#[test]
fn s69_of_two_teardowns_at_once_one_counts() {
    bounded(|| {
        let t = Threaded::new(Config::default());
        let mut gone = 0;
        for n in 0..300 {
            toggle(t.rig(), n % 2 == 0);
            let queue = t.queue();
            queue
                .submit(&[Kernel::lasting(20_000).packet(); 3])
                .unwrap();
            thread::scope(|scope| {
                let both = [(); 2].map(|()| scope.spawn(|| t.rig().destroy_queue(&queue).is_ok()));
                for one in both {
                    gone += u64::from(one.join().unwrap());
                }
            });
        }
        t.idle();
        assert_eq!(gone, 300);
        assert_eq!(t.finish(()).of().queues_gone, 300);
    });
}

/// The completer has made its queue idle and is about to store 0 to `ready` when the queue is
/// removed, which stores -1: that must not be overwritten.
#[test]
fn s69_a_completion_does_not_take_back_the_last_call_of_a_removed_queues_handler() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let (q0, q1) = (v.queue(), v.queue());
        let done = v.signal(2);
        v.rig().enable().unwrap();
        q0.submit(&[short(done).packet()]).unwrap();
        v.until(|v| v.seat(&q0) == Seat::Running);
        let rig = v.rig().clone();
        let runtime = rig.serializer().inner().runtime();
        let (ready, block) = runtime.seat_signals(rig.id_of(&q0).unwrap());
        let (weak, dies, once) = (Arc::downgrade(&rig), q0.clone(), AtomicBool::new(true));
        runtime.on_write(move |signal, value| {
            if (signal, value) == (ready, 0) && once.swap(false, SeqCst) {
                let (rig, dies) = (weak.upgrade().unwrap(), dies.clone());
                let removes = thread::spawn(move || rig.destroy_queue(&dies).unwrap());
                removes.join().unwrap();
            }
        });
        v.until(|v| v.load(done) == 1);
        runtime.on_write(|_, _| {});
        drop(rig);
        assert_eq!(v.stats().queues_gone, 1);
        q1.submit(&[short(done).packet()]).unwrap();
        v.idle();
        v.rig().serializer().inner().collect();
        let signals = v.gpu().signals();
        assert!(!signals.is_alive(block));
        assert!(!signals.is_alive(ready), "its handler was never called");
        assert_eq!(v.load(done), 0);
        v.finish((q0, q1));
    }
}

/// A removal that passes the token on, and meanwhile a late call of the removed queue's handler,
/// which takes the `ready` signal along: the removal must not store to it afterwards.
#[test]
fn s66_a_late_call_within_a_removal_leaves_it_no_signal_to_touch() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let (q0, q1) = (v.queue(), v.queue());
        let done = v.signal(1);
        v.rig().enable().unwrap();
        q0.submit(&[Kernel::endless().packet()]).unwrap();
        v.until(|_| q0.running() == 1);
        q1.submit(&[short(done).packet()]).unwrap();
        v.until(|v| v.seat(&q1) == Seat::Waiting);
        let rig = v.rig().clone();
        let serializer = rig.serializer().inner();
        let runtime = serializer.runtime();
        let (id, next) = (rig.id_of(&q0).unwrap(), rig.id_of(&q1).unwrap());
        let (_, block) = runtime.seat_signals(next);
        let weak = Arc::downgrade(&rig);
        runtime.on_write(move |signal, _| {
            if signal == block {
                let rig = weak.upgrade().unwrap();
                let late = thread::spawn(move || rig.serializer().inner().ready(id).keep());
                assert!(!late.join().unwrap(), "the queue is removed");
            }
        });
        rig.destroy_queue(&q0).unwrap();
        runtime.on_write(|_, _| {});
        drop(rig);
        v.idle();
        assert_eq!(v.load(done), 0);
        let end = v.finish((q0, q1));
        assert_eq!(end.of().grants_contended, 1);
    }
}
