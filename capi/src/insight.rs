//! What a serializer has done, and what it does: statistics, snapshots.

use crate::handle::hsa_serializer_t;
use crate::serializer;
use crate::status::{
    HSA_SERIALIZER_BAD_SIZE, HSA_SERIALIZER_NULL_POINTER, Outcome, hsa_serializer_status_t, status,
};
use hsa_serializer::{Statistics, snapshots};
use std::ffi::{c_char, c_void};

/// What a serializer has done so far. Each number is exact while nothing happens.
///
/// Set `size` before the call: a program that was compiled with an older header gets the fields that it knows.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_statistics_t {
    /// `sizeof(hsa_serializer_statistics_t)`.
    pub size: usize,
    /// Transitions that took place, cuts, drains and gaps among them.
    pub transitions: u64,
    /// Those of them that found a dispatch in flight.
    pub transitions_that_counted: u64,
    /// Barriers created.
    pub barriers: u64,
    /// Barriers in the list now.
    pub barriers_live: u64,
    /// The most barriers that were in the list at once.
    pub barriers_live_most: u64,
    /// Barriers that cleared.
    pub cleared: u64,
    /// Barriers that were superseded.
    pub superseded: u64,
    /// Barriers that were cleared by force: losses of exclusiveness.
    pub forced: u64,
    /// Grants that were overtaken: losses of exclusiveness.
    pub overtaken: u64,
    /// Transition packets handed out.
    pub tags: u64,
    /// Barriers taken out of the list.
    pub retired: u64,
    /// Those of them that had cleared earlier and waited for a tag to drain: the cases in which
    /// the fault that this crate exists for would have struck.
    pub retired_after_drain: u64,
    /// Barriers whose signal was destroyed.
    pub reclaimed: u64,
    /// Nanoseconds in which kernels were serialized: the mode was enabled.
    pub serialized: u64,
    /// Nanoseconds for which barriers were armed, those of all barriers that have ended added up. In that
    /// time kernels of the new mode had to wait for those of the old one.
    pub barriers_armed: u64,
    /// The most nanoseconds for which one of them was armed.
    pub barriers_armed_most: u64,
    /// Nanoseconds for which queues waited for the token, from having got to a kernel to its grant; those
    /// of all grants added up. Of this much the GPU's queues stood still because kernels ran one by one.
    pub token_waited: u64,
    /// The most nanoseconds for which one of them waited.
    pub token_waited_most: u64,
    /// Queues that were added.
    pub queues_added: u64,
    /// Queues that are gone.
    pub queues_gone: u64,
    /// Breaches of the contract that were noticed.
    pub misuse: u64,
    /// Dispatches of queues that are gone.
    pub former_dispatches: u64,
    /// Completions of queues that are gone.
    pub former_completions: u64,
    /// Dispatches of all queues, past and present.
    pub dispatches: u64,
    /// Completions of all queues; those that came after their queue had gone are not counted.
    pub completions: u64,
    /// Queues that are alive.
    pub queues: u64,
    /// Grants of the token.
    pub grants: u64,
    /// Those of them that had to wait for another queue to release it.
    pub grants_contended: u64,
    /// Queues that are ready or granted now, and those that were removed while ready and
    /// that no granter has come to yet.
    pub contenders: u64,
    /// Deferred functions of the whole domain that have not run yet.
    pub reclaim_pending: u64,
}

impl hsa_serializer_statistics_t {
    fn of(counted: &Statistics, size: usize) -> Self {
        Self {
            size,
            transitions: counted.transitions,
            transitions_that_counted: counted.transitions_that_counted,
            barriers: counted.barriers,
            barriers_live: counted.barriers_live,
            barriers_live_most: counted.barriers_live_most,
            cleared: counted.cleared,
            superseded: counted.superseded,
            forced: counted.forced,
            overtaken: counted.overtaken,
            tags: counted.tags,
            retired: counted.retired,
            retired_after_drain: counted.retired_after_drain,
            reclaimed: counted.reclaimed,
            serialized: counted.serialized,
            barriers_armed: counted.barriers_armed,
            barriers_armed_most: counted.barriers_armed_most,
            token_waited: counted.token_waited,
            token_waited_most: counted.token_waited_most,
            queues_added: counted.queues_added,
            queues_gone: counted.queues_gone,
            misuse: counted.misuse,
            former_dispatches: counted.former_dispatches,
            former_completions: counted.former_completions,
            dispatches: counted.dispatches,
            completions: counted.completions,
            queues: counted.queues,
            grants: counted.grants,
            grants_contended: counted.grants_contended,
            contenders: counted.contenders,
            reclaim_pending: counted.reclaim_pending,
        }
    }
}

/// Gives the statistics as far as the caller's structure goes.
///
/// # Safety
/// `to` is null, or points to a structure whose `size` says how much of it can be written.
pub(crate) unsafe fn give(
    to: *mut hsa_serializer_statistics_t,
    counted: impl FnOnce() -> Outcome<Statistics>,
) -> Outcome {
    if to.is_null() {
        return Err(HSA_SERIALIZER_NULL_POINTER);
    }
    // SAFETY: the caller's promise; the size comes first.
    let size = unsafe { to.cast::<usize>().read_unaligned() };
    if !(FIRST_SIZE..=size_of::<hsa_serializer_statistics_t>()).contains(&size) || size % 8 != 0 {
        return Err(HSA_SERIALIZER_BAD_SIZE);
    }
    let given = hsa_serializer_statistics_t::of(&counted()?, size);
    // SAFETY: the caller's promise; no more than there is.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const given).cast::<u8>(), to.cast::<u8>(), size)
    };
    Ok(())
}

/// What the structure was in the first version that had it.
const FIRST_SIZE: usize = 248;

/// What the serializer has done so far. `statistics->size` has to be set.
///
/// Takes the transition lock for a moment: from where hsa_serializer_enable() may be called.
///
/// `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_BAD_SIZE`; the handle's, as hsa_serializer_mode().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_statistics(
    serializer: hsa_serializer_t,
    statistics: *mut hsa_serializer_statistics_t,
) -> hsa_serializer_status_t {
    // SAFETY: the caller's promise.
    status(|| unsafe {
        give(
            statistics,
            || Ok(serializer::find(serializer)?.statistics()),
        )
    })
}

/// Who is given a text: `length` bytes of UTF-8, and a zero behind them, that live for the call. It may call
/// whatever its caller may.
#[allow(non_camel_case_types, reason = "the names are C's")]
pub type hsa_serializer_text_fn =
    Option<unsafe extern "C" fn(userdata: *mut c_void, text: *const c_char, length: usize)>;

/// # Safety
/// `write` may be called with `userdata`.
unsafe fn hand_over(
    mut text: String,
    write: hsa_serializer_text_fn,
    userdata: *mut c_void,
) -> Outcome {
    let write = write.ok_or(HSA_SERIALIZER_NULL_POINTER)?;
    let length = text.len();
    text.push('\0');
    // SAFETY: the caller's promise; the text lives through the call.
    unsafe { write(userdata, text.as_ptr().cast(), length) };
    Ok(())
}

/// Gives `write` a snapshot as text: agents, mode, queues, barriers, who waits for whom, what happened lately.
///
/// No lock; it allocates; from any thread, while everything runs, but not in callbacks.
///
/// `HSA_SERIALIZER_NULL_POINTER`; the handle's, as hsa_serializer_mode().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_snapshot_text(
    serializer: hsa_serializer_t,
    write: hsa_serializer_text_fn,
    userdata: *mut c_void,
) -> hsa_serializer_status_t {
    status(|| {
        write.ok_or(HSA_SERIALIZER_NULL_POINTER)?;
        let text = serializer::find(serializer)?.snapshot().to_string();
        // SAFETY: the caller's promise.
        unsafe { hand_over(text, write, userdata) }
    })
}

/// Gives `write` the snapshots of all serializers of the process, one after the other. A debugger can have them
/// printed by hsa_serializer_print_all().
///
/// As hsa_serializer_snapshot_text().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_snapshots_text(
    write: hsa_serializer_text_fn,
    userdata: *mut c_void,
) -> hsa_serializer_status_t {
    status(|| {
        write.ok_or(HSA_SERIALIZER_NULL_POINTER)?;
        let text = snapshots().iter().map(|s| format!("{s}\n")).collect();
        // SAFETY: the caller's promise.
        unsafe { hand_over(text, write, userdata) }
    })
}
