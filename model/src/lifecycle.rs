//! The end: begun, finished, left, or everything let through at once.

use crate::calls::wrong;
use crate::fault::Fault;
use crate::oracle::Stage;
use crate::run::{Dice, Run};
use crate::runtime::Shared;
use crate::subject::Subject;
use crate::violation::{Checked, Rule, ensure};
use hsa_serializer::{QueueId, Remaining, Serializer, ShutdownError};
use std::time::Duration;

/// Attempts after which a shutdown that waits for nothing but reclamation has finished.
const ATTEMPTS: usize = 6;

impl Run {
    fn serializer(&self) -> Option<Serializer<Shared>> {
        match &self.subject {
            Subject::Serializer(serializer) => Some(serializer.clone()),
            Subject::Set(_) => None,
        }
    }

    pub(crate) fn begin_shutdown(&self) {
        let Some(serializer) = self.serializer() else {
            return;
        };
        self.world().model.close();
        self.world().tally.shutdowns += 1;
        if self.fault != Some(Fault::ShutdownUnsaid) {
            serializer.begin_shutdown();
        }
    }

    pub(crate) fn leave(&self) {
        let Some(serializer) = self.serializer() else {
            return;
        };
        {
            let mut world = self.world();
            world.tally.left += u64::from(world.model.stage < Stage::Finished);
            world.model.stage = Stage::Left;
            world.sealed = true;
        }
        if self.fault != Some(Fault::LeaveUnsaid) {
            serializer.leave();
        }
    }

    pub(crate) fn release_all(&self) {
        let Some(serializer) = self.serializer() else {
            return;
        };
        self.releases();
        serializer.release_all();
        self.world().model.forcing = 0;
    }

    /// Everything is about to be let through.
    pub(crate) fn releases(&self) {
        let mut world = self.world();
        let before = (world.model.stage, world.model.forced);
        world.model.release_all();
        let forced = world.model.forced - before.1;
        world.tally.forced += forced;
        world.tally.forced_at_once += u64::from(forced > 1);
        world.tally.released += u64::from(before.0 != world.model.stage);
    }

    /// Finishes the shutdown, in between of so many steps.
    pub(crate) fn finish_shutdown(&mut self, steps: u8, dice: &mut Dice) -> Checked {
        if self.serializer().is_none() {
            return Ok(());
        }
        for _ in 0..=steps {
            let timed = dice.below(2) == 0;
            if self.try_finish(timed)? {
                break;
            }
            self.check()?;
            if !self.something_happens(dice)? {
                break;
            }
        }
        Ok(())
    }

    /// Tries to finish; whether it has.
    pub(crate) fn try_finish(&mut self, timed: bool) -> Checked<bool> {
        let Some(serializer) = self.serializer() else {
            return Ok(false);
        };
        let ended = self.gives_up();
        for attempt in 0.. {
            let answer = if timed {
                match serializer.finish_shutdown(Duration::ZERO) {
                    Ok(()) => Ok(()),
                    Err(ShutdownError::TimedOut(remaining)) => Err(remaining),
                    Err(other) => return wrong("finish_shutdown", other),
                }
            } else {
                serializer.try_finish_shutdown()
            };
            let remaining = match answer {
                Ok(()) => break,
                Err(_) if self.fault == Some(Fault::FinishedEarly) => break,
                Err(remaining) => remaining,
            };
            let is_left = self.check_remaining(&remaining)?;
            if is_left {
                return Ok(false);
            }
            ensure(attempt < ATTEMPTS && !ended, Rule::Stuck, || {
                format!("nothing is left, and yet the shutdown waits for {remaining}")
            })?;
        }
        self.is_finished()?;
        Ok(true)
    }

    /// A shutdown gives up the queues that have nothing in flight. True if it had ended before.
    fn gives_up(&self) -> bool {
        let mut world = self.world();
        let model = &mut world.model;
        if model.stage >= Stage::Finished {
            return true;
        }
        model.close();
        let idle = |q: &usize| model.in_flight(*q) == 0;
        let idle: Vec<_> = model.living().filter(idle).collect();
        for queue in &idle {
            model.remove(*queue);
        }
        world.tally.given_up += idle.len() as u64;
        false
    }

    /// Whether something is left but reclamation, which the answer has to name.
    fn check_remaining(&self, remaining: &Remaining) -> Checked<bool> {
        let pending = self.subject.statistics().reclaim_pending;
        let world = self.world();
        let model = &world.model;
        let in_flight = |q: usize| (self.hosts[q].id, model.in_flight(q) as u64);
        let mut right: Vec<(QueueId, u64)> = model.living().map(in_flight).collect();
        right.sort_unstable();
        let mut queues = remaining.queues.clone();
        queues.sort_unstable();
        let needed = model.needed_barriers();
        let exact = (queues.as_slice(), remaining.handlers, remaining.calls)
            == (right.as_slice(), world.handlers.len(), 0);
        let bounded = (needed..=needed + pending).contains(&remaining.barriers)
            && remaining.deferred as u64 <= pending.max(1);
        ensure(exact && bounded, Rule::Answer, || {
            format!(
                "the shutdown waits for {remaining}; queues {right:?}, {} handlers and {needed} \
                 barriers are left, {pending} to be reclaimed",
                world.handlers.len()
            )
        })?;
        Ok(!right.is_empty() || !world.handlers.is_empty() || needed > 0)
    }

    /// A shutdown says that it has finished.
    fn is_finished(&self) -> Checked {
        let mut world = self.world();
        world.sealed = true;
        if world.model.stage == Stage::Left {
            return Ok(());
        }
        world.tally.finished += u64::from(world.model.stage < Stage::Finished);
        world.model.stage = Stage::Finished;
        let live = world.signals.live();
        ensure(live == 0, Rule::Leak, || {
            format!("the shutdown has finished and left {live} signals")
        })
    }
}
