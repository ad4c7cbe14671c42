//! The serializer's way to the emulated signals.

use crate::world::World;
use hsa_serializer::{QueueId, Report, Runtime, SignalKind};
use hsa_sys::{hsa_signal_t, hsa_signal_value_t, hsa_status_t};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// A handle of the world that serializer and run share.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub(crate) fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl Runtime for Shared {
    fn create_signal(
        &self,
        kind: SignalKind,
        initial: hsa_signal_value_t,
    ) -> Result<hsa_signal_t, hsa_status_t> {
        self.world().create(kind, initial)
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        self.world().destroy(signal)
    }

    fn store(&self, signal: hsa_signal_t, value: hsa_signal_value_t) {
        self.world().store(signal, value);
    }

    fn compare_exchange(
        &self,
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        desired: hsa_signal_value_t,
    ) -> hsa_signal_value_t {
        self.world().compare_exchange(signal, expected, desired)
    }

    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        self.world().watch(ready, queue)
    }

    /// No time passes: what is counted depends on the operations alone.
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn report(&self, report: Report) {
        self.world().report(report);
    }
}
