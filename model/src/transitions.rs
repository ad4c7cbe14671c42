//! Transitions, and barriers that are armed by themselves.

use crate::calls::{Before, wrong};
use crate::operation::Failure;
use crate::requests::Wish;
use crate::run::{Armed, Run, pick};
use crate::subject::Subject;
use crate::violation::{Checked, Rule, ensure};
use hsa_serializer::{Drain, SignalError, Transition, TransitionError};
use std::sync::{Arc, OnceLock};

impl Run {
    pub(crate) fn change(&mut self, wish: Wish, failure: Option<Failure>) -> Checked {
        let before = self.plan(failure);
        let (shut_down, now, wanted, creations) = {
            let world = self.world();
            (
                world.model.shut_down(),
                world.model.enabled(),
                world.model.wanted,
                world.creations,
            )
        };
        if matches!(self.subject, Subject::Set(_)) {
            return self.arm(before, shut_down);
        }
        let enabled = wanted.after(wish).any();
        let changes = !shut_down && now != enabled;
        if changes {
            self.world().model.begin(enabled, 1);
        }
        let answer = self.make(wish);
        let failed = self.has_failed(before, matches!(answer, Err(TransitionError::Signal(_))))?;
        // What asks for it is turned away after the end; what gives it back never is.
        let asks = matches!(wish, Wish::Switch(_) | Wish::Request | Wish::Acquire);
        match answer {
            Err(TransitionError::ShutDown) if shut_down && asks => return Ok(()),
            Err(TransitionError::Signal(e)) if failed && changes && enabled => {
                self.world().model.take_back();
                let null = failure.is_some_and(|f| f.null);
                return ensure(null == (e == SignalError::NullHandle), Rule::Answer, || {
                    format!("{e:?}")
                });
            }
            Ok(_) if shut_down && asks => return wrong("a call after the end", answer),
            Ok(None) => {}
            Ok(Some(Transition::Changed { waiting_for })) if changes => {
                let world = self.world();
                let right = world.model.periods[world.model.now()].targets.len();
                ensure(waiting_for == right, Rule::Answer, || {
                    format!("waiting for {waiting_for} queues, not {right}")
                })?;
            }
            Ok(Some(did)) if !changes && did == wanted.stays(wish) => {
                let kept = matches!(did, Transition::Kept { .. });
                self.world().tally.kept += u64::from(kept);
            }
            other => return wrong(&format!("{wish:?}"), other),
        }
        let mut world = self.world();
        world.model.wanted = wanted.after(wish);
        ensure(
            enabled || world.creations == creations,
            Rule::Answer,
            || "disabling asked for a signal".into(),
        )
    }

    fn arm(&mut self, before: Option<Before>, shut_down: bool) -> Checked {
        if !shut_down {
            self.world().model.begin(false, 2);
        }
        let outcome = Arc::new(OnceLock::new());
        let told = outcome.clone();
        let answer = {
            let Subject::Set(set) = &self.subject else {
                return Ok(());
            };
            set.arm(move |outcome| {
                told.set(outcome).expect("a barrier ends once");
            })
        };
        let is_error = matches!(answer, Err(TransitionError::Signal(_)));
        let failed = self.has_failed(before, is_error)?;
        match answer {
            // Misuse has let everything through.
            Err(TransitionError::ShutDown) if shut_down => Ok(()),
            Ok(handle) if !shut_down => {
                let mut world = self.world();
                let period = world.model.now();
                let signal = world.signals.now(handle.signal()).map(|(s, _)| s);
                world.model.periods[period].signal = signal;
                drop(world);
                self.barriers.push(Armed {
                    period,
                    handle,
                    outcome,
                });
                Ok(())
            }
            Err(TransitionError::Signal(_)) if failed && !shut_down => {
                self.world().model.take_back();
                Ok(())
            }
            other => wrong("arm", other),
        }
    }

    pub(crate) fn drain(&mut self, barrier: u8, queue: u8) -> Checked {
        let queues: Vec<_> = (0..self.hosts.len()).collect();
        let barriers: Vec<_> = (0..self.barriers.len()).collect();
        let (Some(b), Some(queue)) = (pick(&barriers, barrier), pick(&queues, queue)) else {
            return Ok(());
        };
        let Armed { period, handle, .. } = &self.barriers[b];
        let answer = handle.drain_queue(self.hosts[queue].id);
        let mut world = self.world();
        world.tally.drains += 1;
        let p = &world.model.periods[*period];
        let right = if p.is_armed() {
            Drain::Armed
        } else if world.model.is_tagged(queue, *period) {
            Drain::Outstanding
        } else {
            Drain::Drained
        };
        if answer == right {
            Ok(())
        } else {
            wrong("drain_queue", answer)
        }
    }
}
