//! Any calls of the C interface in any order, with any handle, ticket and number, and with pointers that are null or
//! good; the host's callbacks fail now and then.
//!
//! What has to hold: a handle that is null, foreign or stale comes to that status and no other, a live one to none of
//! these; what is refused writes nothing; no call panics; the host is never called with a signal that does not exist;
//! and when everything has ended no signal is left.

use crate::host::{Host, NoSignal};
use crate::pool::{Kind, Pool, Standing};
use arbitrary::{Arbitrary, Result, Unstructured};
use hsa_serializer_capi::agents::*;
use hsa_serializer_capi::barrier_set::*;
use hsa_serializer_capi::domain::*;
use hsa_serializer_capi::handle::*;
use hsa_serializer_capi::insight::*;
use hsa_serializer_capi::queue::*;
use hsa_serializer_capi::ready::hsa_serializer_ready;
use hsa_serializer_capi::request::*;
use hsa_serializer_capi::runtime::*;
use hsa_serializer_capi::serializer::*;
use hsa_serializer_capi::shutdown::*;
use hsa_serializer_capi::stall::*;
use hsa_serializer_capi::status::hsa_serializer_status_string;
use hsa_serializer_capi::status::hsa_serializer_status_t as Status;
use hsa_serializer_capi::status::hsa_serializer_status_t::*;
use hsa_serializer_capi::ticket::*;
use hsa_serializer_capi::waiting::*;
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Mutex;

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    function: u8,
    handle: Pick,
    /// A ticket, an agent, a queue's id.
    item: Pick,
    /// Which pointers are null.
    nulls: u8,
    number: u64,
}

/// Which of what there is, or something that there is not.
#[derive(Clone, Copy, Debug)]
pub struct Pick {
    /// What is wrong with it; most often nothing.
    pub how: u8,
    /// Which one.
    pub which: u8,
}

/// An input.
#[derive(Clone, Debug)]
pub struct Case {
    calls: Vec<Call>,
}

/// Bytes of a call.
const BYTES: usize = 8;

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut calls = Vec::new();
        while u.len() >= BYTES && calls.len() < CALLS {
            let mut byte = || u.arbitrary::<u8>();
            calls.push(Call {
                function: byte()?,
                handle: Pick {
                    how: byte()?,
                    which: byte()?,
                },
                item: Pick {
                    how: byte()?,
                    which: byte()?,
                },
                nulls: byte()?,
                number: number(byte()?, byte()?),
            });
        }
        Ok(Self { calls })
    }
}

/// Small most often, and now and then as large as it can be.
fn number(how: u8, few: u8) -> u64 {
    match how % 8 {
        0..5 => u64::from(few % 6),
        5 => u64::MAX - u64::from(few % 2),
        6 => u64::from(few) << (how / 8 * 2),
        _ => (1 << (few % 64)) - 1,
    }
}

/// More than an output has.
const WORDS: usize = 64;
const SENTINEL: u64 = 0xa5a5_a5a5_a5a5_a5a5;
/// So few calls have an input end soon.
const CALLS: usize = 80;
/// Serializers, sets and groups of agents of an input: each keeps its place when it has ended.
const KEPT: usize = 4;
/// No end needs so many steps.
const STEPS: usize = 1_000;

/// A ticket that was handed out.
#[derive(Clone, Copy, Debug)]
struct Given {
    ticket: hsa_serializer_ticket_t,
    /// The serializer or the set that it is of.
    owner: u64,
}

struct Run {
    host: &'static Host,
    pool: Pool,
    tickets: Vec<Given>,
    /// The serializers of agents, by the agents' handle.
    agents: Vec<(u64, u64)>,
    /// The owners of queues, by the queues' handle.
    owners: Vec<(u64, u64)>,
    /// Something was left, with its signals.
    left: bool,
    /// How many of [`KEPT`] there may still be.
    may_be_made: usize,
}

/// Runs an input.
///
/// # Panics
/// If something does not hold.
pub fn run(case: &Case) {
    // Numbers of handles are the process's: what was never given is known while nobody else asks.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(|failed| failed.into_inner());
    let host = Host::new();
    let mut run = Run {
        host,
        pool: Pool::default(),
        tickets: Vec::new(),
        agents: Vec::new(),
        owners: Vec::new(),
        left: false,
        may_be_made: KEPT,
    };
    for call in case.calls.iter().take(CALLS) {
        run.call(*call);
        host.assert_no_violations();
    }
    run.end();
    host.assert_no_violations();
    assert!(run.left || host.signals() == 0, "signals are left");
    // SAFETY: made by `Box::leak`; everything that could call it has ended.
    drop(unsafe { Box::from_raw(ptr::from_ref(host).cast_mut()) });
}

unsafe extern "C" fn make(
    userdata: *mut c_void,
    agent: u64,
    runtime: *mut hsa_serializer_runtime_t,
) -> u32 {
    let mut made = crate::host::of(userdata).runtime();
    match agent % 8 {
        1 => return 1,
        2 => return 0,
        3 => made.store = None,
        _ => {}
    }
    // SAFETY: the library gives a place for it.
    unsafe { runtime.write(made) };
    0
}

unsafe extern "C" fn on_stuck(_: *mut c_void, queues: *const hsa_serializer_in_flight_t, n: usize) {
    // SAFETY: as many are there.
    let all = (0..n).map(|i| unsafe { queues.add(i).read() }.dispatches);
    assert!(all.sum::<u64>() > 0);
}

unsafe extern "C" fn on_remaining(_: *mut c_void, left: *const hsa_serializer_remaining_t) {
    // SAFETY: it lives for the call, with its queues.
    let left = unsafe { *left };
    // SAFETY: as above.
    unsafe { on_stuck_or_none(left.queues, left.queue_count) };
}

/// # Safety
/// As many are there.
unsafe fn on_stuck_or_none(queues: *const hsa_serializer_in_flight_t, n: usize) {
    for i in 0..n {
        // SAFETY: the caller's promise.
        assert!(unsafe { queues.add(i).read() }.queue_id != u64::MAX);
    }
}

unsafe extern "C" fn on_stall(_: *mut c_void, stall: *const hsa_serializer_stall_t) {
    // SAFETY: it lives for the call.
    assert!(unsafe { std::ffi::CStr::from_ptr((*stall).text) }.count_bytes() > 0);
}

unsafe extern "C" fn on_text(_: *mut c_void, text: *const c_char, length: usize) {
    // SAFETY: a string that lives for the call.
    let text = unsafe { std::ffi::CStr::from_ptr(text) };
    assert_eq!(text.count_bytes(), length);
}

unsafe extern "C" fn on_end(_: *mut c_void, outcome: u32) {
    assert!(outcome <= 2);
}

/// The handle's statuses, of which a live one comes to none.
const OF_HANDLES: [Status; 3] = [
    HSA_SERIALIZER_NULL_HANDLE,
    HSA_SERIALIZER_FOREIGN_HANDLE,
    HSA_SERIALIZER_STALE_HANDLE,
];

impl Run {
    /// What a call with that handle may come to.
    fn check(&self, standing: Standing, null: bool, status: Status, call: Call) {
        let handles = match standing {
            Standing::Live => None,
            Standing::Null => Some(HSA_SERIALIZER_NULL_HANDLE),
            Standing::Foreign => Some(HSA_SERIALIZER_FOREIGN_HANDLE),
            Standing::Stale => Some(HSA_SERIALIZER_STALE_HANDLE),
        };
        assert_ne!(status, HSA_SERIALIZER_PANIC, "{call:?}");
        match handles {
            None => assert!(!OF_HANDLES.contains(&status), "{call:?} came to {status:?}"),
            // Other arguments may have been looked at first.
            Some(handles) => assert!(
                status == handles
                    || [
                        HSA_SERIALIZER_NULL_POINTER,
                        HSA_SERIALIZER_TOO_SMALL,
                        HSA_SERIALIZER_BAD_VALUE,
                        HSA_SERIALIZER_BAD_SIZE,
                    ]
                    .contains(&status),
                "{call:?} came to {status:?} and not to {handles:?}"
            ),
        }
        let refused = !matches!(standing, Standing::Live) || null;
        assert!(!refused || status != HSA_SERIALIZER_SUCCESS, "{call:?}");
    }

    /// Calls a function with one output, which may have to be there; gives what it wrote.
    fn one<T: Copy>(
        &mut self,
        call: Call,
        kind: Kind,
        needed: bool,
        function: impl FnOnce(u64, *mut T) -> Status,
    ) -> Option<T> {
        let (handle, standing) = self.pool.pick(kind, call.handle);
        self.output(call, standing, needed, |out| function(handle, out))
    }

    fn output<T: Copy>(
        &mut self,
        call: Call,
        standing: Standing,
        needed: bool,
        function: impl FnOnce(*mut T) -> Status,
    ) -> Option<T> {
        const { assert!(size_of::<T>() <= 8 * WORDS) };
        let mut memory = [SENTINEL; WORDS];
        let null = call.nulls & 1 != 0;
        let out = if null {
            ptr::null_mut()
        } else {
            memory.as_mut_ptr().cast()
        };
        let status = function(out);
        self.check(standing, null && needed, status, call);
        if status != HSA_SERIALIZER_SUCCESS {
            let written = memory.iter().any(|word| *word != SENTINEL);
            assert!(!written, "{call:?} came to {status:?} and wrote");
        }
        let wrote = status == HSA_SERIALIZER_SUCCESS && !null;
        // SAFETY: on success an output that is there was written.
        wrote.then(|| unsafe { memory.as_ptr().cast::<T>().read() })
    }

    /// Calls a function without outputs; whether it came to success.
    fn none(
        &mut self,
        call: Call,
        kind: Kind,
        function: impl FnOnce(u64) -> Status,
    ) -> (u64, bool) {
        let (handle, standing) = self.pool.pick(kind, call.handle);
        let status = function(handle);
        self.check(standing, false, status, call);
        (handle, status == HSA_SERIALIZER_SUCCESS)
    }

    /// Something that ends, and whose handle is stale then.
    fn ends(&mut self, call: Call, kind: Kind, function: impl FnOnce(u64) -> Status) {
        let (handle, ended) = self.none(call, kind, function);
        if ended {
            self.pool.ended(kind, handle);
        }
    }

    fn options(&self, call: Call) -> (hsa_serializer_options_t, Standing) {
        let (handle, standing) = self.pool.pick(Kind::Domain, call.item);
        let options = hsa_serializer_options_t {
            size: size_of::<hsa_serializer_options_t>() + usize::from(call.nulls & 16 != 0),
            domain: hsa_serializer_domain_t { handle },
            agent: call.number,
            on_misuse: u32::from(call.nulls >> 5),
        };
        // The null domain is the process's.
        let standing = match standing {
            Standing::Null => Standing::Live,
            other => other,
        };
        (options, standing)
    }

    fn runtime(&self, call: Call) -> hsa_serializer_runtime_t {
        let mut runtime = self.host.runtime();
        match call.handle.which % 16 {
            1 => runtime.size = call.number as usize,
            2 => runtime.create_signal = None,
            3 => runtime.watch_ready = None,
            4 => (runtime.report, runtime.event) = (None, None),
            5 => runtime.is_handler_thread = None,
            _ => {}
        }
        // Of so much memory as there is.
        runtime.size = runtime.size.min(size_of_val(&runtime) + 8);
        runtime
    }

    fn ticket(&self, call: Call) -> (hsa_serializer_ticket_t, Option<u64>) {
        let given = self.tickets.len().checked_sub(1);
        let given = given.map(|last| self.tickets[usize::from(call.item.which).min(last)]);
        let garbage = hsa_serializer_ticket_t {
            queue_id: call.number,
            dispatch: u64::from(call.item.which),
        };
        match (given, call.item.how % 8) {
            (None, _) | (_, 0) => (garbage, None),
            (Some(mut given), 1) => {
                given.ticket.dispatch = given.ticket.dispatch.wrapping_add(call.number);
                (given.ticket, None)
            }
            (Some(given), _) => (given.ticket, Some(given.owner)),
        }
    }

    fn dispatched(&mut self, queue: u64, ticket: hsa_serializer_ticket_t) {
        let owner = self.owners.iter().find(|(q, _)| *q == queue);
        let owner = owner.expect("it was added").1;
        self.tickets.push(Given { ticket, owner });
    }

    /// Completes, or checks.
    fn with_ticket(
        &mut self,
        call: Call,
        kind: Kind,
        function: impl FnOnce(u64, hsa_serializer_ticket_t) -> Status,
    ) {
        let (ticket, owner) = self.ticket(call);
        let (handle, standing) = self.pool.pick(kind, call.handle);
        let status = function(handle, ticket);
        self.check(standing, false, status, call);
        if let (Standing::Live, Some(owner)) = (standing, owner) {
            let foreign = status == HSA_SERIALIZER_FOREIGN_TICKET;
            assert_eq!(
                foreign,
                owner != handle,
                "{call:?}: {ticket:?} is {owner:#x}'s"
            );
        }
    }

    fn packets(
        &mut self,
        call: Call,
        function: impl FnOnce(hsa_serializer_queue_t, *mut c_void, usize) -> Status,
    ) -> (u64, Status) {
        let (handle, standing) = self.pool.pick(Kind::Queue, call.handle);
        let mut room = [[SENTINEL; 8]; HSA_SERIALIZER_MAX_PACKETS + 1];
        let capacity = HSA_SERIALIZER_MAX_PACKETS - usize::from(call.item.how & 64 != 0);
        let null = call.nulls & 2 != 0;
        let packets = if null {
            ptr::null_mut()
        } else {
            room.as_mut_ptr().cast()
        };
        let status = function(hsa_serializer_queue_t { handle }, packets, capacity);
        self.check(standing, null, status, call);
        let kept = if status == HSA_SERIALIZER_SUCCESS {
            HSA_SERIALIZER_MAX_PACKETS
        } else {
            0
        };
        let untouched = room[kept..].iter().flatten().all(|word| *word == SENTINEL);
        assert!(untouched, "{call:?} came to {status:?} and wrote");
        (handle, status)
    }

    fn dispatch(&mut self, call: Call, limit: Option<u64>) {
        let mut out = [SENTINEL; WORDS];
        let null = call.nulls & 1 != 0;
        let place: *mut hsa_serializer_dispatch_t = if null {
            ptr::null_mut()
        } else {
            out.as_mut_ptr().cast()
        };
        let (queue, status) = self.packets(call, |queue, packets, capacity| {
            // SAFETY: pointers are null or have room; one thread calls.
            unsafe {
                match limit {
                    None => hsa_serializer_dispatch(queue, packets, capacity, place),
                    Some(limit) => {
                        hsa_serializer_try_dispatch(queue, packets, capacity, limit, place)
                    }
                }
            }
        });
        assert_eq!(
            status == HSA_SERIALIZER_SUCCESS,
            out[0] != SENTINEL,
            "{call:?}"
        );
        if status == HSA_SERIALIZER_SUCCESS {
            // SAFETY: it was written.
            let dispatch = unsafe { place.read() };
            self.dispatched(queue, dispatch.ticket);
        }
    }

    fn gap(&mut self, call: Call) {
        let mut out = [SENTINEL; WORDS];
        let null = call.nulls & 1 != 0;
        let place: *mut hsa_serializer_marker_t = if null {
            ptr::null_mut()
        } else {
            out.as_mut_ptr().cast()
        };
        let (queue, status) = self.packets(call, |queue, packets, capacity| {
            // SAFETY: pointers are null or have room; one thread calls.
            unsafe { hsa_serializer_gap(queue, packets, capacity, place) }
        });
        assert_eq!(
            status == HSA_SERIALIZER_SUCCESS,
            out[0] != SENTINEL,
            "{call:?}"
        );
        if status == HSA_SERIALIZER_SUCCESS {
            // SAFETY: it was written.
            let marker = unsafe { place.read() };
            self.dispatched(queue, marker.ticket);
        }
    }

    fn made(&mut self, kind: Kind, handle: Option<u64>) {
        if let Some(handle) = handle {
            self.pool.made(kind, handle);
        }
    }

    /// Whether one more of what keeps its place may be made.
    fn one_more(&mut self) -> bool {
        let more = self.may_be_made.checked_sub(1);
        self.may_be_made = more.unwrap_or(0);
        more.is_some()
    }

    fn queue_added(&mut self, owner: u64, queue: Option<hsa_serializer_queue_t>) {
        if let Some(queue) = queue {
            self.pool.made(Kind::Queue, queue.handle);
            self.owners.push((queue.handle, owner));
        }
    }
}

mod calls;
