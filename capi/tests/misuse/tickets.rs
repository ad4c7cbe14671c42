//! Tickets that are foreign, used, or of a dispatch that never was: told apart cheaply by every build, exactly by a
//! checked one.

use crate::host::Host;
use crate::world::{World, add_queue, dispatch, end, serializer};
use hsa_serializer_capi::barrier_set::hsa_serializer_barrier_set_complete;
use hsa_serializer_capi::queue::hsa_serializer_queue_destroyed;
use hsa_serializer_capi::status::hsa_serializer_status_t as Status;
use hsa_serializer_capi::status::hsa_serializer_status_t::*;
use hsa_serializer_capi::ticket::*;

const CHECKED: bool = cfg!(feature = "checked");

fn ticket(queue_id: u64, dispatch: u64) -> hsa_serializer_ticket_t {
    hsa_serializer_ticket_t { queue_id, dispatch }
}

/// The ticket of another dispatch of the same queue and mode.
fn of_dispatch(number: u64, like: hsa_serializer_ticket_t) -> hsa_serializer_ticket_t {
    let mode = like.dispatch & 0xffff_ffff;
    ticket(like.queue_id, number << 32 | mode)
}

/// The three functions that take tickets.
fn each(world: &World, ticket: hsa_serializer_ticket_t) -> [Status; 3] {
    [
        hsa_serializer_complete(world.serializer(), ticket),
        hsa_serializer_check(world.serializer(), ticket),
        hsa_serializer_barrier_set_complete(world.set(), ticket),
    ]
}

#[test]
fn a_foreign_ticket_is_refused_and_changes_nothing() {
    let (world, other) = (World::new(), World::new());
    let before = world.seen();
    let foreign = HSA_SERIALIZER_FOREIGN_TICKET;
    let garbage = [0, 1, u64::MAX, 1 << 63].map(|word| ticket(word, word));
    let others = [other.tickets[0], other.set_ticket];
    // Of the right serializer, and a queue that it has not had.
    let own = world.tickets[0];
    let no_queue = ticket(own.queue_id ^ 0x8000, own.dispatch);
    for ticket in garbage.into_iter().chain(others).chain([no_queue]) {
        assert_eq!(each(&world, ticket), [foreign; 3], "{ticket:?}");
    }
    assert_eq!(
        hsa_serializer_barrier_set_complete(world.set(), own),
        foreign
    );
    let [complete, check, _] = each(&other, world.set_ticket);
    assert_eq!([complete, check], [foreign; 2], "a set's");
    assert_eq!(before, world.seen());
    let right = hsa_serializer_complete(world.serializer(), own);
    assert_eq!(right, HSA_SERIALIZER_SUCCESS);
    assert_ne!(before, world.seen(), "what is right is counted");
}

#[test]
fn a_used_ticket_is_refused_when_all_of_its_queue_has_completed() {
    let world = World::new();
    let (set, serializer) = (world.set(), world.serializer());
    let used = world.tickets[0];
    assert_eq!(
        hsa_serializer_complete(serializer, used),
        HSA_SERIALIZER_SUCCESS
    );
    assert_eq!(
        hsa_serializer_barrier_set_complete(set, world.set_ticket),
        HSA_SERIALIZER_SUCCESS
    );
    let before = world.seen();
    for _ in 0..2 {
        assert_eq!(
            hsa_serializer_complete(serializer, used),
            HSA_SERIALIZER_USED_TICKET
        );
        let again = hsa_serializer_barrier_set_complete(set, world.set_ticket);
        assert_eq!(again, HSA_SERIALIZER_USED_TICKET);
        let checked = hsa_serializer_check(serializer, used);
        // The cheap check knows whether there was such a dispatch, not whether it is in flight.
        let cheap = [HSA_SERIALIZER_SUCCESS, HSA_SERIALIZER_USED_TICKET][usize::from(CHECKED)];
        assert_eq!(checked, cheap);
    }
    assert_eq!(before, world.seen());
}

/// Used again while another one is in flight it passes for that, which a checked build does not let happen.
#[test]
fn a_used_ticket_is_refused_by_a_checked_build_while_others_are_in_flight() {
    let host = Host::new();
    let serializer = serializer(host);
    let queue = add_queue(serializer).unwrap();
    let [first, second] = [(); 2].map(|()| dispatch(queue).unwrap().ticket);
    let complete = |ticket| hsa_serializer_complete(serializer, ticket);
    assert_eq!(complete(first), HSA_SERIALIZER_SUCCESS);
    if CHECKED {
        assert_eq!(complete(first), HSA_SERIALIZER_USED_TICKET);
        assert_eq!(
            hsa_serializer_check(serializer, first),
            HSA_SERIALIZER_USED_TICKET
        );
        assert_eq!(
            hsa_serializer_check(serializer, second),
            HSA_SERIALIZER_SUCCESS
        );
        assert_eq!(complete(second), HSA_SERIALIZER_SUCCESS);
    } else {
        assert_eq!(complete(first), HSA_SERIALIZER_SUCCESS);
    }
    assert_eq!(complete(second), HSA_SERIALIZER_USED_TICKET);
    assert_eq!(
        hsa_serializer_queue_destroyed(queue),
        HSA_SERIALIZER_SUCCESS
    );
    end(host, serializer);
}

#[test]
fn a_ticket_of_a_dispatch_that_never_was_is_told() {
    let world = World::new();
    let before = world.seen();
    for number in [1, 2, 1000, u64::from(u32::MAX / 2)] {
        let never = of_dispatch(number, world.tickets[0]);
        let told = hsa_serializer_check(world.serializer(), never);
        assert_eq!(told, HSA_SERIALIZER_NEVER_DISPATCHED, "{number}");
        if CHECKED {
            let told = hsa_serializer_complete(world.serializer(), never);
            assert_eq!(told, HSA_SERIALIZER_NEVER_DISPATCHED, "{number}");
        }
    }
    assert_eq!(before, world.seen());
}

/// A ticket whose mode was tampered with is none that was handed out.
#[cfg(feature = "checked")]
#[test]
fn a_ticket_that_was_tampered_with_is_refused_by_a_checked_build() {
    let world = World::new();
    let before = world.seen();
    let own = world.tickets[0];
    for tampered in [
        ticket(own.queue_id, own.dispatch ^ 1),
        ticket(own.queue_id, own.dispatch + 2),
    ] {
        let told = hsa_serializer_complete(world.serializer(), tampered);
        assert_eq!(told, HSA_SERIALIZER_USED_TICKET, "{tampered:?}");
    }
    assert_eq!(before, world.seen());
    assert_eq!(
        hsa_serializer_complete(world.serializer(), own),
        HSA_SERIALIZER_SUCCESS
    );
}

#[test]
fn tickets_of_a_queue_that_is_gone_come_back_without_harm() {
    let world = World::new();
    let [gone, other] = world.tickets;
    assert_eq!(
        hsa_serializer_queue_destroyed(world.queues[0]),
        HSA_SERIALIZER_SUCCESS
    );
    let counted = |world: &World| crate::world::statistics(world.serializer()).completions;
    let before = counted(&world);
    for _ in 0..3 {
        assert_eq!(
            hsa_serializer_complete(world.serializer(), gone),
            HSA_SERIALIZER_SUCCESS
        );
        assert_eq!(
            hsa_serializer_check(world.serializer(), gone),
            HSA_SERIALIZER_SUCCESS
        );
    }
    assert_eq!(counted(&world), before);
    assert_eq!(
        hsa_serializer_complete(world.serializer(), other),
        HSA_SERIALIZER_SUCCESS
    );
    assert_eq!(counted(&world), before + 1);
}
