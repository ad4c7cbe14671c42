//! The crate's `Runtime` over the emulated GPU's signals.

use crate::lock;
use hsa_serializer::{Handler, Observer, QueueId, Report, Runtime, SignalKind};
use hsa_sys::{SignalCondition, hsa_signal_t, hsa_signal_value_t, hsa_status_t};
use softgpu::{Gpu, SignalPool};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type OnReady = Arc<dyn Fn(QueueId) -> Handler + Send + Sync>;

/// What a serializer has reported; clones are the same collection.
#[derive(Clone, Debug, Default)]
pub struct Reports(Arc<Mutex<Vec<Report>>>);

impl Reports {
    /// All of them, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<Report> {
        lock(&self.0).clone()
    }
}

/// Signals of the emulated GPU. It labels them, so that reports say what each is for.
///
/// It holds the GPU's signals and not the GPU, whose queues' interceptors hold it.
pub struct SoftRuntime {
    signals: Arc<SignalPool>,
    on_ready: OnReady,
    reports: Reports,
    barriers: AtomicU64,
    observer: Option<Arc<dyn Observer>>,
}

impl SoftRuntime {
    /// A runtime on this GPU. `on_ready` is called when a queue's `ready` signal fires; it should
    /// find its serializer through a weak reference, since the serializer holds this.
    pub fn new(
        gpu: &Gpu,
        on_ready: impl Fn(QueueId) -> Handler + Send + Sync + 'static,
        reports: Reports,
    ) -> Self {
        Self {
            signals: gpu.signals().clone(),
            on_ready: Arc::new(on_ready),
            reports,
            barriers: AtomicU64::new(0),
            observer: None,
        }
    }

    /// With somebody who is told of the serializer's events.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// What [`Runtime::now`] says, for who outlives this.
    pub fn clock(&self) -> impl Fn() -> Duration + Send + Sync + use<> {
        let signals = self.signals.clone();
        move || Duration::from_nanos(signals.now())
    }

    /// The emulated GPU's signals.
    #[must_use]
    pub fn signals(&self) -> &SignalPool {
        &self.signals
    }
}

impl fmt::Debug for SoftRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SoftRuntime")
            .field("reports", &self.reports)
            .finish_non_exhaustive()
    }
}

impl Runtime for SoftRuntime {
    fn create_signal(
        &self,
        kind: SignalKind,
        initial: hsa_signal_value_t,
    ) -> Result<hsa_signal_t, hsa_status_t> {
        use softgpu::SignalKind::{GpuOnly, Interrupt};
        match kind {
            SignalKind::Ready => self.signals.create_labelled(initial, Interrupt, "ready"),
            SignalKind::Block => self.signals.create_labelled(initial, GpuOnly, "block"),
            SignalKind::Escape => self.signals.create_labelled(initial, GpuOnly, "escape"),
            _ => {
                let n = self.barriers.fetch_add(1, Relaxed);
                let label = format!("transition barrier {n}");
                self.signals.create_labelled(initial, GpuOnly, label)
            }
        }
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        self.signals.destroy(signal)
    }

    fn store(&self, signal: hsa_signal_t, value: hsa_signal_value_t) {
        self.signals.store(signal, value);
    }

    fn compare_exchange(
        &self,
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        desired: hsa_signal_value_t,
    ) -> hsa_signal_value_t {
        self.signals.compare_exchange(signal, expected, desired)
    }

    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        let on_ready = self.on_ready.clone();
        let handler = Box::new(move |_| on_ready(queue).keep());
        self.signals
            .on_signal(ready, SignalCondition::Eq, -1, handler)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.signals.now())
    }

    fn observer(&self) -> Option<&dyn Observer> {
        self.observer.as_deref()
    }

    fn report(&self, report: Report) {
        lock(&self.reports.0).push(report);
    }
}
