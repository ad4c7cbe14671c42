//! A runtime of plain integers, so that examples and unit tests have one to run on.
//!
//! It emulates signals and nothing else: no packet ever executes. It is in the crate so that the
//! documentation's examples compile and run; a host implements [`Runtime`] over
//! HSA's own functions.

use crate::queue::QueueId;
use crate::runtime::{Report, Runtime, SignalKind};
use hsa_sys::{hsa_signal_t, hsa_signal_value_t, hsa_status_t};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Signals in a table. A cheap handle: clones share the table.
#[derive(Clone, Debug, Default)]
pub struct Host(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    values: HashMap<u64, hsa_signal_value_t>,
    /// Destroyed handles, given out again last in, first out, as HSA does.
    free: Vec<u64>,
    made: u64,
    reports: Vec<Report>,
    ready: HashMap<QueueId, hsa_signal_t>,
    failure: Option<Failure>,
}

/// How the next creation of a signal is to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// With a status.
    Status(hsa_status_t),
    /// With success and the null handle.
    NullHandle,
}

impl Host {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The signal's value, or `None` if it does not exist.
    #[must_use]
    pub fn value(&self, signal: hsa_signal_t) -> Option<hsa_signal_value_t> {
        self.table().values.get(&signal.handle).copied()
    }

    /// Subtracts one, as a packet processor does when a packet with this completion signal ends.
    pub fn decrement(&self, signal: hsa_signal_t) {
        if let Some(value) = self.table().values.get_mut(&signal.handle) {
            *value -= 1;
        }
    }

    /// The `ready` signal that a queue's handler was registered on.
    #[must_use]
    pub fn ready_signal(&self, queue: QueueId) -> Option<hsa_signal_t> {
        self.table().ready.get(&queue).copied()
    }

    /// How many signals exist.
    #[must_use]
    pub fn live_signals(&self) -> usize {
        self.table().values.len()
    }

    /// What was reported so far.
    #[must_use]
    pub fn reports(&self) -> Vec<Report> {
        self.table().reports.clone()
    }

    /// Makes every creation of a signal fail from now on, or none.
    pub fn fail_creations(&self, failure: Option<Failure>) {
        self.table().failure = failure;
    }
}

impl Runtime for Host {
    fn create_signal(
        &self,
        _: SignalKind,
        initial: hsa_signal_value_t,
    ) -> Result<hsa_signal_t, hsa_status_t> {
        let mut table = self.table();
        match table.failure {
            Some(Failure::Status(status)) => return Err(status),
            Some(Failure::NullHandle) => return Ok(hsa_signal_t::NULL),
            None => {}
        }
        let handle = table.free.pop().unwrap_or_else(|| {
            table.made += 1;
            table.made
        });
        table.values.insert(handle, initial);
        Ok(hsa_signal_t { handle })
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        let mut table = self.table();
        match table.values.remove(&signal.handle) {
            Some(_) => {
                table.free.push(signal.handle);
                Ok(())
            }
            None => Err(hsa_status_t::ERROR_INVALID_SIGNAL),
        }
    }

    fn store(&self, signal: hsa_signal_t, value: hsa_signal_value_t) {
        if let Some(v) = self.table().values.get_mut(&signal.handle) {
            *v = value;
        }
    }

    fn compare_exchange(
        &self,
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        desired: hsa_signal_value_t,
    ) -> hsa_signal_value_t {
        match self.table().values.get_mut(&signal.handle) {
            Some(v) => {
                let seen = *v;
                if seen == expected {
                    *v = desired;
                }
                seen
            }
            // A value that no protocol step expects.
            None => hsa_signal_value_t::MIN,
        }
    }

    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        self.table().ready.insert(queue, ready);
        Ok(())
    }

    fn report(&self, report: Report) {
        self.table().reports.push(report);
    }
}
