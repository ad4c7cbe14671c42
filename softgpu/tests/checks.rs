//! Each check is seen to fire on a planted fault, and to let pass what is right or ambiguous.

mod common;
use common::*;
use hsa_sys::{FenceScope, PacketType, header, hsa_signal_t};
use softgpu::{Config, Kernel, QueueConfig, Violation, VirtualGpu};

const NULL: hsa_signal_t = hsa_signal_t::NULL;

fn long(id: u32) -> hsa_sys::AqlPacket {
    Kernel::lasting(1_000_000).id(id).packet()
}

fn launch(gpu: &mut VirtualGpu, n: u64) {
    let started = |gpu: &VirtualGpu| gpu.witness().kernels(gpu.agent(0)).started;
    while started(gpu) < n {
        gpu.step().unwrap();
    }
}

fn enable(gpu: &VirtualGpu) {
    gpu.witness().enable_begin(gpu.agent(0));
    gpu.witness().enable_end(gpu.agent(0));
}

fn disable(gpu: &VirtualGpu) {
    gpu.witness().disable_begin(gpu.agent(0));
    gpu.witness().disable_end(gpu.agent(0));
}

#[test]
fn kernels_may_overlap_while_disabled() {
    let (mut gpu, _) = machine(0);
    let (a, b) = (seen(&gpu), seen(&gpu));
    a.submit(&[long(1), long(2)]).unwrap();
    b.submit(&[long(3)]).unwrap();
    launch(&mut gpu, 3);
    assert_eq!(gpu.witness().kernels(gpu.agent(0)).most_running, 3);
    gpu.witness().assert_clean();
}

#[test]
fn an_overlap_while_enabled_is_found_on_two_queues_and_on_one() {
    for two in [true, false] {
        let (mut gpu, _) = machine(0);
        let a = seen(&gpu);
        let b = if two { seen(&gpu) } else { a.clone() };
        enable(&gpu);
        a.submit(&[long(1)]).unwrap();
        b.submit(&[long(2)]).unwrap();
        launch(&mut gpu, 2);
        assert_eq!(gpu.witness().counts().overlaps, 1);
        assert_eq!(gpu.witness().counts().total(), 1);
        let text = gpu.witness().violations()[0].to_string();
        assert!(
            text.contains("kernel 1") && text.contains("kernel 2"),
            "{text}"
        );
    }
}

#[test]
fn kernels_one_after_another_are_right_while_enabled() {
    let (mut gpu, _) = machine(0);
    let a = seen(&gpu);
    enable(&gpu);
    a.submit(&[
        long(1),
        long(2).with_barrier_bit(),
        long(3).with_barrier_bit(),
    ])
    .unwrap();
    gpu.run_until_idle().unwrap();
    gpu.witness().assert_clean();
}

#[test]
fn other_agents_and_unseen_kernels_are_outside_the_promise() {
    let mut gpu = VirtualGpu::new(Config {
        agents: 2,
        ..Config::default()
    });
    enable(&gpu);
    let a = seen(&gpu);
    let b = gpu
        .create_queue(gpu.agent(1), QueueConfig::default())
        .unwrap();
    b.set_interceptor(Box::new(|packets, out| out.extend_from_slice(packets)));
    a.submit(&[long(1)]).unwrap();
    a.submit_unseen(&[long(2)]).unwrap();
    b.submit(&[long(3), long(4)]).unwrap();
    gpu.run_until_idle().unwrap();
    gpu.witness().assert_clean();
    assert_eq!(gpu.witness().kernels(gpu.agent(0)).unseen, 1);
}

#[test]
fn a_kernel_of_the_new_mode_beside_one_of_the_old_is_found() {
    for on in [true, false] {
        let (mut gpu, _) = machine(0);
        let (a, b) = (seen(&gpu), seen(&gpu));
        if !on {
            enable(&gpu);
        }
        a.submit(&[long(1)]).unwrap();
        launch(&mut gpu, 1);
        if on {
            enable(&gpu)
        } else {
            disable(&gpu)
        }
        b.submit(&[long(2)]).unwrap();
        launch(&mut gpu, 2);
        assert_eq!(gpu.witness().counts().mode_overlaps, 1);
        assert_eq!(gpu.witness().counts().total(), 1);
    }
}

#[test]
fn a_kernel_of_the_old_mode_that_starts_after_the_new_one_is_found() {
    let (mut gpu, _) = machine(0);
    let (a, b) = (seen(&gpu), seen(&gpu));
    let hold = signal(&gpu, 1);
    a.submit(&[and(&[hold], NULL), long(1)]).unwrap();
    enable(&gpu);
    b.submit(&[long(2)]).unwrap();
    while gpu.step().is_some() {}
    gpu.witness().assert_clean();
    gpu.signals().store(hold, 0);
    gpu.run_until_idle().unwrap();
    assert_eq!(gpu.witness().counts().old_after_new, 1);
}

#[test]
fn a_dispatch_during_a_transition_may_be_of_either_mode_but_of_one() {
    let (mut gpu, _) = machine(0);
    let (a, b, c) = (seen(&gpu), seen(&gpu), seen(&gpu));
    a.submit(&[long(1)]).unwrap();
    gpu.witness().enable_begin(gpu.agent(0));
    b.submit(&[long(2)]).unwrap();
    launch(&mut gpu, 2);
    gpu.witness().enable_end(gpu.agent(0));
    gpu.witness().assert_clean();
    // Now one that is certainly new: beside neither of them is it right.
    c.submit(&[long(3)]).unwrap();
    launch(&mut gpu, 3);
    let counts = gpu.witness().counts();
    assert_eq!((counts.mode_overlaps, counts.overlaps), (1, 1));
}

#[test]
fn a_dispatch_during_a_transition_may_run_beside_the_old_mode_after_it() {
    let (mut gpu, _) = machine(0);
    let (a, b) = (seen(&gpu), seen(&gpu));
    a.submit(&[long(1)]).unwrap();
    launch(&mut gpu, 1);
    gpu.witness().enable_begin(gpu.agent(0));
    b.submit(&[long(2)]).unwrap();
    gpu.witness().enable_end(gpu.agent(0));
    launch(&mut gpu, 2);
    gpu.witness().assert_clean();
}

#[test]
fn what_the_interceptor_does_in_the_middle_of_a_dispatch_is_ambiguous() {
    let (mut gpu, _) = machine(0);
    let (a, b) = (seen(&gpu), queue(&gpu));
    let machine = gpu.gpu().clone();
    b.set_interceptor(Box::new(move |packets, out| {
        let agent = machine.agent(0);
        machine.witness().enable_begin(agent);
        machine.witness().enable_end(agent);
        out.extend_from_slice(packets);
    }));
    a.submit(&[long(1)]).unwrap();
    b.submit(&[long(2)]).unwrap();
    launch(&mut gpu, 2);
    gpu.witness().assert_clean();
}

#[test]
fn a_transition_that_failed_changes_nothing() {
    let (mut gpu, _) = machine(0);
    let (a, b) = (seen(&gpu), seen(&gpu));
    a.submit(&[long(1)]).unwrap();
    gpu.witness().enable_begin(gpu.agent(0));
    gpu.witness().transition_failed(gpu.agent(0));
    b.submit(&[long(2)]).unwrap();
    launch(&mut gpu, 2);
    gpu.witness().assert_clean();
    assert_eq!(gpu.witness().periods(gpu.agent(0)), 0);
}

/// The fault that the serializer exists to end: a handle that is armed again under an old packet.
#[test]
fn a_packet_whose_signal_was_created_again_is_found() {
    let (mut gpu, queue) = machine(0);
    let (hold, barrier) = (signal(&gpu, 1), signal(&gpu, 1));
    queue
        .submit(&[and(&[hold], NULL), and(&[barrier], NULL)])
        .unwrap();
    gpu.signals().store(barrier, 0);
    gpu.signals().destroy(barrier).unwrap();
    assert_eq!(signal(&gpu, 1), barrier, "recycled and armed");
    gpu.signals().store(hold, 0);
    let stuck = gpu.run_until_idle().unwrap_err();
    assert_eq!(gpu.witness().counts().stale_packets, 1);
    let Violation::StalePacket {
        written,
        found,
        alive,
        packet,
        ..
    } = gpu.witness().violations()[0]
    else {
        panic!("another violation");
    };
    assert_eq!((written, found, alive, packet), (1, 2, true, 1));
    // And it hangs, as the real machine does; the report shows the handle's life.
    let text = stuck.to_string();
    assert!(
        text.contains("destroyed at 0") && text.contains("#2 at"),
        "{text}"
    );
}

#[test]
fn a_packet_whose_signal_was_destroyed_is_found_once() {
    let (mut gpu, queue) = machine(0);
    let (hold, gone) = (signal(&gpu, 1), signal(&gpu, 1));
    queue.submit(&[and(&[hold, gone], NULL)]).unwrap();
    assert!(gpu.step().is_none());
    gpu.signals().destroy(gone).unwrap();
    assert!(gpu.step().is_none());
    assert!(gpu.step().is_none());
    assert_eq!(gpu.witness().counts().stale_packets, 1);
}

#[test]
fn a_signal_that_was_dead_before_its_packet_was_written_is_found() {
    let (mut gpu, queue) = machine(0);
    let gone = signal(&gpu, 0);
    gpu.signals().destroy(gone).unwrap();
    queue.submit(&[and(&[gone], NULL)]).unwrap();
    gpu.run_until_idle().unwrap();
    assert_eq!(gpu.witness().counts().stale_packets, 1);
}

#[test]
fn a_completion_signal_that_goes_while_its_kernel_runs_is_found() {
    let (mut gpu, queue) = machine(0);
    let done = signal(&gpu, 1);
    queue.submit(&[kernel(done)]).unwrap();
    gpu.step().unwrap();
    gpu.signals().destroy(done).unwrap();
    gpu.run_until_idle().unwrap();
    let counts = gpu.witness().counts();
    assert_eq!((counts.stale_packets, counts.touched_destroyed), (1, 1));
}

#[test]
fn a_signal_destroyed_under_a_packet_is_found_though_its_queue_is_destroyed_then() {
    for slots in [1_024, 2] {
        let (gpu, _) = machine(0);
        let queue = ring(&gpu, slots);
        let barrier = signal(&gpu, 1);
        queue
            .submit(&[kernel(NULL), kernel(NULL), and(&[barrier], NULL)])
            .unwrap();
        gpu.signals().destroy(barrier).unwrap();
        gpu.destroy_queue(&queue).unwrap();
        assert_eq!(gpu.witness().counts().stale_packets, 1);
    }
}

#[test]
fn a_barrier_packet_that_is_added_without_fences_is_found_where_asked_for() {
    for (scope, weak) in [(FenceScope::System, 0), (FenceScope::Agent, 1)] {
        let (mut gpu, _) = machine(0);
        let config = QueueConfig {
            check_fences: true,
            interceptor: Some(Box::new(move |packets, out| {
                let head = header(PacketType::BarrierAnd, false, scope, FenceScope::System);
                let added = and(&[], NULL);
                out.push(added.with_header(head));
                out.extend_from_slice(packets);
            })),
            ..Default::default()
        };
        let queue = gpu.create_queue(gpu.agent(0), config).unwrap();
        // The caller's own barrier is the caller's matter.
        queue
            .submit(&[kernel(NULL), or(&[signal(&gpu, 0)], NULL)])
            .unwrap();
        gpu.run_until_idle().unwrap();
        assert_eq!(gpu.witness().counts().weak_fences, weak);
    }
}

#[test]
#[should_panic(expected = "1 violations")]
fn asserting_says_what_was_found() {
    let (gpu, _) = machine(0);
    gpu.signals().store(NULL, 0);
    gpu.witness().assert_clean();
}
