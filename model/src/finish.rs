//! The end of a case: everything runs that can, and everything goes.

use crate::operation::{End, Kind};
use crate::oracle::Stage;
use crate::run::{Dice, Run};
use crate::tally::Tally;
use crate::violation::{Checked, Rule, ensure};
use hsa_serializer::{QueueId, Report, SignalKind};

/// More steps than any case needs to come to rest.
const MOST_STEPS: usize = 20_000;

/// Looks for stalls in a row, a unit of time apart, of which one releases something if anything is
/// to be.
const PATIENCE: u32 = 10;

/// Something that can still happen by itself.
#[derive(Clone, Copy, Debug)]
enum Action {
    Gpu(crate::gpu::Step),
    Complete(usize),
    Ready(QueueId),
}

impl Run {
    pub(crate) fn finish(mut self) -> Checked<Tally> {
        let mut dice = Dice(self.setup.seed.into());
        match self.setup.end {
            End::Quiet => self.settle(&mut dice)?,
            End::ShutDown => {
                self.begin_shutdown();
                self.settle(&mut dice)?;
                self.end_shutdown(&mut dice)?;
            }
            End::Abrupt => self.world().tally.abrupt_ends += 1,
        }
        // The end of a request is a transition, which the model has to be told of.
        while !self.requests.is_empty() {
            self.end_request(self.setup.seed, true)?;
            self.check()?;
        }
        self.take_tally();
        self.drop_all(&mut dice)
    }

    /// Lets everything run that was dispatched on live queues, in random order.
    fn settle(&mut self, dice: &mut Dice) -> Checked {
        for queue in self.unsaid.clone() {
            self.say(queue)?;
            self.check()?;
        }
        // A host that has lost a completion can only destroy the queue.
        for dispatch in std::mem::take(&mut self.lost) {
            let queue = self.world().model.dispatches[dispatch].queue;
            if self.live().contains(&queue) {
                self.destroy_queue(queue);
                self.say(queue)?;
                self.check()?;
            }
        }
        let mut still = 0;
        for step in 0.. {
            if self.something_happens(dice)? {
                still = 0;
            } else if still > PATIENCE || !self.is_held_up() {
                break;
            } else {
                // The program is one that serialization deadlocks.
                let released = self.check_stalls(1, true)?;
                still = if released { 0 } else { still + 1 };
            }
            self.check()?;
            self.world().tally.steps += 1;
            ensure(step < MOST_STEPS, Rule::Stuck, || {
                let world = self.world();
                format!(
                    "it never comes to rest: {:?}{}{}",
                    self.actions(),
                    world.gpu.describe(&world.signals),
                    world.model.describe()
                )
            })?;
        }
        self.check_quiet()
    }

    /// Whether something that was dispatched on a live queue is to happen yet.
    fn is_held_up(&self) -> bool {
        let world = self.world();
        let waits = |&d: &usize| !world.model.queues[world.model.dispatches[d].queue].removed;
        world.model.stage < Stage::Finished && world.model.unreported.iter().any(waits)
    }

    /// Something that can happen by itself does, drawn at random; false where nothing can.
    pub(crate) fn something_happens(&mut self, dice: &mut Dice) -> Checked<bool> {
        let actions = self.actions();
        let Some(action) = actions.get(dice.below(actions.len())) else {
            return Ok(false);
        };
        match *action {
            Action::Gpu(step) => self.world().make(step)?,
            Action::Complete(i) => {
                let dispatch = self.world().notices.swap_remove(i);
                self.complete(dispatch)?;
            }
            Action::Ready(id) => self.ready(id)?,
        }
        Ok(true)
    }

    /// Everything is quiet: a shutdown comes to its end, as handlers go.
    fn end_shutdown(&mut self, dice: &mut Dice) -> Checked {
        if self.setup.kind != Kind::Serializer {
            return Ok(());
        }
        let mut finished = self.try_finish(false)?;
        while !finished && self.something_happens(dice)? {
            self.check()?;
            finished = self.try_finish(dice.below(2) == 0)?;
        }
        ensure(finished, Rule::Stuck, || {
            "the shutdown never finishes".into()
        })?;
        self.check()
    }

    fn actions(&self) -> Vec<Action> {
        let world = self.world();
        let gpu = world
            .gpu
            .all_steps(&world.signals)
            .into_iter()
            .map(Action::Gpu);
        let notices = (0..world.notices.len()).map(Action::Complete);
        let handlers = world.handlers_due().into_iter().map(Action::Ready);
        gpu.chain(notices).chain(handlers).collect()
    }

    /// Nothing can happen any more: nothing may be left, then, unless everything was left on purpose.
    fn check_quiet(&mut self) -> Checked {
        if self.world().model.stage == Stage::Left {
            return Ok(());
        }
        {
            let world = self.world();
            let model = &world.model;
            let all = model
                .dispatches
                .iter()
                .all(|d| d.reported || model.queues[d.queue].removed);
            ensure(all, Rule::Stuck, || {
                format!(
                    "nothing can happen any more:{}{}",
                    world.gpu.describe(&world.signals),
                    model.describe()
                )
            })?;
            let waiting = world
                .handlers
                .iter()
                .map(|w| w.queue)
                .find(|id| self.queue_of(*id).is_none_or(|q| model.queues[q].removed));
            ensure(waiting.is_none(), Rule::Stuck, || {
                format!("the handler of {waiting:?}, which is gone, was never told to go")
            })?;
        }
        for _ in 0..4 {
            self.subject.collect();
        }
        self.check()?;
        let s = self.subject.statistics();
        ensure(
            (s.barriers_live, s.reclaimed, s.reclaim_pending) == (0, s.retired, 0),
            Rule::Leak,
            || format!("all is quiet, and yet {s:?}"),
        )?;
        let world = self.world();
        if world.model.stage == Stage::Finished {
            let live = world.signals.live();
            return ensure(live == 0, Rule::Leak, || format!("{live} signals are left"));
        }
        let reserve = u64::from(world.model.enabled());
        let kinds = [
            SignalKind::Barrier,
            SignalKind::Ready,
            SignalKind::Block,
            SignalKind::Escape,
        ];
        let live = kinds.map(|kind| world.signals.live_of(kind));
        let queues = if self.barriers.is_empty()
            && s.queues_added > 0
            && world.model.queues[0].ready.is_some()
        {
            s.queues
        } else {
            0
        };
        let right = [reserve, queues, queues, u64::from(world.escape_made)];
        ensure(live == right, Rule::Leak, || {
            format!("signals of {kinds:?}: {live:?}, not {right:?}")
        })
    }

    /// Drops everything in random order.
    fn drop_all(mut self, dice: &mut Dice) -> Checked<Tally> {
        let (mut tags, left_alone) = {
            let mut world = self.world();
            world.ending = true;
            let model = &world.model;
            let periods = 0..model.periods.len();
            let tags = periods.map(|p| model.tags(p)).filter(|&n| n > 0);
            let tags: Vec<_> = tags.filter(|_| model.stage < Stage::Finished).collect();
            let is_left = model.stage == Stage::Left;
            (tags, if is_left { world.signals.live() } else { 0 })
        };
        let shared = self.shared.clone();
        let mut parts: Vec<Box<dyn FnOnce()>> = Vec::new();
        for host in std::mem::take(&mut self.hosts) {
            parts.push(Box::new(move || drop(host)));
        }
        for armed in std::mem::take(&mut self.barriers) {
            parts.push(Box::new(move || drop(armed)));
        }
        for made in std::mem::take(&mut self.cuts) {
            parts.push(Box::new(move || drop(made)));
        }
        for watcher in std::mem::take(&mut self.watchers) {
            parts.push(Box::new(move || drop(watcher)));
        }
        parts.push(Box::new(move || drop(self)));
        while !parts.is_empty() {
            let part = parts.swap_remove(dice.below(parts.len()));
            part();
        }
        let left = shared.handles() - 1;
        let mut world = shared.world();
        world.found()?;
        let live = world.signals.live();
        ensure(live == left_alone && left == 0, Rule::Leak, || {
            format!(
                "everything was dropped: {live} signals, not {left_alone}, and {left} handles are \
                 left"
            )
        })?;
        let mut told = Vec::new();
        for report in &world.reports {
            match report {
                Report::TaggedAtDestruction { tags, .. } => told.push(*tags as usize),
                other => ensure(false, Rule::Reports, || format!("{other:?}"))?,
            }
        }
        told.sort_unstable();
        tags.sort_unstable();
        ensure(told == tags, Rule::Reports, || {
            format!("tags of destroyed barriers: {told:?}, not {tags:?}")
        })?;
        Ok(std::mem::take(&mut world.tally))
    }
}
