//! Ready queues: what handlers call.

use crate::serializer::by_own_number;
use hsa_serializer::{Handler, QueueId};
use std::ffi::c_void;
use std::panic::catch_unwind;

/// A queue's ready signal fired: what the handler that `watch_ready` registered calls, with the id that it was
/// given. Returns what that handler has to return: whether it stays registered.
///
/// Late and repeated calls do nothing, and any integer may be given: for what is no living queue's id it is
/// false (go). Lock-free, but where it notices misuse; from any thread that holds no lock which a callback
/// takes; in the child of a fork it does nothing.
///
/// Hosts that made their serializer by hsa_serializer_create_hsa() need not call it.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_ready(queue_id: u64) -> bool {
    // After a panic, a fault of this library, the handler stays: a queue whose handler goes is blocked for ever.
    catch_unwind(|| {
        let queue = QueueId::from_raw(queue_id);
        let serializer = by_own_number(queue.serializer());
        serializer.is_some_and(|serializer| serializer.ready(queue) == Handler::Keep)
    })
    .unwrap_or(true)
}

/// What HSA calls when a queue's `ready` signal is -1. `arg` is the queue's id, not an address.
pub(crate) unsafe extern "C" fn on_ready(_: i64, arg: *mut c_void) -> bool {
    hsa_serializer_ready(arg.addr() as u64)
}
