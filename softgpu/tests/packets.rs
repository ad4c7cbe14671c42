//! Rings and packets behave as HSA says (System Architecture 2.8 and 2.9).

mod common;
use common::*;
use hsa_sys::{AqlPacket, PacketType, hsa_signal_t};
use softgpu::{Ends, Kernel, Waits};

const NULL: hsa_signal_t = hsa_signal_t::NULL;

#[test]
fn packets_are_launched_in_order_and_each_once() {
    for seed in SEEDS {
        let (mut gpu, queue) = machine(seed);
        for _ in 0..20 {
            queue
                .submit(&[kernel(NULL), and(&[], NULL), vendor(NULL)])
                .unwrap();
        }
        let (launched, ended) = run(&mut gpu);
        assert_eq!(launched, (0..60).collect::<Vec<_>>());
        assert_eq!(ended.len(), 20);
        assert!(gpu.is_idle());
    }
}

#[test]
fn kernels_without_the_barrier_bit_run_together_and_end_in_any_order() {
    let mut orders = std::collections::HashSet::new();
    for seed in SEEDS {
        let (mut gpu, queue) = machine(seed);
        queue
            .submit(&[kernel(NULL), kernel(NULL), kernel(NULL)])
            .unwrap();
        orders.insert(run(&mut gpu).1);
    }
    assert_eq!(orders.len(), 6, "{orders:?}");
}

#[test]
fn the_barrier_bit_waits_for_all_earlier_packets_whatever_the_type() {
    let kinds: [fn(hsa_signal_t) -> AqlPacket; 4] = [
        kernel,
        |s| and(&[], s),
        vendor,
        |s| kernel(s).with_header(4),
    ];
    for seed in SEEDS {
        for make in kinds {
            let (mut gpu, queue) = machine(seed);
            let done = signal(&gpu, 1);
            let (first, second) = (signal(&gpu, 1), signal(&gpu, 1));
            queue
                .submit(&[
                    kernel(first),
                    Kernel::lasting(50_000).completion(second).packet(),
                    make(done).with_barrier_bit(),
                    kernel(NULL),
                ])
                .unwrap();
            while gpu.step().is_some() {
                let earlier = gpu.signals().load(first) + gpu.signals().load(second);
                assert!(earlier == 0 || queue.read_index() <= 2);
                assert!(earlier == 0 || gpu.signals().load(done) == 1);
            }
            assert_eq!(gpu.signals().load(done), 0);
        }
    }
}

#[test]
fn a_barrier_or_with_the_barrier_bit_waits_for_both() {
    let (mut gpu, queue) = machine(0);
    let met = signal(&gpu, 0);
    let last = signal(&gpu, 1);
    queue
        .submit(&[
            Kernel::until(last).packet(),
            or(&[met], NULL).with_barrier_bit(),
        ])
        .unwrap();
    assert_eq!(gpu.run_until_idle().unwrap_err().waits.len(), 2);
    gpu.signals().store(last, 0);
    gpu.run_until_idle().unwrap();
}

#[test]
fn without_the_barrier_bit_a_barrier_does_not_wait_for_earlier_kernels() {
    let (mut gpu, queue) = machine(0);
    let done = signal(&gpu, 1);
    queue
        .submit(&[Kernel::endless().packet(), and(&[], done)])
        .unwrap();
    assert!(gpu.run_until_idle().unwrap_err().only_endless());
    assert_eq!(gpu.signals().load(done), 0);
}

#[test]
fn a_barrier_and_waits_for_all_and_nothing_behind_it_is_launched() {
    for seed in SEEDS {
        let (mut gpu, queue) = machine(seed);
        let (a, b) = (signal(&gpu, 1), signal(&gpu, -1));
        let done = signal(&gpu, 1);
        queue.submit(&[and(&[a, b], done), kernel(NULL)]).unwrap();
        assert!(gpu.step().is_none());
        gpu.signals().store(a, 0);
        assert!(gpu.step().is_none(), "-1 is not met");
        gpu.signals().store(b, 0);
        assert_eq!(run(&mut gpu).0, [0, 1]);
        assert_eq!(gpu.signals().load(done), 0);
    }
}

#[test]
fn a_barrier_or_waits_for_any() {
    let (mut gpu, queue) = machine(0);
    let (a, b) = (signal(&gpu, 1), signal(&gpu, 1));
    queue.submit(&[or(&[a, b], NULL)]).unwrap();
    assert!(gpu.step().is_none());
    gpu.signals().store(b, 0);
    gpu.run_until_idle().unwrap();
}

#[test]
fn a_null_dependency_is_met_for_and_and_not_met_for_or() {
    let (mut gpu, queue) = machine(0);
    let a = signal(&gpu, 1);
    queue
        .submit(&[and(&[], NULL), and(&[NULL, NULL], NULL)])
        .unwrap();
    gpu.run_until_idle().unwrap();
    queue.submit(&[or(&[NULL, a], NULL)]).unwrap();
    assert!(gpu.step().is_none());
    gpu.signals().store(a, 0);
    gpu.run_until_idle().unwrap();
    queue.submit(&[or(&[], NULL)]).unwrap();
    assert!(gpu.run_until_idle().is_err(), "all null: never met");
}

#[test]
fn completion_subtracts_one_and_may_go_below_zero() {
    let (mut gpu, queue) = machine(0);
    let done = signal(&gpu, 1);
    queue
        .submit(&[
            kernel(done),
            and(&[], done),
            or(&[signal(&gpu, 0)], done),
            vendor(done),
        ])
        .unwrap();
    gpu.run_until_idle().unwrap();
    assert_eq!(gpu.signals().load(done), -3);
}

#[test]
fn a_kernel_that_ends_badly_stores_its_value_and_the_queue_goes_on() {
    let (mut gpu, queue) = machine(0);
    let (bad, good) = (signal(&gpu, 1), signal(&gpu, 1));
    let kernel = Kernel::lasting(10).ends(Ends::Badly(-7)).completion(bad);
    queue
        .submit(&[
            kernel.packet(),
            Kernel::lasting(10).barrier().completion(good).packet(),
        ])
        .unwrap();
    gpu.run_until_idle().unwrap();
    assert_eq!((gpu.signals().load(bad), gpu.signals().load(good)), (-7, 0));
}

#[test]
fn a_kernel_lasts_as_long_as_it_says_and_writes_what_it_says() {
    let (mut gpu, queue) = machine(0);
    let (done, flag) = (signal(&gpu, 1), signal(&gpu, 1));
    queue
        .submit(&[
            Kernel::until(flag).completion(done).packet(),
            Kernel::lasting(7_000).writes(flag, 0).packet(),
        ])
        .unwrap();
    gpu.run_until_idle().unwrap();
    assert_eq!(gpu.now(), 7_000);
    assert_eq!(gpu.signals().load(done), 0);
}

#[test]
fn packets_of_other_types_are_consumed_and_complete() {
    let (mut gpu, queue) = machine(0);
    let done = signal(&gpu, 2);
    queue
        .submit(&[vendor(done), vendor(done).with_header(0x77), kernel(NULL)])
        .unwrap();
    assert_eq!(run(&mut gpu).0, [0, 1, 2]);
    assert_eq!(gpu.signals().load(done), 0);
    assert_eq!(queue.foreign(), 2);
}

#[test]
fn a_slot_is_not_consumed_before_its_header_and_the_doorbell() {
    let (mut gpu, queue) = machine(0);
    let first = queue.reserve(2).unwrap();
    queue.write(first, &kernel(NULL));
    queue.write(first + 1, &kernel(NULL));
    queue.ring_doorbell(first + 1);
    assert!(gpu.step().is_none(), "both INVALID");
    assert_eq!(queue.slot(first).packet_type(), Some(PacketType::Invalid));
    queue.publish(first + 1, kernel(NULL).header());
    assert!(gpu.step().is_none(), "the first is still INVALID");
    let stuck = gpu.run_until_idle().unwrap_err();
    assert_eq!(stuck.waits[0].waits, Waits::Unpublished);
    queue.publish(first, kernel(NULL).header());
    assert_eq!(run(&mut gpu).0, [0, 1]);

    let third = queue.reserve(1).unwrap();
    queue.write(third, &kernel(NULL));
    queue.publish(third, kernel(NULL).header());
    assert!(gpu.step().is_none(), "not rung for");
    queue.ring_doorbell(third);
    assert_eq!(run(&mut gpu).0, [2]);
}

#[test]
fn a_doorbell_past_what_is_published_overshoots_nothing() {
    let (mut gpu, queue) = machine(0);
    queue.ring_doorbell(10);
    assert!(gpu.step().is_none());
    queue.submit(&[kernel(NULL)]).unwrap();
    assert_eq!(run(&mut gpu).0, [0]);
    assert_eq!(
        (queue.read_index(), queue.write_index(), queue.doorbell()),
        (1, 1, 11)
    );
}

#[test]
fn a_doorbell_may_be_rung_for_the_last_index_there_is() {
    let (mut gpu, queue) = machine(0);
    queue.ring_doorbell(u64::MAX);
    queue.submit(&[kernel(NULL)]).unwrap();
    assert_eq!(run(&mut gpu).0, [0]);
    assert_eq!(queue.doorbell(), u64::MAX);
}

#[test]
fn a_slot_that_nobody_reserved_runs_and_a_later_reservation_is_answered() {
    let (mut gpu, queue) = machine(0);
    for index in 0..2 {
        queue.write(index, &vendor(NULL));
        queue.publish(index, vendor(NULL).header());
        queue.ring_doorbell(index);
    }
    assert_eq!(run(&mut gpu).0, [0, 1]);
    assert_eq!((queue.read_index(), queue.write_index()), (2, 0));
    assert_eq!(queue.reserve(1), Some(0));
    queue.submit(&[kernel(NULL), kernel(NULL)]).unwrap();
    assert_eq!(run(&mut gpu).0, [2], "indices 0 and 1 were over");
}

#[test]
fn a_consumed_slot_is_invalid_again() {
    let (mut gpu, queue) = machine(0);
    queue.submit(&[kernel(NULL)]).unwrap();
    assert_eq!(
        queue.slot(0).packet_type(),
        Some(PacketType::KernelDispatch)
    );
    gpu.run_until_idle().unwrap();
    assert_eq!(queue.slot(0).packet_type(), Some(PacketType::Invalid));
}

#[test]
fn a_full_ring_gives_no_slots_and_loses_none() {
    let (mut gpu, _) = machine(0);
    let queue = ring(&gpu, 4);
    assert!(queue.reserve(5).is_none());
    assert_eq!(queue.reserve(4), Some(0));
    for n in [1, u64::MAX] {
        assert!(queue.reserve(n).is_none());
    }
    for index in 0..4 {
        queue.write(index, &vendor(NULL));
        queue.publish(index, vendor(NULL).header());
    }
    queue.ring_doorbell(3);
    gpu.run_until_idle().unwrap();
    assert_eq!(queue.reserve(4), Some(4));
}

#[test]
fn a_batch_larger_than_the_ring_or_past_its_end_goes_through_in_order() {
    for seed in SEEDS {
        let (mut gpu, _) = machine(seed);
        let queue = ring(&gpu, 8);
        let done = signal(&gpu, 0);
        let mut n = 0;
        for size in [3, 7, 40, 1, 8, 9, 100] {
            let batch: Vec<_> = (0..size)
                .map(|i| Kernel::lasting(i).id(n as u32).completion(done).packet())
                .collect();
            n += size;
            queue.submit(&batch).unwrap();
        }
        let (launched, _) = run(&mut gpu);
        assert_eq!(launched, (0..n).collect::<Vec<_>>());
        assert_eq!(gpu.signals().load(done), -(n as i64));
        assert_eq!(queue.overflowing(), 0);
    }
}

#[test]
fn so_many_kernels_run_at_a_time_as_the_queue_can_hold() {
    let (mut gpu, _) = machine(0);
    let config = softgpu::QueueConfig {
        most_running: 2,
        ..Default::default()
    };
    let queue = gpu.create_queue(gpu.agent(0), config).unwrap();
    queue.submit(&vec![kernel(NULL); 50]).unwrap();
    while gpu.step().is_some() {
        assert!(queue.running() <= 2);
    }
    assert!(gpu.is_idle());
}
