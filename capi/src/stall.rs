//! Stalls: what stands still, by name, and letting it go.

use crate::event::nanoseconds;
use crate::handle::{hsa_serializer_stall_watch_t, hsa_serializer_t};
use crate::objects::Objects;
use crate::runtime::CRuntime;
use crate::serializer::{self, output};
use crate::status::{
    HSA_SERIALIZER_BAD_VALUE, HSA_SERIALIZER_BUSY, hsa_serializer_status_t, status,
};
use hsa_serializer::{QueueActivity, QueueWait, Stall, StallPolicy, StallWatch, Stalled};
use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::sync::Mutex;
use std::time::Duration;

/// What to do about a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum hsa_serializer_stall_policy_t {
    /// Name it.
    HSA_SERIALIZER_STALL_REPORT = 0,
    /// Name it and let go what it holds back, at the price of exclusiveness.
    HSA_SERIALIZER_STALL_RELEASE = 1,
}

/// What a queue is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum hsa_serializer_activity_t {
    /// Nothing of the serializer's holds it back.
    HSA_SERIALIZER_RUNNING = 0,
    /// Its next kernel waits for its turn.
    HSA_SERIALIZER_WAITS_FOR_TURN = 1,
    /// Its kernel has its turn.
    HSA_SERIALIZER_HAS_TURN = 2,
    /// Its kernel was overtaken, and may still run.
    HSA_SERIALIZER_OVERTAKEN = 3,
    /// Its next kernel waits for the barrier of `epoch`.
    HSA_SERIALIZER_WAITS_FOR_BARRIER = 4,
}

/// A queue that a barrier waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_queue_wait_t {
    /// The queue's id.
    pub queue_id: u64,
    /// How many of its dispatches have completed.
    pub completed: u64,
    /// How many have to.
    pub until: u64,
    /// One of hsa_serializer_activity_t.
    pub activity: u32,
    /// See there.
    pub epoch: u32,
}

/// A queue that waits for a barrier, and the number of the dispatch that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_held_back_t {
    /// The queue's id.
    pub queue_id: u64,
    /// The number of the dispatch behind the barrier's packet.
    pub dispatch: u64,
}

/// Something that stands still. It lives for the call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_stall_t {
    /// Whether it is an armed barrier, and not the kernel that has its turn.
    pub is_barrier: bool,
    /// Whether it was released.
    pub released: bool,
    /// The barrier's transition epoch.
    pub epoch: u32,
    /// For how long, in nanoseconds.
    pub lasted_ns: u64,
    /// What the barrier waits for.
    pub waits_for: *const hsa_serializer_queue_wait_t,
    /// How many these are.
    pub waits_for_count: usize,
    /// What waits for the barrier.
    pub holds_back: *const hsa_serializer_held_back_t,
    /// How many these are.
    pub holds_back_count: usize,
    /// The queue whose kernel has its turn.
    pub holder: u64,
    /// The number of that dispatch.
    pub dispatch: u64,
    /// The ids of the queues that wait for their turn.
    pub waiting: *const u64,
    /// How many these are.
    pub waiting_count: usize,
    /// The same as text.
    pub text: *const c_char,
}

/// Who is told of a stall. It may call whatever its caller may, but for the functions of the same watch.
#[allow(non_camel_case_types, reason = "the names are C's")]
pub type hsa_serializer_stall_fn =
    Option<unsafe extern "C" fn(userdata: *mut c_void, stall: *const hsa_serializer_stall_t)>;

static WATCHES: Objects<Mutex<StallWatch<CRuntime>>> = Objects::new();

/// To look for what stands still for longer than `after_ns` nanoseconds: longer than any kernel of the
/// application takes from one completion to the next. `policy` is one of hsa_serializer_stall_policy_t.
///
/// From any thread, but not in callbacks.
///
/// `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_BAD_VALUE`; the handle's, as hsa_serializer_mode().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_stall_watch_create(
    serializer: hsa_serializer_t,
    after_ns: u64,
    policy: u32,
    watch: *mut hsa_serializer_stall_watch_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(watch) }?;
        let policy = match policy {
            0 => StallPolicy::Report,
            1 => StallPolicy::Release,
            _ => return Err(HSA_SERIALIZER_BAD_VALUE),
        };
        let serializer = serializer::find(serializer)?;
        let made = serializer.watch_stalls(Duration::from_nanos(after_ns), policy);
        let number = WATCHES.keep(Mutex::new(made));
        out.write(hsa_serializer_stall_watch_t::new(number));
        Ok(())
    })
}

/// Tells `stall` (which may be null) what has stood still for longer than was allowed, as of `now_ns` on any
/// clock that only goes on; `count` (which may be null) gets how many there are. The first call starts the time.
/// With the policy *release* what holds others back is let go: one at a call. Where the process may be stopped (by
/// SIGSTOP, by a debugger), leave out of `now_ns` what lies between two calls that came too far apart.
///
/// Takes the transition lock, and allocates: on a thread of the host's own, every second or so; not in callbacks,
/// interceptors nor handlers. One call at a time for one watch.
///
/// `HSA_SERIALIZER_BUSY`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
/// `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_stall_watch_check(
    watch: hsa_serializer_stall_watch_t,
    now_ns: u64,
    stall: hsa_serializer_stall_fn,
    userdata: *mut c_void,
    count: *mut usize,
) -> hsa_serializer_status_t {
    status(|| {
        let watch = WATCHES.find(watch.number()?)?;
        let mut watch = watch.try_lock().map_err(|_| HSA_SERIALIZER_BUSY)?;
        let stalls = watch.check_stalls(Duration::from_nanos(now_ns));
        if let Some(told) = stall {
            for stall in &stalls {
                with(stall, |stall| {
                    // SAFETY: the caller's promise; what it points to lives through the call.
                    unsafe { told(userdata, stall) }
                });
            }
        }
        // SAFETY: the caller's promise.
        if let Ok(out) = unsafe { output(count) } {
            out.write(stalls.len());
        }
        Ok(())
    })
}

/// Gives the handle up.
///
/// Once, from any thread, but not in callbacks. A check that is under way on another thread ends as it would.
///
/// `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_stall_watch_destroy(
    watch: hsa_serializer_stall_watch_t,
) -> hsa_serializer_status_t {
    status(|| WATCHES.take(watch.number()?).map(drop))
}

fn with(stall: &Stall, tell: impl FnOnce(*const hsa_serializer_stall_t)) {
    let text = CString::new(stall.to_string()).unwrap_or_default();
    let mut told = hsa_serializer_stall_t {
        is_barrier: false,
        released: stall.released,
        epoch: 0,
        lasted_ns: nanoseconds(stall.lasted),
        waits_for: ptr::null(),
        waits_for_count: 0,
        holds_back: ptr::null(),
        holds_back_count: 0,
        holder: 0,
        dispatch: 0,
        waiting: ptr::null(),
        waiting_count: 0,
        text: text.as_ptr(),
    };
    let (mut waits, mut held, mut waiters) = (Vec::new(), Vec::new(), Vec::new());
    match &stall.what {
        Stalled::Barrier {
            epoch,
            waits_for,
            holds_back,
        } => {
            (told.is_barrier, told.epoch) = (true, *epoch);
            waits.extend(waits_for.iter().map(queue_wait));
            held.extend(holds_back.iter().map(|&(queue, dispatch)| {
                let queue_id = queue.to_raw();
                hsa_serializer_held_back_t { queue_id, dispatch }
            }));
        }
        Stalled::Holder {
            queue,
            dispatch,
            waiting,
        } => {
            (told.holder, told.dispatch) = (queue.to_raw(), *dispatch);
            waiters.extend(waiting.iter().map(|queue| queue.to_raw()));
        }
        _ => {}
    }
    (told.waits_for, told.waits_for_count) = (waits.as_ptr(), waits.len());
    (told.holds_back, told.holds_back_count) = (held.as_ptr(), held.len());
    (told.waiting, told.waiting_count) = (waiters.as_ptr(), waiters.len());
    tell(&raw const told);
}

fn queue_wait(wait: &QueueWait) -> hsa_serializer_queue_wait_t {
    use hsa_serializer_activity_t::*;
    let (activity, epoch) = match wait.activity {
        QueueActivity::WaitsForToken => (HSA_SERIALIZER_WAITS_FOR_TURN, 0),
        QueueActivity::HoldsToken => (HSA_SERIALIZER_HAS_TURN, 0),
        QueueActivity::Overtaken => (HSA_SERIALIZER_OVERTAKEN, 0),
        QueueActivity::WaitsForBarrier(epoch) => (HSA_SERIALIZER_WAITS_FOR_BARRIER, epoch),
        _ => (HSA_SERIALIZER_RUNNING, 0),
    };
    hsa_serializer_queue_wait_t {
        queue_id: wait.queue.to_raw(),
        completed: wait.completed,
        until: wait.until,
        activity: activity as u32,
        epoch,
    }
}
