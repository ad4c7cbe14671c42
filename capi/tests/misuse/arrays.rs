//! Arrays: too small ones are refused; larger ones are written as far as is needed; nothing has to be aligned.

use crate::world::{AGENTS, World};
use hsa_serializer_capi::agents::hsa_serializer_agents_list;
use hsa_serializer_capi::queue::*;
use hsa_serializer_capi::status::hsa_serializer_status_t::*;
use hsa_serializer_capi::waiting::{hsa_serializer_cut_in_flight, hsa_serializer_in_flight_t};
use std::mem::offset_of;
use std::ptr;

/// A handle, a place for the count, and arrays that are none.
macro_rules! asks_for_the_length {
    ($function:ident, $handle:expr, $there_are:expr) => {
        for array in [ptr::null_mut(), ptr::dangling_mut()] {
            let mut count = usize::MAX;
            // SAFETY: of a capacity of 0 the array is not looked at.
            let status = unsafe { $function($handle, array, 0, &raw mut count) };
            assert_eq!((status, count), (HSA_SERIALIZER_SUCCESS, $there_are));
        }
    };
}

#[test]
fn a_length_can_be_asked_for_alone() {
    let world = World::new();
    asks_for_the_length!(hsa_serializer_cut_in_flight, world.cut(), 2);
    asks_for_the_length!(hsa_serializer_agents_list, world.agents(), AGENTS.len());
}

#[test]
fn a_larger_array_is_written_as_far_as_there_is_something() {
    let world = World::new();
    let (mut agents, mut count) = ([77; 4], 0);
    // SAFETY: both outputs can be written.
    let listed = unsafe {
        hsa_serializer_agents_list(world.agents(), agents.as_mut_ptr(), 4, &raw mut count)
    };
    assert_eq!((listed, count), (HSA_SERIALIZER_SUCCESS, 2));
    assert_eq!(agents, [AGENTS[1], AGENTS[0], 77, 77], "the latest first");
    let none = hsa_serializer_in_flight_t {
        queue_id: 77,
        dispatches: 77,
    };
    let mut queues = [none; 3];
    // SAFETY: as above.
    let told = unsafe {
        hsa_serializer_cut_in_flight(world.cut(), queues.as_mut_ptr(), 3, &raw mut count)
    };
    assert_eq!((told, count, queues[2]), (HSA_SERIALIZER_SUCCESS, 2, none));
    let mut ids = [queues[0].queue_id, queues[1].queue_id];
    ids.sort_unstable();
    assert_eq!(ids, world.tickets.map(|ticket| ticket.queue_id));
    assert_eq!([queues[0].dispatches, queues[1].dispatches], [1, 1]);
}

/// What C may have in a packed structure, or in a buffer of bytes.
#[test]
fn packets_and_outputs_may_be_aligned_by_less_than_is_usual() {
    const PACKETS: usize = HSA_SERIALIZER_MAX_PACKETS * 64;
    const SENTINEL: u8 = 0xa5;
    let world = World::new();
    let mut bytes = [SENTINEL; 1 + PACKETS + 1 + size_of::<hsa_serializer_dispatch_t>()];
    let (packets, out) = (&raw mut bytes[1], &raw mut bytes[PACKETS + 2]);
    // SAFETY: there is room.
    let status = unsafe {
        hsa_serializer_dispatch(
            world.queues[0],
            packets.cast(),
            HSA_SERIALIZER_MAX_PACKETS,
            out.cast(),
        )
    };
    assert_eq!(status, HSA_SERIALIZER_SUCCESS);
    let at = PACKETS + 2 + offset_of!(hsa_serializer_dispatch_t, packets);
    let written = u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    assert!(
        (1..HSA_SERIALIZER_MAX_PACKETS).contains(&written),
        "the cut's packet"
    );
    assert_eq!([bytes[0], bytes[PACKETS + 1]], [SENTINEL; 2]);
    let rest = &bytes[1 + written * 64..=PACKETS];
    assert!(
        rest.iter().all(|byte| *byte == SENTINEL),
        "more was written than was said"
    );
}
