//! Calls that other threads' calls make wrong while they are under way: each comes to a status, and what was taken
//! away is never used. What a plain run would not see, AddressSanitizer does:
//!
//! ```text
//! RUSTFLAGS=-Zsanitizer=address cargo +nightly test -p hsa-serializer-capi --test misuse --target x86_64-unknown-linux-gnu
//! ```

use crate::host::{Host, of};
use crate::lifecycle::{ENDS, leave};
use crate::world::*;
use hsa_serializer_capi::handle::*;
use hsa_serializer_capi::queue::*;
use hsa_serializer_capi::serializer::*;
use hsa_serializer_capi::shutdown::*;
use hsa_serializer_capi::status::hsa_serializer_status_t as Status;
use hsa_serializer_capi::status::hsa_serializer_status_t::*;
use hsa_serializer_capi::ticket::*;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

/// What a finished thread has of its own.
type Tickets = Vec<hsa_serializer_ticket_t>;

/// Dispatches until the queue's handle is stale.
fn dispatch_until_gone(queue: hsa_serializer_queue_t, begun: &AtomicU64) -> Tickets {
    let mut tickets = Vec::new();
    loop {
        match dispatch(queue) {
            Ok(dispatched) => tickets.push(dispatched.ticket),
            Err(HSA_SERIALIZER_STALE_HANDLE) => return tickets,
            Err(status) => panic!("{status:?}"),
        }
        begun.fetch_add(1, Ordering::Relaxed);
    }
}

/// As long as there is less, the remover is not in a race.
fn wait_for(begun: &AtomicU64, dispatches: u64) {
    while begun.load(Ordering::Relaxed) < dispatches {
        thread::yield_now();
    }
}

#[test]
fn s40_a_queue_that_is_removed_while_it_is_dispatched_on_is_not_used_again() {
    const THREADS: usize = 16;
    const QUEUES: usize = if cfg!(debug_assertions) { 60 } else { 600 };
    let host = Host::new();
    let serializer = serializer(host);
    thread::scope(|scope| {
        for seed in 0..THREADS {
            scope.spawn(move || {
                for round in 0..QUEUES {
                    let queue = add_queue(serializer).unwrap();
                    let begun = AtomicU64::new(0);
                    let tickets = thread::scope(|scope| {
                        let interceptor = scope.spawn(|| dispatch_until_gone(queue, &begun));
                        wait_for(&begun, ((seed + round) % 50) as u64);
                        let gone = hsa_serializer_queue_destroyed(queue);
                        assert_eq!(gone, HSA_SERIALIZER_SUCCESS);
                        interceptor.join().unwrap()
                    });
                    assert_eq!(dispatch(queue).err(), Some(HSA_SERIALIZER_STALE_HANDLE));
                    // Late, and from a queue that is gone: each comes back once.
                    for ticket in tickets {
                        let completed = hsa_serializer_complete(serializer, ticket);
                        assert_eq!(completed, HSA_SERIALIZER_SUCCESS);
                    }
                }
            });
        }
    });
    end(host, serializer);
    host.assert_no_violations();
    assert_eq!(host.signals(), 0);
}

#[test]
fn of_several_removers_one_removes() {
    for (what, end) in ENDS {
        for _ in 0..20 {
            let world = World::new();
            if what == "serializer" {
                leave(&world);
            }
            let start = Barrier::new(4);
            let came_to = Mutex::new(Vec::new());
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        start.wait();
                        let status = end(&world);
                        came_to.lock().unwrap().push(status);
                    });
                }
            });
            let came_to = came_to.into_inner().unwrap();
            let did = came_to.iter().filter(|s| **s == HSA_SERIALIZER_SUCCESS);
            assert_eq!(did.count(), 1, "{what}: {came_to:?}");
            let others = came_to.iter().all(|status| {
                [
                    HSA_SERIALIZER_SUCCESS,
                    HSA_SERIALIZER_STALE_HANDLE,
                    HSA_SERIALIZER_BUSY,
                ]
                .contains(status)
            });
            assert!(others, "{what}: {came_to:?}");
            world.host.assert_no_violations();
        }
    }
}

#[test]
fn completions_against_the_serializer_s_end_are_counted_or_come_too_late() {
    for round in 0..100 {
        let host = Host::new();
        let serializer = serializer(host);
        let queue = add_queue(serializer).unwrap();
        let tickets: Tickets = (0..200).map(|_| dispatch(queue).unwrap().ticket).collect();
        let (start, late) = (Barrier::new(3), AtomicUsize::new(0));
        thread::scope(|scope| {
            for half in tickets.chunks(100) {
                let (start, late) = (&start, &late);
                scope.spawn(move || {
                    start.wait();
                    for ticket in half {
                        match hsa_serializer_complete(serializer, *ticket) {
                            HSA_SERIALIZER_SUCCESS => {}
                            HSA_SERIALIZER_STALE_HANDLE => {
                                late.fetch_add(1, Ordering::Relaxed);
                            }
                            status => panic!("{status:?}"),
                        }
                    }
                });
            }
            start.wait();
            for _ in 0..round {
                std::hint::spin_loop();
            }
            assert_eq!(hsa_serializer_leave(serializer), HSA_SERIALIZER_SUCCESS);
            let calls = host.state().called.len();
            assert_eq!(hsa_serializer_destroy(serializer), HSA_SERIALIZER_SUCCESS);
            assert_eq!(host.state().called.len(), calls, "it was left");
        });
        let gone = hsa_serializer_queue_destroyed(queue);
        assert_eq!(gone, HSA_SERIALIZER_SUCCESS);
    }
}

/// The queue that its host uses again in the middle of a call.
static AGAIN: Mutex<Option<(hsa_serializer_queue_t, Vec<Status>)>> = Mutex::new(None);

/// A host that breaks its promise: it calls from a callback.
unsafe extern "C" fn create_and_use_again(
    userdata: *mut c_void,
    kind: u32,
    initial: i64,
    signal: *mut u64,
) -> u32 {
    if let Some((queue, came_to)) = AGAIN.lock().unwrap().as_mut() {
        let mut count = 77;
        // SAFETY: the output can be written; that two calls come at once is what is tried, and sure to be noticed
        // on one thread.
        let again = unsafe { hsa_serializer_queue_in_flight(*queue, &raw mut count) };
        let removed = hsa_serializer_queue_destroyed(*queue);
        // SAFETY: as above.
        let late = unsafe { hsa_serializer_queue_in_flight(*queue, &raw mut count) };
        assert_eq!(count, 77);
        came_to.extend([again, removed, late]);
    }
    let create = of(userdata).runtime().create_signal.expect("it is there");
    // SAFETY: what this was called with.
    unsafe { create(userdata, kind, initial, signal) }
}

#[test]
fn a_call_within_a_call_of_the_same_queue_is_refused_and_it_may_be_removed_meanwhile() {
    let host = Host::new();
    let mut runtime = host.runtime();
    runtime.create_signal = Some(create_and_use_again);
    // SAFETY: what is given is what it has to be.
    let serializer =
        unsafe { made(|out| hsa_serializer_create(ptr::null(), &raw const runtime, out)).unwrap() };
    let queue = add_queue(serializer).unwrap();
    // SAFETY: the output may be null.
    let enabled = unsafe { hsa_serializer_enable(serializer, ptr::null_mut()) };
    assert_eq!(enabled, HSA_SERIALIZER_SUCCESS);
    dispatch(queue).unwrap();
    *AGAIN.lock().unwrap() = Some((queue, Vec::new()));
    let mut room: Room = [[0; 64]; HSA_SERIALIZER_MAX_PACKETS];
    // SAFETY: there is room.
    let marked =
        made(|out| unsafe { hsa_serializer_gap(queue, room.as_mut_ptr().cast(), room.len(), out) });
    let (_, came_to) = AGAIN.lock().unwrap().take().unwrap();
    let first = [
        HSA_SERIALIZER_BUSY,
        HSA_SERIALIZER_SUCCESS,
        HSA_SERIALIZER_BUSY,
    ];
    assert_eq!(came_to[..3], first);
    // It ends as it would: of a queue that has gone meanwhile.
    let ended = marked.err();
    assert!(
        [None, Some(HSA_SERIALIZER_QUEUE_GONE)].contains(&ended),
        "{ended:?}"
    );
    assert_eq!(dispatch(queue).err(), Some(HSA_SERIALIZER_STALE_HANDLE));
    end(host, serializer);
    host.assert_no_violations();
    assert_eq!(host.signals(), 0);
}
