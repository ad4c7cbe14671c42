//! Who may run beside whom.
//!
//! Exclusiveness is lost in three ways, and in no other: a holder that was overtaken runs beside the
//! next ones; what a barrier still counted when it was cleared by force runs beside what the barrier
//! held back; and once everything was let through, anybody runs beside anybody.

use crate::oracle::{Model, Unseen};
use crate::violation::{Checked, Rule, Violation, ensure};

/// Beside whom a kernel has started, rightly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    /// Anybody.
    pub(crate) another: bool,
    /// A holder that was overtaken.
    pub(crate) overtaken: bool,
    /// A kernel of an older period, whose barrier was cleared by force.
    pub(crate) older: bool,
}

impl Model {
    /// The rule that two kernels break by running beside each other.
    fn beside(&self, a: usize, b: usize) -> Option<Rule> {
        if self.let_through {
            return None;
        }
        let of = |d: usize| self.dispatches[d];
        let (older, newer) = if of(a).period <= of(b).period {
            (a, b)
        } else {
            (b, a)
        };
        let modes = of(older).period < of(newer).period
            && !self.periods[of(newer).period].was_let_through(older);
        if modes {
            return Some(Rule::ModesOverlap);
        }
        let both = of(a).serialized && of(b).serialized;
        let overtaken = of(a).overtaken || of(b).overtaken;
        (both && !overtaken).then_some(Rule::KernelsOverlap)
    }

    /// The GPU goes behind a dispatch's grant gate.
    pub(crate) fn passed(&mut self, dispatch: usize) -> Checked {
        let overtaken = |d: usize| self.dispatches[d].overtaken;
        let holds = self.token.holder == Some(self.dispatches[dispatch].queue);
        ensure(
            holds || overtaken(dispatch) || self.let_through,
            Rule::KernelsOverlap,
            || format!("{} was let go without the token", self.name(dispatch)),
        )?;
        let beside = |&&d: &&usize| !overtaken(d) && !overtaken(dispatch);
        let other = self.alone.iter().find(beside).copied();
        ensure(
            other.is_none() || self.let_through,
            Rule::KernelsOverlap,
            || {
                format!(
                    "{} was let go beside {}",
                    self.name(dispatch),
                    self.name(other.unwrap_or(0))
                )
            },
        )?;
        self.alone.insert(dispatch);
        Ok(())
    }

    /// A kernel starts.
    pub(crate) fn started(&mut self, dispatch: usize) -> Checked<Beside> {
        for &other in &self.running {
            if let Some(rule) = self.beside(dispatch, other) {
                return Err(Violation::new(
                    rule,
                    format!(
                        "{} started beside {}",
                        self.name(dispatch),
                        self.name(other)
                    ),
                ));
            }
        }
        let d = self.dispatches[dispatch];
        let holds_back = |other: usize| {
            !self.let_through
                && self.dispatches[other].period < d.period
                && !self.periods[d.period].was_let_through(other)
        };
        let early = self.unreported.iter().find(|&&other| holds_back(other));
        ensure(early.is_none(), Rule::ModesOverlap, || {
            let early = early.copied().unwrap_or(0);
            format!(
                "{} started before {} was reported",
                self.name(dispatch),
                self.name(early)
            )
        })?;
        let marked = |u: &Unseen| !u.over && u.marker.is_some_and(holds_back);
        let unseen = self.unseen.iter().position(marked);
        ensure(unseen.is_none(), Rule::ModesOverlap, || {
            format!(
                "{} started beside unseen kernel {unseen:?}, for which a marker stands",
                self.name(dispatch)
            )
        })?;
        let others = self.running.iter().map(|&other| self.dispatches[other]);
        let beside = Beside {
            another: !self.running.is_empty(),
            overtaken: others.clone().any(|o| o.overtaken && d.serialized),
            older: others.clone().any(|o| o.period < d.period) && !self.let_through,
        };
        self.running.insert(dispatch);
        Ok(beside)
    }

    pub(crate) fn ended(&mut self, dispatch: usize) {
        self.running.remove(&dispatch);
    }

    /// What the GPU drops with a queue.
    pub(crate) fn dropped(&mut self, queue: usize, dispatches: &[usize]) {
        for d in dispatches {
            self.running.remove(d);
        }
        for unseen in self.unseen.iter_mut().filter(|u| u.queue == queue) {
            unseen.over = true;
        }
    }
}
