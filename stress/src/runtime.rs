//! The emulated GPU's runtime, with an eye on what one serializer calls and when.

use crate::forks;
use harness::{Reports, SoftRuntime};
use hsa_serializer::{Handler, QueueId, Report, Runtime, SignalKind, WeakSerializer};
use hsa_sys::{hsa_signal_t, hsa_signal_value_t, hsa_status_t};
use softgpu::Gpu;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::thread;

/// What one serializer has called, to be looked at also after it has gone.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Signals created and not destroyed.
    pub(crate) live: AtomicI64,
    /// A shutdown has said that it has finished: from here on nothing may be called.
    pub(crate) over: AtomicBool,
    /// Calls that came all the same.
    pub(crate) late: AtomicU64,
}

impl Calls {
    fn called(&self) {
        forks::no_call_in_a_child();
        if self.over.load(SeqCst) {
            self.late.fetch_add(1, SeqCst);
        }
    }
}

/// See the [module](self).
pub(crate) struct Watched {
    inner: SoftRuntime,
    serializer: Arc<OnceLock<WeakSerializer<Watched>>>,
    calls: Arc<Calls>,
}

impl Watched {
    pub(crate) fn new(gpu: &Gpu, reports: Reports, calls: Arc<Calls>) -> Self {
        let serializer = Arc::new(OnceLock::<WeakSerializer<Self>>::new());
        let weak = serializer.clone();
        let on_ready = move |queue| {
            let serializer = weak.get();
            serializer.map_or(Handler::Drop, |serializer| serializer.ready(queue))
        };
        Self {
            inner: SoftRuntime::new(gpu, on_ready, reports),
            serializer,
            calls,
        }
    }

    /// Says whose runtime it is; before the first queue.
    pub(crate) fn belongs_to(&self, serializer: WeakSerializer<Self>) {
        assert!(self.serializer.set(serializer).is_ok());
    }
}

impl Runtime for Watched {
    fn create_signal(
        &self,
        kind: SignalKind,
        initial: hsa_signal_value_t,
    ) -> Result<hsa_signal_t, hsa_status_t> {
        self.calls.called();
        let created = self.inner.create_signal(kind, initial)?;
        if !created.is_null() {
            self.calls.live.fetch_add(1, SeqCst);
        }
        Ok(created)
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        self.calls.called();
        self.calls.live.fetch_sub(1, SeqCst);
        self.inner.destroy_signal(signal)
    }

    fn store(&self, signal: hsa_signal_t, value: hsa_signal_value_t) {
        self.calls.called();
        self.inner.store(signal, value);
    }

    fn compare_exchange(
        &self,
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        desired: hsa_signal_value_t,
    ) -> hsa_signal_value_t {
        self.calls.called();
        self.inner.compare_exchange(signal, expected, desired)
    }

    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        self.calls.called();
        self.inner.watch_ready(ready, queue)
    }

    fn is_handler_thread(&self) -> bool {
        // As the emulated GPU names them.
        let thread = thread::current();
        thread
            .name()
            .is_some_and(|name| name.starts_with("handlers-"))
    }

    fn report(&self, report: Report) {
        forks::no_call_in_a_child();
        self.inner.report(report);
    }
}
