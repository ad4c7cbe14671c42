//! The HSA runtime as a C program gives it: functions of its own, or the runtime's table.

use crate::event::{hsa_serializer_event_t, hsa_serializer_report_t};
use crate::status::{
    HSA_SERIALIZER_BAD_SIZE, HSA_SERIALIZER_BAD_TABLE, HSA_SERIALIZER_NULL_POINTER, Outcome,
};
use hsa_serializer::hsa::HsaRuntime;
use hsa_serializer::hsa::hsa_sys::{Api, HsaApiTable, Tables, hsa_agent_t};
use hsa_serializer::{
    Event, Observer, QueueId, Report, Runtime, SignalKind, hsa_signal_t, hsa_status_t,
};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a signal is for, so that the cheapest one that will do can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum hsa_serializer_signal_kind_t {
    /// Packet processors wait for it; the host only stores. It needs no interrupt
    /// (`hsa_amd_signal_create` with `HSA_AMD_SIGNAL_AMD_GPU_ONLY`, or the agent as its only consumer).
    HSA_SERIALIZER_SIGNAL_FOR_GPU = 0,
    /// A handler of the host's waits for it: it must be an interrupt signal (`hsa_signal_create` without
    /// consumers).
    HSA_SERIALIZER_SIGNAL_FOR_HOST = 1,
}

/// The runtime as the host gives it. Signals and statuses are HSA's: an `hsa_signal_t`'s `handle`, an
/// `hsa_status_t`.
///
/// Every function may be called by several threads at once, the runtime's handler thread among them, and
/// until hsa_serializer_finish_shutdown() has come to `HSA_SERIALIZER_SUCCESS` or hsa_serializer_leave()
/// was called (where another thread is inside of one then, until that returns). None may throw, call
/// longjmp, wait for something that needs the serializer, or call any function of this library but
/// hsa_serializer_mode(), hsa_serializer_leave(), hsa_serializer_status_string(), hsa_serializer_version() and
/// hsa_serializer_version_number().
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_runtime_t {
    /// `sizeof(hsa_serializer_runtime_t)`.
    pub size: usize,
    /// What each function gets as its first argument.
    pub userdata: *mut c_void,
    /// Creates a signal (hsa_signal_create), for one of hsa_serializer_signal_kind_t. Called by the
    /// functions that say HSA_SERIALIZER_NO_SIGNAL; under no lock.
    pub create_signal: Option<
        unsafe extern "C" fn(
            userdata: *mut c_void,
            kind: u32,
            initial: i64,
            signal: *mut u64,
        ) -> u32,
    >,
    /// Destroys one (hsa_signal_destroy): once for each, when no packet that may execute refers to it. By
    /// any call but those that say that they are wait-free, on any thread.
    pub destroy_signal: Option<unsafe extern "C" fn(userdata: *mut c_void, signal: u64) -> u32>,
    /// Stores with release semantics (hsa_signal_store_screlease). It must not block.
    pub store: Option<unsafe extern "C" fn(userdata: *mut c_void, signal: u64, value: i64)>,
    /// Replaces `expected` by `desired`, and returns the value seen (hsa_signal_cas_scacq_screl). It must
    /// not block.
    pub compare_exchange: Option<
        unsafe extern "C" fn(
            userdata: *mut c_void,
            signal: u64,
            expected: i64,
            desired: i64,
        ) -> i64,
    >,
    /// Registers a handler on a queue's ready signal, for the condition *equal to -1*
    /// (hsa_amd_signal_async_handler), that calls hsa_serializer_ready() with `queue_id` and returns what
    /// that says. Give the id to the handler by value (as its `void *`): it may be called late. Called by
    /// hsa_serializer_queue_add(); under no lock.
    pub watch_ready:
        Option<unsafe extern "C" fn(userdata: *mut c_void, ready: u64, queue_id: u64) -> u32>,
    /// Whether the calling thread calls the runtime's handlers. May be null: then it is known from
    /// hsa_serializer_ready() being under way alone.
    pub is_handler_thread: Option<unsafe extern "C" fn(userdata: *mut c_void) -> bool>,
    /// Something happened that should not have. May be null. The report lives for the call.
    pub report:
        Option<unsafe extern "C" fn(userdata: *mut c_void, report: *const hsa_serializer_report_t)>,
    /// Something happened. May be null, and costs nothing then. It is called where it happens, also under
    /// locks of this library and of the runtime: it must be quick, must not wait, and must not call HSA.
    /// The event lives for the call.
    pub event:
        Option<unsafe extern "C" fn(userdata: *mut c_void, event: *const hsa_serializer_event_t)>,
}

/// AMD's runtime, by its table, and who is told.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_hsa_t {
    /// `sizeof(hsa_serializer_hsa_t)`.
    pub size: usize,
    /// The `HsaApiTable` that the runtime gave to the tool's `OnLoad`. It is read in the call that is given
    /// this, before the tool replaces functions in it, or it calls the replaced ones.
    pub table: *const c_void,
    /// What the functions below get as their first argument.
    pub userdata: *mut c_void,
    /// As in hsa_serializer_runtime_t.
    pub report:
        Option<unsafe extern "C" fn(userdata: *mut c_void, report: *const hsa_serializer_report_t)>,
    /// As in hsa_serializer_runtime_t.
    pub event:
        Option<unsafe extern "C" fn(userdata: *mut c_void, event: *const hsa_serializer_event_t)>,
}

type CreateSignal = unsafe extern "C" fn(*mut c_void, u32, i64, *mut u64) -> u32;
type DestroySignal = unsafe extern "C" fn(*mut c_void, u64) -> u32;
type Store = unsafe extern "C" fn(*mut c_void, u64, i64);
type CompareExchange = unsafe extern "C" fn(*mut c_void, u64, i64, i64) -> i64;
type WatchReady = unsafe extern "C" fn(*mut c_void, u64, u64) -> u32;
type IsHandlerThread = unsafe extern "C" fn(*mut c_void) -> bool;
type OnReport = unsafe extern "C" fn(*mut c_void, *const hsa_serializer_report_t);
type OnEvent = unsafe extern "C" fn(*mut c_void, *const hsa_serializer_event_t);

/// The host's functions, all of which are there.
struct Functions {
    userdata: *mut c_void,
    create_signal: CreateSignal,
    destroy_signal: DestroySignal,
    store: Store,
    compare_exchange: CompareExchange,
    watch_ready: WatchReady,
    is_handler_thread: Option<IsHandlerThread>,
}

enum Signals {
    Host(Functions),
    Hsa(Box<HsaRuntime>),
}

/// Who is told.
struct Told {
    userdata: *mut c_void,
    report: Option<OnReport>,
    event: Option<OnEvent>,
}

/// What a serializer of a C program calls.
pub(crate) struct CRuntime {
    signals: Signals,
    told: Told,
}

// SAFETY: the host promises that its functions may be called by any thread, with `userdata`
// (hsa_serializer_runtime_t).
unsafe impl Send for CRuntime {}
// SAFETY: as above.
unsafe impl Sync for CRuntime {}

/// Reads a structure whose first field says its size: what an older header does not have is zero.
///
/// # Safety
/// `from` is null, or points to `T` or to a shorter one whose `size` says so.
pub(crate) unsafe fn read_sized<T: Copy>(from: *const T, shortest: usize) -> Outcome<T> {
    if from.is_null() {
        return Err(HSA_SERIALIZER_NULL_POINTER);
    }
    // SAFETY: the caller's promise; the size comes first.
    let size = unsafe { from.cast::<usize>().read_unaligned() };
    if size < shortest || size > size_of::<T>() {
        return Err(HSA_SERIALIZER_BAD_SIZE);
    }
    let mut read = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: `size` bytes are there, by the caller's promise, and fit; of every structure that this is used
    // for, zero is a value.
    unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), read.as_mut_ptr().cast::<u8>(), size);
        Ok(read.assume_init())
    }
}

impl CRuntime {
    /// Of the host's functions.
    ///
    /// # Safety
    /// `from` is null, or points to what hsa_serializer_runtime_t describes.
    pub(crate) unsafe fn of_host(from: *const hsa_serializer_runtime_t) -> Outcome<Self> {
        // SAFETY: the caller's promise.
        let given = unsafe { read_sized(from, size_of::<hsa_serializer_runtime_t>()) }?;
        let missing = HSA_SERIALIZER_NULL_POINTER;
        let functions = Functions {
            userdata: given.userdata,
            create_signal: given.create_signal.ok_or(missing)?,
            destroy_signal: given.destroy_signal.ok_or(missing)?,
            store: given.store.ok_or(missing)?,
            compare_exchange: given.compare_exchange.ok_or(missing)?,
            watch_ready: given.watch_ready.ok_or(missing)?,
            is_handler_thread: given.is_handler_thread,
        };
        Ok(Self {
            signals: Signals::Host(functions),
            told: Told {
                userdata: given.userdata,
                report: given.report,
                event: given.event,
            },
        })
    }

    /// Of the runtime's table, for one agent.
    ///
    /// # Safety
    /// `from` is null, or points to what hsa_serializer_hsa_t describes.
    pub(crate) unsafe fn of_table(from: *const hsa_serializer_hsa_t, agent: u64) -> Outcome<Self> {
        // SAFETY: the caller's promise.
        let table = unsafe { Table::read(from) }?;
        table.runtime(agent)
    }
}

/// The runtime's functions, read once.
pub(crate) struct Table {
    api: Api,
    given: hsa_serializer_hsa_t,
}

// SAFETY: as for `CRuntime`; the table itself is not looked at again.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    /// # Safety
    /// As for [`CRuntime::of_table`].
    pub(crate) unsafe fn read(from: *const hsa_serializer_hsa_t) -> Outcome<Self> {
        // SAFETY: the caller's promise.
        let given = unsafe { read_sized(from, size_of::<hsa_serializer_hsa_t>()) }?;
        if given.table.is_null() {
            return Err(HSA_SERIALIZER_NULL_POINTER);
        }
        // SAFETY: the caller's promise: it is the runtime's.
        let tables = unsafe { Tables::from_raw(given.table.cast::<HsaApiTable>()) };
        let api = tables.and_then(|tables| Api::from_tables(&tables));
        Ok(Self {
            api: api.map_err(|_| HSA_SERIALIZER_BAD_TABLE)?,
            given,
        })
    }

    pub(crate) fn runtime(&self, agent: u64) -> Outcome<CRuntime> {
        let agent = hsa_agent_t { handle: agent };
        // SAFETY: the host's promise (hsa_serializer_create_hsa): HSA is initialized, it is one of its
        // agents, and the serializer ends before HSA does.
        let hsa = unsafe { HsaRuntime::new(self.api, agent) }?;
        Ok(CRuntime {
            signals: Signals::Hsa(Box::new(hsa.with_handler(crate::ready::on_ready))),
            told: Told {
                userdata: self.given.userdata,
                report: self.given.report,
                event: self.given.event,
            },
        })
    }
}

impl Runtime for CRuntime {
    fn create_signal(&self, kind: SignalKind, initial: i64) -> Result<hsa_signal_t, hsa_status_t> {
        let host = match &self.signals {
            Signals::Hsa(hsa) => return hsa.create_signal(kind, initial),
            Signals::Host(host) => host,
        };
        let kind = match kind {
            SignalKind::Ready => hsa_serializer_signal_kind_t::HSA_SERIALIZER_SIGNAL_FOR_HOST,
            _ => hsa_serializer_signal_kind_t::HSA_SERIALIZER_SIGNAL_FOR_GPU,
        };
        let mut signal = hsa_signal_t::NULL;
        // SAFETY: the host's promise; `signal` lives through the call.
        let status = unsafe {
            (host.create_signal)(host.userdata, kind as u32, initial, &raw mut signal.handle)
        };
        hsa_status_t(status).ok()?;
        Ok(signal)
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        match &self.signals {
            Signals::Hsa(hsa) => hsa.destroy_signal(signal),
            Signals::Host(host) => {
                // SAFETY: the host's promise.
                let status = unsafe { (host.destroy_signal)(host.userdata, signal.handle) };
                hsa_status_t(status).ok()
            }
        }
    }

    fn store(&self, signal: hsa_signal_t, value: i64) {
        match &self.signals {
            Signals::Hsa(hsa) => hsa.store(signal, value),
            // SAFETY: the host's promise.
            Signals::Host(host) => unsafe { (host.store)(host.userdata, signal.handle, value) },
        }
    }

    fn compare_exchange(&self, signal: hsa_signal_t, expected: i64, desired: i64) -> i64 {
        match &self.signals {
            Signals::Hsa(hsa) => hsa.compare_exchange(signal, expected, desired),
            // SAFETY: the host's promise.
            Signals::Host(host) => unsafe {
                (host.compare_exchange)(host.userdata, signal.handle, expected, desired)
            },
        }
    }

    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        match &self.signals {
            Signals::Hsa(hsa) => hsa.watch_ready(ready, queue),
            Signals::Host(host) => {
                // SAFETY: the host's promise.
                let status =
                    unsafe { (host.watch_ready)(host.userdata, ready.handle, queue.to_raw()) };
                hsa_status_t(status).ok()
            }
        }
    }

    fn is_handler_thread(&self) -> bool {
        match &self.signals {
            Signals::Hsa(hsa) => hsa.is_handler_thread(),
            Signals::Host(host) => host
                .is_handler_thread
                // SAFETY: the host's promise.
                .is_some_and(|is| unsafe { is(host.userdata) }),
        }
    }

    fn observer(&self) -> Option<&dyn Observer> {
        self.told.event.is_some().then_some(&self.told)
    }

    fn report(&self, report: Report) {
        let Some(sink) = self.told.report else {
            return;
        };
        // The text allocates, which may panic.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            hsa_serializer_report_t::with(report, |report| {
                // SAFETY: the host's promise; the report lives through the call.
                unsafe { sink(self.told.userdata, report) }
            });
        }));
    }
}

// SAFETY: as for `CRuntime`.
unsafe impl Send for Told {}
// SAFETY: as above.
unsafe impl Sync for Told {}

impl Observer for Told {
    fn event(&self, event: Event) {
        if let (Some(sink), Some(event)) = (self.event, hsa_serializer_event_t::of(event)) {
            // SAFETY: the host's promise; the event lives through the call.
            unsafe { sink(self.userdata, &raw const event) }
        }
    }
}
