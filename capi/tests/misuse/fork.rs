//! In the child of a fork everything has been left: statuses say so, nothing calls the host, and nothing waits.

use crate::world::*;
use hsa_serializer_capi::barrier_set::*;
use hsa_serializer_capi::queue::*;
use hsa_serializer_capi::ready::hsa_serializer_ready;
use hsa_serializer_capi::request::*;
use hsa_serializer_capi::serializer::*;
use hsa_serializer_capi::shutdown::*;
use hsa_serializer_capi::stall::*;
use hsa_serializer_capi::status::hsa_serializer_status_t::*;
use hsa_serializer_capi::ticket::*;
use hsa_serializer_capi::waiting::*;
use std::ptr;

/// Seconds after which a child that waits is ended.
const LONG: u32 = 20;

/// What the child finds otherwise than it has to be: its number, or 0.
fn child(world: &World) -> i32 {
    let (serializer, queue) = (world.serializer(), world.queues[0]);
    let (ticket, null) = (world.tickets[0], ptr::null_mut);
    let shut = HSA_SERIALIZER_SHUT_DOWN;
    let left = HSA_SERIALIZER_LEFT;
    let good = HSA_SERIALIZER_SUCCESS;
    let calls = world.host.state().called.len();
    // SAFETY: outputs can be written, or may be null.
    let checks = unsafe {
        [
            add_queue(serializer).err() == Some(shut),
            hsa_serializer_enable(serializer, ptr::null_mut()) == shut,
            hsa_serializer_acquire(serializer, ptr::null_mut()) == shut,
            made(|out| hsa_serializer_request(serializer, out)).err() == Some(shut),
            dispatch(queue).err() == Some(shut),
            made(|out| hsa_serializer_cut(serializer, out)).err() == Some(left),
            hsa_serializer_drain(serializer, u64::MAX, None, null()) == left,
            made(|out| hsa_serializer_mode(serializer, out)).is_ok(),
            made(|out| hsa_serializer_cut_in_flight(world.cut(), ptr::null_mut(), 0, out)).is_ok(),
            !OFTEN.contains(&hsa_serializer_complete(serializer, ticket)),
            made(|out| hsa_serializer_barrier_state(world.barrier(), out)).is_ok(),
            hsa_serializer_queue_destroyed(queue) == good,
            hsa_serializer_queue_destroyed(queue) == HSA_SERIALIZER_STALE_HANDLE,
            hsa_serializer_request_end(world.request(), ptr::null_mut()) == good,
            hsa_serializer_cut_end(world.cut()) == good,
            hsa_serializer_barrier_destroy(world.barrier()) == good,
            hsa_serializer_finish_shutdown(serializer, u64::MAX, None, null()) == good,
            hsa_serializer_stall_watch_destroy(world.watch()) == good,
            hsa_serializer_destroy(serializer) == good,
            hsa_serializer_destroy(serializer) == HSA_SERIALIZER_STALE_HANDLE,
            !hsa_serializer_ready(ticket.queue_id),
            world.host.state().called.len() == calls,
        ]
    };
    let wrong = checks.iter().position(|right| !right);
    wrong.map_or(0, |at| at as i32 + 1)
}

/// What a completion does not come to.
const OFTEN: [hsa_serializer_capi::status::hsa_serializer_status_t; 3] = [
    HSA_SERIALIZER_PANIC,
    HSA_SERIALIZER_STALE_HANDLE,
    HSA_SERIALIZER_FOREIGN_TICKET,
];

#[test]
fn in_the_child_of_a_fork_nothing_is_called_and_nothing_waits() {
    let world = World::new();
    // SAFETY: the child calls what may be called there, and ends without running anything of the parent's.
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0, "no process is to be had");
        if pid == 0 {
            libc::alarm(LONG);
            libc::_exit(child(&world));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        assert!(libc::WIFEXITED(status), "the child was ended: it waited");
        let wrong = libc::WEXITSTATUS(status);
        assert_eq!(wrong, 0, "check number {wrong} of the child");
    }
    // The parent goes on.
    world.end();
}
