//! The same machine on real threads.

mod common;
use common::*;
use hsa_sys::{SignalCondition::Lt, hsa_signal_t, hsa_status_t};
use softgpu::{Config, Ends, Kernel, QueueConfig, QueueState, ThreadedGpu, Waits};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

const NULL: hsa_signal_t = hsa_signal_t::NULL;
const LONG: Duration = Duration::from_secs(60);

fn start() -> ThreadedGpu {
    ThreadedGpu::new(Config::default())
}

#[test]
fn many_threads_write_one_small_ring_and_every_packet_runs_once() {
    let gpu = start();
    let queue = ring(&gpu, 16);
    let (inside, calls) = (AtomicBool::new(false), Arc::new(AtomicUsize::new(0)));
    let counted = calls.clone();
    queue.set_interceptor(Box::new(move |packets, out| {
        assert!(!inside.swap(true, SeqCst), "one at a time");
        counted.fetch_add(1, SeqCst);
        out.extend_from_slice(packets);
        inside.store(false, SeqCst);
    }));
    let done = signal(&gpu, 8 * 500 * 7);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..500 {
                    queue
                        .submit(&[Kernel::lasting(0).completion(done).packet(); 7])
                        .unwrap();
                }
            });
        }
    });
    gpu.wait_idle(LONG).unwrap();
    assert_eq!(gpu.signals().load(done), 0);
    assert_eq!(calls.load(SeqCst), 4_000);
    gpu.witness().assert_clean();
    gpu.finish();
}

#[test]
fn a_hundred_thousand_packets_pass_over_four_queues() {
    let gpu = start();
    let queues: Vec<_> = (0..4).map(|_| seen(&gpu)).collect();
    let begun = Instant::now();
    for n in 0..100_000 {
        queues[n % 4]
            .submit(&[Kernel::lasting(1_000).packet()])
            .unwrap();
    }
    gpu.wait_idle(LONG).unwrap();
    let rate = 100_000.0 / begun.elapsed().as_secs_f64();
    println!("{rate:.0} packets/s");
    assert_eq!(gpu.witness().kernels(gpu.agent(0)).ended, 100_000);
}

#[test]
fn queues_hand_a_signal_round() {
    let gpu = start();
    let queues: Vec<_> = (0..4).map(|_| queue(&gpu)).collect();
    let signals: Vec<_> = (0..4).map(|n| signal(&gpu, i64::from(n > 0))).collect();
    let rounds = 500;
    for _ in 0..rounds {
        for n in 0..4 {
            let next = signals[(n + 1) % 4];
            let kernel = Kernel::lasting(0).writes(next, 0).completion(NULL);
            // Waits for its turn and takes it back, then hands it on.
            queues[n].submit(&[and(&[signals[n]], NULL)]).unwrap();
            queues[n]
                .submit(&[
                    Kernel::lasting(0).writes(signals[n], 1).packet(),
                    kernel.barrier().packet(),
                ])
                .unwrap();
            queues[n]
                .submit(&[and(&[], NULL).with_barrier_bit()])
                .unwrap();
        }
    }
    gpu.wait_idle(LONG).unwrap();
    assert_eq!(gpu.witness().kernels(gpu.agent(0)).ended, 4 * 2 * rounds);
}

#[test]
fn handlers_run_on_threads_of_their_own_and_beside_each_other() {
    let gpu = ThreadedGpu::new(Config {
        handler_threads: 2,
        ..Config::default()
    });
    let both = Arc::new(Barrier::new(2));
    let calls = Arc::new(AtomicU64::new(0));
    let host = thread::current().id();
    for _ in 0..2 {
        let (both, calls) = (both.clone(), calls.clone());
        let handler = move |_| {
            assert_ne!(thread::current().id(), host);
            both.wait();
            calls.fetch_add(1, SeqCst);
            false
        };
        gpu.signals()
            .on_signal(signal(&gpu, 0), Lt, 1, Box::new(handler))
            .unwrap();
    }
    gpu.wait_idle(LONG).unwrap();
    assert_eq!(calls.load(SeqCst), 2);
    gpu.finish();
}

#[test]
fn no_completion_is_missed_by_its_handler() {
    let gpu = start();
    let queues: Vec<_> = (0..3).map(|_| queue(&gpu)).collect();
    let calls = Arc::new(AtomicU64::new(0));
    for n in 0..5_000 {
        let (done, machine, calls) = (signal(&gpu, 1), gpu.gpu().clone(), calls.clone());
        let submit = || queues[n % 3].submit(&[Kernel::lasting(500).completion(done).packet()]);
        if n % 2 == 0 {
            submit().unwrap();
        }
        let handler = move |_| {
            machine.signals().destroy(done).unwrap();
            calls.fetch_add(1, SeqCst);
            false
        };
        gpu.signals()
            .on_signal(done, Lt, 1, Box::new(handler))
            .unwrap();
        if n % 2 == 1 {
            submit().unwrap();
        }
        while gpu.signals().stats().live_interrupt > 2_000 {
            thread::yield_now();
        }
    }
    gpu.wait_idle(LONG).unwrap();
    assert_eq!(calls.load(SeqCst), 5_000);
    assert_eq!(gpu.signals().stats().live, 0);
    gpu.witness().assert_clean();
    gpu.finish();
}

#[test]
fn a_kernel_lasts_as_long_as_it_says() {
    let gpu = start();
    let (queue, done) = (queue(&gpu), signal(&gpu, 1));
    let begun = Instant::now();
    queue
        .submit(&[Kernel::lasting(20_000_000).completion(done).packet()])
        .unwrap();
    assert_eq!(gpu.signals().wait(done, Lt, 1, LONG), 0);
    assert!(begun.elapsed() >= Duration::from_millis(20));
}

#[test]
fn queues_go_while_others_submit_to_them() {
    let gpu = start();
    for round in 0..100 {
        let queue = ring(&gpu, 8);
        queue.set_interceptor(Box::new(|packets, out| out.extend_from_slice(packets)));
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(SeqCst) {
                        let batch = [Kernel::lasting(2_000).packet(); 3];
                        match queue.submit(&batch) {
                            Ok(()) => {}
                            Err(status) => {
                                assert_eq!(status, hsa_status_t::ERROR_INVALID_QUEUE);
                                break;
                            }
                        }
                        if queue.overflowing() > 10_000 {
                            thread::yield_now();
                        }
                    }
                });
            }
            thread::sleep(Duration::from_micros(200 + round * 10));
            if round % 3 == 0 {
                gpu.inactivate_queue(&queue).unwrap();
            }
            gpu.destroy_queue(&queue).unwrap();
            let kernels = gpu.witness().kernels(gpu.agent(0));
            assert_eq!(
                kernels.started,
                kernels.ended + kernels.abandoned,
                "nothing runs on"
            );
            stop.store(true, SeqCst);
        });
    }
    gpu.wait_idle(LONG).unwrap();
    gpu.witness().assert_clean();
}

#[test]
fn a_fault_stops_the_queue_and_is_told_on_a_handler_thread() {
    let gpu = start();
    let told = Arc::new(AtomicU64::new(0));
    let counted = told.clone();
    let config = QueueConfig {
        on_error: Some(Box::new(move |_, _| {
            counted.fetch_add(1, SeqCst);
        })),
        ..Default::default()
    };
    let queue = gpu.create_queue(gpu.agent(0), config).unwrap();
    let behind = signal(&gpu, 1);
    let fault = Kernel::lasting(1_000).ends(Ends::Fault);
    queue
        .submit(&[fault.packet(), kernel(behind).with_barrier_bit()])
        .unwrap();
    while told.load(SeqCst) == 0 {
        thread::yield_now();
    }
    assert_eq!(queue.state(), QueueState::Faulted);
    gpu.wait_idle(LONG).unwrap();
    assert_eq!(gpu.signals().load(behind), 1);
}

#[test]
fn a_standstill_is_said_at_once() {
    let gpu = start();
    let (a, x) = (queue(&gpu), signal(&gpu, 1));
    a.submit(&[and(&[x], NULL), kernel(NULL)]).unwrap();
    let begun = Instant::now();
    let stuck = gpu.wait_idle(LONG).unwrap_err();
    assert!(begun.elapsed() < LONG / 10);
    assert!(matches!(stuck.waits[0].waits, Waits::Barrier(..)));
    assert!(gpu.is_stuck(Duration::from_millis(5)));
    gpu.signals().store(x, 0);
    gpu.wait_idle(LONG).unwrap();
    assert!(!gpu.is_stuck(Duration::ZERO));
}

#[test]
fn a_kernel_waits_for_one_of_another_queue() {
    let gpu = start();
    let (a, b, flag, done) = (queue(&gpu), queue(&gpu), signal(&gpu, 1), signal(&gpu, 1));
    a.submit(&[Kernel::until(flag).completion(done).packet()])
        .unwrap();
    thread::sleep(Duration::from_millis(5));
    assert_eq!(gpu.signals().load(done), 1);
    b.submit(&[Kernel::lasting(0).writes(flag, 0).packet()])
        .unwrap();
    gpu.wait_idle(LONG).unwrap();
    assert_eq!(gpu.signals().load(done), 0);
}

#[test]
fn an_overlap_is_found_on_threads_too() {
    let gpu = start();
    let (a, b) = (seen(&gpu), seen(&gpu));
    gpu.witness().enable_begin(gpu.agent(0));
    gpu.witness().enable_end(gpu.agent(0));
    a.submit(&[Kernel::lasting(30_000_000).packet()]).unwrap();
    b.submit(&[Kernel::lasting(30_000_000).packet()]).unwrap();
    gpu.wait_idle(LONG).unwrap();
    assert_eq!(gpu.witness().counts().overlaps, 1);
}

#[test]
fn the_handles_may_cross_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<softgpu::Gpu>();
    shared::<softgpu::Queue>();
    shared::<softgpu::SignalPool>();
    shared::<softgpu::Witness>();
}

#[test]
#[should_panic(expected = "a handler panicked")]
fn a_handler_that_panics_is_told() {
    let gpu = start();
    let handler = |_| panic!("planted");
    gpu.signals()
        .on_signal(signal(&gpu, 0), Lt, 1, Box::new(handler))
        .unwrap();
    let _ = gpu.wait_idle(LONG);
}

#[test]
fn by_a_fault_the_handler_threads_are_gone_and_come_back() {
    let gpu = start();
    gpu.faults().change(|plan| plan.handlers_dead = true);
    let calls = listen(&gpu, signal(&gpu, 0), Lt, 1, 0);
    gpu.wait_idle(LONG).unwrap();
    assert!(calls.lock().unwrap().is_empty());
    gpu.faults().change(|plan| plan.handlers_dead = false);
    gpu.wait_idle(LONG).unwrap();
    assert_eq!(*calls.lock().unwrap(), [0]);
}
