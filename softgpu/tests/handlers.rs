//! Asynchronous handlers: level-triggered, in any order, late, twice.

mod common;
use common::*;
use hsa_sys::SignalCondition::{Eq, Gte, Lt, Ne};
use softgpu::Step;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

#[test]
fn a_handler_is_called_while_its_condition_holds_and_it_asks_for_more() {
    let (mut gpu, _) = machine(0);
    let s = signal(&gpu, 0);
    let calls = listen(&gpu, s, Lt, 1, 3);
    gpu.run_until_idle().unwrap();
    assert_eq!(*calls.lock().unwrap(), [0; 4]);
    assert_eq!(gpu.handlers().registered, 0);
}

#[test]
fn a_kept_handler_rests_while_its_condition_does_not_hold() {
    let (mut gpu, _) = machine(0);
    let s = signal(&gpu, 1);
    let (signals, calls) = (gpu.signals().clone(), Arc::new(Mutex::new(0)));
    let counted = calls.clone();
    let handler = move |value| {
        assert_eq!(value, -1);
        *counted.lock().unwrap() += 1;
        assert_eq!(signals.compare_exchange(s, -1, 1), -1);
        true
    };
    gpu.signals()
        .on_signal(s, Eq, -1, Box::new(handler))
        .unwrap();
    for round in 0..5 {
        gpu.run_until_idle().unwrap();
        assert_eq!(*calls.lock().unwrap(), round);
        gpu.signals().store(s, -1);
    }
    assert_eq!(gpu.handlers().registered, 1);
}

#[test]
fn every_condition_is_met_as_it_says() {
    for (condition, compare, value) in [(Eq, 3, 3), (Ne, 3, 4), (Lt, 3, 2), (Gte, 3, 3)] {
        let (mut gpu, _) = machine(0);
        let s = signal(&gpu, if condition == Ne { 3 } else { 100 });
        if condition == Gte {
            gpu.signals().store(s, -100);
        }
        let calls = listen(&gpu, s, condition, compare, 0);
        gpu.run_until_idle().unwrap();
        assert!(calls.lock().unwrap().is_empty(), "{condition:?}");
        gpu.signals().store(s, value);
        gpu.run_until_idle().unwrap();
        assert_eq!(*calls.lock().unwrap(), [value], "{condition:?}");
    }
}

#[test]
fn a_condition_that_has_passed_calls_nobody() {
    let (mut gpu, _) = machine(0);
    let s = signal(&gpu, 1);
    let calls = listen(&gpu, s, Lt, 1, 0);
    gpu.signals().store(s, 0);
    gpu.signals().store(s, 1);
    gpu.run_until_idle().unwrap();
    assert!(calls.lock().unwrap().is_empty());
}

#[test]
fn handlers_are_called_in_every_order() {
    let mut orders = HashSet::new();
    for seed in 0..100 {
        let (mut gpu, _) = machine(seed);
        let order = Arc::new(Mutex::new(Vec::new()));
        for n in 0..3 {
            let (s, order) = (signal(&gpu, 0), order.clone());
            let handler = move |_| {
                order.lock().unwrap().push(n);
                false
            };
            gpu.signals()
                .on_signal(s, Lt, 1, Box::new(handler))
                .unwrap();
        }
        gpu.run_until_idle().unwrap();
        orders.insert(order.lock().unwrap().clone());
    }
    assert_eq!(orders.len(), 6);
}

#[test]
fn a_handler_may_destroy_its_own_signal_and_register_with_the_next_of_its_handle() {
    let (mut gpu, _) = machine(0);
    let s = signal(&gpu, 0);
    let (machine, calls) = (gpu.gpu().clone(), Arc::new(Mutex::new(Vec::new())));
    let noted = calls.clone();
    let handler = move |_| {
        machine.signals().destroy(s).unwrap();
        let next = signal(&machine, 0);
        assert_eq!(next, s);
        let noted = noted.clone();
        let second = move |value| {
            noted.lock().unwrap().push(value);
            false
        };
        machine
            .signals()
            .on_signal(next, Lt, 1, Box::new(second))
            .unwrap();
        // Asks to stay, but its signal went.
        true
    };
    gpu.signals()
        .on_signal(s, Lt, 1, Box::new(handler))
        .unwrap();
    gpu.run_until_idle().unwrap();
    assert_eq!(*calls.lock().unwrap(), [0]);
    assert_eq!(gpu.handlers().registered, 0);
    gpu.witness().assert_clean();
}

#[test]
fn the_handlers_of_a_destroyed_signal_are_forgotten() {
    let (mut gpu, _) = machine(0);
    let s = signal(&gpu, 0);
    let calls = listen(&gpu, s, Lt, 1, 0);
    gpu.signals().destroy(s).unwrap();
    gpu.run_until_idle().unwrap();
    assert!(calls.lock().unwrap().is_empty());
    assert_eq!(gpu.handlers().swept, 1);
    // The next signal of this handle has nothing of it.
    let next = signal(&gpu, 0);
    gpu.run_until_idle().unwrap();
    assert_eq!(next, s);
    assert!(calls.lock().unwrap().is_empty());
}

#[test]
fn by_a_fault_a_handler_is_called_after_its_signal_was_destroyed() {
    let (mut gpu, _) = machine(0);
    gpu.faults().change(|plan| plan.handler_after_destroy = 1.0);
    let s = signal(&gpu, 4);
    let calls = listen(&gpu, s, Lt, 1, 9);
    gpu.signals().destroy(s).unwrap();
    gpu.run_until_idle().unwrap();
    assert_eq!(*calls.lock().unwrap(), [4]);
    assert_eq!(gpu.handlers().registered, 0);
}

#[test]
fn by_a_fault_a_handler_is_called_twice_though_it_asked_not_to() {
    let (mut gpu, _) = machine(0);
    gpu.faults().change(|plan| plan.handler_twice = 1.0);
    let s = signal(&gpu, 0);
    let calls = listen(&gpu, s, Lt, 1, 0);
    gpu.run_until_idle().unwrap();
    assert_eq!(*calls.lock().unwrap(), [0, 0]);
    assert_eq!(gpu.handlers().repeated, 1);
    assert_eq!(gpu.handlers().registered, 0);
}

#[test]
fn by_a_fault_a_handler_comes_late_with_the_value_that_was_seen() {
    let (mut gpu, _) = machine(0);
    gpu.faults().change(|plan| {
        plan.handler_late = 1.0;
        plan.late_by = 10_000;
    });
    let s = signal(&gpu, 0);
    let calls = listen(&gpu, s, Lt, 1, 0);
    let step = gpu.step().unwrap();
    assert!(matches!(step, Step::Advanced { to } if (1..=10_000).contains(&to)));
    // The condition does not hold any more, but the call is on its way.
    gpu.signals().store(s, 1);
    gpu.run_until_idle().unwrap();
    assert_eq!(*calls.lock().unwrap(), [0]);
    assert_eq!(gpu.handlers().late, 1);
}

#[test]
fn a_call_that_comes_late_at_the_end_of_time_comes_at_once() {
    let (mut gpu, _) = machine(0);
    while gpu.step_until(u64::MAX).is_some() {}
    gpu.faults().change(|plan| {
        plan.handler_late = 1.0;
        plan.late_by = 10_000;
    });
    let calls = listen(&gpu, signal(&gpu, 0), Lt, 1, 0);
    gpu.run_until_idle().unwrap();
    assert_eq!(*calls.lock().unwrap(), [0]);
}

#[test]
fn by_a_fault_the_handler_threads_are_gone() {
    let (mut gpu, _) = machine(0);
    gpu.faults().change(|plan| plan.handlers_dead = true);
    let calls = listen(&gpu, signal(&gpu, 0), Lt, 1, 0);
    gpu.run_until_idle().unwrap();
    assert!(calls.lock().unwrap().is_empty());
    assert_eq!(gpu.describe().handlers.len(), 1);
    gpu.faults().change(|plan| plan.handlers_dead = false);
    gpu.run_until_idle().unwrap();
    assert_eq!(*calls.lock().unwrap(), [0]);
}
