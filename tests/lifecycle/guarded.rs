//! A runtime that ends the process where it is called by somebody who must not.

use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{QueueId, Report, Runtime, SignalKind, hsa_signal_t, hsa_status_t};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};

const NOBODY: i64 = 0;
const EVERYBODY: i64 = -1;

/// The exit code of a process that called the runtime too late.
const CALLED: i32 = 77;

/// Plain integers, in the process that made it.
pub(crate) struct Guarded {
    pub(crate) host: Host,
    process: u32,
    /// The thread that may not call it any more.
    forbidden: AtomicI64,
    /// A store does not return as long as this is so.
    pub(crate) stores_stay: AtomicBool,
    /// Threads that are inside of a store.
    pub(crate) storing: AtomicU64,
}

impl Guarded {
    pub(crate) fn new() -> Self {
        Self {
            host: Host::default(),
            process: std::process::id(),
            forbidden: AtomicI64::new(NOBODY),
            stores_stay: AtomicBool::new(false),
            storing: AtomicU64::new(0),
        }
    }

    /// From here on the calling thread may not call it.
    pub(crate) fn forbid_this_thread(&self) {
        self.forbidden.store(this_thread(), SeqCst);
    }

    /// From here on everybody may.
    pub(crate) fn allow(&self) {
        self.forbidden.store(NOBODY, SeqCst);
    }

    /// From here on nobody may.
    pub(crate) fn forbid_everybody(&self) {
        self.forbidden.store(EVERYBODY, SeqCst);
    }

    fn called(&self, function: &str) {
        let forbidden = self.forbidden.load(SeqCst);
        let too_late = forbidden == EVERYBODY || forbidden != NOBODY && forbidden == this_thread();
        if too_late || std::process::id() != self.process {
            let text = format!("{function} was called too late\n");
            // SAFETY: the buffer is alive and as long as said; then the process ends.
            unsafe {
                libc::write(2, text.as_ptr().cast(), text.len());
                libc::_exit(CALLED);
            }
        }
    }
}

fn this_thread() -> i64 {
    // SAFETY: it has no conditions.
    i64::from(unsafe { libc::gettid() })
}

impl Runtime for Guarded {
    fn create_signal(&self, kind: SignalKind, value: i64) -> Result<hsa_signal_t, hsa_status_t> {
        self.called("create_signal");
        self.host.create_signal(kind, value)
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        self.called("destroy_signal");
        self.host.destroy_signal(signal)
    }

    fn store(&self, signal: hsa_signal_t, value: i64) {
        self.called("store");
        self.storing.fetch_add(1, SeqCst);
        while self.stores_stay.load(SeqCst) {
            std::thread::yield_now();
        }
        self.storing.fetch_sub(1, SeqCst);
        self.host.store(signal, value);
    }

    fn compare_exchange(&self, signal: hsa_signal_t, expected: i64, desired: i64) -> i64 {
        self.called("compare_exchange");
        self.host.compare_exchange(signal, expected, desired)
    }

    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        self.called("watch_ready");
        self.host.watch_ready(ready, queue)
    }

    fn is_handler_thread(&self) -> bool {
        self.called("is_handler_thread");
        false
    }

    fn report(&self, report: Report) {
        self.called("report");
        self.host.report(report);
    }
}
