//! What is checked after every step.

use crate::oracle::Stage;
use crate::run::Run;
use crate::subject::Subject;
use crate::violation::{Checked, Rule, ensure};
use hsa_serializer::{Mode, Outcome, SignalKind};

impl Run {
    pub(crate) fn check(&self) -> Checked {
        {
            let mut world = self.world();
            world.found()?;
            world.model.check(&world.signals)?;
            let reports = &world.reports;
            ensure(reports.is_empty(), Rule::Reports, || format!("{reports:?}"))?;
        }
        self.check_mode()?;
        self.check_requests()?;
        self.check_barriers()?;
        self.check_cuts()?;
        self.check_statistics()
    }

    fn check_mode(&self) -> Checked {
        let Subject::Serializer(serializer) = &self.subject else {
            return Ok(());
        };
        let mode = serializer.mode();
        let enabled = self.world().model.enabled();
        ensure((mode == Mode::Enabled) == enabled, Rule::Answer, || {
            format!("the mode is {mode:?}")
        })
    }

    /// Barriers by themselves say what the model says of them.
    fn check_barriers(&self) -> Checked {
        let world = self.world();
        for armed in &self.barriers {
            let period = &world.model.periods[armed.period];
            let forced = period.forced.is_some();
            let cleared = period.has_cleared() || forced;
            let tags = world.model.tags(armed.period);
            let outcome = if period.superseded {
                Some(Outcome::Superseded)
            } else if forced {
                Some(Outcome::Forced)
            } else {
                cleared.then_some(Outcome::Cleared)
            };
            let handle = &armed.handle;
            let says = (
                handle.is_cleared(),
                handle.is_superseded(),
                handle.tags() as usize,
                handle.is_safe_to_destroy(),
                armed.outcome.get().copied(),
            );
            let right = (
                cleared,
                period.superseded,
                tags,
                outcome.is_some() && tags == 0 && !world.model.stands_forced(armed.period),
                outcome,
            );
            ensure(says == right, Rule::Clears, || {
                format!(
                    "the barrier of period {} says {says:?}, not {right:?}",
                    armed.period
                )
            })?;
        }
        Ok(())
    }

    fn check_statistics(&self) -> Checked {
        let s = self.subject.statistics();
        let world = self.world();
        let model = &world.model;
        let (needed, allowed) = (model.needed_barriers(), model.allowed_barriers());
        let in_table = world.signals.live_of(SignalKind::Barrier);
        // Who leaves everything as it is leaves these, too.
        let most = s.barriers_live + (s.retired - s.reclaimed) + 1;
        let bounded = s.barriers_live <= needed.min(allowed)
            && (in_table <= most || model.stage == Stage::Left);
        ensure(bounded, Rule::TooManyBarriers, || {
            format!(
                "{} barriers ({in_table} signals, {} to be reclaimed); needed {needed}, allowed \
                 {allowed}",
                s.barriers_live,
                s.retired - s.reclaimed
            )
        })?;
        let sum = |f: fn(&crate::oracle::Queue) -> u64| model.queues.iter().map(f).sum::<u64>();
        let live = model.queues.iter().filter(|q| !q.removed).count() as u64;
        let transitions = model.now() as u64;
        let counting = model.periods.iter().filter(|p| !p.targets.is_empty());
        let counting = counting.count() as u64;
        let superseded = model.periods.iter().filter(|p| p.superseded).count() as u64;
        let contenders = model.token.waiting.len() as u64 + u64::from(model.token.holder.is_some());
        let exact = [
            ("barriers live", s.barriers_live, needed),
            ("completions", s.completions, sum(|q| q.completed)),
            ("queues", s.queues, live),
            ("queues added", s.queues_added, model.queues.len() as u64),
            (
                "queues gone",
                s.queues_gone,
                model.queues.len() as u64 - live,
            ),
            ("transitions", s.transitions, transitions),
            ("barriers", s.barriers, transitions),
            (
                "transitions that counted",
                s.transitions_that_counted,
                counting,
            ),
            ("cleared", s.cleared, model.cleared()),
            ("superseded", s.superseded, superseded),
            ("forced", s.forced, model.forced),
            ("overtaken", s.overtaken, model.overtaken),
            ("misuse", s.misuse, self.misuse),
            ("retired and live", s.retired + s.barriers_live, s.barriers),
        ];
        for (name, says, right) in exact {
            ensure(says == right, Rule::Statistics, || {
                format!("{name}: {says}, not {right}")
            })?;
        }
        // Once everything was left, grants are not about any, and who is turned away may be counted.
        let dispatches = sum(|q| q.dispatched);
        let right = (s.dispatches, s.grants) == (dispatches, model.token.grants);
        ensure(
            right || model.stage == Stage::Left,
            Rule::Statistics,
            || {
                format!(
                    "dispatches: {}, not {dispatches}; grants: {}, not {}",
                    s.dispatches, s.grants, model.token.grants
                )
            },
        )?;
        // Queues that were removed while ready are counted until a granter comes to them, as long
        // as there are any, and what a dispatch on a removed queue does to its tags is nobody's
        // business.
        let contends = s.contenders >= contenders && (contenders > 0 || s.contenders == 0);
        let loose = s.reclaimed <= s.retired
            && (contends || model.stage >= Stage::Released)
            && (world.tally.tags..=world.tally.tags + self.on_gone).contains(&s.tags);
        ensure(loose, Rule::Statistics, || {
            format!("{s:?}; contenders {contenders}")
        })
    }

    /// What the run has exercised, as far as the serializer counts it.
    pub(crate) fn take_tally(&self) {
        let s = self.subject.statistics();
        let mut world = self.world();
        let recycled = world.signals.recycled;
        let (epoch, _) = self.setup.start;
        let last = world.model.periods[world.model.now()].epoch;
        let t = &mut world.tally;
        t.transitions += s.transitions;
        t.transitions_that_counted += s.transitions_that_counted;
        t.superseded += s.superseded;
        t.deferred_retirements += s.retired_after_drain;
        t.recycled_handles += recycled;
        t.grants += s.grants;
        t.contended_grants += s.grants_contended;
        t.epochs_wrapped += u64::from(last < epoch);
    }
}
