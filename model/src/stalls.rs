//! Stalls: what has to be named, and what has to be let go.
//!
//! What could stand still is the token's holder and each armed barrier. The holder gets on when its
//! grant ends, a barrier when it has fewer dispatches to wait for.

use crate::fault::Fault;
use crate::oracle::{Model, Stage};
use crate::run::Run;
use crate::runtime::Shared;
use crate::subject::Subject;
use crate::violation::{Checked, Rule, ensure};
use hsa_serializer::{QueueActivity, QueueId, Serializer, StallPolicy, StallWatch, Stalled};
use std::time::Duration;

/// How long something may stand still.
const AFTER: u64 = 5;

/// What could stand still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thing {
    /// The holder, by the number of its grant.
    Grant(u64),
    /// The barrier of a period.
    Barrier(usize),
}

/// How much was left to wait for when that last became less.
#[derive(Clone, Copy, Debug)]
struct Seen {
    thing: Thing,
    left: usize,
    at: u64,
}

/// One who looks, and what he has to see.
#[derive(Debug)]
pub(crate) struct Watcher {
    watch: StallWatch<Shared>,
    releases: bool,
    seen: Vec<Seen>,
}

/// What stands still, by the model's names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Barrier {
        epoch: u32,
        waits_for: Vec<(QueueId, u64, u64, QueueActivity)>,
        holds_back: Vec<(QueueId, u64)>,
    },
    Holder {
        queue: QueueId,
        dispatch: u64,
        waiting: Vec<QueueId>,
    },
}

impl What {
    fn holds_back_anybody(&self) -> bool {
        match self {
            Self::Barrier { holds_back, .. } => !holds_back.is_empty(),
            Self::Holder { waiting, .. } => !waiting.is_empty(),
        }
    }

    /// Queues are named in no order.
    fn in_order(mut self) -> Self {
        match &mut self {
            Self::Barrier {
                waits_for,
                holds_back,
                ..
            } => {
                waits_for.sort_unstable_by_key(|wait| wait.0);
                holds_back.sort_unstable();
            }
            Self::Holder { waiting, .. } => waiting.sort_unstable(),
        }
        self
    }
}

/// What stands still, for how long, and whether it was released.
type Told = (What, u64, bool);

impl Watcher {
    pub(crate) fn both(serializer: &Serializer<Shared>) -> Vec<Self> {
        let watcher = |releases| {
            let policy = if releases {
                StallPolicy::Release
            } else {
                StallPolicy::Report
            };
            let after = Duration::from_secs(AFTER);
            Self {
                watch: serializer.watch_stalls(after, policy),
                releases,
                seen: Vec::new(),
            }
        };
        [false, true].map(watcher).into()
    }

    /// What of the model's could stand still, and since when it does.
    fn look(&mut self, model: &Model, now: u64) {
        let mut things = Vec::new();
        // After the end, or once everything is let through, nobody holds anybody back.
        if model.stage < Stage::Released {
            things.extend(
                model
                    .token
                    .holder
                    .map(|_| (Thing::Grant(model.token.grants), 0)),
            );
            let armed = model
                .periods
                .iter()
                .enumerate()
                .filter(|(_, p)| p.is_armed());
            things.extend(armed.map(|(i, p)| (Thing::Barrier(i), p.counted.len())));
        }
        let seen = things.into_iter().map(|(thing, left)| {
            let before = self
                .seen
                .iter()
                .find(|s| s.thing == thing && s.left == left);
            let at = before.map_or(now, |s| s.at);
            Seen { thing, left, at }
        });
        self.seen = seen.collect();
    }
}

impl Run {
    /// Somebody looks for what stands still. Whether anything was released.
    pub(crate) fn check_stalls(&mut self, advance: u64, releases: bool) -> Checked<bool> {
        let Some(place) = self.watchers.iter().position(|w| w.releases == releases) else {
            return Ok(false);
        };
        self.clock += advance;
        let now = self.clock;
        let mut watcher = self.watchers.swap_remove(place);
        let right = self.stalls_due(&mut watcher, now);
        let told = if self.fault == Some(Fault::ClockAhead) {
            watcher.watch.check_stalls(Duration::from_secs(2 * now))
        } else {
            watcher.watch.check_stalls(Duration::from_secs(now))
        };
        self.watchers.push(watcher);
        let mut told: Vec<Told> = told
            .into_iter()
            .map(|stall| (what(stall.what), stall.lasted.as_secs(), stall.released))
            .collect();
        match self.fault {
            Some(Fault::StallUnnamed) => _ = told.pop(),
            Some(Fault::ReleaseUnsaid) => told.iter_mut().for_each(|told| told.2 = false),
            _ => {}
        }
        let mut world = self.world();
        world.model.forcing = 0;
        ensure(told == right, Rule::Stalls, || {
            format!("named was {told:?}, not {right:?}")
        })?;
        world.tally.stalls_named += right.len() as u64;
        Ok(right.iter().any(|told| told.2))
    }

    /// What has to be named; and what is to be released is, in the model.
    fn stalls_due(&self, watcher: &mut Watcher, now: u64) -> Vec<Told> {
        let mut world = self.world();
        watcher.look(&world.model, now);
        let stalled = watcher.seen.iter().filter(|s| now - s.at >= AFTER);
        let stalled: Vec<_> = stalled.copied().collect();
        let describe = |s: &Seen| {
            let since = now - s.at;
            (
                self.describe(&world.model, s.thing).in_order(),
                since,
                false,
            )
        };
        let mut right: Vec<Told> = stalled.iter().map(describe).collect();
        // A long kernel by itself is nobody's stall.
        let holds_back = |told: &Told| told.0.holds_back_anybody();
        let first = right.iter().position(holds_back);
        if let Some(first) = first.filter(|_| watcher.releases) {
            right[first].2 = true;
            match stalled[first].thing {
                Thing::Grant(_) => {
                    world.model.overtake();
                    world.tally.overtaken += 1;
                }
                Thing::Barrier(period) => {
                    let forced = world.model.force(period);
                    world.tally.forced += forced;
                    world.tally.forced_at_once += u64::from(forced > 1);
                }
            }
            watcher.seen.iter_mut().for_each(|s| s.at = now);
        }
        right
    }

    fn describe(&self, model: &Model, thing: Thing) -> What {
        let id = |q: usize| self.hosts[q].id;
        match thing {
            Thing::Grant(_) => {
                let waiting = model.token.waiting.iter().map(|&q| id(q)).collect();
                let holder = model.token.holder.unwrap_or(0);
                What::Holder {
                    queue: id(holder),
                    // Everything in front of it has ended; it is told by how many were reported.
                    dispatch: model.queues[holder].completed,
                    waiting,
                }
            }
            Thing::Barrier(period) => {
                let p = &model.periods[period];
                let waits_for = p.targets.iter().filter_map(|&(q, until)| {
                    let queue = &model.queues[q];
                    let waits = !queue.removed && queue.completed < until;
                    waits.then(|| (id(q), queue.completed, until, activity(model, q)))
                });
                let of = |q: usize| {
                    let mut tags = model.queues[q].tags.iter();
                    tags.find(|tag| tag.0 == period).map(|tag| tag.1)
                };
                let tagged = model.living().filter(|&q| model.is_tagged(q, period));
                What::Barrier {
                    epoch: p.epoch,
                    waits_for: waits_for.collect(),
                    holds_back: tagged.filter_map(|q| Some((id(q), of(q)?))).collect(),
                }
            }
        }
    }
}

fn activity(model: &Model, queue: usize) -> QueueActivity {
    let q = &model.queues[queue];
    let overtaken = |&d: &usize| {
        let d = &model.dispatches[d];
        d.queue == queue && d.overtaken
    };
    // Behind a packet of an armed barrier nothing has completed: it has got there when all that was
    // in front of it has.
    let at = |&&(period, number): &&(usize, u64)| {
        model.periods[period].is_armed() && q.completed == number
    };
    if model.token.waiting.contains(&queue) {
        QueueActivity::WaitsForToken
    } else if model.token.holder == Some(queue) {
        QueueActivity::HoldsToken
    } else if model.unreported.iter().any(overtaken) {
        QueueActivity::Overtaken
    } else if let Some(&(period, _)) = q.tags.iter().find(at) {
        QueueActivity::WaitsForBarrier(model.periods[period].epoch)
    } else {
        QueueActivity::Running
    }
}

fn what(stalled: Stalled) -> What {
    match stalled {
        Stalled::Barrier {
            epoch,
            waits_for,
            holds_back,
        } => {
            let wait = |w: hsa_serializer::QueueWait| (w.queue, w.completed, w.until, w.activity);
            What::Barrier {
                epoch,
                waits_for: waits_for.into_iter().map(wait).collect(),
                holds_back,
            }
        }
        Stalled::Holder {
            queue,
            dispatch,
            waiting,
        } => What::Holder {
            queue,
            dispatch,
            waiting,
        },
        other => unreachable!("a stall of a new kind: {other:?}"),
    }
    .in_order()
}

impl Subject {
    pub(crate) fn watchers(&self) -> Vec<Watcher> {
        match self {
            Self::Serializer(serializer) => Watcher::both(serializer),
            Self::Set(_) => Vec::new(),
        }
    }
}
