//! A small serializer under one lock, run both ways: right, it is found to be right; with a fault
//! planted, the check of that fault fires.

mod common;
use common::*;
use hsa_sys::SignalCondition::{Eq, Lt};
use hsa_sys::{AqlPacket, hsa_signal_t};
use softgpu::{
    Config, Counts, Gpu, Kernel, Queue, QueueConfig, SignalKind, ThreadedGpu, VirtualGpu,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq)]
enum Plant {
    Nothing,
    /// A barrier's signal is destroyed as soon as it has cleared.
    EarlyDestroy,
    /// No queue waits for the old mode's kernels.
    NoTransition,
    /// The token is granted to whoever asks.
    NoToken,
}

struct PerQueue {
    ready: hsa_signal_t,
    block: hsa_signal_t,
    dispatched: u64,
    completed: u64,
    /// The barrier to be waited for by the next dispatch.
    due: Option<u64>,
}

struct Barrier {
    id: u64,
    signal: hsa_signal_t,
    targets: Vec<Option<u64>>,
    tags: Vec<Option<u64>>,
    cleared: bool,
}

struct State {
    plant: Plant,
    enabled: bool,
    queues: Vec<PerQueue>,
    barriers: Vec<Barrier>,
    next: u64,
    held: bool,
    waiting: VecDeque<usize>,
}

#[derive(Clone)]
struct Mini {
    gpu: Gpu,
    state: Arc<Mutex<State>>,
    toggle: Arc<Mutex<()>>,
}

impl Mini {
    fn new(gpu: &Gpu, plant: Plant) -> Self {
        let state = State {
            plant,
            enabled: false,
            queues: Vec::new(),
            barriers: Vec::new(),
            next: 0,
            held: false,
            waiting: VecDeque::new(),
        };
        Self {
            gpu: gpu.clone(),
            state: Arc::new(Mutex::new(state)),
            toggle: Arc::default(),
        }
    }

    fn queue(&self) -> Queue {
        let signals = self.gpu.signals();
        let ready = signals
            .create_labelled(0, SignalKind::Interrupt, "ready")
            .unwrap();
        let block = signals
            .create_labelled(1, SignalKind::GpuOnly, "block")
            .unwrap();
        let q = {
            let mut state = self.state.lock().unwrap();
            state.queues.push(PerQueue {
                ready,
                block,
                dispatched: 0,
                completed: 0,
                due: None,
            });
            state.queues.len() - 1
        };
        let mini = self.clone();
        let handler = move |_| {
            mini.ready(q);
            true
        };
        signals.on_signal(ready, Eq, -1, Box::new(handler)).unwrap();
        let mini = self.clone();
        let config = QueueConfig {
            slots: 64,
            interceptor: Some(Box::new(move |packets, out| {
                packets
                    .iter()
                    .for_each(|packet| mini.dispatch(q, packet, out));
            })),
            ..Default::default()
        };
        self.gpu.create_queue(self.gpu.agent(0), config).unwrap()
    }

    fn dispatch(&self, q: usize, packet: &AqlPacket, out: &mut Vec<AqlPacket>) {
        let done = signal(&self.gpu, 1);
        let mut guard = self.state.lock().unwrap();
        let state = &mut *guard;
        let queue = &mut state.queues[q];
        queue.dispatched += 1;
        let due = queue.due.take();
        let mut armed = state.barriers.iter_mut().filter(|b| !b.cleared);
        if let Some(barrier) = armed.find(|b| Some(b.id) == due) {
            barrier.tags[q] = Some(queue.dispatched);
            out.push(and(&[barrier.signal], hsa_signal_t::NULL));
        }
        let serialized = state.enabled;
        if serialized {
            out.push(and(&[queue.ready], queue.ready).with_barrier_bit());
            out.push(and(&[queue.block], queue.block).with_barrier_bit());
            out.push(packet.with_completion_signal(done).with_barrier_bit());
        } else {
            out.push(packet.with_completion_signal(done));
        }
        drop(guard);
        let mini = self.clone();
        let handler = move |_| {
            mini.gpu.signals().destroy(done).unwrap();
            mini.complete(q, serialized);
            false
        };
        self.gpu
            .signals()
            .on_signal(done, Lt, 1, Box::new(handler))
            .unwrap();
    }

    fn ready(&self, q: usize) {
        let mut state = self.state.lock().unwrap();
        let signals = self.gpu.signals();
        if signals.compare_exchange(state.queues[q].ready, -1, 1) == -1 {
            state.waiting.push_back(q);
            self.grant(&mut state);
        }
    }

    fn grant(&self, state: &mut State) {
        while !state.held || state.plant == Plant::NoToken {
            let Some(q) = state.waiting.pop_front() else {
                return;
            };
            state.held = true;
            self.gpu.signals().store(state.queues[q].block, 0);
        }
    }

    fn complete(&self, q: usize, serialized: bool) {
        let mut guard = self.state.lock().unwrap();
        let (state, signals) = (&mut *guard, self.gpu.signals());
        state.queues[q].completed += 1;
        let completed = state.queues[q].completed;
        for barrier in &mut state.barriers {
            barrier.targets[q].take_if(|target| *target <= completed);
            barrier.tags[q].take_if(|tag| *tag <= completed);
            if !barrier.cleared && barrier.targets.iter().all(Option::is_none) {
                barrier.cleared = true;
                signals.store(barrier.signal, 0);
            }
        }
        let early = state.plant == Plant::EarlyDestroy;
        state.barriers.retain(|barrier| {
            let safe = barrier.cleared && (early || barrier.tags.iter().all(Option::is_none));
            if safe {
                signals.destroy(barrier.signal).unwrap();
            }
            !safe
        });
        if serialized {
            signals.store(state.queues[q].block, 1);
            signals.store(state.queues[q].ready, 0);
            state.held = false;
            self.grant(state);
        }
    }

    fn set(&self, enabled: bool) {
        let _one = self.toggle.lock().unwrap();
        let (agent, witness) = (self.gpu.agent(0), self.gpu.witness());
        if enabled {
            witness.enable_begin(agent);
        } else {
            witness.disable_begin(agent);
        }
        self.change(enabled);
        if enabled {
            witness.enable_end(agent);
        } else {
            witness.disable_end(agent);
        }
    }

    fn change(&self, enabled: bool) {
        let mut guard = self.state.lock().unwrap();
        let state = &mut *guard;
        if state.enabled == enabled {
            return;
        }
        state.enabled = enabled;
        let target = |q: &PerQueue| (q.dispatched > q.completed).then_some(q.dispatched);
        let targets: Vec<_> = state.queues.iter().map(target).collect();
        if targets.iter().all(Option::is_none) || state.plant == Plant::NoTransition {
            return;
        }
        let label = format!("barrier {}", state.next);
        let signals = self.gpu.signals();
        let signal = signals
            .create_labelled(1, SignalKind::GpuOnly, label)
            .unwrap();
        state
            .queues
            .iter_mut()
            .for_each(|q| q.due = Some(state.next));
        state.barriers.push(Barrier {
            id: state.next,
            signal,
            tags: vec![None; targets.len()],
            targets,
            cleared: false,
        });
        state.next += 1;
    }
}

/// Many kernels over four queues with toggles in between; what was found, and whether it ended.
fn in_virtual_time(seed: u64, plant: Plant, kernels: u64) -> (Counts, bool) {
    let mut gpu = VirtualGpu::new(Config {
        seed,
        signals: 4_096,
        ..Config::default()
    });
    gpu.faults().change(|plan| {
        if plant == Plant::Nothing {
            plan.handler_late = 0.05;
            plan.late_by = 2_000;
        }
    });
    let mini = Mini::new(&gpu, plant);
    let queues: Vec<_> = (0..4).map(|_| mini.queue()).collect();
    let mut enabled = false;
    for n in 0..kernels {
        let queue = &queues[gpu.draw(4) as usize];
        let kernel = Kernel::lasting(gpu.draw(3_000)).id(n as u32);
        queue.submit(&[kernel.packet()]).unwrap();
        for _ in 0..gpu.draw(12) {
            gpu.step();
        }
        if gpu.draw(5) == 0 {
            enabled = !enabled;
            mini.set(enabled);
        }
    }
    let ended = gpu.run_until_idle().is_ok();
    if plant == Plant::Nothing {
        assert!(ended, "{}", gpu.describe());
        gpu.witness().assert_clean();
        assert_eq!(gpu.witness().kernels(gpu.agent(0)).ended, kernels);
        assert!(gpu.witness().periods(gpu.agent(0)) > kernels / 10);
        let left = gpu.signals().stats().live - 8;
        assert!(left <= 1, "{left} barriers left");
    }
    (gpu.witness().counts(), ended)
}

#[test]
fn a_right_serializer_is_found_right_in_virtual_time() {
    for seed in 0..40 {
        in_virtual_time(seed, Plant::Nothing, 500);
    }
}

#[test]
fn a_signal_destroyed_too_early_is_found() {
    let seen: Vec<_> = (0..20)
        .map(|seed| in_virtual_time(seed, Plant::EarlyDestroy, 500))
        .collect();
    assert!(
        seen.iter().all(|(counts, _)| counts.stale_packets > 0),
        "{seen:?}"
    );
    assert!(seen.iter().any(|(_, ended)| !ended), "none hung: {seen:?}");
}

#[test]
fn a_missing_transition_is_found() {
    let (counts, _) = in_virtual_time(0, Plant::NoTransition, 500);
    assert!(
        counts.mode_overlaps > 0 && counts.stale_packets == 0,
        "{counts:?}"
    );
}

#[test]
fn a_missing_token_is_found() {
    let (counts, _) = in_virtual_time(0, Plant::NoToken, 500);
    assert!(
        counts.overlaps > 0 && counts.mode_overlaps == 0,
        "{counts:?}"
    );
}

fn on_threads(plant: Plant, kernels: u64) -> Counts {
    let gpu = ThreadedGpu::new(Config::default());
    let mini = Mini::new(&gpu, plant);
    let queues: Vec<_> = (0..4).map(|_| mini.queue()).collect();
    let toggles = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|w| {
                let (mini, queues) = (&mini, &queues);
                scope.spawn(move || {
                    for n in 0..kernels / 2 {
                        let packet = Kernel::lasting(n % 7 * 300).packet();
                        queues[(w * 2 + n % 2) as usize].submit(&[packet]).unwrap();
                        while mini.gpu.signals().stats().live_interrupt > 1_000 {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let mut toggles = 0;
        while !writers.iter().all(|writer| writer.is_finished()) {
            toggles += 1;
            mini.set(toggles % 2 == 1);
            std::thread::sleep(Duration::from_micros(300));
        }
        toggles
    });
    let outcome = gpu.wait_idle(Duration::from_secs(60));
    assert!(toggles > 5);
    if plant == Plant::Nothing {
        outcome.unwrap_or_else(|stuck| panic!("{stuck}"));
        gpu.witness().assert_clean();
        assert_eq!(gpu.witness().kernels(gpu.agent(0)).ended, kernels / 2 * 2);
    }
    gpu.witness().counts()
}

#[test]
fn a_right_serializer_is_found_right_on_threads() {
    on_threads(Plant::Nothing, 20_000);
}

#[test]
fn a_missing_token_is_found_on_threads() {
    assert!(on_threads(Plant::NoToken, 20_000).overlaps > 0);
}

#[test]
fn a_missing_transition_is_found_on_threads() {
    assert!(on_threads(Plant::NoTransition, 20_000).mode_overlaps > 0);
}
