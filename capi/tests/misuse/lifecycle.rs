//! Too early, too late, twice.

use crate::host::Host;
use crate::world::*;
use hsa_serializer_capi::agents::*;
use hsa_serializer_capi::barrier_set::*;
use hsa_serializer_capi::domain::*;
use hsa_serializer_capi::handle::*;
use hsa_serializer_capi::queue::*;
use hsa_serializer_capi::ready::hsa_serializer_ready;
use hsa_serializer_capi::request::*;
use hsa_serializer_capi::serializer::*;
use hsa_serializer_capi::shutdown::*;
use hsa_serializer_capi::stall::*;
use hsa_serializer_capi::status::hsa_serializer_status_t as Status;
use hsa_serializer_capi::status::hsa_serializer_status_t::*;
use hsa_serializer_capi::ticket::*;
use hsa_serializer_capi::waiting::*;
use std::ptr;

/// What ends something, by name: of two calls one does.
pub(crate) type End = (&'static str, fn(&World) -> Status);

/// All of them that a [`World`] can have ended at any time.
pub(crate) const ENDS: [End; 9] = [
    ("queue", |w| hsa_serializer_queue_destroyed(w.queues[0])),
    ("queue of a set", |w| {
        hsa_serializer_queue_destroyed(w.set_queue)
    }),
    ("request", |w| {
        // SAFETY: the output may be null.
        unsafe { hsa_serializer_request_end(w.request(), ptr::null_mut()) }
    }),
    ("cut", |w| hsa_serializer_cut_end(w.cut())),
    ("cut, withdrawn", |w| {
        // SAFETY: as above.
        unsafe { hsa_serializer_cut_withdraw(w.cut(), ptr::null_mut()) }
    }),
    ("watch", |w| hsa_serializer_stall_watch_destroy(w.watch())),
    ("barrier", |w| hsa_serializer_barrier_destroy(w.barrier())),
    ("domain", |w| hsa_serializer_domain_destroy(w.domain())),
    ("serializer", |w| hsa_serializer_destroy(w.serializer())),
];

/// Has the world's serializer end without a word.
pub(crate) fn leave(world: &World) {
    let left = hsa_serializer_leave(world.serializer());
    assert_eq!(left, HSA_SERIALIZER_SUCCESS);
}

#[test]
fn what_has_ended_is_not_ended_again() {
    for (what, end) in ENDS {
        let world = World::new();
        if what == "serializer" {
            leave(&world);
        }
        assert_eq!(end(&world), HSA_SERIALIZER_SUCCESS, "{what}");
        // What can be asked without the serializer's handle.
        let seen = || world.host.state().called.clone();
        let before = seen();
        assert_eq!(end(&world), HSA_SERIALIZER_STALE_HANDLE, "{what}");
        assert_eq!(before, seen(), "{what}");
    }
}

#[test]
fn a_cut_that_was_withdrawn_is_not_ended_as_well() {
    let world = World::new();
    let mut needed = false;
    // SAFETY: the output can be written.
    let withdrawn = unsafe { hsa_serializer_cut_withdraw(world.cut(), &raw mut needed) };
    assert_eq!((withdrawn, needed), (HSA_SERIALIZER_SUCCESS, true));
    let ended = hsa_serializer_cut_end(world.cut());
    assert_eq!(ended, HSA_SERIALIZER_STALE_HANDLE);
}

#[test]
fn what_was_not_acquired_is_not_released() {
    let world = World::new();
    let mut did = hsa_serializer_transition_t {
        change: 77,
        count: 77,
    };
    let none = did;
    // SAFETY: the output can be written.
    let mut release = || unsafe { hsa_serializer_release(world.serializer(), &raw mut did) };
    assert_eq!(release(), HSA_SERIALIZER_SUCCESS);
    // The request that has a handle is not given back by it.
    let before = world.seen();
    assert_eq!(release(), HSA_SERIALIZER_UNBALANCED);
    assert_eq!(release(), HSA_SERIALIZER_UNBALANCED);
    assert_eq!(before, world.seen());
    assert_ne!(did, none);
    did = none;
    // SAFETY: as above.
    let again = unsafe { hsa_serializer_release(world.serializer(), &raw mut did) };
    assert_eq!((again, did), (HSA_SERIALIZER_UNBALANCED, none));
}

#[test]
fn what_has_not_ended_is_not_destroyed() {
    let world = World::new();
    let before = world.seen().state();
    let not_finished = HSA_SERIALIZER_NOT_FINISHED;
    for _ in 0..2 {
        assert_eq!(hsa_serializer_destroy(world.serializer()), not_finished);
        assert_eq!(
            hsa_serializer_barrier_set_destroy(world.set()),
            not_finished
        );
        assert_eq!(hsa_serializer_agents_destroy(world.agents()), not_finished);
    }
    assert_eq!(before, world.seen().state());
    world.end();
}

/// Every function that makes or changes something, on a serializer that has been shut down.
fn on_an_ended_one(world: &World) -> Vec<(&'static str, Status)> {
    let serializer = world.serializer();
    let null = ptr::null_mut;
    // SAFETY: outputs can be written, or may be null.
    unsafe {
        vec![
            (
                "queue_add",
                add_queue(serializer)
                    .err()
                    .unwrap_or(HSA_SERIALIZER_SUCCESS),
            ),
            ("enable", hsa_serializer_enable(serializer, null())),
            (
                "request",
                made(|out| hsa_serializer_request(serializer, out))
                    .err()
                    .unwrap_or(HSA_SERIALIZER_SUCCESS),
            ),
            ("acquire", hsa_serializer_acquire(serializer, null())),
            (
                "dispatch",
                dispatch(world.queues[0])
                    .err()
                    .unwrap_or(HSA_SERIALIZER_SUCCESS),
            ),
        ]
    }
}

#[test]
fn nothing_is_begun_after_the_shutdown_has() {
    type Begin = fn(hsa_serializer_t) -> Status;
    let begins: [(&str, Begin); 3] = [
        ("begin_shutdown", |s| hsa_serializer_begin_shutdown(s)),
        ("release_all", |s| hsa_serializer_release_all(s)),
        ("leave", |s| hsa_serializer_leave(s)),
    ];
    for (how, begin) in begins {
        let world = World::new();
        assert_eq!(begin(world.serializer()), HSA_SERIALIZER_SUCCESS);
        let before = world.seen();
        for (what, status) in on_an_ended_one(&world) {
            assert_eq!(status, HSA_SERIALIZER_SHUT_DOWN, "{what} after {how}");
        }
        if how != "leave" {
            // Afterwards nothing is known.
            assert_eq!(before, world.seen(), "after {how}");
        }
        // Any number of times.
        assert_eq!(begin(world.serializer()), HSA_SERIALIZER_SUCCESS);
    }
}

#[test]
fn what_has_been_left_is_not_waited_for() {
    let world = World::new();
    leave(&world);
    let (calls, serializer) = (world.host.state().called.len(), world.serializer());
    let null = ptr::null_mut;
    // SAFETY: outputs can be written, or may be null.
    unsafe {
        let cut = made(|out| hsa_serializer_cut(serializer, out));
        assert_eq!(cut.err(), Some(HSA_SERIALIZER_LEFT));
        let drained = hsa_serializer_drain(serializer, u64::MAX, None, null());
        assert_eq!(drained, HSA_SERIALIZER_LEFT);
        let finished = hsa_serializer_finish_shutdown(serializer, u64::MAX, None, null());
        assert_eq!(finished, HSA_SERIALIZER_SUCCESS);
    }
    for ticket in world.tickets {
        hsa_serializer_complete(serializer, ticket);
    }
    for queue in world.queues {
        let gone = hsa_serializer_queue_destroyed(queue);
        assert_eq!(gone, HSA_SERIALIZER_SUCCESS);
    }
    assert_eq!(
        world.host.state().called.len(),
        calls,
        "the runtime is gone"
    );
}

#[test]
fn handles_outlive_the_serializer_and_are_given_up_later() {
    let world = World::new();
    leave(&world);
    let serializer = world.serializer();
    assert_eq!(hsa_serializer_destroy(serializer), HSA_SERIALIZER_SUCCESS);
    let stale = HSA_SERIALIZER_STALE_HANDLE;
    assert_eq!(hsa_serializer_complete(serializer, world.tickets[0]), stale);
    assert_eq!(hsa_serializer_check(serializer, world.tickets[0]), stale);
    assert_eq!(add_queue(serializer).err(), Some(stale));
    let queue = world.queues[0];
    assert!(!hsa_serializer_ready(id(queue)));
    assert_eq!(dispatch(queue).err(), Some(HSA_SERIALIZER_SHUT_DOWN));
    let (mut count, calls) = (77, world.host.state().called.len());
    // SAFETY: outputs can be written, or may be null.
    unsafe {
        let (cut, watch) = (world.cut(), world.watch());
        let asked = hsa_serializer_cut_in_flight(cut, ptr::null_mut(), 0, &raw mut count);
        assert_eq!(asked, HSA_SERIALIZER_SUCCESS);
        let null = ptr::null_mut;
        let checked = hsa_serializer_stall_watch_check(watch, 5, None, null(), ptr::null_mut());
        assert_eq!(checked, HSA_SERIALIZER_SUCCESS);
    }
    for (what, end) in &ENDS[..3] {
        assert_eq!(end(&world), HSA_SERIALIZER_SUCCESS, "{what}");
    }
    assert_eq!(hsa_serializer_cut_end(world.cut()), HSA_SERIALIZER_SUCCESS);
    let watch = hsa_serializer_stall_watch_destroy(world.watch());
    assert_eq!(watch, HSA_SERIALIZER_SUCCESS);
    // The set's queue, which is not the serializer's, is drained.
    let state = world.host.state();
    let of_serializer = |signal: &u64| !state.signals.contains_key(signal);
    let destroyed = state.called[calls..].iter();
    for call in destroyed {
        if let crate::host::Called::Destroy(signal) = call {
            assert!(of_serializer(signal));
        }
    }
}

#[test]
fn agents_that_have_ended_are_given_up_together() {
    let world = World::new();
    let agents = world.agents();
    // SAFETY: the output can be written.
    let each = AGENTS
        .map(|agent| unsafe { made(|out| hsa_serializer_agents_of(agents, agent, out)).unwrap() });
    let queues = each.map(|serializer| add_queue(serializer).unwrap());
    let ids = queues.map(id);
    finish(world.host, each[0]);
    let destroyed = hsa_serializer_agents_destroy(agents);
    assert_eq!(destroyed, HSA_SERIALIZER_NOT_FINISHED);
    finish(world.host, each[1]);
    let destroyed = hsa_serializer_agents_destroy(agents);
    assert_eq!(destroyed, HSA_SERIALIZER_SUCCESS);
    for (serializer, id) in each.into_iter().zip(ids) {
        let stale = hsa_serializer_collect(serializer);
        assert_eq!(stale, HSA_SERIALIZER_STALE_HANDLE);
        assert!(!hsa_serializer_ready(id));
    }
    for queue in queues {
        // Its serializer's shutdown has removed it, and its handle is still the host's.
        let gone = hsa_serializer_queue_destroyed(queue);
        assert_eq!(gone, HSA_SERIALIZER_SUCCESS);
    }
    world.host.assert_no_violations();
}

#[test]
fn a_domain_is_kept_by_those_who_use_it() {
    let host = Host::new();
    let world = World::new();
    let destroyed = hsa_serializer_domain_destroy(world.domain());
    assert_eq!(destroyed, HSA_SERIALIZER_SUCCESS);
    let queue = add_queue(world.serializer()).unwrap();
    assert_eq!(
        hsa_serializer_queue_destroyed(queue),
        HSA_SERIALIZER_SUCCESS
    );
    assert_eq!(host.signals(), 0);
}

#[test]
fn no_time_is_too_long() {
    let host = Host::new();
    let serializer = serializer(host);
    // SAFETY: outputs can be written, or may be null.
    unsafe {
        let null = ptr::null_mut;
        let drained = hsa_serializer_drain(serializer, u64::MAX, None, null());
        assert_eq!(drained, HSA_SERIALIZER_SUCCESS);
        let watch = made(|out| hsa_serializer_stall_watch_create(serializer, u64::MAX, 1, out));
        let watch = watch.unwrap();
        // Whatever the clock does.
        for now in [5, u64::MAX, 0, 5] {
            let mut count = 77;
            let checked =
                hsa_serializer_stall_watch_check(watch, now, None, null(), &raw mut count);
            assert_eq!((checked, count), (HSA_SERIALIZER_SUCCESS, 0));
        }
        let finished = hsa_serializer_finish_shutdown(serializer, u64::MAX, None, null());
        assert_eq!(finished, HSA_SERIALIZER_SUCCESS);
    }
}

#[test]
fn everything_ends_with_no_signal_left() {
    World::new().end();
}
