//! Requests, guards and by hand, beside each other and beside the host's own switch.

use crate::host::{Rig, in_time, serializer};
use crate::lane::Lane;
use hsa_serializer::doc_runtime::Failure;
use hsa_serializer::{
    Agents, Domain, Mode, ReleaseError, Serializer, SignalError, Transition, TransitionError,
    hsa_status_t,
};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

const CHANGED: Transition = Transition::Changed { waiting_for: 0 };

#[test]
fn s19_nested_and_overlapping_regions_are_on_until_the_last_one_ends() {
    let rig = Rig::default();
    let s = serializer(&rig);
    let [a, b, c] = [(); 3].map(|()| s.request().unwrap());
    // Not in the order in which they came.
    for (request, left) in [(b, 2), (a, 1)] {
        assert_eq!(request.end(), Transition::Unchanged);
        assert_eq!((s.mode(), s.requests()), (Mode::Enabled, left));
    }
    drop(c);
    assert_eq!((s.mode(), s.requests()), (Mode::Disabled, 0));
    assert_eq!(s.statistics().transitions, 2);
    drop(s);
    rig.is_left_by_all();
}

#[test]
fn s12_a_release_without_an_acquire_is_an_error_and_no_underflow() {
    let rig = Rig::default();
    let s = serializer(&rig);
    assert_eq!(s.release(), Err(ReleaseError::Unbalanced));
    assert_eq!((s.mode(), s.requests()), (Mode::Disabled, 0));
    assert_eq!(s.acquire(), Ok(CHANGED));
    assert_eq!((s.mode(), s.requests()), (Mode::Enabled, 1));
    assert_eq!(s.release(), Ok(CHANGED));
    // One too many takes nothing away from a guard, nor from the switch.
    let guard = s.request().unwrap();
    assert_eq!(s.release(), Err(ReleaseError::Unbalanced));
    assert_eq!((s.mode(), s.requests()), (Mode::Enabled, 1));
    s.enable().unwrap();
    assert_eq!(guard.end(), Transition::Unchanged);
    assert_eq!(s.release(), Err(ReleaseError::Unbalanced));
    assert_eq!(s.mode(), Mode::Enabled);
    assert_eq!(s.disable(), Ok(CHANGED));
    drop(s);
    rig.is_left_by_all();
}

/// Somebody releases what was never acquired, just when an acquisition is about to fail: he takes that one.
#[test]
fn s12_a_release_too_many_and_an_acquisition_that_fails_leave_nothing_requested() {
    let rig = Rig::default();
    let s = serializer(&rig);
    let (other, host) = (s.clone(), rig.clone());
    let (released, is_released) = mpsc::channel();
    let released = Mutex::new(released);
    rig.on_create(move |_| {
        host.let_go();
        host.host().fail_creations(Some(Failure::NullHandle));
        let s = other.clone();
        // It counts, and then waits for the lock that we hold.
        let thread = thread::spawn(move || s.release().unwrap());
        released.lock().unwrap().send(thread).unwrap();
        while other.requests() > 0 {
            thread::yield_now();
        }
    });
    assert!(s.acquire().is_err());
    is_released.recv().unwrap().join().unwrap();
    assert_eq!((s.mode(), s.requests()), (Mode::Disabled, 0));
    drop((s, is_released));
    rig.is_left_by_all();
}

#[test]
fn the_switch_is_one_bit_beside_the_requests() {
    let rig = Rig::default();
    let s = serializer(&rig);
    for _ in 0..3 {
        s.enable().unwrap();
    }
    let request = s.request().unwrap();
    assert_eq!(s.disable(), Ok(Transition::Kept { requests: 1 }));
    assert_eq!(s.disable(), Ok(Transition::Kept { requests: 1 }));
    assert_eq!(s.mode(), Mode::Enabled);
    assert_eq!(s.enable(), Ok(Transition::Unchanged));
    assert_eq!(request.end(), Transition::Unchanged);
    assert_eq!(s.mode(), Mode::Enabled);
    assert_eq!(s.disable(), Ok(CHANGED));
    // Switched off while it is requested: the end of the request is the end.
    let request = s.request().unwrap();
    s.enable().unwrap();
    s.disable().unwrap();
    assert_eq!(request.end(), CHANGED);
    assert_eq!(s.mode(), Mode::Disabled);
}

#[test]
fn a_request_that_gets_no_signal_leaves_nothing() {
    let rig = Rig::default();
    let s = serializer(&rig);
    let error = Err(TransitionError::Signal(SignalError::NullHandle));
    rig.host().fail_creations(Some(Failure::NullHandle));
    assert_eq!(s.request().map(|_| ()), error);
    assert_eq!(s.acquire().map(|_| ()), error);
    assert_eq!(s.enable().map(|_| ()), error);
    assert_eq!((s.mode(), s.requests()), (Mode::Disabled, 0));
    rig.host().fail_creations(None);
    // The switch that could not be turned on is off, too.
    let request = s.request().unwrap();
    rig.host().fail_creations(Some(Failure::NullHandle));
    // What is on already takes no signal, and turning off takes none.
    let other = s.request().unwrap();
    drop((request, other));
    assert_eq!((s.mode(), s.requests()), (Mode::Disabled, 0));
    drop(s);
    rig.is_left_by_all();
}

/// While it waits for its signal, another request comes and goes, which leaves it on for the first one;
/// and then that gets none.
#[test]
fn what_was_turned_on_for_a_request_that_fails_is_turned_off() {
    let rig = Rig::default();
    let s = serializer(&rig);
    let (weak, host) = (s.downgrade(), rig.host().clone());
    let first = AtomicU64::new(1);
    rig.on_create(move |_| {
        if first.swap(0, SeqCst) == 0 {
            return;
        }
        let other = weak.upgrade().unwrap();
        let outcome = in_time(move || {
            let request = other.request().unwrap();
            (request.end(), other.mode())
        });
        assert_eq!(outcome, (Transition::Unchanged, Mode::Enabled));
        host.fail_creations(Some(Failure::Status(hsa_status_t::ERROR_OUT_OF_RESOURCES)));
    });
    assert!(s.request().is_err());
    assert_eq!((s.mode(), s.requests()), (Mode::Disabled, 0));
    rig.let_go();
    drop(s);
    rig.is_left_by_all();
}

#[test]
fn requests_outlive_the_end() {
    let rig = Rig::default();
    let s = serializer(&rig);
    let (one, other) = (s.request().unwrap(), s.request().unwrap());
    s.acquire().unwrap();
    s.finish_shutdown(Duration::from_secs(60)).unwrap();
    assert_eq!(
        s.request().map(|_| ()).unwrap_err(),
        TransitionError::ShutDown
    );
    assert_eq!(s.release(), Ok(Transition::Unchanged));
    assert_eq!(s.release(), Err(ReleaseError::Unbalanced));
    assert_eq!(one.end(), Transition::Unchanged);
    assert_eq!(s.requests(), 1);
    drop(s);
    drop(other);
    rig.is_left_by_all();
}

/// Two threads request and release for ever, some of it in vain since no signal is to be had, while a
/// third one touches the agent for the first time, and dispatches.
#[test]
fn s10_whatever_threads_do_at_once_the_mode_agrees_with_the_requests() {
    const ROUNDS: u64 = if cfg!(debug_assertions) {
        2_000
    } else {
        20_000
    };
    for round in 0..20_u64 {
        let rig = Rig::default();
        let refused = Arc::new(AtomicU64::new(0));
        let agents = {
            let rig = rig.clone();
            let domain = Domain::new();
            Agents::new(move |_| {
                let builder = Serializer::<Rig>::builder().domain(domain.clone());
                builder.build(rig.clone())
            })
        };
        let start = Barrier::new(3);
        thread::scope(|scope| {
            for thread in 0..2_u64 {
                let (agents, start, refused, rig) = (&agents, &start, &refused, &rig);
                scope.spawn(move || {
                    start.wait();
                    for n in 0..ROUNDS / 20 {
                        // The signals give out, for one who asks for all and for one who does not.
                        if (n + round) % 64 == 5 {
                            rig.host().fail_creations(Some(Failure::NullHandle));
                        } else if n % 8 == 0 {
                            rig.host().fail_creations(None);
                        }
                        if thread == 0 {
                            let Ok(all) = agents.request_all() else {
                                refused.fetch_add(1, SeqCst);
                                continue;
                            };
                            if let Some(s) = agents.get(1) {
                                assert_eq!(s.mode(), Mode::Enabled, "requested of all");
                            }
                            drop(all);
                        } else {
                            let Ok(s) = agents.of(1) else {
                                continue;
                            };
                            match s.request() {
                                Ok(_request) => assert_eq!(s.mode(), Mode::Enabled, "requested"),
                                Err(_) => {
                                    refused.fetch_add(1, SeqCst);
                                }
                            }
                        }
                    }
                });
            }
            start.wait();
            if let Ok(s) = agents.of(1) {
                let request = s.request();
                if request.is_ok() {
                    assert_eq!(s.mode(), Mode::Enabled);
                }
            }
        });
        rig.host().fail_creations(None);
        let s = agents.of(1).unwrap();
        assert_eq!((s.mode(), s.requests()), (Mode::Disabled, 0));
        let request = s.request().unwrap();
        let mut lane = Lane::new(s);
        assert!(lane.dispatch());
        lane.end();
        drop(request);
        assert!(!lane.dispatch());
        lane.end();
        lane.destroy();
        let s = s.clone();
        drop(agents);
        drop(s);
        rig.is_left_by_all();
    }
}
