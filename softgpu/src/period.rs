//! Which mode a dispatch must run in, as far as it can be known from outside.
//!
//! An agent's time is cut into *periods* by its transitions; period 0 is disabled. The host tells
//! when each `enable` or `disable` is called and when it has returned. A dispatch belongs to some
//! period from the number of transitions that had returned when it began to the number of those
//! that had been called when it ended: one period where no transition was under way, two where one
//! was. Two kernels may run at the same time if there is *some* choice of their periods that allows
//! it, so what is reported is certain and what is ambiguous is let pass.
//!
//! Transitions that overlap one another take effect in an order that nobody outside can know; such
//! a group counts as one transition, whose mode is known only if all of it wanted the same. A host
//! that toggles from several threads and wants exact checks marks under a lock of its own.

/// A stretch between two transitions.
#[derive(Debug)]
struct Period {
    /// Enabled or not; `None` where it can't be known.
    enabled: Option<bool>,
    /// The latest period, up to this one, that certainly began by a change of mode.
    floor: u64,
}

/// Transitions under way.
#[derive(Debug)]
struct Group {
    open: usize,
    /// What those that have returned, and did happen, wanted.
    wanted: Vec<bool>,
}

/// All periods of an agent.
#[derive(Debug)]
pub(crate) struct Periods {
    table: Vec<Period>,
    group: Option<Group>,
}

/// More periods than this in one dispatch's range: nothing is claimed about it.
const WIDEST: u64 = 8;

impl Periods {
    pub(crate) fn new() -> Self {
        Self {
            table: vec![Period {
                enabled: Some(false),
                floor: 0,
            }],
            group: None,
        }
    }

    /// Transitions that have returned, which is the number of the last certain period.
    pub(crate) fn ended(&self) -> u64 {
        self.table.len() as u64 - 1
    }

    /// Transitions that have been called.
    pub(crate) fn begun(&self) -> u64 {
        self.ended() + u64::from(self.group.is_some())
    }

    pub(crate) fn transition_begins(&mut self) {
        match &mut self.group {
            Some(group) => group.open += 1,
            None => {
                self.group = Some(Group {
                    open: 1,
                    wanted: Vec::new(),
                });
            }
        }
    }

    /// A transition has returned; `None` if it failed and changed nothing.
    pub(crate) fn transition_ended(&mut self, wanted: Option<bool>) {
        let Some(group) = &mut self.group else {
            return;
        };
        group.wanted.extend(wanted);
        group.open -= 1;
        if group.open > 0 {
            return;
        }
        let wanted = self.group.take().map(|group| group.wanted);
        let wanted = wanted.unwrap_or_default();
        let Some(&first) = wanted.first() else {
            return;
        };
        let enabled = wanted.iter().all(|other| *other == first).then_some(first);
        let last = &self.table[self.table.len() - 1];
        if last.enabled.is_some() && last.enabled == enabled {
            return;
        }
        // Some member of the group left a mode that was known.
        let changed = last.enabled.is_some();
        let floor = if changed {
            self.table.len() as u64
        } else {
            last.floor
        };
        self.table.push(Period { enabled, floor });
    }

    /// The latest period, up to `period`, before which everything certainly was of an older mode.
    pub(crate) fn floor(&self, period: u64) -> u64 {
        self.table
            .get(period as usize)
            .map_or(0, |period| period.floor)
    }

    /// Whether kernels of these two ranges may run at the same time.
    pub(crate) fn may_overlap(&self, a: (u64, u64), b: (u64, u64)) -> bool {
        if a.1 - a.0 > WIDEST || b.1 - b.0 > WIDEST {
            return true;
        }
        (a.0..=a.1).any(|a| (b.0..=b.1).any(|b| self.compatible(a, b)))
    }

    fn compatible(&self, a: u64, b: u64) -> bool {
        let (older, newer) = (a.min(b), a.max(b));
        let Some(second) = self.table.get(newer as usize) else {
            return true;
        };
        let first = &self.table[older as usize];
        second.floor <= older && !(first.enabled == Some(true) && second.enabled == Some(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(periods: &mut Periods, enabled: bool) {
        periods.transition_begins();
        periods.transition_ended(Some(enabled));
    }

    #[test]
    fn a_mode_that_stays_makes_no_period() {
        let mut periods = Periods::new();
        change(&mut periods, false);
        assert_eq!(periods.ended(), 0);
        change(&mut periods, true);
        change(&mut periods, true);
        assert_eq!(periods.ended(), 1);
    }

    #[test]
    fn a_transition_that_failed_did_not_happen() {
        let mut periods = Periods::new();
        periods.transition_begins();
        assert_eq!((periods.ended(), periods.begun()), (0, 1));
        periods.transition_ended(None);
        assert_eq!((periods.ended(), periods.begun()), (0, 0));
        assert!(periods.may_overlap((0, 1), (0, 0)));
    }

    #[test]
    fn only_what_every_choice_of_periods_forbids_is_forbidden() {
        let mut periods = Periods::new();
        change(&mut periods, true);
        change(&mut periods, false);
        assert!(periods.may_overlap((0, 0), (0, 0)));
        assert!(!periods.may_overlap((1, 1), (1, 1)));
        assert!(!periods.may_overlap((0, 0), (1, 1)));
        assert!(periods.may_overlap((0, 1), (0, 0)));
        // Whichever period the first one belongs to, it may not run beside an enabled one.
        assert!(!periods.may_overlap((0, 1), (1, 1)));
        assert!(periods.may_overlap((1, 2), (2, 2)));
        // Not known yet.
        assert!(periods.may_overlap((2, 3), (3, 3)));
    }

    #[test]
    fn transitions_that_overlap_leave_the_mode_unknown_unless_they_agree() {
        let mut periods = Periods::new();
        periods.transition_begins();
        periods.transition_begins();
        periods.transition_ended(Some(true));
        assert_eq!((periods.ended(), periods.begun()), (0, 1));
        periods.transition_ended(Some(false));
        assert_eq!(periods.ended(), 1);
        assert!(periods.may_overlap((1, 1), (1, 1)));
        assert!(!periods.may_overlap((0, 0), (1, 1)));
        // Coming from an unknown mode, an enabling may have changed nothing.
        change(&mut periods, true);
        assert!(periods.may_overlap((1, 1), (2, 2)));
        assert!(!periods.may_overlap((2, 2), (2, 2)));
    }
}
