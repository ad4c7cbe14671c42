//! The sequential model: what has to hold, in plain lists.
//!
//! Time is divided into *periods* by the transitions; period 0 is that before the first one. A
//! transition's barrier *counts* the dispatches that are in flight when it happens: dispatched
//! before and not reported complete, on queues that have not been removed. A cut is a transition
//! that keeps the mode, and so is a gap while kernels are serialized.

use crate::period::Period;
use crate::requests::Wanted;
use crate::signals::{Signal, Signals};
use crate::token::Token;
use crate::violation::{Checked, Rule, ensure};
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// The serializer was told that it is gone, or has given it up.
    pub(crate) removed: bool,
    pub(crate) dispatched: u64,
    pub(crate) completed: u64,
    /// The period in which it dispatched last.
    pub(crate) latest: Option<usize>,
    /// Where it carried transition packets: the period, and how many dispatches came before.
    pub(crate) tags: Vec<(usize, u64)>,
    pub(crate) ready: Option<Signal>,
    pub(crate) block: Option<Signal>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Dispatch {
    pub(crate) queue: usize,
    pub(crate) number: u64,
    pub(crate) period: usize,
    pub(crate) serialized: bool,
    pub(crate) reported: bool,
    /// The token was given on while it had it.
    pub(crate) overtaken: bool,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    #[default]
    Open,
    /// Dispatches are turned away.
    Closing,
    /// And nothing is held back any more.
    Released,
    /// The runtime is not called any more: everything is destroyed.
    Finished,
    /// The runtime is not called any more: everything is as it was.
    Left,
}

/// What a dispatch has to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) tag: bool,
    pub(crate) serialized: bool,
    pub(crate) number: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Model {
    /// Whether the gates exist: barriers by themselves serialize nothing.
    pub(crate) serializes: bool,
    pub(crate) queues: Vec<Queue>,
    pub(crate) dispatches: Vec<Dispatch>,
    pub(crate) periods: Vec<Period>,
    /// Who wants kernels serialized.
    pub(crate) wanted: Wanted,
    pub(crate) token: Token,
    pub(crate) stage: Stage,
    /// Everything was let through.
    pub(crate) let_through: bool,
    /// Stores that cleared a barrier, by itself or by force.
    pub(crate) stores: u64,
    pub(crate) forced: u64,
    pub(crate) overtaken: u64,
    /// How many barriers the latest force clears, and the latest period whose signal it has stored
    /// to.
    pub(crate) forcing: u64,
    pub(crate) latest_forced: usize,
    pub(crate) running: BTreeSet<usize>,
    /// Serialized dispatches that were let go and have not been reported.
    pub(crate) alone: BTreeSet<usize>,
    pub(crate) unreported: BTreeSet<usize>,
    /// Kernels that no dispatch was made for.
    pub(crate) unseen: Vec<Unseen>,
}

/// A kernel that the serializer was not told of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unseen {
    pub(crate) queue: usize,
    /// The dispatch that stands for it.
    pub(crate) marker: Option<usize>,
    pub(crate) over: bool,
}

impl Model {
    pub(crate) fn new(serializes: bool, epoch: u32) -> Self {
        Self {
            serializes,
            queues: Vec::new(),
            dispatches: Vec::new(),
            periods: vec![Period {
                epoch,
                ..Period::default()
            }],
            wanted: Wanted::default(),
            token: Token::default(),
            stage: Stage::Open,
            let_through: false,
            stores: 0,
            forced: 0,
            overtaken: 0,
            forcing: 0,
            latest_forced: 0,
            running: BTreeSet::new(),
            alone: BTreeSet::new(),
            unreported: BTreeSet::new(),
            unseen: Vec::new(),
        }
    }

    pub(crate) fn now(&self) -> usize {
        self.periods.len() - 1
    }

    pub(crate) fn enabled(&self) -> bool {
        self.periods[self.now()].enabled
    }

    pub(crate) fn shut_down(&self) -> bool {
        self.stage > Stage::Open
    }

    pub(crate) fn in_flight(&self, queue: usize) -> usize {
        let of = |&&d: &&usize| self.dispatches[d].queue == queue;
        self.unreported.iter().filter(of).count()
    }

    /// Queues of the serializer's.
    pub(crate) fn living(&self) -> impl Iterator<Item = usize> {
        (0..self.queues.len()).filter(|&q| !self.queues[q].removed)
    }

    /// What a dispatch on that live queue has to get now.
    pub(crate) fn due(&self, queue: usize) -> Due {
        let q = &self.queues[queue];
        let period = &self.periods[self.now()];
        Due {
            tag: period.is_armed() && q.latest != Some(self.now()),
            serialized: self.serializes && period.enabled,
            number: q.dispatched,
        }
    }

    /// A dispatch on that live queue got what was due, and this packet's signal if it got one.
    pub(crate) fn dispatch(
        &mut self,
        queue: usize,
        signal: Option<Signal>,
        due: Due,
    ) -> Checked<usize> {
        let now = self.now();
        if due.tag {
            let known = self.periods[now].signal;
            ensure(
                signal.is_some() && (known.is_none() || known == signal),
                Rule::Packets,
                || format!("queue {queue} waits for {signal:?}; period {now} has {known:?}"),
            )?;
            let other = self.periods[..now].iter().position(|p| p.signal == signal);
            ensure(other.is_none(), Rule::Packets, || {
                format!("queue {queue} waits for the barrier of period {other:?}, not of {now}")
            })?;
            self.periods[now].signal = signal;
            self.queues[queue].tags.push((now, due.number));
        }
        self.periods[now].users.insert(queue);
        let q = &mut self.queues[queue];
        q.latest = Some(now);
        q.dispatched += 1;
        self.dispatches.push(Dispatch {
            queue,
            number: due.number,
            period: now,
            serialized: due.serialized,
            reported: false,
            overtaken: false,
        });
        let d = self.dispatches.len() - 1;
        self.unreported.insert(d);
        Ok(d)
    }

    /// A transition is about to happen, over so many epochs.
    pub(crate) fn begin(&mut self, enabled: bool, epochs: u32) {
        let now = self.now();
        let live = |q: &usize| !self.queues[*q].removed;
        let ending = &self.periods[now];
        let superseded = now > 0 && ending.is_armed() && !ending.users.iter().any(live);
        let epoch = ending.epoch.wrapping_add(epochs);
        self.periods[now].superseded = superseded;
        let counted = self.unreported.clone();
        let queues: BTreeSet<_> = counted.iter().map(|&d| self.dispatches[d].queue).collect();
        let target = |q: usize| (q, self.queues[q].dispatched);
        self.periods.push(Period {
            enabled,
            epoch,
            counted,
            targets: queues.into_iter().map(target).collect(),
            ..Period::default()
        });
    }

    /// It did not happen.
    pub(crate) fn take_back(&mut self) {
        self.periods.pop();
        let now = self.now();
        self.periods[now].superseded = false;
    }

    fn resolve(&mut self, dispatch: usize) {
        self.unreported.remove(&dispatch);
        self.alone.remove(&dispatch);
        for period in &mut self.periods {
            period.counted.remove(&dispatch);
        }
    }

    /// The host is about to report a dispatch. False if its queue is gone.
    pub(crate) fn report(&mut self, dispatch: usize) -> bool {
        let d = &mut self.dispatches[dispatch];
        d.reported = true;
        let (queue, serialized) = (d.queue, d.serialized);
        if self.queues[queue].removed {
            return false;
        }
        self.resolve(dispatch);
        self.queues[queue].completed += 1;
        if serialized && self.stage < Stage::Released {
            self.token.release(queue);
        }
        true
    }

    /// The serializer is about to be told that a queue is gone, or to give it up.
    pub(crate) fn remove(&mut self, queue: usize) {
        self.queues[queue].removed = true;
        self.queues[queue].tags.clear();
        self.token.remove(queue);
        let of = |d: &usize| self.dispatches[*d].queue == queue;
        for d in self
            .unreported
            .iter()
            .copied()
            .filter(of)
            .collect::<Vec<_>>()
        {
            self.resolve(d);
        }
    }

    /// A barrier's signal, which was at `before`, is stored to.
    pub(crate) fn barrier_stored(&mut self, signal: Signal, before: i64, value: i64) -> Checked {
        ensure((before, value) == (1, 0), Rule::Clears, || {
            format!("{value} was stored to {signal:?}, which was {before}")
        })?;
        self.stores += 1;
        let at = self.periods.iter().position(|p| p.signal == Some(signal));
        if let Some(at) = at {
            let period = &self.periods[at];
            let is_forced = period.forced.is_some();
            ensure(is_forced || period.has_cleared(), Rule::Clears, || {
                format!("{signal:?} was cleared before {:?}", period.counted)
            })?;
            if is_forced {
                ensure(at > self.latest_forced, Rule::Forces, || {
                    let later = self.latest_forced;
                    format!("the barrier of period {at} was forced after that of {later}")
                })?;
                self.latest_forced = at;
            }
        }
        let (stores, can) = (self.stores, self.cleared() + self.forced);
        ensure(stores <= can, Rule::Clears, || {
            format!("{stores} barriers were cleared; {can} have nothing left to wait for")
        })
    }

    /// How many barriers have cleared by themselves.
    pub(crate) fn cleared(&self) -> u64 {
        self.periods[1..].iter().filter(|p| p.has_cleared()).count() as u64
    }

    /// After a step: every barrier is as it has to be, and the token is where it has to be. For as
    /// long as anything is done about it.
    pub(crate) fn check(&self, table: &Signals) -> Checked {
        if self.stage == Stage::Left {
            return Ok(());
        }
        if self.stage < Stage::Released {
            self.token.check()?;
        }
        for (i, period) in self.periods.iter().enumerate() {
            let value = period.signal.and_then(|s| table.value_of(s));
            let right = i64::from(period.is_armed());
            ensure(
                value.is_none_or(|v| v == right || period.superseded),
                Rule::Clears,
                || format!("the barrier of period {i} is at {value:?}: {period:?}"),
            )?;
            ensure(
                !period.is_armed() || period.signal.is_none() || value.is_some(),
                Rule::DestroyedUnderUse,
                || format!("the barrier of period {i} is armed and has no signal"),
            )?;
        }
        let (stores, right) = (self.stores, self.cleared() + self.forced);
        ensure(stores == right, Rule::Clears, || {
            format!("{stores} barriers were cleared; {right} have nothing left to wait for")
        })
    }

    /// Whether the queue may not have executed its packet for that period's barrier.
    pub(crate) fn is_tagged(&self, queue: usize, period: usize) -> bool {
        let q = &self.queues[queue];
        let mut tags = q.tags.iter();
        tags.any(|&(p, number)| p == period && q.completed <= number)
    }

    pub(crate) fn tags(&self, period: usize) -> usize {
        let queues = 0..self.queues.len();
        queues.filter(|&q| self.is_tagged(q, period)).count()
    }

    /// Whether that period's barrier was cleared by force and queues have yet to reach the counts
    /// that it waited for.
    pub(crate) fn stands_forced(&self, period: usize) -> bool {
        let p = &self.periods[period];
        let behind = |&(q, until): &(usize, u64)| {
            let queue = &self.queues[q];
            !queue.removed && queue.completed < until
        };
        p.forced.is_some() && p.targets.iter().any(behind)
    }

    /// Periods whose barrier has not ended or may still be referred to.
    pub(crate) fn needed_barriers(&self) -> u64 {
        let armed = |i: usize| self.periods[i].is_armed() || self.stands_forced(i);
        let needed = |&i: &usize| armed(i) || self.tags(i) > 0;
        (1..self.periods.len()).filter(needed).count() as u64
    }

    /// The most barriers that the design allows: one more than periods with a dispatch in flight,
    /// those whose dispatchers have all been removed since, and those that were cleared by force
    /// and wait for the end of what they counted.
    pub(crate) fn allowed_barriers(&self) -> u64 {
        let in_flight: BTreeSet<_> = self
            .unreported
            .iter()
            .map(|&d| self.dispatches[d].period)
            .collect();
        let stranded = |&i: &usize| {
            let p = &self.periods[i];
            let removed = !p.counted.is_empty() && p.users.iter().any(|&q| self.queues[q].removed);
            removed || self.stands_forced(i)
        };
        let stranded = (1..self.periods.len()).filter(stranded).count();
        (1 + in_flight.len() + stranded) as u64
    }

    /// A dispatch, for people.
    pub(crate) fn name(&self, dispatch: usize) -> String {
        let d = self.dispatches[dispatch];
        format!(
            "dispatch {dispatch} (number {} of queue {}, period {}{}{})",
            d.number,
            d.queue,
            d.period,
            if d.serialized { ", serialized" } else { "" },
            if d.overtaken { ", overtaken" } else { "" }
        )
    }

    /// Who has not been reported, for people.
    pub(crate) fn describe(&self) -> String {
        let mut text = format!("\n    {:?}, {:?}", self.stage, self.token);
        for &d in &self.unreported {
            text += &format!("\n    not reported: {}", self.name(d));
        }
        for (i, p) in self
            .periods
            .iter()
            .enumerate()
            .filter(|(_, p)| !p.counted.is_empty())
        {
            text += &format!("\n    period {i} waits for {:?}", p.counted);
        }
        text
    }
}
