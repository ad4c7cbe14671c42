//! Several agents, each with a serializer of its own.

use crate::spy::Seat;
use crate::stage::{SEEDS, Threaded, Virtual, bounded, seat, short, toggle};
use hsa_sys::hsa_signal_t;
use softgpu::{Config, Kernel, Queue, QueueConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

#[test]
fn s25_a_kernel_that_spins_for_another_agents_kernel_is_no_deadlock() {
    for seed in SEEDS {
        let mut v = Virtual::with(Config {
            agents: 2,
            ..Config::seed(seed)
        });
        let queues = [0, 0, 1, 1].map(|n| v.agent(n).create_queue(QueueConfig::default()).unwrap());
        let (written, done) = (v.signal(1), v.signal(4));
        for n in 0..2 {
            v.agent(n).enable().unwrap();
        }
        queues[0]
            .submit(&[Kernel::until(written).completion(done).packet()])
            .unwrap();
        v.until(|v| seat(v.agent(0), &queues[0]) == Seat::Running);
        for queue in [&queues[1], &queues[2]] {
            queue.submit(&[short(done).packet()]).unwrap();
        }
        queues[3]
            .submit(&[short(done).writes(written, 0).packet()])
            .unwrap();
        v.idle();
        assert_eq!(v.load(done), 0);
        let end = v.finish(queues);
        assert_eq!(end.stats.iter().map(|s| s.grants).sum::<u64>(), 4);
    }
}

const AGENTS: usize = 8;
const ROUNDS: usize = 20;

/// In each round every agent writes its own signal, and then waits for the next agent's.
fn ring_of_agents(queue: &Queue, n: usize, signals: &[Vec<hsa_signal_t>], done: hsa_signal_t) {
    for round in signals {
        let writes = Kernel::lasting(500).writes(round[n], 0);
        let waits = Kernel::until(round[(n + 1) % AGENTS]);
        let batch = [writes.completion(done), waits.completion(done)];
        queue.submit(&batch.map(|kernel| kernel.packet())).unwrap();
    }
}

fn round_signals(signal: impl Fn() -> hsa_signal_t) -> Vec<Vec<hsa_signal_t>> {
    let round = |_| (0..AGENTS).map(|_| signal()).collect();
    (0..ROUNDS).map(round).collect()
}

#[test]
fn s39_eight_agents_each_waiting_for_the_next_go_round() {
    for seed in 0..10 {
        let mut v = Virtual::with(Config {
            agents: AGENTS,
            ..Config::seed(seed)
        });
        let signals = round_signals(|| v.signal(1));
        let done = v.signal((2 * AGENTS * ROUNDS) as i64);
        let mut queues = Vec::new();
        for n in 0..AGENTS {
            v.agent(n).enable().unwrap();
            let queue = v.agent(n).create_queue(QueueConfig::default()).unwrap();
            ring_of_agents(&queue, n, &signals, done);
            queues.push(queue);
        }
        v.idle();
        assert_eq!(v.load(done), 0);
        let end = v.finish(queues);
        assert!(end.stats.iter().all(|s| s.grants == 2 * ROUNDS as u64));
    }
}

#[test]
fn s39_eight_agents_share_one_handler_thread() {
    bounded(|| {
        let t = Threaded::new(Config {
            agents: AGENTS,
            ..Config::default()
        });
        let signals = round_signals(|| t.signal(1));
        let done = t.signal((2 * AGENTS * ROUNDS) as i64);
        let queues: Vec<_> = (0..AGENTS)
            .map(|n| t.agent(n).create_queue(QueueConfig::default()).unwrap())
            .collect();
        thread::scope(|scope| {
            for (n, queue) in queues.iter().enumerate() {
                let (t, signals) = (&t, &signals);
                scope.spawn(move || {
                    t.agent(n).enable().unwrap();
                    ring_of_agents(queue, n, signals, done);
                });
            }
        });
        t.idle();
        assert_eq!(t.load(done), 0);
        let end = t.finish(queues);
        assert!(end.stats.iter().all(|s| s.grants == 2 * ROUNDS as u64));
    });
}

#[test]
fn s76_an_agent_that_is_held_up_holds_up_no_other() {
    const TOGGLES: u64 = 200;
    bounded(|| {
        let t = Threaded::new(Config {
            agents: 4,
            handler_threads: 5,
            ..Config::default()
        });
        let queues: Vec<_> = (0..4)
            .map(|n| t.agent(n).create_queue(QueueConfig::default()).unwrap())
            .collect();
        // What agent 0 does for its first grant stays in the runtime, on a handler thread and
        // pinned.
        let (held, goes_on) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (holds, until) = (held.clone(), goes_on.clone());
        t.rig().enable().unwrap();
        let runtime = t.rig().serializer().inner().runtime();
        runtime.on_write(move |_, _| {
            holds.fetch_add(1, SeqCst);
            while !until.load(SeqCst) {
                thread::sleep(Duration::from_micros(100));
            }
        });
        let done = t.signal(3 * TOGGLES as i64 + 1);
        queues[0].submit(&[short(done).packet()]).unwrap();
        t.until(|_| held.load(SeqCst) == 1);
        thread::scope(|scope| {
            for (n, queue) in queues.iter().enumerate().skip(1) {
                let rig = t.agent(n);
                scope.spawn(move || {
                    for toggles in 0..TOGGLES {
                        toggle(rig, toggles % 2 == 0);
                        queue.submit(&[short(done).packet()]).unwrap();
                    }
                });
            }
        });
        t.until(|t| t.load(done) == 1);
        assert_eq!(held.load(SeqCst), 1, "agent 0 is still held up");
        goes_on.store(true, SeqCst);
        t.idle();
        assert_eq!(t.load(done), 0);
        let end = t.finish(queues);
        assert!(end.stats[1..].iter().all(|s| s.transitions == TOGGLES));
    });
}
