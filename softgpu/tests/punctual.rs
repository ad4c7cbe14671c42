//! Times that can be measured: a machine that is punctual, and steps up to a moment.

mod common;
use common::*;
use hsa_sys::SignalCondition::Lt;
use softgpu::{Config, Kernel, Step, VirtualGpu};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

fn punctual(seed: u64) -> VirtualGpu {
    VirtualGpu::new(Config {
        punctual: true,
        ..Config::seed(seed)
    })
}

#[test]
fn kernels_end_on_time_and_handlers_come_at_once() {
    for seed in SEEDS {
        let mut gpu = punctual(seed);
        let heard = Arc::new(AtomicU64::new(0));
        for n in 1..=5 {
            let done = signal(&gpu, 1);
            let (machine, count) = (gpu.gpu().clone(), heard.clone());
            let handler = move |_| {
                assert_eq!(machine.now(), 100 * n);
                count.fetch_add(1, SeqCst);
                false
            };
            gpu.signals()
                .on_signal(done, Lt, 1, Box::new(handler))
                .unwrap();
            let kernel = Kernel::lasting(100 * n).completion(done);
            queue(&gpu).submit(&[kernel.packet()]).unwrap();
        }
        // It starts when the one before it has ended, to the nanosecond.
        let last = queue(&gpu);
        let kernels = [Kernel::lasting(30), Kernel::lasting(4).barrier()];
        last.submit(&kernels.map(|kernel| kernel.packet())).unwrap();
        while let Some(step) = gpu.step() {
            if step
                == (Step::Ended {
                    queue: last.id(),
                    packet: 1,
                })
            {
                assert_eq!(gpu.now(), 34);
            }
        }
        assert_eq!((heard.load(SeqCst), gpu.now()), (5, 500));
    }
}

#[test]
fn steps_go_up_to_a_moment_and_no_further() {
    for seed in SEEDS {
        let mut gpu = punctual(seed);
        let first = queue(&gpu);
        first.submit(&[Kernel::lasting(50).packet()]).unwrap();
        // Between two events, at one, and long after the last.
        for (limit, ended) in [(20, 0), (50, 1), (1_000, 1)] {
            while gpu.step_until(limit).is_some() {}
            assert_eq!(gpu.now(), limit);
            assert_eq!(gpu.witness().kernels(gpu.agent(0)).ended, ended);
        }
        // A moment that is over does not come again, but what is due now happens.
        first.submit(&[Kernel::lasting(0).packet()]).unwrap();
        while gpu.step_until(3).is_some() {}
        assert_eq!(gpu.now(), 1_000);
        assert!(gpu.is_idle());
    }
}

#[test]
fn a_machine_that_is_not_punctual_stops_there_too() {
    for seed in SEEDS {
        let (mut gpu, queue) = machine(seed);
        queue.submit(&[Kernel::lasting(50).packet()]).unwrap();
        while gpu.step_until(30).is_some() {}
        assert_eq!(gpu.now(), 30);
        assert!(!gpu.is_idle());
        // The kernel has started by now, early or late.
        while gpu.step_until(80).is_some() {}
        assert_eq!(gpu.now(), 80);
        assert!(gpu.is_idle());
    }
}
