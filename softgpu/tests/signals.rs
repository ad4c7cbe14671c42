//! Signals: values, handles that are recycled, limits, failures, and the checks of their lives.

mod common;
use common::*;
use hsa_sys::{SignalCondition, hsa_signal_t, hsa_status_t};
use softgpu::{Config, Failure, SignalKind, VirtualGpu, What};

#[test]
fn values_are_read_written_and_exchanged() {
    let (gpu, _) = machine(0);
    let s = signal(&gpu, 5);
    assert_eq!(gpu.signals().compare_exchange(s, 5, 6), 5);
    assert_eq!(gpu.signals().compare_exchange(s, 5, 7), 6);
    gpu.signals().subtract(s, 10);
    assert_eq!(gpu.signals().load(s), -4);
}

#[test]
fn handles_are_recycled_last_in_first_out_and_are_never_null() {
    let (gpu, _) = machine(0);
    let [a, b, c] = [1, 2, 3].map(|value| signal(&gpu, value));
    assert!(!a.is_null() && a != b && b != c);
    gpu.signals().destroy(a).unwrap();
    gpu.signals().destroy(c).unwrap();
    let (first, second) = (signal(&gpu, 7), signal(&gpu, 8));
    assert_eq!((first, second), (c, a));
    assert_eq!(gpu.signals().load(first), 7);
    assert_eq!(gpu.signals().generation(c), (2, true));
    assert_eq!(gpu.signals().generation(b), (1, true));
    let stats = gpu.signals().stats();
    assert_eq!(
        (stats.live, stats.most_live, stats.created, stats.recycled),
        (3, 3, 5, 2)
    );
    gpu.witness().assert_clean();
}

#[test]
fn a_handle_remembers_what_became_of_it() {
    let (gpu, _) = machine(0);
    let s = gpu
        .signals()
        .create_labelled(1, SignalKind::GpuOnly, "barrier 3")
        .unwrap();
    gpu.signals().note(s, "armed");
    gpu.signals().destroy(s).unwrap();
    let history = gpu.signals().history(s);
    assert_eq!(history.len(), 3);
    assert_eq!(history[0].what, What::Created(1, "barrier 3".into()));
    assert_eq!(history[2].what, What::Destroyed(1));
    assert_eq!(gpu.signals().label(s), "barrier 3");
}

#[test]
fn there_are_so_many_signals_and_events_and_no_more() {
    let gpu = VirtualGpu::new(Config {
        signals: 3,
        interrupt_signals: 1,
        ..Config::default()
    });
    let create = |kind| gpu.signals().create(0, kind);
    let first = create(SignalKind::Interrupt).unwrap();
    let full = Err(hsa_status_t::ERROR_OUT_OF_RESOURCES);
    assert_eq!(create(SignalKind::Interrupt), full);
    create(SignalKind::GpuOnly).unwrap();
    create(SignalKind::GpuOnly).unwrap();
    assert_eq!(create(SignalKind::GpuOnly), full);
    gpu.signals().destroy(first).unwrap();
    assert_eq!(create(SignalKind::Interrupt), Ok(first));
    assert_eq!(gpu.signals().stats().most_live_interrupt, 1);
    assert_eq!(gpu.signals().stats().failed, 2);
}

#[test]
fn creations_fail_as_often_and_as_they_are_told_to() {
    let (gpu, _) = machine(3);
    let create = || gpu.signals().create(0, SignalKind::GpuOnly);
    gpu.faults().fail_next_creates(2, Failure::OutOfResources);
    assert_eq!(create(), Err(hsa_status_t::ERROR_OUT_OF_RESOURCES));
    assert!(create().is_err());
    assert!(!create().unwrap().is_null());
    gpu.faults().fail_next_creates(1, Failure::NullHandle);
    assert_eq!(create(), Ok(hsa_signal_t::NULL));
    assert!(!create().unwrap().is_null());
    gpu.faults().change(|plan| plan.create_fails = 0.5);
    let failed = (0..1_000).filter(|_| create().is_err()).count();
    assert!((400..600).contains(&failed), "{failed}");
    gpu.faults().change(|plan| {
        plan.create_fails = 0.0;
        plan.create_gives_null = 1.0;
    });
    assert_eq!(create(), Ok(hsa_signal_t::NULL));
}

#[test]
fn the_check_of_touching_what_is_destroyed_fires() {
    let (gpu, _) = machine(0);
    let s = signal(&gpu, 1);
    gpu.signals().destroy(s).unwrap();
    gpu.witness().assert_clean();
    gpu.signals().store(s, 0);
    let _ = gpu.signals().load(s);
    gpu.signals().subtract(s, 1);
    gpu.signals().compare_exchange(s, 0, 1);
    assert_eq!(gpu.witness().counts().touched_destroyed, 4);
    let text = gpu.witness().violations()[0].to_string();
    assert!(text.contains("store of the destroyed signal"), "{text}");
}

#[test]
fn the_checks_of_destroying_twice_and_of_unknown_handles_fire() {
    let (gpu, _) = machine(0);
    let s = signal(&gpu, 1);
    gpu.signals().destroy(s).unwrap();
    assert!(gpu.signals().destroy(s).is_err());
    assert_eq!(gpu.witness().counts().destroyed_twice, 1);
    for handle in [0, 1, s.handle + 1, s.handle + 64, u64::MAX] {
        gpu.signals().store(hsa_signal_t { handle }, 0);
    }
    assert_eq!(gpu.witness().counts().unknown_signals, 5);
}

#[test]
fn the_check_of_a_handler_without_an_event_fires() {
    let (gpu, _) = machine(0);
    let s = gpu.signals().create(1, SignalKind::GpuOnly).unwrap();
    listen(&gpu, s, SignalCondition::Lt, 1, 0);
    assert_eq!(gpu.witness().counts().handlers_on_gpu_signals, 1);
}
