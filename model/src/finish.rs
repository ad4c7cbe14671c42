//! The end of a case: everything runs that can, and everything goes.

use crate::operation::End;
use crate::run::{Dice, Run};
use crate::tally::Tally;
use crate::violation::{Checked, Rule, ensure};
use hsa_serializer::{QueueId, Report, SignalKind};

/// More steps than any case needs to come to rest.
const MOST_STEPS: usize = 20_000;

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
        if self.setup.end == End::Quiet {
            self.settle(&mut dice)?;
        } else {
            self.world().tally.abrupt_ends += 1;
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
        for step in 0.. {
            let actions = self.actions();
            if actions.is_empty() {
                break;
            }
            ensure(step < MOST_STEPS, Rule::Stuck, || {
                let world = self.world();
                format!(
                    "it never comes to rest: {actions:?}{}{}",
                    world.gpu.describe(&world.signals),
                    world.model.describe()
                )
            })?;
            match actions[dice.below(actions.len())] {
                Action::Gpu(step) => self.world().make(step)?,
                Action::Complete(i) => {
                    let dispatch = self.world().notices.swap_remove(i);
                    self.complete(dispatch)?;
                }
                Action::Ready(id) => self.ready(id)?,
            }
            self.check()?;
            self.world().tally.steps += 1;
        }
        self.check_quiet()
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

    /// Nothing can happen any more: nothing may be left, then.
    fn check_quiet(&mut self) -> Checked {
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
        let reserve = u64::from(world.model.enabled());
        let kinds = [SignalKind::Barrier, SignalKind::Ready, SignalKind::Block];
        let live = kinds.map(|kind| world.signals.live_of(kind));
        let queues = if self.barriers.is_empty()
            && s.queues_added > 0
            && world.model.queues[0].ready.is_some()
        {
            s.queues
        } else {
            0
        };
        let right = [reserve, queues, queues];
        ensure(live == right, Rule::Leak, || {
            format!("signals of {kinds:?}: {live:?}, not {right:?}")
        })
    }

    /// Drops everything in random order.
    fn drop_all(mut self, dice: &mut Dice) -> Checked<Tally> {
        let expected = self.world().model.periods.len();
        let mut tags: Vec<_> = {
            let world = self.world();
            (0..expected)
                .map(|p| world.model.tags(p))
                .filter(|&n| n > 0)
                .collect()
        };
        self.world().ending = true;
        let shared = self.shared.clone();
        let mut parts: Vec<Box<dyn FnOnce()>> = Vec::new();
        for host in std::mem::take(&mut self.hosts) {
            parts.push(Box::new(move || drop(host)));
        }
        for armed in std::mem::take(&mut self.barriers) {
            parts.push(Box::new(move || drop(armed)));
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
        ensure(live == 0 && left == 0, Rule::Leak, || {
            format!("everything was dropped: {live} signals and {left} handles are left")
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
