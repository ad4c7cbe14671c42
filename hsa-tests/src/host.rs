//! The yardstick's `Runtime` over the real runtime. The crate's serializer has its own
//! (`HsaRuntime`).

use crate::calls::CallId;
use crate::hsa::Hsa;
use crate::tally::Tally;
use hsa_serializer::{Handler, QueueId, Report, Runtime, SignalKind};
use hsa_sys::{SignalCondition, hsa_signal_t, hsa_signal_value_t, hsa_status_t};
use std::fmt;
use std::sync::Arc;

/// What is called when a queue's `ready` signal fires.
pub type OnReady = Arc<dyn Fn(QueueId) -> Handler + Send + Sync>;

/// Signals of the real runtime.
pub struct Host {
    hsa: Hsa,
    tally: Arc<Tally>,
    on_ready: OnReady,
}

impl Host {
    /// A runtime. `on_ready` should find its serializer through a weak reference, since the
    /// serializer owns this.
    #[must_use]
    pub fn new(hsa: Hsa, tally: Arc<Tally>, on_ready: OnReady) -> Self {
        Self {
            hsa,
            tally,
            on_ready,
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("tally", &self.tally)
            .finish_non_exhaustive()
    }
}

impl Runtime for Host {
    fn create_signal(
        &self,
        kind: SignalKind,
        initial: hsa_signal_value_t,
    ) -> Result<hsa_signal_t, hsa_status_t> {
        match kind {
            SignalKind::Ready => self.hsa.create_interrupt(initial),
            _ => self.hsa.create_gpu_only(initial),
        }
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        self.hsa.destroy_signal(signal)
    }

    fn store(&self, signal: hsa_signal_t, value: hsa_signal_value_t) {
        self.hsa.store(signal, value);
    }

    fn compare_exchange(
        &self,
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        desired: hsa_signal_value_t,
    ) -> hsa_signal_value_t {
        self.hsa.compare_exchange(signal, expected, desired)
    }

    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        let on_ready = self.on_ready.clone();
        let id = CallId::of(Arc::new(move |_| on_ready(queue).keep()));
        self.hsa
            .on_signal(ready, SignalCondition::Eq, -1, id)
            .inspect_err(|_| id.forget())
    }

    fn report(&self, report: Report) {
        self.tally.report(report);
    }
}
