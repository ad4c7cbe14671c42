//! B. The token: who is granted, when, and what comes back.

use crate::spy::Seat;
use crate::stage::{SEEDS, Virtual, short, toggle};
use harness::Around;
use hsa_sys::{AqlPacket, hsa_barrier_and_packet_t, hsa_signal_t};
use softgpu::{Config, Kernel, QueueConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

pub(crate) fn and(deps: &[hsa_signal_t]) -> AqlPacket {
    hsa_barrier_and_packet_t {
        dep_signal: std::array::from_fn(|i| deps.get(i).copied().unwrap_or(hsa_signal_t::NULL)),
        ..Default::default()
    }
    .into()
}

pub(crate) fn vendor(n: u64) -> AqlPacket {
    AqlPacket::from_words([0, n, 0, 0, 0, 0, 0, 0])
}

/// Room for so many kernels under way.
pub(crate) fn deep(seed: u64, kernels: usize) -> Config {
    Config {
        signals: 2 * kernels + 1_000,
        interrupt_signals: 2 * kernels as u64 + 500,
        ..Config::seed(seed)
    }
}

#[test]
fn s21_a_queue_that_waits_for_another_ones_kernel_is_not_granted_before_it() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let (q0, q1) = (v.queue(), v.queue());
        let (s1, done) = (v.signal(1), v.signal(2));
        v.rig().enable().unwrap();
        q0.submit(&[and(&[s1]), short(done).packet()]).unwrap();
        v.steps(20);
        assert_eq!(v.seat(&q0), Seat::Idle, "it has not reached its kernel");
        q1.submit(&[short(done).writes(s1, 0).packet()]).unwrap();
        v.idle();
        assert_eq!(v.load(done), 0);
        assert_eq!(v.finish((q0, q1)).of().grants, 2);
    }
}

#[test]
fn s22_a_serialized_kernel_without_counters_gives_the_token_back() {
    for seed in SEEDS {
        let instrument = |kernel: &AqlPacket| match Kernel::of(kernel) {
            Some(kernel) if kernel == kernel.id(7) => Around {
                before: vec![vendor(1)],
                after: vec![vendor(2)],
            },
            _ => Around::default(),
        };
        let mut v = Virtual::instrumented(seed, Box::new(instrument));
        let queues = [v.queue(), v.queue(), v.queue()];
        let done = v.signal(30);
        v.rig().enable().unwrap();
        for n in 0..30 {
            let kernel = short(done).id(7 * (n % 2));
            queues[n as usize % 3].submit(&[kernel.packet()]).unwrap();
        }
        v.idle();
        assert_eq!(v.load(done), 0);
        let foreign: u64 = queues.iter().map(|queue| queue.foreign()).sum();
        assert_eq!(foreign, 30, "two packets around each second kernel");
        let end = v.finish(queues);
        assert_eq!(end.of().grants, 30);
        assert!(end.of().grants_contended > 0);
    }
}

#[test]
fn s30_a_barrier_counts_completions_in_whatever_order_they_come() {
    const ORDERS: [[usize; 3]; 6] = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for (seed, order) in SEEDS.zip(ORDERS.iter().cycle()) {
        let mut v = Virtual::new(seed);
        let (q0, q1) = (v.queue(), v.queue());
        let ends = [v.signal(1), v.signal(1), v.signal(1)];
        let (old, new) = (v.signal(3), v.signal(2));
        for end in ends {
            q0.submit(&[Kernel::until(end).completion(old).packet()])
                .unwrap();
        }
        v.until(|_| q0.running() == 3);
        v.rig().enable().unwrap();
        q0.submit(&[short(new).packet()]).unwrap();
        q1.submit(&[short(new).packet()]).unwrap();
        for (ended, n) in order.iter().enumerate() {
            assert!(v.waits().is_some());
            assert_eq!((v.load(old), v.load(new)), (3 - ended as i64, 2));
            v.store(ends[*n], 0);
        }
        v.idle();
        assert_eq!((v.load(old), v.load(new)), (0, 0));
        let end = v.finish((q0, q1));
        assert_eq!((end.of().tags, end.of().transitions_that_counted), (2, 1));
    }
}

#[test]
fn s32_twenty_thousand_queued_kernels_finish_through_small_rings() {
    const KERNELS: usize = 20_000;
    for most_running in [1, 64] {
        let mut v = Virtual::with(deep(1, KERNELS));
        let queues = [(); 2].map(|()| {
            v.queue_with(QueueConfig {
                slots: 64,
                most_running,
                ..QueueConfig::default()
            })
        });
        let done = v.signal(KERNELS as i64);
        for n in 0..KERNELS / 100 {
            toggle(v.rig(), n % 40 >= 20);
            let batch = [Kernel::lasting(100).completion(done).packet(); 100];
            queues[n % 2].submit(&batch).unwrap();
        }
        assert_eq!(v.rig().in_flight(), KERNELS, "nothing has run yet");
        assert!(queues.iter().all(|queue| queue.overflowing() > 9_000));
        v.idle();
        assert_eq!(v.load(done), 0);
        let end = v.finish(queues);
        assert_eq!(end.kernels.ended, KERNELS as u64);
        assert!(end.of().grants_contended > 1_000 && end.of().retired_after_drain > 0);
    }
}

#[test]
fn s34_the_callers_packets_keep_their_order_and_the_token_goes_after_the_last() {
    for seed in SEEDS {
        let held = Arc::new(AtomicU64::new(0));
        let post = held.clone();
        let instrument = move |_: &AqlPacket| Around {
            before: vec![vendor(1)],
            after: vec![
                vendor(2),
                and(&[hsa_signal_t {
                    handle: post.load(SeqCst),
                }]),
            ],
        };
        let mut v = Virtual::instrumented(seed, Box::new(instrument));
        let (q0, q1) = (v.queue(), v.queue());
        let (reads, done) = (v.signal(1), v.signal(2));
        held.store(reads.handle, SeqCst);
        v.rig().enable().unwrap();
        q0.submit(&[short(done).id(3).packet()]).unwrap();
        // Two gates, then the caller's packets as they were given.
        assert_eq!(q0.slot(2), vendor(1));
        assert!(q0.slot(3).as_kernel_dispatch().is_some() && q0.slot(3).barrier_bit());
        assert_eq!(q0.slot(4), vendor(2));
        assert_eq!(q0.slot(5).dependencies().unwrap()[0], reads);
        assert!(q0.slot(5).barrier_bit() && q0.write_index() == 6);
        v.until(|v| v.seat(&q0) == Seat::Running);
        q1.submit(&[short(done).packet()]).unwrap();
        assert!(v.waits().is_some());
        // The kernel has ended, and its counters are being read.
        assert_eq!((q0.running(), v.load(done)), (0, 2));
        assert_eq!(v.seat(&q1), Seat::Waiting);
        v.store(reads, 0);
        v.idle();
        assert_eq!(v.load(done), 0);
        assert_eq!(v.finish((q0, q1)).of().grants_contended, 1);
    }
}

#[test]
fn s36_handlers_that_come_late_or_twice_grant_each_kernel_once() {
    let (mut late, mut repeated) = (0, 0);
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        v.gpu().faults().change(|plan| {
            plan.handler_twice = 0.4;
            plan.handler_late = 0.4;
            plan.late_by = 20_000;
        });
        let queues = [v.queue(), v.queue(), v.queue()];
        let done = v.signal(60);
        let mut serialized = 0;
        for n in 0..60 {
            let on = n / 5 % 2 == 0;
            toggle(v.rig(), on);
            serialized += u64::from(on);
            let queue = &queues[v.draw(3) as usize];
            queue.submit(&[short(done).packet()]).unwrap();
            let some = v.draw(8);
            v.steps(some);
        }
        v.idle();
        assert_eq!(v.load(done), 0);
        let handlers = v.gpu().handlers();
        late += handlers.late;
        repeated += handlers.repeated;
        assert_eq!(v.finish(queues).of().grants, serialized);
    }
    assert!(late > 0 && repeated > 0);
}

#[test]
fn s38_a_slow_kernel_does_not_delay_the_completions_of_fast_ones() {
    const FAST: usize = 100_000;
    let mut v = Virtual::with(deep(1, FAST));
    let (q0, q1, q2) = (v.queue(), v.queue(), v.queue());
    let (goes_on, slow) = (v.signal(1), v.signal(1));
    let (fast, behind) = (v.signal(FAST as i64), v.signal(32));
    q0.submit(&[Kernel::until(goes_on).completion(slow).packet()])
        .unwrap();
    for _ in 0..FAST / 100 {
        let batch = [Kernel::lasting(100).completion(fast).packet(); 100];
        q1.submit(&batch).unwrap();
    }
    // Barriers that stay armed for as long as the slow kernel runs.
    for n in 0..32 {
        toggle(v.rig(), n % 2 == 0);
        q2.submit(&[short(behind).packet()]).unwrap();
    }
    v.until(|v| v.load(fast) == 0);
    assert_eq!((q0.running(), v.load(slow), v.load(behind)), (1, 1, 32));
    assert_eq!(v.stats().barriers_live, 32);
    v.store(goes_on, 0);
    v.idle();
    assert_eq!((v.load(slow), v.load(behind)), (0, 0));
    let end = v.finish((q0, q1, q2));
    assert_eq!((end.of().cleared, end.of().tags), (32, 32));
}
