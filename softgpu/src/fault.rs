//! Faults to be injected: what a runtime and its threads do on a bad day.

use crate::dice::Dice;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// How the creation of a signal fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// With `HSA_STATUS_ERROR_OUT_OF_RESOURCES`.
    OutOfResources,
    /// With success and the null handle, as ROCm was seen to do.
    NullHandle,
}

/// Which faults happen, and how often. Probabilities are of one event each; none by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultPlan {
    /// So many of the next creations fail, this way.
    pub fail_next_creates: Option<(u64, Failure)>,
    /// Probability that a creation fails with `OutOfResources`.
    pub create_fails: f64,
    /// Probability that a creation gives success and the null handle.
    pub create_gives_null: f64,
    /// Probability that a handler is called a second time, whatever it answered and whether or
    /// not its condition still holds.
    pub handler_twice: f64,
    /// Probability that a handler's call comes late: with the value that was seen, though the
    /// condition may no longer hold.
    pub handler_late: f64,
    /// A late call comes up to so many nanoseconds late.
    pub late_by: u64,
    /// Probability that a handler is called once more after its signal was destroyed.
    pub handler_after_destroy: f64,
    /// The handler threads are gone: nobody is called, until this is taken back.
    pub handlers_dead: bool,
}

/// The plan in force; it can be changed at any time.
#[derive(Debug, Default)]
pub struct Faults {
    plan: Mutex<FaultPlan>,
    /// Whether the plan says anything at all, so that the usual case takes no lock.
    any: AtomicBool,
}

impl Faults {
    /// Changes the plan.
    ///
    /// ```
    /// let gpu = softgpu::VirtualGpu::new(softgpu::Config::default());
    /// gpu.faults().change(|plan| plan.handler_twice = 0.1);
    /// ```
    pub fn change(&self, change: impl FnOnce(&mut FaultPlan)) {
        let mut plan = self.plan.lock();
        change(&mut plan);
        self.any.store(*plan != FaultPlan::default(), SeqCst);
    }

    /// The next `n` creations of a signal fail.
    pub fn fail_next_creates(&self, n: u64, failure: Failure) {
        self.change(|plan| plan.fail_next_creates = Some((n, failure)));
    }

    pub(crate) fn create(&self, dice: &Dice) -> Option<Failure> {
        if !self.any.load(SeqCst) {
            return None;
        }
        let mut plan = self.plan.lock();
        if let Some((n, failure)) = plan.fail_next_creates {
            plan.fail_next_creates = (n > 1).then_some((n - 1, failure));
            if n > 0 {
                return Some(failure);
            }
        }
        if dice.chance(plan.create_fails) {
            Some(Failure::OutOfResources)
        } else if dice.chance(plan.create_gives_null) {
            Some(Failure::NullHandle)
        } else {
            None
        }
    }

    pub(crate) fn handler_twice(&self, dice: &Dice) -> bool {
        self.any.load(SeqCst) && dice.chance(self.plan.lock().handler_twice)
    }

    /// By how many nanoseconds this call shall come late.
    pub(crate) fn handler_late(&self, dice: &Dice) -> Option<u64> {
        if !self.any.load(SeqCst) {
            return None;
        }
        let (late, by) = {
            let plan = self.plan.lock();
            (plan.handler_late, plan.late_by)
        };
        dice.chance(late).then(|| 1 + dice.below(by.max(1)))
    }

    pub(crate) fn handlers_dead(&self) -> bool {
        self.any.load(SeqCst) && self.plan.lock().handlers_dead
    }

    pub(crate) fn handler_after_destroy(&self, dice: &Dice) -> bool {
        self.any.load(SeqCst) && dice.chance(self.plan.lock().handler_after_destroy)
    }
}
