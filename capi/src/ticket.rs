//! Tickets: what a dispatch hands out and its completion hands back.

use crate::handle::hsa_serializer_t;
use crate::serializer;
use crate::status::{Outcome, hsa_serializer_status_t, status};
use hsa_serializer::{CompleteError, QueueId, Ticket};
#[cfg(not(feature = "checked"))]
use {
    crate::runtime::CRuntime,
    crate::status::HSA_SERIALIZER_SUCCESS,
    hsa_serializer::{BegunCompletion, Serializer},
};

/// The receipt of one dispatch. Keep it as it is, and use it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_ticket_t {
    /// The queue's id.
    pub queue_id: u64,
    /// What the library knows the dispatch by.
    pub dispatch: u64,
}

impl hsa_serializer_ticket_t {
    #[inline(always)]
    fn get(self) -> Ticket {
        Ticket::from_raw([self.queue_id, self.dispatch])
    }
}

/// Hands a ticket out.
#[inline(always)]
pub(crate) fn out(ticket: Ticket) -> hsa_serializer_ticket_t {
    let [queue_id, dispatch] = ticket.into_raw();
    let ticket = hsa_serializer_ticket_t { queue_id, dispatch };
    #[cfg(feature = "checked")]
    exact::handed_out(ticket);
    ticket
}

/// Writes a ticket as a whole: a caller copies it as a whole, and a processor that is to read at once what was
/// written by halves waits until both have got to its cache.
///
/// # Safety
/// `to` can be written.
#[inline(always)]
pub(crate) unsafe fn write(ticket: hsa_serializer_ticket_t, to: *mut hsa_serializer_ticket_t) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_set_epi64x, _mm_storeu_si128};
        // SAFETY: every x86_64 has these; the caller's promise, and it need not be aligned.
        unsafe {
            let whole = _mm_set_epi64x(ticket.dispatch as i64, ticket.queue_id as i64);
            _mm_storeu_si128(to.cast(), whole);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's promise.
    unsafe {
        to.write_unaligned(ticket);
    }
}

/// Tickets of that queue will not come back.
pub(crate) fn queue_gone(queue: QueueId) {
    #[cfg(feature = "checked")]
    exact::queue_gone(queue);
    #[cfg(not(feature = "checked"))]
    let _ = queue;
}

/// Completes a ticket by `complete`; in a checked build only one that is out.
#[inline(always)]
pub(crate) fn complete<T>(
    ticket: hsa_serializer_ticket_t,
    check: impl FnOnce(Ticket) -> Result<Ticket, CompleteError>,
    complete: impl FnOnce(Ticket) -> Result<T, CompleteError>,
) -> Outcome {
    #[cfg(feature = "checked")]
    {
        check(ticket.get()).map_err(refused)?.abandon();
        exact::comes_back(ticket)?;
    }
    #[cfg(not(feature = "checked"))]
    let _ = check;
    complete(ticket.get()).map(drop).map_err(refused)
}

/// What a refused ticket comes to. It is the caller's still, and no lost one.
#[cold]
pub(crate) fn refused(error: CompleteError) -> hsa_serializer_status_t {
    error.ticket.abandon();
    error.reason.into()
}

/// Reports that the packet processor is through with a dispatch: its kernel and the caller's packets behind it,
/// well or badly. Exactly once for each ticket, in any order. A kernel that will never be launched is not
/// completed: its queue is destroyed.
///
/// From any thread, but not in callbacks. Lock-free, but where it notices misuse.
///
/// A ticket of an earlier dispatch that comes when everything of its queue has completed is refused; used again
/// while something is in flight, it passes for another one. A checked build refuses every used one.
///
/// `HSA_SERIALIZER_FOREIGN_TICKET`, `HSA_SERIALIZER_USED_TICKET`; in a checked build also
/// `HSA_SERIALIZER_NEVER_DISPATCHED`; the handle's, as hsa_serializer_mode().
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_complete(
    serializer: hsa_serializer_t,
    ticket: hsa_serializer_ticket_t,
) -> hsa_serializer_status_t {
    complete_quickly(serializer, ticket)
}

/// The completion that is one exchange. Everything else is called as the last thing (by C's convention, across which
/// nothing unwinds), so that no register has to be saved: the exchange waits for every store in front of it.
#[inline(always)]
#[cfg(not(feature = "checked"))]
fn complete_quickly(
    serializer: hsa_serializer_t,
    ticket: hsa_serializer_ticket_t,
) -> hsa_serializer_status_t {
    let number = serializer.number().ok();
    let Some(found) = number.and_then(serializer::find_first) else {
        return complete_slowly(serializer, ticket);
    };
    match found.begin_completion::<true>(ticket.get()) {
        Ok(()) => HSA_SERIALIZER_SUCCESS,
        Err(begun) => complete_rest(found, ticket, begun),
    }
}

#[inline(always)]
#[cfg(feature = "checked")]
fn complete_quickly(
    serializer: hsa_serializer_t,
    ticket: hsa_serializer_ticket_t,
) -> hsa_serializer_status_t {
    complete_slowly(serializer, ticket)
}

#[inline(never)]
extern "C" fn complete_slowly(
    serializer: hsa_serializer_t,
    ticket: hsa_serializer_ticket_t,
) -> hsa_serializer_status_t {
    status(|| {
        let serializer = serializer::find(serializer)?;
        complete(
            ticket,
            |ticket| serializer.check(ticket),
            |ticket| serializer.try_complete(ticket),
        )
    })
}

#[inline(never)]
#[cfg(not(feature = "checked"))]
#[allow(improper_ctypes_definitions, reason = "Rust alone calls it")]
extern "C" fn complete_rest(
    serializer: &Serializer<CRuntime>,
    ticket: hsa_serializer_ticket_t,
    begun: BegunCompletion,
) -> hsa_serializer_status_t {
    status(|| {
        let raw = [ticket.queue_id, ticket.dispatch];
        let completed = serializer.go_on_completing(raw, begun);
        completed.map(drop).map_err(refused)
    })
}

/// Checks a ticket against the dispatches of its queue, without using it.
///
/// Wait-free; from any thread.
///
/// `HSA_SERIALIZER_FOREIGN_TICKET`, `HSA_SERIALIZER_NEVER_DISPATCHED`; in a checked build also
/// `HSA_SERIALIZER_USED_TICKET`; the handle's, as hsa_serializer_mode().
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_check(
    serializer: hsa_serializer_t,
    ticket: hsa_serializer_ticket_t,
) -> hsa_serializer_status_t {
    status(|| {
        let serializer = serializer::find(serializer)?;
        serializer.check(ticket.get()).map_err(refused)?.abandon();
        #[cfg(feature = "checked")]
        exact::is_out(ticket)?;
        Ok(())
    })
}

/// Which tickets are out, exactly.
#[cfg(feature = "checked")]
mod exact {
    use super::hsa_serializer_ticket_t;
    use crate::status::{HSA_SERIALIZER_USED_TICKET, Outcome};
    use hsa_serializer::QueueId;
    use std::collections::{HashMap, HashSet};
    use std::sync::{LazyLock, Mutex, MutexGuard};

    /// What is out of each queue; none of one that is gone, from which everything may come back: it does nothing.
    type Out = HashMap<u64, Option<HashSet<u64>>>;

    static OUT: LazyLock<Mutex<Out>> = LazyLock::new(Mutex::default);

    fn out() -> MutexGuard<'static, Out> {
        // Each step leaves it whole.
        OUT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn handed_out(ticket: hsa_serializer_ticket_t) {
        let mut out = out();
        let queue = out.entry(ticket.queue_id);
        if let Some(queue) = queue.or_insert_with(|| Some(HashSet::new())) {
            queue.insert(ticket.dispatch);
        }
    }

    pub(super) fn comes_back(ticket: hsa_serializer_ticket_t) -> Outcome {
        let mut out = out();
        let queue = out.get_mut(&ticket.queue_id).and_then(Option::as_mut);
        if queue.is_none_or(|queue| queue.remove(&ticket.dispatch)) {
            Ok(())
        } else {
            Err(HSA_SERIALIZER_USED_TICKET)
        }
    }

    pub(super) fn is_out(ticket: hsa_serializer_ticket_t) -> Outcome {
        match out().get(&ticket.queue_id) {
            Some(Some(queue)) if !queue.contains(&ticket.dispatch) => {
                Err(HSA_SERIALIZER_USED_TICKET)
            }
            _ => Ok(()),
        }
    }

    /// It is remembered: a dispatch that is under way hands its ticket out later.
    pub(super) fn queue_gone(queue: QueueId) {
        out().insert(queue.to_raw(), None);
    }
}
