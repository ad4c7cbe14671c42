//! C. Queues that come and go.

use crate::spy::{Moment, Seat};
use crate::stage::{Rig, SEEDS, Threaded, Virtual, bounded, short, toggle};
use softgpu::{Config, Ends, Kernel, Queue, QueueConfig, QueueState};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn s40_a_queue_may_be_destroyed_within_its_own_dispatch() {
    for moment in [Moment::Entered, Moment::Counted] {
        for seed in SEEDS {
            let mut v = Virtual::new(seed);
            let (q0, q1) = (v.queue(), v.queue());
            let (goes_on, done) = (v.signal(1), v.signal(2));
            q0.submit(&[Kernel::until(goes_on).packet()]).unwrap();
            v.until(|_| q0.running() == 1);
            let on = seed % 2 == 0;
            toggle(v.rig(), true);
            toggle(v.rig(), on);
            let (weak, dies) = (Arc::downgrade(v.rig()), q1.clone());
            let its_id = v.rig().id_of(&q1);
            v.rig().serializer().on_dispatch(move |at, id| {
                if at == moment && Some(id) == its_id && dies.state() == QueueState::Active {
                    weak.upgrade().unwrap().destroy_queue(&dies).unwrap();
                }
            });
            q1.submit(&[short(done).packet(); 2]).unwrap();
            assert_eq!(q1.state(), QueueState::Destroyed);
            assert!(q1.submit(&[short(done).packet()]).is_err());
            let q2 = v.queue();
            q2.submit(&[short(done).packet(); 2]).unwrap();
            v.store(goes_on, 0);
            v.idle();
            assert_eq!(v.load(done), 0, "those of the third queue");
            v.rig().serializer().on_dispatch(|_, _| {});
            assert!(q1.dropped() > 0);
            assert_eq!(v.finish((q0, q1, q2)).of().queues_gone, 3);
        }
    }
}

/// Submits to a queue until it is destroyed, then to a new one.
fn resubmits(rig: &Rig, slot: &Mutex<Queue>, stop: &AtomicBool) {
    while !stop.load(SeqCst) {
        let queue = slot.lock().unwrap().clone();
        let kernel = Kernel::lasting(2_000).packet();
        if queue.submit(&[kernel]).is_err() {
            let new = rig.create_queue(QueueConfig::default()).unwrap();
            *slot.lock().unwrap() = new;
        }
        while rig.in_flight() > 200 && !stop.load(SeqCst) {
            thread::sleep(Duration::from_micros(100));
        }
    }
}

#[test]
fn s40_r5_sixteen_threads_dispatch_while_their_queues_are_destroyed_and_somebody_toggles() {
    bounded(|| {
        let t = Threaded::new(Config::default());
        let inside = Arc::new(AtomicUsize::new(0));
        let entered = inside.clone();
        t.rig()
            .serializer()
            .on_dispatch(move |moment, _| match moment {
                Moment::Entered => {
                    entered.fetch_add(1, SeqCst);
                    thread::yield_now();
                }
                Moment::Counted => {
                    entered.fetch_sub(1, SeqCst);
                }
            });
        let slots: Vec<_> = (0..16).map(|_| Mutex::new(t.queue())).collect();
        let (stop, met, destroyed) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        let end = Instant::now() + Duration::from_secs(3);
        thread::scope(|scope| {
            for slot in &slots {
                let (rig, stop) = (t.rig(), &stop);
                scope.spawn(move || resubmits(rig, slot, stop));
            }
            scope.spawn(|| {
                for n in 0_u64.. {
                    if stop.load(SeqCst) {
                        break;
                    }
                    toggle(t.rig(), n % 2 == 0);
                    thread::sleep(Duration::from_micros(200));
                }
            });
            for n in 0.. {
                if Instant::now() > end {
                    break;
                }
                let queue = slots[n % 16].lock().unwrap().clone();
                met.fetch_add(inside.load(SeqCst) as u64, SeqCst);
                destroyed.fetch_add(u64::from(t.rig().destroy_queue(&queue).is_ok()), SeqCst);
                thread::sleep(Duration::from_micros(300));
            }
            stop.store(true, SeqCst);
        });
        t.idle();
        assert_eq!(t.gpu().signals().stats().failed, 0);
        let end = t.finish(slots);
        assert!(met.into_inner() > 0 && destroyed.into_inner() > 100);
        let stats = end.of();
        assert!(stats.transitions > 10 && stats.tags > 0, "{stats:?}");
        assert!(end.signals.recycled > 0);
    });
}

#[test]
fn s41_r4_r6_a_queue_destroyed_in_any_state_lets_the_others_go_on() {
    let mut seen: HashMap<Seat, u64> = HashMap::new();
    for state in [
        Seat::Idle,
        Seat::Reached,
        Seat::Waiting,
        Seat::Granted,
        Seat::Running,
    ] {
        for seed in SEEDS {
            let mut v = Virtual::new(seed);
            let queues = [v.queue(), v.queue(), v.queue()];
            let (done, lost) = (v.signal(12), v.signal(6));
            let never = v.signal(1);
            v.rig().enable().unwrap();
            if state == Seat::Idle {
                // It never gets to its kernel.
                queues[1].submit(&[crate::token::and(&[never])]).unwrap();
            }
            for _ in 0..6 {
                queues[0].submit(&[short(done).packet()]).unwrap();
                queues[1].submit(&[short(lost).packet()]).unwrap();
                queues[2].submit(&[short(done).packet()]).unwrap();
            }
            v.until(|v| v.seat(&queues[1]) == state && v.load(done) < 12 || v.load(lost) == 0);
            if v.load(lost) == 0 {
                v.finish(queues);
                continue;
            }
            *seen.entry(state).or_default() += 1;
            let paused = seed % 2 == 0;
            if paused {
                v.rig().disable().unwrap();
            }
            v.rig().destroy_queue(&queues[1]).unwrap();
            v.idle();
            assert_eq!(v.load(done), 0);
            assert!(v.load(lost) > 0 && queues[1].dropped() > 0 || state == Seat::Running);
            let end = v.finish(queues);
            assert_eq!((end.of().queues_gone, end.of().contenders), (3, 0));
        }
    }
    assert_eq!(seen.len(), 5, "{seen:?}");
}

#[test]
fn s42_the_last_reference_may_go_on_the_handlers_thread() {
    for on in [false, true] {
        bounded(move || {
            let gpu = softgpu::ThreadedGpu::new(Config::default());
            let signals = gpu.signals().clone();
            let rig = harness::Profiler::new(gpu.gpu(), gpu.agent(0), crate::stage::make);
            let queue = rig.create_queue(QueueConfig::default()).unwrap();
            toggle(&rig, on);
            let app = signals.create(1, softgpu::SignalKind::Interrupt).unwrap();
            queue
                .submit(&[Kernel::lasting(1_000_000).completion(app).packet()])
                .unwrap();
            let (gone, mut last) = (Arc::new(AtomicBool::new(false)), Some((rig, queue)));
            let went = gone.clone();
            let handler = move |_| {
                let (rig, queue) = last.take().unwrap();
                rig.destroy_queue(&queue).unwrap();
                drop((queue, rig));
                went.store(true, SeqCst);
                false
            };
            let below = hsa_sys::SignalCondition::Lt;
            signals.on_signal(app, below, 1, Box::new(handler)).unwrap();
            while !gone.load(SeqCst) || signals.stats().live > 1 {
                thread::sleep(Duration::from_millis(1));
            }
            gpu.witness().assert_clean();
            signals.destroy(app).unwrap();
            gpu.finish();
        });
    }
}

#[test]
fn s45_a_fault_takes_the_dead_queues_tag_along_and_no_other() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let queues = [v.queue(), v.queue(), v.queue(), v.queue()];
        let (long, faults) = (v.signal(1), v.signal(1));
        let (old, new) = (v.signal(1), v.signal(3));
        queues[0]
            .submit(&[Kernel::until(long).completion(old).packet()])
            .unwrap();
        queues[1]
            .submit(&[Kernel::until(faults).ends(Ends::Fault).packet()])
            .unwrap();
        v.until(|_| queues[..2].iter().all(|queue| queue.running() == 1));
        v.rig().enable().unwrap();
        for queue in &queues[1..] {
            queue.submit(&[short(new).packet()]).unwrap();
        }
        assert_eq!(v.stats().tags, 3);
        v.store(faults, 0);
        assert!(
            v.waits().is_some(),
            "the barrier stays armed for the first queue"
        );
        assert_eq!(queues[1].state(), QueueState::Faulted);
        let stats = v.stats();
        assert_eq!((stats.queues_gone, stats.barriers_live), (1, 1));
        assert_eq!((v.load(old), v.load(new)), (1, 3));
        v.store(long, 0);
        // Of the tags left, each keeps the barrier until its own queue is through.
        v.until(|v| v.load(new) == 2);
        assert_eq!(v.stats().barriers_live, 1);
        v.idle();
        assert_eq!((v.load(old), v.load(new)), (0, 1));
        assert_eq!(v.stats().retired_after_drain, 1);
        v.finish(queues);
    }
}

#[test]
fn s47_destroying_a_queue_after_the_end_is_a_success_and_does_nothing() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let (q0, q1) = (v.queue(), v.queue());
        let done = v.signal(2);
        v.rig().enable().unwrap();
        for queue in [&q0, &q1] {
            queue.submit(&[short(done).packet()]).unwrap();
        }
        let some = v.draw(12);
        v.steps(some);
        let serializer = v.rig().serializer().inner().clone();
        serializer.begin_shutdown();
        v.idle();
        let id = v.rig().id_of(&q0).unwrap();
        v.rig().destroy_queue(&q0).unwrap();
        // It is gone already, and nobody is to blame: a shutdown gives queues up by itself.
        assert_eq!(serializer.queue_destroyed(id), Ok(()));
        assert!(v.rig().destroy_queue(&q0).is_err());
        drop(serializer);
        assert_eq!(v.load(done), 0);
        assert_eq!(v.finish((q0, q1)).of().queues_gone, 2);
    }
}

#[test]
fn s60_recycled_queues_inherit_nothing_and_a_queue_made_in_between_waits_like_all() {
    let mut recycled = 0;
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let q0 = v.queue();
        let (goes_on, done) = (v.signal(1), v.signal(24));
        let mut handles = Vec::new();
        for n in 0..12 {
            let old = v.queue();
            handles.push(old.handle());
            old.submit(&[Kernel::endless().packet()]).unwrap();
            v.until(|_| old.running() == 1);
            toggle(v.rig(), n % 2 == 0);
            v.rig().destroy_queue(&old).unwrap();
            // The place, the handle and the signals of the one that went.
            let new = v.queue();
            recycled += u64::from(handles.contains(&new.handle()));
            new.submit(&[short(done).packet(); 2]).unwrap();
            v.idle();
            assert_eq!(v.load(done), 24 - 2 * (n + 1));
            v.rig().destroy_queue(&new).unwrap();
        }
        // Made while a barrier is armed.
        q0.submit(&[Kernel::until(goes_on).packet()]).unwrap();
        v.until(|_| q0.running() == 1);
        v.rig().enable().unwrap();
        let late = v.queue();
        late.submit(&[Kernel::lasting(1).packet()]).unwrap();
        assert!(v.waits().is_some());
        assert_eq!(late.read_index(), 0);
        v.store(goes_on, 0);
        v.idle();
        v.finish((q0, late));
    }
    assert!(recycled > 100);
}
