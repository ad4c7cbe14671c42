//! The hot calls through the C interface, as a C program makes them, beside those of the Rust crate.
//!
//! The functions are called through pointers that the compiler does not see through, as a program calls those of a
//! shared library. Calls of one kind are timed in a row, and the others that they need are made in between, untimed.
//!
//! Each dispatch has a record, in which its ticket stays until the completion, as it does in a profiler. A C program
//! has the library write into the record; a copy from elsewhere would be the program's affair.

use crate::hot::{self, ROOM};
use crate::{Shape, Signals};
use hsa_serializer::{Queue, Serializer, Ticket};
use hsa_serializer_capi::handle::{hsa_serializer_queue_t, hsa_serializer_t};
use hsa_serializer_capi::queue::*;
use hsa_serializer_capi::runtime::hsa_serializer_runtime_t;
use hsa_serializer_capi::serializer::hsa_serializer_create;
use hsa_serializer_capi::status::hsa_serializer_status_t as Status;
use hsa_serializer_capi::status::hsa_serializer_status_t::HSA_SERIALIZER_SUCCESS;
use hsa_serializer_capi::ticket::{hsa_serializer_complete, hsa_serializer_ticket_t};
use std::ffi::c_void;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Calls in a row.
const BATCH: usize = 1000;

/// One dispatch and its completion, by whatever interface.
trait Hot {
    /// What is kept of a dispatch.
    type Record: Copy;
    fn dispatch(&mut self, record: &mut MaybeUninit<Self::Record>);
    fn complete(&mut self, record: Self::Record);
}

struct Rust {
    serializer: Serializer<Signals>,
    queue: Queue<Signals>,
    room: hot::Room,
}

impl Rust {
    fn new() -> Self {
        let serializer = hot::serializer(8);
        Self {
            queue: hot::add(&serializer),
            serializer,
            room: ROOM,
        }
    }
}

impl Hot for Rust {
    type Record = [u64; 2];

    #[inline(always)]
    fn dispatch(&mut self, record: &mut MaybeUninit<[u64; 2]>) {
        record.write(hot::dispatch(&mut self.queue, &mut self.room).into_raw());
    }

    #[inline(always)]
    fn complete(&mut self, record: [u64; 2]) {
        hot::complete(&self.serializer, Ticket::from_raw(record));
    }
}

type Dispatch = unsafe extern "C" fn(
    hsa_serializer_queue_t,
    *mut c_void,
    usize,
    *mut hsa_serializer_dispatch_t,
) -> Status;
type Complete = extern "C" fn(hsa_serializer_t, hsa_serializer_ticket_t) -> Status;

struct C {
    serializer: hsa_serializer_t,
    queue: hsa_serializer_queue_t,
    room: hot::Room,
    dispatch: Dispatch,
    complete: Complete,
}

impl C {
    fn new() -> Self {
        let runtime = hsa_serializer_runtime_t {
            size: size_of::<hsa_serializer_runtime_t>(),
            userdata: ptr::null_mut(),
            create_signal: Some(create_signal),
            destroy_signal: Some(destroy_signal),
            store: Some(store),
            compare_exchange: Some(compare_exchange),
            watch_ready: Some(watch_ready),
            is_handler_thread: None,
            report: None,
            event: None,
        };
        let mut serializer = hsa_serializer_t { handle: 0 };
        let mut queue = hsa_serializer_queue_t { handle: 0 };
        // SAFETY: outputs can be written, and the runtime's functions are there.
        unsafe {
            let made = hsa_serializer_create(ptr::null(), &raw const runtime, &raw mut serializer);
            assert_eq!(made, HSA_SERIALIZER_SUCCESS);
            let added = hsa_serializer_queue_add(serializer, &raw mut queue);
            assert_eq!(added, HSA_SERIALIZER_SUCCESS);
        }
        Self {
            serializer,
            queue,
            room: ROOM,
            dispatch: black_box(hsa_serializer_dispatch),
            complete: black_box(hsa_serializer_complete),
        }
    }
}

impl Hot for C {
    type Record = hsa_serializer_dispatch_t;

    #[inline(always)]
    fn dispatch(&mut self, record: &mut MaybeUninit<hsa_serializer_dispatch_t>) {
        let room = self.room.as_mut_ptr().cast();
        // SAFETY: there is room, the record can be written, and one thread calls.
        let status =
            unsafe { (self.dispatch)(self.queue, room, self.room.len(), record.as_mut_ptr()) };
        // Not `assert_eq`, which has the status stored.
        assert!(status == HSA_SERIALIZER_SUCCESS);
    }

    #[inline(always)]
    fn complete(&mut self, record: hsa_serializer_dispatch_t) {
        let status = (self.complete)(self.serializer, record.ticket);
        assert!(status == HSA_SERIALIZER_SUCCESS);
    }
}

/// Signals that nobody reads: unserialized kernels need none.
static SIGNALS: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn create_signal(_: *mut c_void, _: u32, _: i64, signal: *mut u64) -> u32 {
    // SAFETY: the library gives a place for the handle.
    unsafe { signal.write(1 + SIGNALS.fetch_add(1, Ordering::Relaxed)) };
    0
}

unsafe extern "C" fn destroy_signal(_: *mut c_void, _: u64) -> u32 {
    0
}

unsafe extern "C" fn store(_: *mut c_void, _: u64, _: i64) {}

unsafe extern "C" fn compare_exchange(_: *mut c_void, _: u64, expected: i64, _: i64) -> i64 {
    expected
}

unsafe extern "C" fn watch_ready(_: *mut c_void, _: u64, _: u64) -> u32 {
    0
}

/// What is timed of a batch.
#[derive(Clone, Copy)]
enum Timed {
    Dispatches,
    Completions,
}

fn batches<H: Hot + Send + 'static>(mut hot: H, timed: Timed) -> Shape
where
    H::Record: Send,
{
    let mut records = vec![MaybeUninit::uninit(); BATCH];
    Shape::batched(BATCH as u64, move || -> Duration {
        let start = Instant::now();
        for record in &mut records {
            hot.dispatch(record);
        }
        let dispatches = start.elapsed();
        let start = Instant::now();
        for record in &records {
            // SAFETY: the dispatch has written it.
            hot.complete(unsafe { record.assume_init() });
        }
        let completions = start.elapsed();
        match timed {
            Timed::Dispatches => dispatches,
            Timed::Completions => completions,
        }
    })
}

/// Dispatches by the C interface.
#[must_use]
pub fn c_dispatches() -> Shape {
    batches(C::new(), Timed::Dispatches)
}

/// Dispatches by the Rust crate, in the same shape.
#[must_use]
pub fn rust_dispatches() -> Shape {
    batches(Rust::new(), Timed::Dispatches)
}

/// Completions by the C interface.
#[must_use]
pub fn c_completions() -> Shape {
    batches(C::new(), Timed::Completions)
}

/// Completions by the Rust crate, in the same shape.
#[must_use]
pub fn rust_completions() -> Shape {
    batches(Rust::new(), Timed::Completions)
}
