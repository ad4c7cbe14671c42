//! Faults to be injected: what the driver and its interrupts do on a bad day.
//!
//! What a *kernel* does wrong (ends badly, faults, never ends) its packet says itself; what a signal
//! or a handler can suffer from below the runtime stands here.

use parking_lot::Mutex;

/// The faults' names, in `SOFTGPU_FAULTS` and for `softgpu_set_fault`.
pub(crate) const NAMES: [&str; 6] = [
    "fail_events",
    "fail_memory",
    "event_late",
    "late_by",
    "event_twice",
    "events_dead",
];

/// The plan in force.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Plan {
    /// So many of the next events are not created.
    fail_events: u64,
    /// So many of the next allocations fail.
    fail_memory: u64,
    /// Probability that an event is raised late: handlers and waiters hear of it late.
    event_late: f64,
    /// By up to so many nanoseconds.
    late_by: u64,
    /// Probability that an event is raised once more, some time later, for nothing.
    event_twice: f64,
    /// No event is raised any more: the host hears of nothing.
    events_dead: bool,
}

/// What becomes of an event that is to be raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raising {
    /// Raise it now.
    pub(crate) now: bool,
    /// Raise it after so many nanoseconds.
    pub(crate) later: Option<u64>,
}

/// The plan, and the dice.
#[derive(Debug)]
pub(crate) struct Faults {
    state: Mutex<(Plan, fastrand::Rng)>,
}

/// What a fault's value may be; `None` if there is no such fault.
pub(crate) fn range_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "fail_events" | "fail_memory" | "late_by" => "a whole number",
        "event_late" | "event_twice" => "a probability, 0 to 1",
        "events_dead" => "0 or 1",
        _ => return None,
    })
}

/// Whether there is such a fault, and it can have this value.
pub(crate) fn accepts(name: &str, value: f64) -> bool {
    match name {
        "fail_events" | "fail_memory" | "late_by" => {
            (0.0..=1e15).contains(&value) && value.fract() == 0.0
        }
        "event_late" | "event_twice" => (0.0..=1.0).contains(&value),
        "events_dead" => value == 0.0 || value == 1.0,
        _ => false,
    }
}

impl Faults {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: Mutex::new((Plan::default(), fastrand::Rng::with_seed(seed))),
        }
    }

    /// Changes one; whether there is such a fault and value.
    pub(crate) fn set(&self, name: &str, value: f64) -> bool {
        if !accepts(name, value) {
            return false;
        }
        let plan = &mut self.state.lock().0;
        match name {
            "fail_events" => plan.fail_events = value as u64,
            "fail_memory" => plan.fail_memory = value as u64,
            "late_by" => plan.late_by = value as u64,
            "event_late" => plan.event_late = value,
            "event_twice" => plan.event_twice = value,
            _ => plan.events_dead = value != 0.0,
        }
        true
    }

    /// Whether this creation of an event fails.
    pub(crate) fn fails_event(&self) -> bool {
        let left = &mut self.state.lock().0.fail_events;
        let fails = *left > 0;
        *left = left.saturating_sub(1);
        fails
    }

    /// Whether this allocation fails.
    pub(crate) fn fails_memory(&self) -> bool {
        let left = &mut self.state.lock().0.fail_memory;
        let fails = *left > 0;
        *left = left.saturating_sub(1);
        fails
    }

    /// What becomes of an event that is to be raised.
    pub(crate) fn raising(&self) -> Raising {
        let (plan, dice) = &mut *self.state.lock();
        if plan.events_dead {
            return Raising {
                now: false,
                later: None,
            };
        }
        let mut chance = |probability: f64| probability > 0.0 && dice.f64() < probability;
        let late = chance(plan.event_late);
        let again = late || chance(plan.event_twice);
        Raising {
            now: !late,
            later: again.then(|| dice.u64(0..=plan.late_by)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_followed() {
        let faults = Faults::new(1);
        let plain = Raising {
            now: true,
            later: None,
        };
        assert_eq!(faults.raising(), plain);
        assert!(faults.set("fail_events", 2.0));
        assert!(faults.fails_event() && faults.fails_event() && !faults.fails_event());
        assert!(faults.set("event_late", 1.0) && faults.set("late_by", 10.0));
        let late = faults.raising();
        assert!(!late.now && late.later.is_some_and(|by| by <= 10));
        assert!(faults.set("event_late", 0.0) && faults.set("event_twice", 1.0));
        let twice = faults.raising();
        assert!(twice.now && twice.later.is_some());
        assert!(faults.set("events_dead", 1.0));
        assert!(!faults.raising().now);
        assert!(!faults.set("event_late", 1.5) && !faults.set("other", 1.0));
        assert!(
            NAMES
                .iter()
                .all(|name| accepts(name, 1.0) && range_of(name).is_some())
        );
    }
}
