//! The end on threads: from a handler's, from several at once, and with the last handle anywhere.

use crate::stage::{Expect, Rig, Threaded, bounded, short, toggle};
use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{Domain, DrainError, Handler, Serializer, ShutdownError, TransitionError};
use hsa_sys::SignalCondition;
use softgpu::{Config, Kernel, Queue, QueueConfig};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(20);

/// In a handler of the application's, on the handlers' thread.
fn in_a_handler(t: &Threaded, call: impl FnOnce() + Send + 'static) {
    let (called, calls) = mpsc::channel();
    let signal = t.signal(1);
    let mut call = Some(call);
    let handler = move |_| {
        if let Some(call) = call.take() {
            call();
        }
        called.send(()).unwrap();
        false
    };
    let below = SignalCondition::Lt;
    let signals = t.gpu().signals();
    signals
        .on_signal(signal, below, 1, Box::new(handler))
        .unwrap();
    t.store(signal, 0);
    calls.recv_timeout(LONG).expect("the handler returns");
}

#[test]
fn s42_a_handler_may_begin_and_is_refused_what_it_would_wait_for() {
    bounded(|| {
        let t = Threaded::new(Config::default());
        let queues = [t.queue(), t.queue()];
        let done = t.signal(20);
        t.rig().enable().unwrap();
        for _ in 0..5 {
            for queue in &queues {
                queue.submit(&[short(done).packet(); 2]).unwrap();
            }
        }
        let serializer = t.serializer().clone();
        in_a_handler(&t, move || {
            let refused = Err(ShutdownError::OnHandlerThread);
            assert_eq!(serializer.finish_shutdown(LONG), refused);
            let refused = Err(DrainError::OnHandlerThread);
            assert_eq!(serializer.drain(LONG), refused);
            // The first phase is done.
            assert_eq!(serializer.enable(), Err(TransitionError::ShutDown));
        });
        assert_eq!(t.serializer().finish_shutdown(LONG), Ok(()));
        t.spy().record().ends();
        t.idle();
        assert_eq!(t.load(done), 0);
        t.finish(queues);
    });
}

#[test]
fn s42_the_last_reference_may_go_on_the_handlers_thread_while_another_finishes() {
    for round in 0..40_u32 {
        bounded(move || {
            let gpu = softgpu::ThreadedGpu::new(Config::default());
            let signals = gpu.signals().clone();
            let made = harness::Profiler::new(gpu.gpu(), gpu.agent(0), crate::stage::make);
            let rig = Arc::new(made);
            let queue = rig.create_queue(QueueConfig::default()).unwrap();
            toggle(&rig, round % 2 == 0);
            let app = signals.create(1, softgpu::SignalKind::Interrupt).unwrap();
            let kernel = Kernel::lasting(100_000).completion(app).packet();
            let gone = Arc::new(AtomicBool::new(false));
            let mut last = Some((rig.clone(), queue.clone()));
            let went = gone.clone();
            let handler = move |_| {
                let (rig, queue) = last.take().unwrap();
                rig.serializer().inner().begin_shutdown();
                rig.destroy_queue(&queue).unwrap();
                drop((queue, rig));
                went.store(true, SeqCst);
                false
            };
            let below = SignalCondition::Lt;
            signals.on_signal(app, below, 1, Box::new(handler)).unwrap();
            queue.submit(&[kernel]).unwrap();
            thread::sleep(Duration::from_micros(u64::from(round) * 20));
            let finished = rig.serializer().inner().finish_shutdown(LONG);
            assert_eq!(finished, Ok(()));
            drop(rig);
            // What the last reference could not reclaim, since somebody else was interrupted under a pin, is left
            // to whoever comes by.
            let somebody = Serializer::new(Host::default());
            while !gone.load(SeqCst) || signals.stats().live > 1 {
                somebody.collect();
                thread::sleep(Duration::from_millis(1));
            }
            gpu.witness().assert_clean();
            signals.destroy(app).unwrap();
            drop(queue);
            gpu.finish();
        });
    }
}

/// Submits and toggles until the serializer is closed and somebody says that it is enough.
fn keeps_busy(rig: &Rig, queue: &Queue, n: u64, stop: &AtomicBool) {
    let mut on = false;
    while !stop.load(SeqCst) {
        queue
            .submit(&[Kernel::lasting(n * 1_000).packet()])
            .unwrap();
        on = !on;
        let _ = if on { rig.enable() } else { rig.disable() };
        while rig.in_flight() > 50 && !stop.load(SeqCst) {
            thread::sleep(Duration::from_micros(50));
        }
    }
}

fn ends(serializer: &Serializer<crate::spy::Spy>, n: u64) {
    match n {
        0 => serializer.begin_shutdown(),
        1 => serializer.collect(),
        2 => drop(serializer.try_finish_shutdown()),
        3 => drop(serializer.statistics()),
        _ => serializer.release_all(),
    }
    assert_eq!(serializer.finish_shutdown(LONG), Ok(()));
    serializer.runtime().record().ends();
}

#[test]
fn s69_several_threads_shut_down_at_once_while_others_dispatch_and_toggle() {
    bounded(|| {
        for round in 0..60_u64 {
            let t = Threaded::new(Config {
                signals: 2_048,
                ..Config::default()
            });
            let queues = [t.queue(), t.queue(), t.queue()];
            let stop = AtomicBool::new(false);
            let releases = round % 3 == 2;
            thread::scope(|scope| {
                for (n, queue) in queues.iter().enumerate() {
                    let (rig, stop) = (t.rig(), &stop);
                    scope.spawn(move || keeps_busy(rig, queue, n as u64, stop));
                }
                thread::sleep(Duration::from_micros(fastrand::u64(..5_000)));
                let serializer = t.serializer();
                let enders = 0..4 + u64::from(releases);
                let enders: Vec<_> = enders
                    .map(|n| scope.spawn(move || ends(serializer, n)))
                    .collect();
                for ender in enders {
                    ender.join().unwrap();
                }
                // They go on after the end, and are passed on.
                let before = t.rig().passed_on();
                while t.rig().passed_on() < before + 10 {
                    thread::yield_now();
                }
                stop.store(true, SeqCst);
            });
            t.idle();
            // What was passed on may have run beside anything.
            let (misuse, overlaps) = (0, true);
            t.finish_as(Expect { misuse, overlaps }, queues);
        }
    });
}

#[test]
fn s39_eight_agents_end_at_once_through_one_handlers_thread() {
    const AGENTS: usize = 8;
    bounded(|| {
        for round in 0..10 {
            let t = Threaded::new(Config {
                agents: AGENTS,
                signals: 4_096,
                ..Config::default()
            });
            let make = |n: usize| t.agent(n).create_queue(QueueConfig::default()).unwrap();
            let queues: Vec<_> = (0..2 * AGENTS).map(|n| make(n % AGENTS)).collect();
            for n in 0..AGENTS {
                toggle(t.agent(n), (n + round) % 2 == 0);
            }
            let done = t.signal(2 * AGENTS as i64 * 4);
            for queue in &queues {
                queue.submit(&[short(done).packet(); 4]).unwrap();
            }
            thread::scope(|scope| {
                for n in 0..AGENTS {
                    let rig = t.agent(n);
                    scope.spawn(move || ends(rig.serializer().inner(), n as u64 % 4));
                }
            });
            t.idle();
            assert_eq!(t.load(done), 0);
            t.finish(queues);
        }
    });
}

/// What others retire in the same domain is none of its business.
#[test]
fn s79_another_serializer_of_the_domain_does_not_keep_the_end_from_coming() {
    bounded(|| {
        let domain = Domain::new();
        let make = |host: &Host| {
            let builder = Serializer::<Host>::builder().domain(domain.clone());
            builder.build(host.clone())
        };
        let (busy, stop) = (make(&Host::default()), AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(SeqCst) {
                        busy.enable().unwrap();
                        busy.disable().unwrap();
                    }
                });
            }
            for round in 0..50 {
                while busy.statistics().transitions < 4 * round {
                    thread::yield_now();
                }
                let host = Host::default();
                let ends = make(&host);
                ends.enable().unwrap();
                let queue = ends.add_queue().unwrap();
                assert!(ends.try_finish_shutdown().is_err(), "its handler is there");
                assert_eq!(ends.ready(queue.id()), Handler::Drop);
                assert_eq!(ends.finish_shutdown(LONG), Ok(()));
                assert_eq!(host.live_signals(), 0);
            }
            stop.store(true, SeqCst);
        });
        assert!(busy.statistics().transitions > 100);
    });
}
