//! The hot path beside the machine's limit, an epoch pin, and the yardstick under locks.
//!
//! The figures to look at are ratios within one run: the machine is noisy. The limit is two
//! uncontended relaxed additions on separate cache lines.

#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use criterion::{Criterion, criterion_group, criterion_main};
use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{AqlPacket, Domain, MAX_PACKETS, Serializer};
use locked::{ProfilerSerializer, Retire};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

#[repr(align(128))]
struct Line(AtomicU64);

fn serializer() -> Serializer<Host> {
    Serializer::<Host>::builder()
        .domain(Domain::new())
        .build(Host::default())
}

fn bare_costs(c: &mut Criterion) {
    let mut group = c.benchmark_group("bare");
    let lines = [Line(AtomicU64::new(0)), Line(AtomicU64::new(0))];
    group.bench_function("limit", |b| {
        b.iter(|| {
            black_box(&lines[0]).0.fetch_add(1, Ordering::Relaxed);
            black_box(&lines[1]).0.fetch_add(1, Ordering::Relaxed);
        });
    });
    group.bench_function("pin", |b| b.iter(crossbeam_epoch::pin));
    group.finish();
}

fn dispatch_and_complete(c: &mut Criterion) {
    let mut group = c.benchmark_group("dispatch + complete, disabled");
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    {
        let s = serializer();
        let mut queue = s.add_queue().expect("a queue");
        group.bench_function("crate, no barrier", |b| {
            b.iter(|| {
                let dispatch = queue.dispatch(&mut packets).expect("counted");
                s.complete(black_box(dispatch.ticket)).expect("counted")
            });
        });
    }
    {
        // Another queue's long kernel keeps the barrier of an earlier transition armed.
        let s = serializer();
        let mut long = s.add_queue().expect("a queue");
        let mut queue = s.add_queue().expect("a queue");
        let held = long.dispatch(&mut packets).expect("counted");
        s.enable().expect("a signal");
        s.disable().expect("a signal");
        let first = queue.dispatch(&mut packets).expect("counted");
        group.bench_function("crate, behind an armed barrier", |b| {
            b.iter(|| {
                let dispatch = queue.dispatch(&mut packets).expect("counted");
                // Its completion can't come while the barrier is armed; another queue's can.
                let _ = black_box(dispatch.ticket.into_raw());
            });
        });
        drop((held, first));
    }
    {
        let s = ProfilerSerializer::new(Host::default(), Retire::Drained);
        let queue = s.add_queue().expect("a queue");
        group.bench_function("locked", |b| {
            b.iter(|| {
                let number = queue.started();
                let packets = s.kernel_dispatch(&queue, number);
                s.kernel_completion(black_box(&queue));
                queue.ended();
                packets
            });
        });
    }
    group.finish();
}

fn transitions(c: &mut Criterion) {
    let mut group = c.benchmark_group("enable + disable");
    for queues in [1, 64] {
        let s = serializer();
        let kept: Vec<_> = (0..queues)
            .map(|_| s.add_queue().expect("a queue"))
            .collect();
        group.bench_function(format!("crate, {queues} idle queues"), |b| {
            b.iter(|| {
                (
                    s.enable().expect("a signal"),
                    s.disable().expect("a signal"),
                )
            });
        });
        drop(kept);
        let s = ProfilerSerializer::new(Host::default(), Retire::Drained);
        for _ in 0..queues {
            s.add_queue().expect("a queue");
        }
        group.bench_function(format!("locked, {queues} idle queues"), |b| {
            b.iter(|| {
                (
                    s.enable().expect("a signal"),
                    s.disable().expect("a signal"),
                )
            });
        });
    }
    group.finish();
}

criterion_group!(benches, bare_costs, dispatch_and_complete, transitions);
criterion_main!(benches);
