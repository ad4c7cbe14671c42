//! Barriers by themselves, without serialization.

use crate::directory::Directory;
use crate::fence;
use crate::handle::{
    hsa_serializer_barrier_set_t, hsa_serializer_barrier_t, hsa_serializer_queue_t,
};
use crate::insight::{self, hsa_serializer_statistics_t};
use crate::objects::Objects;
use crate::queue::{self, Owner};
use crate::runtime::{CRuntime, hsa_serializer_hsa_t, hsa_serializer_runtime_t};
use crate::serializer::{builder, hsa_serializer_options_t, output};
use crate::status::{
    HSA_SERIALIZER_FOREIGN_HANDLE, HSA_SERIALIZER_FULL, HSA_SERIALIZER_NOT_FINISHED,
    HSA_SERIALIZER_STALE_HANDLE, Outcome as Came, hsa_serializer_status_t, status,
};
use crate::ticket::{self, hsa_serializer_ticket_t};
use hsa_serializer::{BarrierHandle, BarrierSet, Drain, Outcome, QueueId};
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A set, which stays when it is destroyed, as a serializer does.
#[derive(Default)]
#[repr(align(64))]
struct Entry {
    set: OnceLock<BarrierSet<CRuntime>>,
    destroyed: AtomicBool,
}

const FIRST: usize = 16;

static SETS: Directory<Entry, FIRST> = Directory::new(
    [const {
        Entry {
            set: OnceLock::new(),
            destroyed: AtomicBool::new(false),
        }
    }; FIRST],
);

static BARRIERS: Objects<BarrierHandle<CRuntime>> = Objects::new();

/// The set of that entry, destroyed or not.
pub(crate) fn kept(number: u64) -> Option<&'static BarrierSet<CRuntime>> {
    SETS.get(number)?.set.get()
}

fn entry(
    set: hsa_serializer_barrier_set_t,
) -> Came<(&'static Entry, &'static BarrierSet<CRuntime>)> {
    let entry = SETS
        .get(set.number()?)
        .ok_or(HSA_SERIALIZER_FOREIGN_HANDLE)?;
    let set = entry.set.get().ok_or(HSA_SERIALIZER_FOREIGN_HANDLE)?;
    // Relaxed: as for a serializer.
    if entry.destroyed.load(Ordering::Relaxed) {
        return Err(HSA_SERIALIZER_STALE_HANDLE);
    }
    Ok((entry, set))
}

fn make(set: BarrierSet<CRuntime>) -> Came<hsa_serializer_barrier_set_t> {
    fence::ready();
    let (number, entry) = SETS.give().ok_or(HSA_SERIALIZER_FULL)?;
    // It was given to us alone.
    let _ = entry.set.set(set);
    Ok(hsa_serializer_barrier_set_t::new(number))
}

/// Makes a set of barriers without queues, over functions of the host's. `options` may be null. The functions
/// are used until hsa_serializer_barrier_set_destroy() has come to `HSA_SERIALIZER_SUCCESS`; `watch_ready` is not
/// called.
///
/// As hsa_serializer_create().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_barrier_set_create(
    options: *const hsa_serializer_options_t,
    runtime: *const hsa_serializer_runtime_t,
    set: *mut hsa_serializer_barrier_set_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let (out, builder, runtime) =
            unsafe { (output(set)?, builder(options)?, CRuntime::of_host(runtime)?) };
        out.write(make(BarrierSet::with(builder, runtime))?);
        Ok(())
    })
}

/// The same over AMD's runtime, by its table, for one agent.
///
/// As hsa_serializer_create_hsa().
///
/// # Safety
/// As said in the header, and the table is the runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_barrier_set_create_hsa(
    options: *const hsa_serializer_options_t,
    hsa: *const hsa_serializer_hsa_t,
    agent: u64,
    set: *mut hsa_serializer_barrier_set_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let (out, builder, runtime) = unsafe {
            (
                output(set)?,
                builder(options)?,
                CRuntime::of_table(hsa, agent)?,
            )
        };
        out.write(make(BarrierSet::with(builder.agent(agent), runtime))?);
        Ok(())
    })
}

/// Gives the handle up, when all queues of the set are gone and all its signals are destroyed; until then it is
/// `HSA_SERIALIZER_NOT_FINISHED`. (Where it stays that, a thread sits in a call that uses the same domain.)
///
/// From any thread, but not in callbacks; calls with this handle that are under way end as they would.
///
/// `HSA_SERIALIZER_NOT_FINISHED`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
/// `HSA_SERIALIZER_STALE_HANDLE`.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_barrier_set_destroy(
    set: hsa_serializer_barrier_set_t,
) -> hsa_serializer_status_t {
    status(|| {
        let (entry, set) = entry(set)?;
        set.try_finish().map_err(|_| HSA_SERIALIZER_NOT_FINISHED)?;
        if entry.destroyed.swap(true, Ordering::AcqRel) {
            return Err(HSA_SERIALIZER_STALE_HANDLE);
        }
        Ok(())
    })
}

/// Adds a queue to the set: before the first packet of the HSA queue is intercepted. It is dispatched on by
/// hsa_serializer_dispatch() and is gone by hsa_serializer_queue_destroyed(); its kernels are never serialized.
///
/// Takes the transition lock: from where hsa_serializer_enable() may be called.
///
/// `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_FULL`, `HSA_SERIALIZER_NO_SIGNAL`,
/// `HSA_SERIALIZER_NULL_SIGNAL`, `HSA_SERIALIZER_SHUT_DOWN`, `HSA_SERIALIZER_NULL_HANDLE`,
/// `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_barrier_set_queue_add(
    set: hsa_serializer_barrier_set_t,
    queue: *mut hsa_serializer_queue_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(queue) }?;
        let (_, serves) = entry(set)?;
        let added = serves.add_queue()?;
        let id = added.id();
        let entered = queue::enter(added, Owner::Set(set.number()?));
        if entered.is_err() {
            // Nobody can name it: it has no packets, and never will.
            let _ = serves.queue_destroyed(id);
        }
        out.write(entered?);
        Ok(())
    })
}

/// hsa_serializer_complete() for a queue of the set.
///
/// As there.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_barrier_set_complete(
    set: hsa_serializer_barrier_set_t,
    ticket: hsa_serializer_ticket_t,
) -> hsa_serializer_status_t {
    status(|| {
        let (_, set) = entry(set)?;
        ticket::complete(
            ticket,
            |ticket| set.check(ticket),
            |ticket| set.try_complete(ticket),
        )
    })
}

/// What the set has done so far. `statistics->size` has to be set.
///
/// As hsa_serializer_statistics().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_barrier_set_statistics(
    set: hsa_serializer_barrier_set_t,
    statistics: *mut hsa_serializer_statistics_t,
) -> hsa_serializer_status_t {
    // SAFETY: the caller's promise.
    status(|| unsafe { insight::give(statistics, || Ok(entry(set)?.1.statistics())) })
}

/// How a barrier ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum hsa_serializer_outcome_t {
    /// Every dispatch that it counted has completed.
    HSA_SERIALIZER_OUTCOME_CLEARED = 0,
    /// Nobody dispatched behind it before the next barrier, which waits for what it waited for.
    HSA_SERIALIZER_OUTCOME_SUPERSEDED = 1,
    /// It was cleared by force, while dispatches that it counted may still be running.
    HSA_SERIALIZER_OUTCOME_FORCED = 2,
}

/// Who is told that a barrier has ended, and how: one of hsa_serializer_outcome_t. Once, on the thread that ends
/// it, which may be a handler's; it may call what that thread may, and nothing that waits.
#[allow(non_camel_case_types, reason = "the names are C's")]
pub type hsa_serializer_end_fn = Option<unsafe extern "C" fn(userdata: *mut c_void, outcome: u32)>;

struct OnEnd {
    told: unsafe extern "C" fn(*mut c_void, u32),
    userdata: *mut c_void,
}

// SAFETY: the host promises that it may be called on any thread (hsa_serializer_barrier_set_arm).
unsafe impl Send for OnEnd {}

impl OnEnd {
    fn tell(self, outcome: Outcome) {
        use hsa_serializer_outcome_t::*;
        let outcome = match outcome {
            Outcome::Superseded => HSA_SERIALIZER_OUTCOME_SUPERSEDED,
            Outcome::Forced => HSA_SERIALIZER_OUTCOME_FORCED,
            _ => HSA_SERIALIZER_OUTCOME_CLEARED,
        };
        // SAFETY: the host's promise.
        unsafe { (self.told)(self.userdata, outcome as u32) };
    }
}

/// Arms a barrier over all queues of the set: what is dispatched from now on waits, on the GPU, for what is in
/// flight. `on_end` (which may be null) is told once. `barrier` may be null; else the handle has to be given up
/// by hsa_serializer_barrier_destroy().
///
/// Takes the transition lock: from where hsa_serializer_enable() may be called.
///
/// `HSA_SERIALIZER_NO_SIGNAL`, `HSA_SERIALIZER_NULL_SIGNAL`, `HSA_SERIALIZER_SHUT_DOWN`,
/// `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header; `on_end` may be called with `userdata` on any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_barrier_set_arm(
    set: hsa_serializer_barrier_set_t,
    on_end: hsa_serializer_end_fn,
    userdata: *mut c_void,
    barrier: *mut hsa_serializer_barrier_t,
) -> hsa_serializer_status_t {
    status(|| {
        let on_end = on_end.map(|told| OnEnd { told, userdata });
        let armed = entry(set)?.1.arm(move |outcome| {
            if let Some(on_end) = on_end {
                on_end.tell(outcome);
            }
        })?;
        // SAFETY: the caller's promise.
        if let Ok(out) = unsafe { output(barrier) } {
            out.write(hsa_serializer_barrier_t::new(BARRIERS.keep(armed)));
        }
        Ok(())
    })
}

/// What is known of a queue's packet of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum hsa_serializer_drain_t {
    /// The barrier is armed: nothing can have drained.
    HSA_SERIALIZER_DRAIN_ARMED = 0,
    /// The queue carries this barrier's packet, and it may not have executed.
    HSA_SERIALIZER_DRAIN_OUTSTANDING = 1,
    /// The queue carries no packet of this barrier that could still execute.
    HSA_SERIALIZER_DRAIN_DRAINED = 2,
}

/// Takes away the tag of the queue with that id if its packet is known to have executed; `drain` gets one of
/// hsa_serializer_drain_t. Completions do this by themselves.
///
/// Lock-free; from any thread, but not in callbacks.
///
/// `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
/// `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_barrier_drain_queue(
    barrier: hsa_serializer_barrier_t,
    queue_id: u64,
    drain: *mut u32,
) -> hsa_serializer_status_t {
    use hsa_serializer_drain_t::*;
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(drain) }?;
        let barrier = BARRIERS.find(barrier.number()?)?;
        out.write(match barrier.drain_queue(QueueId::from_raw(queue_id)) {
            Drain::Armed => HSA_SERIALIZER_DRAIN_ARMED,
            Drain::Outstanding => HSA_SERIALIZER_DRAIN_OUTSTANDING,
            Drain::Drained => HSA_SERIALIZER_DRAIN_DRAINED,
        } as u32);
        Ok(())
    })
}

/// What is known of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_barrier_state_t {
    /// It lets everything through.
    pub cleared: bool,
    /// It gave way to a later one.
    pub superseded: bool,
    /// Its signal may be destroyed. Once true it stays true.
    pub safe_to_destroy: bool,
    /// How many queues carry a packet of it that may not have executed.
    pub tags: u32,
    /// Its signal's handle, which may be another signal's by now: for comparing and printing only.
    pub signal: u64,
}

/// What is known of a barrier now.
///
/// Wait-free, but for looking the handle up; from any thread.
///
/// `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
/// `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_barrier_state(
    barrier: hsa_serializer_barrier_t,
    state: *mut hsa_serializer_barrier_state_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(state) }?;
        let barrier = BARRIERS.find(barrier.number()?)?;
        out.write(hsa_serializer_barrier_state_t {
            cleared: barrier.is_cleared(),
            superseded: barrier.is_superseded(),
            safe_to_destroy: barrier.is_safe_to_destroy(),
            tags: barrier.tags(),
            signal: barrier.signal().handle,
        });
        Ok(())
    })
}

/// Gives the handle up. The barrier goes its way by itself.
///
/// Once, from any thread, but not in callbacks.
///
/// `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_barrier_destroy(
    barrier: hsa_serializer_barrier_t,
) -> hsa_serializer_status_t {
    status(|| BARRIERS.take(barrier.number()?).map(drop))
}
