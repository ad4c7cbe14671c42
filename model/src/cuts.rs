//! Cuts and drains: who was in flight, and is not through yet.

use crate::calls::wrong;
use crate::fault::Fault;
use crate::operation::Failure;
use crate::oracle::Stage;
use crate::run::Run;
use crate::runtime::Shared;
use crate::subject::Subject;
use crate::violation::{Checked, Rule, ensure};
use hsa_serializer::{Cut, DrainError, QueueId, SignalError};
use std::time::Duration;

/// Cuts that are asked at a time.
const CUTS: usize = 3;

/// A cut, and what it was made through.
#[derive(Debug)]
pub(crate) struct Made {
    cut: Cut<Shared>,
    /// The queues that had something in flight, with what, and how many dispatches they had.
    through: Vec<(usize, Vec<usize>, u64)>,
    /// How many losses of exclusiveness there had been.
    lost: u64,
}

impl Run {
    pub(crate) fn cut(&mut self, failure: Option<Failure>, drain: bool) -> Checked {
        let Subject::Serializer(serializer) = &self.subject else {
            return Ok(());
        };
        let serializer = serializer.clone();
        if drain {
            return self.drain_now(failure);
        }
        if self.world().model.stage == Stage::Left {
            return match serializer.cut() {
                Err(SignalError::Left) => Ok(()),
                other => wrong("cut", other),
            };
        }
        let before = self.plan(failure);
        let begun = self.begin_cut();
        let answer = serializer.cut();
        let failed = self.has_failed(before, answer.is_err())?;
        match answer {
            Ok(cut) => {
                let made = self.made(cut);
                if self.cuts.len() == CUTS {
                    self.cuts.remove(0);
                }
                self.cuts.push(made);
                self.world().tally.cuts += 1;
                Ok(())
            }
            Err(error) if failed && begun => self.cut_failed(failure, error),
            other => wrong("cut", other),
        }
    }

    /// A drain that times out at once.
    fn drain_now(&mut self, failure: Option<Failure>) -> Checked {
        let Subject::Serializer(serializer) = &self.subject else {
            return Ok(());
        };
        let serializer = serializer.clone();
        if self.world().model.stage == Stage::Left {
            return match serializer.drain(Duration::ZERO) {
                Err(DrainError::Left) => Ok(()),
                other => wrong("drain", other),
            };
        }
        let before = self.plan(failure);
        let begun = self.begin_cut();
        let answer = serializer.drain(Duration::ZERO);
        let is_error = matches!(answer, Err(DrainError::Signal(_)));
        let failed = self.has_failed(before, is_error)?;
        let stuck = match answer {
            Ok(()) => Vec::new(),
            Err(DrainError::TimedOut(stuck)) => stuck,
            Err(DrainError::Signal(error)) if failed && begun => {
                return self.cut_failed(failure, error);
            }
            other => return wrong("drain", other),
        };
        let world = self.world();
        let in_flight = |q: usize| (self.hosts[q].id, world.model.in_flight(q) as u64);
        let mut right: Vec<_> = world.model.living().map(in_flight).collect();
        right.retain(|(_, n)| *n > 0);
        same(stuck, right)
    }

    /// In the model, where dispatches are not turned away. Whether they are not.
    fn begin_cut(&self) -> bool {
        let mut world = self.world();
        let open = !world.model.shut_down();
        if open {
            let mode = world.model.enabled();
            world.model.begin(mode, 2);
        }
        open
    }

    fn cut_failed(&self, failure: Option<Failure>, error: SignalError) -> Checked {
        self.world().model.take_back();
        let null = failure.is_some_and(|f| f.null);
        let told = error == SignalError::NullHandle;
        ensure(null == told, Rule::Answer, || format!("{error:?}"))
    }

    fn made(&self, cut: Cut<Shared>) -> Made {
        let world = self.world();
        let model = &world.model;
        let through = model.living().map(|q| {
            let of = |d: &usize| model.dispatches[*d].queue == q;
            let in_flight: Vec<_> = model.unreported.iter().copied().filter(of).collect();
            (q, in_flight, model.queues[q].dispatched)
        });
        Made {
            cut,
            through: through.filter(|(_, d, _)| !d.is_empty()).collect(),
            lost: model.forced,
        }
    }

    /// Every cut says who is not through, and who is.
    pub(crate) fn check_cuts(&self) -> Checked {
        for made in &self.cuts {
            let mut told = made.cut.in_flight();
            if self.fault == Some(Fault::CutForgetful) {
                told.pop();
            }
            let world = self.world();
            let model = &world.model;
            // What came later may pass for it once a barrier was cleared by force.
            let exact = model.forced == made.lost;
            let left = |(q, dispatches, until): &(usize, Vec<usize>, u64)| {
                let queue = &model.queues[*q];
                let left = dispatches.iter().filter(|d| model.unreported.contains(d));
                let left = if exact {
                    left.count() as u64
                } else {
                    until.saturating_sub(queue.completed)
                };
                (!queue.removed && left > 0).then(|| (self.hosts[*q].id, left))
            };
            same(told, made.through.iter().filter_map(left).collect())?;
        }
        Ok(())
    }
}

fn same(mut told: Vec<(QueueId, u64)>, mut right: Vec<(QueueId, u64)>) -> Checked {
    told.sort_unstable();
    right.sort_unstable();
    ensure(told == right, Rule::Cut, || {
        format!("in flight is {told:?}, not {right:?}")
    })
}
