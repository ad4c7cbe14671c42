//! What the conformance tests share.
#![allow(dead_code, reason = "each test file uses some of it")]

use hsa_sys::{
    AqlPacket, SignalCondition, hsa_barrier_and_packet_t, hsa_barrier_or_packet_t, hsa_signal_t,
};
use softgpu::{Config, Gpu, Kernel, Queue, QueueConfig, SignalKind, Step, VirtualGpu};
use std::sync::{Arc, Mutex};

pub(crate) const SEEDS: std::ops::Range<u64> = 0..50;

pub(crate) fn machine(seed: u64) -> (VirtualGpu, Queue) {
    let gpu = VirtualGpu::new(Config::seed(seed));
    let queue = queue(&gpu);
    (gpu, queue)
}

pub(crate) fn queue(gpu: &Gpu) -> Queue {
    gpu.create_queue(gpu.agent(0), QueueConfig::default())
        .unwrap()
}

pub(crate) fn ring(gpu: &Gpu, slots: usize) -> Queue {
    let config = QueueConfig {
        slots,
        ..Default::default()
    };
    gpu.create_queue(gpu.agent(0), config).unwrap()
}

/// A queue whose interceptor passes everything on, so that its kernels count as seen.
pub(crate) fn seen(gpu: &Gpu) -> Queue {
    let queue = queue(gpu);
    queue.set_interceptor(Box::new(|packets, out| out.extend_from_slice(packets)));
    queue
}

pub(crate) fn signal(gpu: &Gpu, value: i64) -> hsa_signal_t {
    gpu.signals().create(value, SignalKind::Interrupt).unwrap()
}

fn five(deps: &[hsa_signal_t]) -> [hsa_signal_t; 5] {
    std::array::from_fn(|i| deps.get(i).copied().unwrap_or(hsa_signal_t::NULL))
}

pub(crate) fn and(deps: &[hsa_signal_t], completion: hsa_signal_t) -> AqlPacket {
    AqlPacket::from(hsa_barrier_and_packet_t {
        dep_signal: five(deps),
        completion_signal: completion,
        ..Default::default()
    })
}

pub(crate) fn or(deps: &[hsa_signal_t], completion: hsa_signal_t) -> AqlPacket {
    AqlPacket::from(hsa_barrier_or_packet_t {
        dep_signal: five(deps),
        completion_signal: completion,
        ..Default::default()
    })
}

/// A packet whose format its vendor defines.
pub(crate) fn vendor(completion: hsa_signal_t) -> AqlPacket {
    AqlPacket::from_words([0; 8]).with_completion_signal(completion)
}

pub(crate) fn kernel(completion: hsa_signal_t) -> AqlPacket {
    Kernel::lasting(1_000).completion(completion).packet()
}

/// Runs to the end and gives the indices of the packets launched and ended, in order.
pub(crate) fn run(gpu: &mut VirtualGpu) -> (Vec<u64>, Vec<u64>) {
    let (mut launched, mut ended) = (Vec::new(), Vec::new());
    while let Some(step) = gpu.step() {
        match step {
            Step::Launched { packet, .. } => launched.push(packet),
            Step::Ended { packet, .. } => ended.push(packet),
            _ => {}
        }
    }
    (launched, ended)
}

/// Registers a handler that notes its calls and is dropped after `keep` of them.
pub(crate) fn listen(
    gpu: &Gpu,
    signal: hsa_signal_t,
    condition: SignalCondition,
    compare: i64,
    keep: usize,
) -> Arc<Mutex<Vec<i64>>> {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = calls.clone();
    let handler = move |value| {
        let mut calls = noted.lock().unwrap();
        calls.push(value);
        calls.len() <= keep
    };
    gpu.signals()
        .on_signal(signal, condition, compare, Box::new(handler))
        .unwrap();
    calls
}
