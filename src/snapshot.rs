//! Snapshots: who waits for whom, as plain data, at any moment.
//!
//! # What it costs, and what it may meet
//! A snapshot takes no lock and waits for nobody: it pins the epoch, walks the cells and the list of
//! barriers, and reads. (Of the transition lock it tries whether somebody holds it, to say so.) Everything
//! goes on meanwhile, so each number is right for itself, and two of them may be of different moments: a
//! queue that waits for a barrier which has cleared since, or for a token that nobody holds because its
//! grant is on the way. Take another one where it matters. What the pin finds to be reclaimed is left to
//! others, so nothing of the runtime's is called but its clock, also where the process hangs inside of it.
//! It allocates.
//!
//! # The graph
//! | who | waits for | because |
//! |---|---|---|
//! | a queue | another queue | its next kernel is ready, and the other one has the token |
//! | a queue | a barrier | its next kernel is of a new mode |
//! | a barrier | a queue | that has kernels of the old mode in flight |
//!
//! Whoever is waited for and waits for nobody of these is a *root*: a queue whose kernel runs, or waits for
//! something that is none of the serializer's business. When nothing moves, the cause is at the roots.

mod graph;
mod text;

pub use graph::{Party, Wait};

use crate::barrier::Life;
use crate::event::Event;
use crate::insight::Insight;
use crate::look::{BarrierLook, Look, QueueLook};
use crate::queue::{Mode, QueueId};
use crate::runtime::Runtime;
use crate::serializer::Serializer;
use crate::shared::{Shared, Stage};
use crate::stall::{QueueActivity, QueueWait, activity, held_back, waited_for};
use crate::statistics::Statistics;
use crate::sync::statistic::Ordering;
use hsa_sys::hsa_signal_t;
use std::time::Duration;

/// A serializer at one moment, as plain data. As text ([`Display`](std::fmt::Display)) it says what a
/// reader needs who knows nothing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The serializer's number, from 1, in the order in which the process made them.
    pub serializer: u32,
    /// The agent's handle, where the host has said it.
    pub agent: Option<u64>,
    /// When it was taken, by [`Runtime::now`](crate::Runtime::now).
    pub taken: Duration,
    /// How kernels that are dispatched now run.
    pub mode: Mode,
    /// For how long the mode has been that; since the serializer was made, if it never changed.
    pub mode_for: Duration,
    /// The transition epoch.
    pub epoch: u32,
    /// Whether it has ended, and how.
    pub end: EndState,
    /// Requests of this serializer that live.
    pub requests: u64,
    /// Requests of all agents of its group that live.
    pub requests_of_all: u64,
    /// Somebody held the transition lock: a transition, or another call that takes it, was under way.
    pub in_transition: bool,
    /// The queues that are alive.
    pub queues: Vec<QueueView>,
    /// The barriers that are in the list, oldest first.
    pub barriers: Vec<BarrierView>,
    /// What it has done so far.
    pub statistics: Statistics,
    /// What has happened lately, oldest first.
    pub recent: Vec<Record>,
    /// Events that the recorder lost.
    pub records_lost: u64,
}

/// How far a serializer's end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndState {
    /// It has not begun.
    Open,
    /// Dispatches are turned away; what was queued goes on.
    ShuttingDown,
    /// Everything was let through.
    LetThrough,
    /// It has ended, and destroyed everything.
    Finished,
    /// It was left as it was.
    Left,
}

/// A queue at one moment. Its dispatches are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueView {
    /// The queue.
    pub queue: QueueId,
    /// How many of its dispatches were counted.
    pub dispatched: u64,
    /// How many of them have completed.
    pub completed: u64,
    /// What it is doing.
    pub activity: QueueActivity,
    /// For how long it has waited for the token, or has held it.
    pub lasts: Option<Duration>,
    /// Transition packets that it carries and that may not have executed: the barrier's epoch, and the
    /// number of the dispatch behind the packet.
    pub tags: Vec<(u32, u64)>,
}

impl QueueView {
    /// Dispatches that have not completed.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.dispatched.saturating_sub(self.completed)
    }
}

/// What a barrier is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BarrierState {
    /// What it holds back waits.
    Armed,
    /// It lets everything through, but a packet of it may not have executed.
    Cleared,
    /// The same, before its time.
    Forced,
    /// The next barrier does its work.
    Superseded,
}

/// A barrier at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BarrierView {
    /// Its transition epoch.
    pub epoch: u32,
    /// Its signal's handle.
    pub signal: hsa_signal_t,
    /// Its state.
    pub state: BarrierState,
    /// For how long it has been there.
    pub age: Duration,
    /// Queues that carry its packet, which may not have executed.
    pub tags: u32,
    /// Queues that it waits for.
    pub waits_for: Vec<QueueWait>,
    /// Queues that carry its packet, and the number of the dispatch behind it.
    pub holds_back: Vec<(QueueId, u64)>,
}

/// Something that has happened, and when, by [`Runtime::now`](crate::Runtime::now).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// When.
    pub at: Duration,
    /// What.
    pub event: Event,
}

impl Snapshot {
    /// The queue whose kernel has the token. Several for a moment, while it is handed on.
    pub fn holders(&self) -> impl Iterator<Item = &QueueView> {
        let holds = |queue: &&QueueView| queue.activity == QueueActivity::HoldsToken;
        self.queues.iter().filter(holds)
    }

    /// The queues that wait for the token, who has waited longest first.
    #[must_use]
    pub fn waiting(&self) -> Vec<&QueueView> {
        let waits = |queue: &&QueueView| queue.activity == QueueActivity::WaitsForToken;
        let mut waiting: Vec<_> = self.queues.iter().filter(waits).collect();
        waiting.sort_by_key(|queue| std::cmp::Reverse(queue.lasts));
        waiting
    }
}

impl<R: Runtime> Serializer<R> {
    /// Who waits for whom, and all else that is to be known of it, at this moment.
    ///
    /// It takes no lock, waits for nobody and calls nothing of the runtime's but its clock. It may be
    /// called on any thread, also where everything hangs; but not within a [`Runtime`] method, nor in a
    /// POSIX signal handler, since it allocates.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }
}

impl<R: Runtime> Shared<R> {
    pub(crate) fn snapshot(&self) -> Snapshot {
        let pin = self.domain.pin_quietly();
        let look = self.look_at(self.living_queues(), pin.guard());
        drop(pin);
        // After the look: nothing in it is later.
        let now = self.now();
        let epoch = self.epoch.load(Ordering::Relaxed);
        let (requests, requests_of_all) = self.insight.requests.count();
        let member = self.insight.requests.member.get();
        Snapshot {
            serializer: self.instance,
            agent: self.insight.agent.or(member.map(|member| member.agent)),
            taken: Duration::from_nanos(now),
            mode: Mode::of_epoch(epoch),
            mode_for: since(now, self.insight.turned.load(Ordering::Relaxed)),
            epoch,
            end: self.end_state(),
            requests,
            requests_of_all,
            in_transition: self.in_transition(),
            queues: look.queues.iter().map(|q| queue(&look, q, now)).collect(),
            barriers: look
                .barriers
                .iter()
                .map(|b| barrier(&look, b, now))
                .collect(),
            statistics: self.statistics_of(self.totals_of(self.living_queues())),
            recent: self.insight.recent(),
            records_lost: self.insight.records_lost(),
        }
    }

    fn end_state(&self) -> EndState {
        match self.stage() {
            Stage::Open => EndState::Open,
            Stage::Closing => EndState::ShuttingDown,
            Stage::Released => EndState::LetThrough,
            Stage::Finishing | Stage::Finished => EndState::Finished,
            Stage::Left => EndState::Left,
        }
    }
}

impl Insight {
    fn recent(&self) -> Vec<Record> {
        let record = |[at, kind, name, more]: [u64; 4]| {
            Some(Record {
                at: Duration::from_nanos(at),
                event: Event::from_words([kind, name, more])?,
            })
        };
        self.records().into_iter().filter_map(record).collect()
    }
}

fn since(now: u64, then: u64) -> Duration {
    Duration::from_nanos(now.saturating_sub(then))
}

fn queue(look: &Look, queue: &QueueLook, now: u64) -> QueueView {
    let activity = activity(look, queue);
    let timed = matches!(
        activity,
        QueueActivity::WaitsForToken | QueueActivity::HoldsToken
    );
    QueueView {
        queue: queue.id,
        dispatched: queue.dispatched,
        completed: queue.completed,
        activity,
        lasts: queue.since.filter(|_| timed).map(|then| since(now, then)),
        tags: queue.tags.iter().map(|(due, e)| (*e, due - 1)).collect(),
    }
}

fn barrier(look: &Look, barrier: &BarrierLook, now: u64) -> BarrierView {
    BarrierView {
        epoch: barrier.epoch,
        signal: barrier.signal,
        state: state(barrier.life),
        age: since(now, barrier.made),
        tags: barrier.life.tags(),
        waits_for: waited_for(look, barrier.epoch),
        holds_back: held_back(look, barrier.epoch),
    }
}

fn state(life: Life) -> BarrierState {
    if life.is_armed() {
        BarrierState::Armed
    } else if life.is_superseded() {
        BarrierState::Superseded
    } else if life.is_forced() {
        BarrierState::Forced
    } else {
        BarrierState::Cleared
    }
}
