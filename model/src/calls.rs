//! The life of queues: the host's calls and the GPU's steps, each with what the model says of it;
//! and what a failed call has to leave as it was.

use crate::fault::Fault;
use crate::operation::Failure;
use crate::oracle::Stage;
use crate::run::{Dice, Host, Run, pick};
use crate::subject::Subject;
use crate::violation::{Checked, Rule, Violation, ensure};
use hsa_serializer::{AddQueueError, Handler, Mode, QueueId, SignalError, SignalKind, Statistics};
use std::fmt::Debug;

/// Queues at a time, and in all.
const QUEUES: (usize, usize) = (5, 40);

pub(crate) fn wrong<T>(call: &str, answer: impl Debug) -> Checked<T> {
    Err(Violation::new(
        Rule::Answer,
        format!("{call} answered {answer:?}"),
    ))
}

/// What an error has to leave as it was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Before {
    statistics: Statistics,
    mode: Option<Mode>,
    /// But for the escape signal, which belongs to nobody's call.
    signals: usize,
}

impl Run {
    /// Plans a failure and remembers how things are.
    pub(crate) fn plan(&mut self, failure: Option<Failure>) -> Option<Before> {
        let failure = failure?;
        // What is pending could else be destroyed by the call, rightly.
        for _ in 0..4 {
            self.subject.collect();
        }
        let before = self.state();
        self.world().failed = false;
        self.world().plan = Some(failure);
        Some(before)
    }

    fn state(&self) -> Before {
        let mode = match &self.subject {
            Subject::Serializer(s) => Some(s.mode()),
            Subject::Set(_) => None,
        };
        Before {
            statistics: self.subject.statistics(),
            mode,
            signals: self.world().signals.live_but(SignalKind::Escape),
        }
    }

    /// True if the planned failure happened; then nothing may have changed.
    pub(crate) fn has_failed(&self, before: Option<Before>, is_error: bool) -> Checked<bool> {
        let failed = {
            let mut world = self.world();
            world.plan = None;
            std::mem::take(&mut world.failed)
        };
        ensure(failed == is_error, Rule::Answer, || {
            format!("the runtime failed: {failed}; the call says so: {is_error}")
        })?;
        if let Some(before) = before.filter(|_| failed) {
            let after = self.state();
            ensure(before == after, Rule::ErrorChangedState, || {
                format!("before {before:?}, after {after:?}")
            })?;
            self.world().tally.failures += 1;
        }
        Ok(failed)
    }

    pub(crate) fn add_queue(&mut self, failure: Option<Failure>) -> Checked {
        let live = self.halves().len().max(self.live().len());
        if live >= QUEUES.0 || self.hosts.len() >= QUEUES.1 {
            return Ok(());
        }
        let shut_down = self.world().model.shut_down();
        let had_escape = self.world().signals.live_of(SignalKind::Escape) > 0;
        let before = self.plan(failure);
        let answer = self.subject.add_queue();
        if shut_down {
            self.has_failed(before, false)?;
            return match answer {
                Err(AddQueueError::ShutDown) => Ok(()),
                other => wrong("add_queue", other),
            };
        }
        let failed = self.has_failed(before, answer.is_err())?;
        let half = match answer {
            Ok(half) => half,
            Err(error) => {
                let status = |e: &SignalError| {
                    failure.is_some_and(|f| f.null == (*e == SignalError::NullHandle))
                };
                // The escape signal comes with the first queue, and stays.
                let step = failure.map(|f| f.after + u8::from(had_escape));
                let named = match (&error, step) {
                    (AddQueueError::Escape(e), Some(0))
                    | (AddQueueError::Ready(e), Some(1))
                    | (AddQueueError::Block(e), Some(2)) => status(e),
                    (AddQueueError::Watch(_), Some(3)) => true,
                    _ => false,
                };
                return if failed && named {
                    Ok(())
                } else {
                    wrong("add_queue", error)
                };
            }
        };
        let id = half.id();
        ensure(self.queue_of(id).is_none(), Rule::Answer, || {
            format!("{id} was given twice")
        })?;
        let mut world = self.world();
        world.tally.reused_places += u64::from(id.to_string().contains('.'));
        let [ready, block] = std::mem::take(&mut world.latest);
        world.model.queues.push(crate::oracle::Queue {
            ready,
            block,
            ..Default::default()
        });
        world.gpu.add_queue();
        drop(world);
        self.hosts.push(Host {
            id,
            half: Some(half),
        });
        Ok(())
    }

    pub(crate) fn gpu_step(&mut self, queue: u8, choice: u8) -> Checked {
        let Some(queue) = pick(&self.live(), queue) else {
            return Ok(());
        };
        let mut world = self.world();
        let steps = world.gpu.steps(queue, &world.signals);
        pick(&steps, choice).map_or(Ok(()), |step| world.make(step))
    }

    pub(crate) fn gpu(&mut self, steps: u8, seed: u8) -> Checked {
        let mut dice = Dice(seed.into());
        let mut world = self.world();
        for _ in 0..steps {
            let can = world.gpu.all_steps(&world.signals);
            if can.is_empty() {
                break;
            }
            world.make(can[dice.below(can.len())])?;
        }
        Ok(())
    }

    pub(crate) fn ready(&mut self, id: QueueId) -> Checked {
        let Some(queue) = self.queue_of(id) else {
            return Ok(());
        };
        let Subject::Serializer(serializer) = &self.subject else {
            return Ok(());
        };
        let drops = {
            let mut world = self.world();
            let stage = world.model.stage;
            let q = &world.model.queues[queue];
            let removed = q.removed;
            let value = q.ready.and_then(|s| world.signals.value_of(s));
            if !removed && value == Some(-1) && stage < Stage::Released {
                world.model.token.arrive(queue);
            }
            if let Some(watch) = world.handlers.iter_mut().find(|w| w.queue == id) {
                watch.is_called = true;
            }
            removed || stage >= Stage::Finished
        };
        let answer = serializer.ready(id);
        let mut world = self.world();
        // What it did says more than what it answers.
        world.found()?;
        let right = if drops { Handler::Drop } else { Handler::Keep };
        ensure(answer == right, Rule::Answer, || {
            format!("ready of queue {queue} says {answer:?}")
        })?;
        if drops {
            world.handlers.retain(|w| w.queue != id);
            return Ok(());
        }
        if let Some(watch) = world.handlers.iter_mut().find(|w| w.queue == id) {
            watch.is_called = false;
        }
        let again = world.model.queues[queue]
            .ready
            .and_then(|s| world.signals.value_of(s));
        ensure(again != Some(-1), Rule::Stuck, || {
            format!("the handler of queue {queue} is called for ever")
        })
    }

    pub(crate) fn destroy(&mut self, queue: u8, say: bool) -> Checked {
        let Some(queue) = pick(&self.live(), queue) else {
            return Ok(());
        };
        self.destroy_queue(queue);
        if say { self.say(queue) } else { Ok(()) }
    }

    pub(crate) fn destroy_queue(&mut self, queue: usize) {
        let mut world = self.world();
        let dropped = world.gpu.destroy(queue);
        world.model.dropped(queue, &dropped);
        drop(world);
        self.unsaid.push(queue);
    }

    /// The serializer is told that a queue is gone.
    pub(crate) fn say(&mut self, queue: usize) -> Checked {
        self.unsaid.retain(|&q| q != queue);
        let given_up = {
            let mut world = self.world();
            let model = &world.model;
            let with_token = model.token.holder == Some(queue);
            let waiting = model.token.waiting.contains(&queue);
            let of = |d: &usize| model.dispatches[*d].queue == queue;
            let counted = model.periods.iter().any(|p| p.counted.iter().any(of));
            let tagged = (0..model.periods.len()).any(|p| model.is_tagged(queue, p));
            world.tally.removed_with_token += u64::from(with_token);
            world.tally.removed_waiting += u64::from(waiting);
            world.tally.removed_counted += u64::from(counted);
            world.tally.removed_tagged += u64::from(tagged);
            let given_up = world.model.queues[queue].removed;
            world.model.remove(queue);
            // A shutdown gives queues up before they are destroyed, and then that is no mistake.
            given_up && !world.model.shut_down()
        };
        if self.fault == Some(Fault::RemovalUnsaid) {
            return Ok(());
        }
        let mut answer = self.subject.queue_destroyed(self.hosts[queue].id);
        if self.fault == Some(Fault::RemovalSaidTwice) {
            answer = self.subject.queue_destroyed(self.hosts[queue].id);
        }
        match answer {
            Ok(()) if !given_up => Ok(()),
            Err(_) if given_up => Ok(()),
            other => wrong("queue_destroyed", other),
        }
    }

    pub(crate) fn say_again(&mut self, queue: u8) -> Checked {
        let gone: Vec<_> = {
            let world = self.world();
            let removed = |&q: &usize| world.model.queues[q].removed;
            (0..self.hosts.len()).filter(removed).collect()
        };
        let Some(queue) = pick(&gone, queue) else {
            return Ok(());
        };
        let id = self.hosts[queue].id;
        let closed = self.world().model.shut_down();
        match self.subject.queue_destroyed(id) {
            Ok(()) if closed => Ok(()),
            Err(hsa_serializer::UnknownQueue(told)) if told == id && !closed => Ok(()),
            other => wrong("queue_destroyed", other),
        }
    }
}
