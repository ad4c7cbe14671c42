//! When nothing can go on any more it says so, and who waits for whom.

mod common;
use common::*;
use hsa_sys::{SignalCondition::Lt, hsa_signal_t};
use softgpu::{Kernel, Waits};

const NULL: hsa_signal_t = hsa_signal_t::NULL;

#[test]
fn two_queues_that_wait_for_each_other_are_named() {
    let (mut gpu, a) = machine(0);
    let b = queue(&gpu);
    let (x, y) = (signal(&gpu, 1), signal(&gpu, 1));
    a.submit(&[and(&[x], NULL), Kernel::lasting(1).completion(y).packet()])
        .unwrap();
    b.submit(&[and(&[y], NULL), Kernel::lasting(1).completion(x).packet()])
        .unwrap();
    let stuck = gpu.run_until_idle().unwrap_err();
    assert_eq!(stuck.waits.len(), 2);
    for (wait, (signal, other)) in stuck.waits.iter().zip([(x, &b), (y, &a)]) {
        let Waits::Barrier(_, signals) = &wait.waits else {
            panic!("{wait:?}");
        };
        assert_eq!(signals[0].signal, signal);
        assert_eq!(signals[0].written_by, [(other.id(), 1)]);
        assert_eq!(wait.behind, 1);
    }
    assert!(!stuck.only_endless());
}

#[test]
fn a_kernel_that_spins_for_one_behind_it_is_named() {
    let (mut gpu, queue) = machine(0);
    let flag = gpu
        .signals()
        .create_labelled(1, softgpu::SignalKind::GpuOnly, "the flag")
        .unwrap();
    queue
        .submit(&[
            Kernel::until(flag).id(1).packet(),
            Kernel::lasting(1).id(2).writes(flag, 0).barrier().packet(),
        ])
        .unwrap();
    let text = gpu.run_until_idle().unwrap_err().to_string();
    for part in [
        "(kernel 1) runs until",
        "(the flag) = 1",
        "(kernel 2) waits for 1 earlier",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn endless_kernels_are_told_from_those_that_wait() {
    let (mut gpu, queue) = machine(0);
    queue.submit(&[Kernel::endless().packet()]).unwrap();
    assert!(gpu.run_until_idle().unwrap_err().only_endless());
    queue.submit(&[and(&[signal(&gpu, 1)], NULL)]).unwrap();
    assert!(!gpu.run_until_idle().unwrap_err().only_endless());
}

#[test]
fn handlers_that_do_nothing_but_ask_again_are_no_progress() {
    let (mut gpu, _) = machine(0);
    let s = signal(&gpu, 0);
    listen(&gpu, s, Lt, 1, usize::MAX);
    let stuck = gpu.run_until_idle().unwrap_err();
    assert_eq!(stuck.handlers.len(), 1);
    assert_eq!(stuck.handlers[0].0.signal, s);
}

#[test]
fn waiting_for_what_can_not_come_ends_at_once() {
    let (mut gpu, queue) = machine(0);
    queue.submit(&[kernel(NULL)]).unwrap();
    assert!(gpu.run_until(|| false).is_err());
    assert!(gpu.is_idle());
    assert_eq!(gpu.run_until(|| true).unwrap(), 0);
}
