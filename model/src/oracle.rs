//! The sequential model: what has to hold, in plain lists.
//!
//! Time is divided into *periods* by the transitions; period 0 is that before the first one. A
//! transition's barrier *counts* the dispatches that are in flight when it happens: dispatched
//! before and not reported complete, on queues that have not been removed.

use crate::signals::{Signal, Signals};
use crate::token::Token;
use crate::violation::{Checked, Rule, ensure};
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// The serializer was told that it is gone.
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
}

#[derive(Debug, Default)]
pub(crate) struct Period {
    pub(crate) enabled: bool,
    /// Counted dispatches that still have to be reported.
    pub(crate) counted: BTreeSet<usize>,
    /// How many queues it counted.
    pub(crate) queues: usize,
    /// Its barrier's signal, once that is known.
    pub(crate) signal: Option<Signal>,
    pub(crate) superseded: bool,
    /// Queues that dispatched in it.
    users: BTreeSet<usize>,
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
    serializes: bool,
    pub(crate) queues: Vec<Queue>,
    pub(crate) dispatches: Vec<Dispatch>,
    pub(crate) periods: Vec<Period>,
    pub(crate) token: Token,
    pub(crate) shut_down: bool,
    pub(crate) clears: u64,
    running: BTreeSet<usize>,
    /// Serialized dispatches that were let go and have not been reported.
    alone: BTreeSet<usize>,
    unreported: BTreeSet<usize>,
}

impl Model {
    pub(crate) fn new(serializes: bool) -> Self {
        Self {
            serializes,
            queues: Vec::new(),
            dispatches: Vec::new(),
            periods: vec![Period::default()],
            token: Token::default(),
            shut_down: false,
            clears: 0,
            running: BTreeSet::new(),
            alone: BTreeSet::new(),
            unreported: BTreeSet::new(),
        }
    }

    pub(crate) fn now(&self) -> usize {
        self.periods.len() - 1
    }

    pub(crate) fn enabled(&self) -> bool {
        self.periods[self.now()].enabled
    }

    pub(crate) fn in_flight(&self, queue: usize) -> usize {
        let of = |&&d: &&usize| self.dispatches[d].queue == queue;
        self.unreported.iter().filter(of).count()
    }

    /// What a dispatch on that live queue has to get now.
    pub(crate) fn due(&self, queue: usize) -> Due {
        let q = &self.queues[queue];
        let period = &self.periods[self.now()];
        Due {
            tag: !period.counted.is_empty() && q.latest != Some(self.now()),
            serialized: self.serializes && period.enabled,
            number: q.dispatched,
        }
    }

    /// A dispatch on that live queue got what was due, and this packet's signal if it got one.
    pub(crate) fn dispatch(&mut self, queue: usize, signal: Option<Signal>) -> Checked<usize> {
        let due = self.due(queue);
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
        });
        let d = self.dispatches.len() - 1;
        self.unreported.insert(d);
        Ok(d)
    }

    /// A transition is about to happen.
    pub(crate) fn begin(&mut self, enabled: bool) {
        let now = self.now();
        let live = |q: &usize| !self.queues[*q].removed;
        let ending = &self.periods[now];
        let superseded = now > 0 && !ending.counted.is_empty() && !ending.users.iter().any(live);
        self.periods[now].superseded = superseded;
        let counted = self.unreported.clone();
        let queues: BTreeSet<_> = counted.iter().map(|&d| self.dispatches[d].queue).collect();
        self.periods.push(Period {
            enabled,
            counted,
            queues: queues.len(),
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
        if serialized {
            self.token.release(queue);
        }
        true
    }

    /// The serializer is about to be told that a queue is gone.
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

    /// Kernels that the GPU drops with their queue.
    pub(crate) fn dropped(&mut self, dispatches: &[usize]) {
        for d in dispatches {
            self.running.remove(d);
        }
    }

    /// The GPU goes behind a dispatch's grant gate.
    pub(crate) fn passed(&mut self, dispatch: usize) -> Checked {
        let other = self.alone.iter().next();
        ensure(other.is_none(), Rule::KernelsOverlap, || {
            format!(
                "{} was let go beside {}",
                self.name(dispatch),
                self.name(other.copied().unwrap_or(0))
            )
        })?;
        self.alone.insert(dispatch);
        Ok(())
    }

    /// A kernel starts. True if another one runs.
    pub(crate) fn started(&mut self, dispatch: usize) -> Checked<bool> {
        let period = self.dispatches[dispatch].period;
        for &other in &self.running {
            let other_period = self.dispatches[other].period;
            let beside = || {
                format!(
                    "{} started beside {}",
                    self.name(dispatch),
                    self.name(other)
                )
            };
            ensure(other_period == period, Rule::ModesOverlap, beside)?;
            ensure(
                !self.dispatches[dispatch].serialized,
                Rule::KernelsOverlap,
                beside,
            )?;
        }
        let earlier = |&&d: &&usize| self.dispatches[d].period < period;
        let early = self.unreported.iter().find(earlier);
        ensure(early.is_none(), Rule::ModesOverlap, || {
            let early = early.copied().unwrap_or(0);
            format!(
                "{} started before {} was reported",
                self.name(dispatch),
                self.name(early)
            )
        })?;
        self.running.insert(dispatch);
        Ok(self.running.len() > 1)
    }

    pub(crate) fn ended(&mut self, dispatch: usize) {
        self.running.remove(&dispatch);
    }

    /// A barrier's signal, which was at `before`, is stored to.
    pub(crate) fn barrier_stored(&mut self, signal: Signal, before: i64, value: i64) -> Checked {
        ensure((before, value) == (1, 0), Rule::Clears, || {
            format!("{value} was stored to {signal:?}, which was {before}")
        })?;
        self.clears += 1;
        let period = self.periods.iter().find(|p| p.signal == Some(signal));
        if let Some(period) = period {
            ensure(
                period.counted.is_empty() && !period.superseded,
                Rule::Clears,
                || format!("{signal:?} was cleared before {:?}", period.counted),
            )?;
        }
        let (clears, can) = (self.clears, self.to_be_cleared());
        ensure(clears <= can, Rule::Clears, || {
            format!("{clears} barriers were cleared; {can} have nothing left to wait for")
        })
    }

    fn to_be_cleared(&self) -> u64 {
        let ended = |p: &&Period| p.counted.is_empty() && !p.superseded;
        self.periods[1..].iter().filter(ended).count() as u64
    }

    /// After a step: every barrier is as it has to be, and the token is where it has to be.
    pub(crate) fn check(&self, table: &Signals) -> Checked {
        self.token.check()?;
        for (i, period) in self.periods.iter().enumerate() {
            let value = period.signal.and_then(|s| table.value_of(s));
            let right = i64::from(!period.counted.is_empty() || period.superseded);
            ensure(
                value.is_none_or(|v| v == right || period.superseded),
                Rule::Clears,
                || format!("the barrier of period {i} is at {value:?}: {period:?}"),
            )?;
            ensure(
                period.counted.is_empty()
                    || period.superseded
                    || period.signal.is_none()
                    || value.is_some(),
                Rule::DestroyedUnderUse,
                || format!("the barrier of period {i} is armed and has no signal"),
            )?;
        }
        let (clears, right) = (self.clears, self.to_be_cleared());
        ensure(clears == right, Rule::Clears, || {
            format!("{clears} barriers were cleared; {right} have nothing left to wait for")
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

    /// Periods whose barrier has not ended or may still be referred to.
    pub(crate) fn needed_barriers(&self) -> u64 {
        let armed = |p: &Period| !p.counted.is_empty() && !p.superseded;
        let needed = |&i: &usize| armed(&self.periods[i]) || self.tags(i) > 0;
        (1..self.periods.len()).filter(needed).count() as u64
    }

    /// The most barriers that the design allows: one more than periods with a dispatch in flight,
    /// and those whose dispatchers have all been removed since.
    pub(crate) fn allowed_barriers(&self) -> u64 {
        let in_flight: BTreeSet<_> = self
            .unreported
            .iter()
            .map(|&d| self.dispatches[d].period)
            .collect();
        let stranded = |&i: &usize| {
            let p = &self.periods[i];
            !p.counted.is_empty() && p.users.iter().any(|&q| self.queues[q].removed)
        };
        let stranded = (1..self.periods.len()).filter(stranded).count();
        (1 + in_flight.len() + stranded) as u64
    }

    /// A dispatch, for people.
    pub(crate) fn name(&self, dispatch: usize) -> String {
        let d = self.dispatches[dispatch];
        format!(
            "dispatch {dispatch} (number {} of queue {}, period {}{})",
            d.number,
            d.queue,
            d.period,
            if d.serialized { ", serialized" } else { "" }
        )
    }

    /// Who has not been reported, for people.
    pub(crate) fn describe(&self) -> String {
        let mut text = format!("\n    {:?}", self.token);
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
