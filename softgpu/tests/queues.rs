//! A queue's life: interceptor, destruction, inactivation, faults, handles that come again.

mod common;
use common::*;
use hsa_sys::{SignalCondition::Lt, hsa_signal_t, hsa_status_t};
use softgpu::{Ends, Kernel, QueueConfig, QueueState, Step};
use std::sync::{Arc, Mutex};

const NULL: hsa_signal_t = hsa_signal_t::NULL;

#[test]
fn the_interceptor_decides_what_the_ring_holds() {
    let (mut gpu, queue) = machine(0);
    let done = signal(&gpu, 1);
    queue.set_interceptor(Box::new(move |packets, out| {
        out.push(and(&[], NULL));
        out.extend(packets.iter().map(|p| p.with_completion_signal(done)));
    }));
    queue.submit(&[kernel(NULL)]).unwrap();
    assert_eq!(run(&mut gpu).0, [0, 1]);
    assert_eq!(gpu.signals().load(done), 0);
    queue.submit_unseen(&[kernel(NULL)]).unwrap();
    assert_eq!(run(&mut gpu).0, [2]);
    let stats = gpu.witness().kernels(gpu.agent(0));
    assert_eq!((stats.started, stats.unseen), (2, 1));
}

#[test]
fn an_interceptor_and_a_handler_may_use_the_machine() {
    let (mut gpu, first) = machine(0);
    let second = queue(&gpu);
    let machine = gpu.gpu().clone();
    first.set_interceptor(Box::new(move |packets, out| {
        let done = signal(&machine, 1);
        let (third, inner) = (queue(&machine), machine.clone());
        let handler = move |_| {
            inner.signals().destroy(done).unwrap();
            third.submit(&[kernel(NULL)]).unwrap();
            inner.destroy_queue(&third).unwrap();
            false
        };
        machine
            .signals()
            .on_signal(done, Lt, 1, Box::new(handler))
            .unwrap();
        second.submit(&[kernel(done)]).unwrap();
        out.extend_from_slice(packets);
    }));
    first.submit(&[kernel(NULL)]).unwrap();
    gpu.run_until_idle().unwrap();
    assert_eq!(gpu.signals().stats().live, 0);
    assert_eq!(gpu.queues().len(), 2);
    gpu.witness().assert_clean();
}

#[test]
#[should_panic(expected = "may not submit to its own queue")]
fn an_interceptor_that_submits_to_its_own_queue_is_told() {
    let (_gpu, queue) = machine(0);
    let own = queue.clone();
    queue.set_interceptor(Box::new(move |packets, _| own.submit(packets).unwrap()));
    let _ = queue.submit(&[kernel(NULL)]);
}

#[test]
fn destroying_drops_what_waits_and_abandons_what_runs() {
    for seed in SEEDS {
        let (mut gpu, queue) = machine(seed);
        let (ran, waited, flag) = (signal(&gpu, 1), signal(&gpu, 1), signal(&gpu, 1));
        queue
            .submit(&[
                Kernel::lasting(9_000).completion(ran).packet(),
                and(&[flag], NULL),
                kernel(waited),
            ])
            .unwrap();
        assert!(matches!(gpu.step(), Some(Step::Launched { .. })));
        gpu.destroy_queue(&queue).unwrap();
        assert_eq!(queue.state(), QueueState::Destroyed);
        assert_eq!(queue.dropped(), 2);
        gpu.signals().store(flag, 0);
        assert!(gpu.step().is_none());
        assert_eq!(
            (gpu.signals().load(ran), gpu.signals().load(waited)),
            (1, 1)
        );
        assert_eq!(gpu.witness().kernels(gpu.agent(0)).abandoned, 1);
        assert_eq!(queue.submit(&[]), Err(hsa_status_t::ERROR_INVALID_QUEUE));
        assert_eq!(
            gpu.destroy_queue(&queue),
            Err(hsa_status_t::ERROR_INVALID_QUEUE)
        );
        gpu.witness().assert_clean();
    }
}

#[test]
fn inactivating_completes_some_of_what_runs_and_none_of_what_waits() {
    let mut completed = 0;
    for seed in SEEDS {
        let (mut gpu, queue) = machine(seed);
        let (ran, waited) = (signal(&gpu, 1), signal(&gpu, 1));
        queue
            .submit(&[Kernel::endless().completion(ran).packet()])
            .unwrap();
        gpu.step().unwrap();
        queue.submit(&[kernel(waited)]).unwrap();
        gpu.inactivate_queue(&queue).unwrap();
        completed += 1 - gpu.signals().load(ran);
        queue.submit(&[kernel(waited)]).unwrap();
        gpu.run_until_idle().unwrap();
        assert_eq!(gpu.signals().load(waited), 1);
        assert_eq!(queue.dropped(), 2);
        gpu.destroy_queue(&queue).unwrap();
    }
    assert!((5..45).contains(&completed), "{completed}");
}

#[test]
fn a_fault_stops_its_queue_and_no_other_and_is_told() {
    let (mut gpu, other) = machine(0);
    let told = Arc::new(Mutex::new(Vec::new()));
    let noted = told.clone();
    let config = QueueConfig {
        on_error: Some(Box::new(move |queue, status| {
            noted.lock().unwrap().push((queue, status))
        })),
        ..Default::default()
    };
    let queue = gpu.create_queue(gpu.agent(0), config).unwrap();
    let (bad, behind, good) = (signal(&gpu, 1), signal(&gpu, 1), signal(&gpu, 1));
    let fault = Kernel::lasting(10).ends(Ends::Fault).completion(bad);
    queue
        .submit(&[fault.packet(), kernel(behind).with_barrier_bit()])
        .unwrap();
    other.submit(&[kernel(good)]).unwrap();
    gpu.run_until_idle().unwrap();
    let values = [bad, behind, good].map(|s| gpu.signals().load(s));
    assert_eq!(values, [1, 1, 0]);
    assert_eq!(queue.state(), QueueState::Faulted);
    assert_eq!(
        *told.lock().unwrap(),
        [(queue.id(), hsa_status_t::ERROR_EXCEPTION)]
    );
    assert_eq!(gpu.witness().kernels(gpu.agent(0)).abandoned, 1);
    gpu.destroy_queue(&queue).unwrap();
    assert_eq!(queue.dropped(), 1);
}

#[test]
fn a_destroyed_queues_handle_comes_again_with_another_name() {
    let (gpu, first) = machine(0);
    let second = queue(&gpu);
    assert_ne!(first.handle(), second.handle());
    gpu.destroy_queue(&first).unwrap();
    gpu.destroy_queue(&second).unwrap();
    let third = queue(&gpu);
    assert_eq!(third.handle(), second.handle());
    assert_ne!(third.id(), second.id());
}

#[test]
fn a_queue_may_come_and_go_while_another_ones_interceptor_runs() {
    let (mut gpu, first) = machine(0);
    let gone = queue(&gpu);
    let machine = gpu.gpu().clone();
    first.set_interceptor(Box::new(move |packets, out| {
        let handle = gone.handle();
        if gone.state() == QueueState::Active {
            machine.destroy_queue(&gone).unwrap();
            let new = queue(&machine);
            assert_eq!(new.handle(), handle);
            new.submit(packets).unwrap();
        }
        out.extend_from_slice(packets);
    }));
    first.submit(&[kernel(NULL)]).unwrap();
    gpu.run_until_idle().unwrap();
    assert_eq!(gpu.witness().kernels(gpu.agent(0)).ended, 2);
}

#[test]
fn a_cooperative_queue_is_one_for_all_and_goes_with_the_last() {
    let (mut gpu, _) = machine(0);
    let create = |gpu: &softgpu::Gpu| {
        let config = QueueConfig {
            cooperative: true,
            ..Default::default()
        };
        gpu.create_queue(gpu.agent(0), config).unwrap()
    };
    let (first, second) = (create(&gpu), create(&gpu));
    assert_eq!(first.id(), second.id());
    gpu.destroy_queue(&first).unwrap();
    assert_eq!(second.state(), QueueState::Active);
    second.submit(&[kernel(NULL)]).unwrap();
    gpu.run_until_idle().unwrap();
    gpu.destroy_queue(&second).unwrap();
    assert_eq!(first.state(), QueueState::Destroyed);
    assert_ne!(create(&gpu).id(), first.id());
}

#[test]
fn wrong_agents_and_sizes_are_refused() {
    let (gpu, _) = machine(0);
    let create = |agent, slots| {
        let config = QueueConfig {
            slots,
            ..Default::default()
        };
        gpu.create_queue(agent, config).map(|_| ())
    };
    let nobody = hsa_sys::hsa_agent_t { handle: 1 };
    assert_eq!(create(nobody, 4), Err(hsa_status_t::ERROR_INVALID_AGENT));
    let wrong = Err(hsa_status_t::ERROR_INVALID_QUEUE_CREATION);
    for slots in [3, softgpu::MOST_SLOTS * 2, 1 << 63] {
        assert_eq!(create(gpu.agent(0), slots), wrong);
    }
}
