//! Queues: added, dispatched on, and gone.

use crate::barrier_set;
use crate::directory::Directory;
use crate::handle::{hsa_serializer_queue_t, hsa_serializer_t};
use crate::lease::{Lease, Refused};
use crate::runtime::CRuntime;
use crate::serializer::{self, output};
use crate::status::{
    HSA_SERIALIZER_BUSY, HSA_SERIALIZER_FOREIGN_HANDLE, HSA_SERIALIZER_FULL,
    HSA_SERIALIZER_NULL_POINTER, HSA_SERIALIZER_STALE_HANDLE, HSA_SERIALIZER_SUCCESS,
    HSA_SERIALIZER_TOO_SMALL, Outcome, hsa_serializer_status_t, status,
};
use crate::ticket::{self, hsa_serializer_ticket_t};
use hsa_serializer::{AqlPacket, Begun, MAX_PACKETS, Queue, QueueId};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32};

/// The most packets that one dispatch can inject: how many an array of packets has to have room for.
pub const HSA_SERIALIZER_MAX_PACKETS: usize = 4;
const _: () = assert!(HSA_SERIALIZER_MAX_PACKETS == MAX_PACKETS);

/// Whose queue it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    /// The serializer of that entry.
    Serializer(u64),
    /// The barrier set of that entry.
    Set(u64),
}

/// The dispatching half, with packets of its own: the caller's may be aligned by less than Rust's.
struct Half {
    queue: Queue<CRuntime>,
    packets: [AqlPacket; MAX_PACKETS],
}

#[repr(align(64))]
struct Entry {
    half: Lease<Half>,
    whose: OnceLock<(QueueId, Owner)>,
}

impl Entry {
    const fn new() -> Self {
        Self {
            half: Lease::of(
                AtomicPtr::new(ptr::null_mut()),
                AtomicU32::new(0),
                AtomicPtr::new(ptr::null_mut()),
            ),
            whose: OnceLock::new(),
        }
    }
}

impl Default for Entry {
    fn default() -> Self {
        Self::new()
    }
}

/// How many have an entry whose address is computed.
const FIRST: usize = 1024;

static QUEUES: Directory<Entry, FIRST> = Directory::new([const { Entry::new() }; FIRST]);

/// Gives the queue a handle.
pub(crate) fn enter(queue: Queue<CRuntime>, owner: Owner) -> Outcome<hsa_serializer_queue_t> {
    let (number, entry) = QUEUES.give().ok_or(HSA_SERIALIZER_FULL)?;
    // It was given to us alone.
    let _ = entry.whose.set((queue.id(), owner));
    entry.half.fill(Half {
        queue,
        packets: [AqlPacket::INVALID; MAX_PACKETS],
    });
    Ok(hsa_serializer_queue_t::new(number))
}

#[inline(always)]
fn find(queue: hsa_serializer_queue_t) -> Outcome<&'static Entry> {
    QUEUES
        .get(queue.number()?)
        .ok_or(HSA_SERIALIZER_FOREIGN_HANDLE)
}

/// Works with the dispatching half.
///
/// # Safety
/// One call at a time for one queue.
#[inline(always)]
unsafe fn with_half<T>(
    queue: hsa_serializer_queue_t,
    work: impl FnOnce(&mut Half) -> Outcome<T>,
) -> Outcome<T> {
    let entry = find(queue)?;
    // SAFETY: the caller's promise.
    match unsafe { entry.half.enter(work) } {
        Ok(done) => done,
        Err(refused) => Err(not_entered(entry, refused)),
    }
}

#[cold]
fn not_entered(entry: &Entry, refused: Refused) -> hsa_serializer_status_t {
    match refused {
        Refused::Busy => HSA_SERIALIZER_BUSY,
        Refused::Ended if entry.whose.get().is_some() => HSA_SERIALIZER_STALE_HANDLE,
        Refused::Ended => HSA_SERIALIZER_FOREIGN_HANDLE,
    }
}

/// Adds a queue: before the first packet of the HSA queue is intercepted. Creates its ready and block signals,
/// and has the ready signal watched.
///
/// Takes the transition lock: from where hsa_serializer_enable() may be called. 64 bytes stay in memory for
/// each queue that ever was.
///
/// `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_NO_SIGNAL`, `HSA_SERIALIZER_NULL_SIGNAL`,
/// `HSA_SERIALIZER_HANDLER_REFUSED`, `HSA_SERIALIZER_FULL`, `HSA_SERIALIZER_LEFT`,
/// `HSA_SERIALIZER_SHUT_DOWN` (always so in the child of a fork); the handle's, as hsa_serializer_mode().
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_queue_add(
    serializer: hsa_serializer_t,
    queue: *mut hsa_serializer_queue_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(queue) }?;
        let number = serializer.number()?;
        let (_, serializer) = serializer::entry(number)?;
        let added = serializer.add_queue()?;
        let id = added.id();
        let entered = enter(added, Owner::Serializer(number));
        if entered.is_err() {
            // Nobody can name it: it has no packets, and never will.
            let _ = serializer.queue_destroyed(id);
        }
        out.write(entered?);
        Ok(())
    })
}

/// The queue's id: what handlers, events, reports, stalls and tickets call it. It stays its own when it is gone.
///
/// Wait-free; from any thread, but not in callbacks.
///
/// `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`.
///
/// # Safety
/// As said in the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_queue_id(
    queue: hsa_serializer_queue_t,
    queue_id: *mut u64,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(queue_id) }?;
        let (id, _) = find(queue)?
            .whose
            .get()
            .ok_or(HSA_SERIALIZER_FOREIGN_HANDLE)?;
        out.write(id.to_raw());
        Ok(())
    })
}

/// What a dispatch has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_dispatch_t {
    /// Hand it to hsa_serializer_complete() when the packet processor is through with the kernel.
    pub ticket: hsa_serializer_ticket_t,
    /// How many packets at the start of the array have to be written in front of the caller's own, in order.
    pub packets: u32,
    /// Whether the kernel is serialized. If so, the kernel's packet and the last packet of its group (the
    /// caller's packets that belong to this kernel) need the barrier bit.
    pub serialized: bool,
}

/// Counts one kernel and says what has to stand in front of it. `packets` is an array of `capacity` AQL packets
/// of 64 bytes, at least HSA_SERIALIZER_MAX_PACKETS; it is written as far as `dispatch->packets` says.
///
/// This is the point of no return: the kernel has to be written to the queue, or the queue has to be destroyed.
/// Do what can fail before it.
///
/// In the queue's interceptor: one call at a time for one queue (hsa_serializer_dispatch(),
/// hsa_serializer_try_dispatch(), hsa_serializer_gap(), hsa_serializer_queue_in_flight()), which HSA sees to.
/// Two at once are a data race; most are noticed (`HSA_SERIALIZER_BUSY`), in a checked build all. Beside
/// hsa_serializer_queue_destroyed() of the same queue on another thread it is safe. Never takes a lock.
///
/// `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_TOO_SMALL`, `HSA_SERIALIZER_SHUT_DOWN`,
/// `HSA_SERIALIZER_QUEUE_GONE` (there is no ticket then: pass the kernel on as it is),
/// `HSA_SERIALIZER_BUSY`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
/// `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As said in the header; one call at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_dispatch(
    queue: hsa_serializer_queue_t,
    packets: *mut c_void,
    capacity: usize,
    dispatch: *mut hsa_serializer_dispatch_t,
) -> hsa_serializer_status_t {
    // SAFETY: the caller's promise.
    unsafe { dispatch_quickly(queue, packets, capacity, dispatch) }
}

/// The dispatch that is one addition. Everything else is called as the last thing (by C's convention, across which
/// nothing unwinds), so that no register has to be saved: an atomic addition waits for every store in front of it.
///
/// # Safety
/// As for [`hsa_serializer_dispatch`].
#[inline(always)]
unsafe fn dispatch_quickly(
    queue: hsa_serializer_queue_t,
    packets: *mut c_void,
    capacity: usize,
    out: *mut hsa_serializer_dispatch_t,
) -> hsa_serializer_status_t {
    let entry = queue.number().ok().and_then(|n| QUEUES.get_first(n));
    let good = !packets.is_null() && !out.is_null() && capacity >= MAX_PACKETS;
    let (Some(entry), true) = (entry, good) else {
        // SAFETY: the caller's promise.
        return unsafe { dispatch_slowly(queue, packets, capacity, out) };
    };
    // SAFETY: the caller's promise.
    let Some(mut half) = (unsafe { entry.half.come_in() }) else {
        // SAFETY: as above.
        return unsafe { dispatch_slowly(queue, packets, capacity, out) };
    };
    // SAFETY: this is the only user, until it goes out.
    match unsafe { half.as_mut() }.queue.begin() {
        Ok(dispatch) => {
            // SAFETY: the caller's promise; see `Output`.
            unsafe {
                ticket::write(ticket::out(dispatch.ticket), &raw mut (*out).ticket);
                (&raw mut (*out).packets).write_unaligned(0);
                (&raw mut (*out).serialized).write(false);
            }
            if entry.half.go_out() {
                HSA_SERIALIZER_SUCCESS
            } else {
                drop_left(entry)
            }
        }
        // SAFETY: as above.
        Err(begun) => unsafe { dispatch_rest(entry, half, begun, packets, out) },
    }
}

#[cold]
#[inline(never)]
extern "C" fn drop_left(entry: &Entry) -> hsa_serializer_status_t {
    status(|| {
        entry.half.take_what_is_left();
        Ok(())
    })
}

/// # Safety
/// As for [`hsa_serializer_dispatch`].
#[inline(never)]
unsafe extern "C" fn dispatch_slowly(
    queue: hsa_serializer_queue_t,
    packets: *mut c_void,
    capacity: usize,
    out: *mut hsa_serializer_dispatch_t,
) -> hsa_serializer_status_t {
    // SAFETY: the caller's promise.
    status(|| unsafe { dispatch_into(queue, packets, capacity, out, None) })
}

/// # Safety
/// As for [`hsa_serializer_dispatch`]; `half` is the entry's, which was come into, and nothing is null.
#[inline(never)]
#[allow(improper_ctypes_definitions, reason = "Rust alone calls it")]
unsafe extern "C" fn dispatch_rest(
    entry: &Entry,
    mut half: NonNull<Half>,
    begun: Begun,
    packets: *mut c_void,
    out: *mut hsa_serializer_dispatch_t,
) -> hsa_serializer_status_t {
    status(|| {
        let inside = entry.half.inside();
        // SAFETY: this is the only user, until it goes out.
        let half = unsafe { half.as_mut() };
        let dispatch = half.queue.go_on(begun, &mut half.packets)?;
        // SAFETY: the caller's promise.
        unsafe { hand_out(&half.packets, dispatch.packets, packets) };
        drop(inside);
        let written = hsa_serializer_dispatch_t {
            ticket: ticket::out(dispatch.ticket),
            packets: dispatch.packets as u32,
            serialized: dispatch.serialized,
        };
        // SAFETY: as above.
        unsafe { out.write_unaligned(written) };
        Ok(())
    })
}

/// hsa_serializer_dispatch(), unless `limit` dispatches of this queue, or more, are in flight: then
/// `HSA_SERIALIZER_LIMIT`. Keep the kernel then, with all that the application submits behind it, and try again
/// when a completion of this queue has come; never wait for that in the interceptor.
///
/// As hsa_serializer_dispatch().
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_try_dispatch(
    queue: hsa_serializer_queue_t,
    packets: *mut c_void,
    capacity: usize,
    limit: u64,
    dispatch: *mut hsa_serializer_dispatch_t,
) -> hsa_serializer_status_t {
    // SAFETY: the caller's promise.
    status(|| unsafe { dispatch_into(queue, packets, capacity, dispatch, Some(limit)) })
}

/// # Safety
/// As for [`hsa_serializer_dispatch`].
#[inline(always)]
unsafe fn dispatch_into(
    queue: hsa_serializer_queue_t,
    packets: *mut c_void,
    capacity: usize,
    out: *mut hsa_serializer_dispatch_t,
    limit: Option<u64>,
) -> Outcome {
    // SAFETY: the caller's promise.
    let out = unsafe { output(out) }?;
    check_room(packets, capacity)?;
    // SAFETY: the caller's promise.
    let dispatch = unsafe {
        with_half(queue, |half| {
            let dispatch = match limit {
                None => half.queue.dispatch(&mut half.packets)?,
                Some(limit) => half.queue.try_dispatch(&mut half.packets, limit)?,
            };
            if dispatch.packets != 0 {
                hand_out(&half.packets, dispatch.packets, packets);
            }
            Ok(dispatch)
        })
    }?;
    out.write(hsa_serializer_dispatch_t {
        ticket: ticket::out(dispatch.ticket),
        packets: dispatch.packets as u32,
        serialized: dispatch.serialized,
    });
    Ok(())
}

#[inline(always)]
fn check_room(packets: *mut c_void, capacity: usize) -> Outcome {
    if packets.is_null() {
        return Err(HSA_SERIALIZER_NULL_POINTER);
    }
    if capacity < MAX_PACKETS {
        return Err(HSA_SERIALIZER_TOO_SMALL);
    }
    Ok(())
}

/// # Safety
/// `to` has room for as many packets.
unsafe fn hand_out(from: &[AqlPacket; MAX_PACKETS], count: usize, to: *mut c_void) {
    // SAFETY: the caller's promise; byte by byte, since `to` may be aligned by less.
    unsafe {
        let from: *const u8 = from[..count].as_ptr().cast();
        ptr::copy_nonoverlapping(from, to.cast(), count * size_of::<AqlPacket>());
    }
}

/// How many dispatches of this queue have not completed; none of a queue that is gone.
///
/// One call at a time with hsa_serializer_dispatch() of this queue; see there.
///
/// `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_BUSY`, `HSA_SERIALIZER_NULL_HANDLE`,
/// `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_queue_in_flight(
    queue: hsa_serializer_queue_t,
    in_flight: *mut u64,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let (out, count) = unsafe {
            (
                output(in_flight)?,
                with_half(queue, |half| Ok(half.queue.in_flight()))?,
            )
        };
        out.write(count);
        Ok(())
    })
}

/// What has to be written for the unknown work of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_marker_t {
    /// Hand it to hsa_serializer_complete() when the marker has completed.
    pub ticket: hsa_serializer_ticket_t,
    /// How many packets at the start of the array have to be written in front of whatever the queue gets next,
    /// in order. The last one is the marker: give it a completion signal that the host hears of.
    pub packets: u32,
}

/// Counts the unknown work that this queue holds now: of a queue that was attached while it ran, or whose
/// packets passed unseen. `packets` and `capacity` as for hsa_serializer_dispatch().
///
/// In the interceptor, before the queue's first dispatch after the gap: one call at a time, as
/// hsa_serializer_dispatch(). Takes the transition lock: from where hsa_serializer_enable() may be called.
///
/// As hsa_serializer_dispatch(); `HSA_SERIALIZER_NO_SIGNAL`, `HSA_SERIALIZER_NULL_SIGNAL`,
/// `HSA_SERIALIZER_LEFT`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_serializer_gap(
    queue: hsa_serializer_queue_t,
    packets: *mut c_void,
    capacity: usize,
    marker: *mut hsa_serializer_marker_t,
) -> hsa_serializer_status_t {
    status(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { output(marker) }?;
        check_room(packets, capacity)?;
        // SAFETY: the caller's promise.
        let marker = unsafe {
            with_half(queue, |half| {
                let marker = half.queue.gap(&mut half.packets)?;
                hand_out(&half.packets, marker.packets, packets);
                Ok(marker)
            })
        }?;
        out.write(hsa_serializer_marker_t {
            ticket: ticket::out(marker.ticket),
            packets: marker.packets as u32,
        });
        Ok(())
    })
}

/// The queue is gone: none of its packets executes any more. Whatever it held goes on without it; tickets of its
/// kernels that never ran need not be completed. The handle is stale from then on.
///
/// Say it at one of three moments only: after `hsa_queue_destroy` returned, after `hsa_queue_inactivate`
/// returned, or after the queue's error callback was called. Earlier, a packet may still execute and wait for a
/// signal that this lets go of.
///
/// Lock-free; from any thread, once, but not in callbacks; a call with the same handle may be under way on
/// another thread, and ends as it would. In the child of a fork it does nothing more than to give the handle up.
///
/// `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_queue_destroyed(
    queue: hsa_serializer_queue_t,
) -> hsa_serializer_status_t {
    status(|| {
        let entry = find(queue)?;
        let (id, owner) = *entry.whose.get().ok_or(HSA_SERIALIZER_FOREIGN_HANDLE)?;
        if !entry.half.end() {
            return Err(HSA_SERIALIZER_STALE_HANDLE);
        }
        ticket::queue_gone(id);
        // Of a serializer that has ended the queue was given up before; that is no error to who says it now.
        let _ = match owner {
            Owner::Serializer(number) => serializer::kept(number).map(|s| s.queue_destroyed(id)),
            Owner::Set(number) => barrier_set::kept(number).map(|s| s.queue_destroyed(id)),
        };
        Ok(())
    })
}
