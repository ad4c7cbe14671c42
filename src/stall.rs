//! Stalls: programs that serialization itself deadlocks, noticed, named and released.
//!
//! # Which programs
//! - *A kernel that waits for another one that was not granted.* It spins until memory is written by
//!   a kernel that waits for the token, which the spinning one holds.
//! - *At a transition, a drain or a cut, a kernel in flight that waits for one behind the transition
//!   packet.* The barrier waits for the first, the second waits for the barrier.
//! - *The same through something that takes its work in order*, a copy engine for one:
//!   [`docs::integrating`](crate::docs::integrating) has the circle that HIP programs can make.
//!
//! Such a program hangs under every serializer. Here the host asks from time to time
//! ([`StallWatch::check_stalls`]), from a thread of its own: what has stood still for longer than it
//! allows is named, with what it waits for and who waits for it, and, where it wants that, released.
//!
//! # What is progress
//! | of | progress is |
//! |---|---|
//! | an armed barrier | a completion of a queue that it waits for |
//! | the holder of the token | the end of its grant |
//!
//! # Releasing
//! One thing at a time, then everybody's time starts anew: what was waiting may go on by itself.
//! - *The holder first*, if it stalls: its grant becomes Overrun and the token goes to the next ready
//!   queue. Overtaking names the grant by its number, so it can't hit a later one of the same queue.
//!   The overtaken kernel's own completion makes its queue idle and releases nothing.
//! - *Else the oldest stalled barrier*, and before it every older one that is armed: an older one
//!   would otherwise clear later, by completions of work that it was never about, and let through
//!   what the newer one had held back with it. A forced barrier stays in the list until its gate has
//!   opened and its tags have drained, so its signal lives as long as any other's.
//!
//! Nothing is released that holds back nobody: a long kernel by itself is named, and left alone.
//!
//! Each release is a loss of exclusiveness and is counted
//! ([`forced`](crate::Statistics::forced), [`overtaken`](crate::Statistics::overtaken)): kernels may
//! have run side by side that should not have. Nothing else is lost: counts stay what they were, so
//! the next transition counts exactly who is in flight then, overtaken kernels among them.

use crate::event::Event;
use crate::handle::Handle;
use crate::look::{Look, QueueLook};
use crate::queue::QueueId;
use crate::runtime::Runtime;
use crate::serializer::Serializer;
use crate::shared::{Aftermath, Shared, Stage};
use crate::sync::{Step, stands};
use crate::token::Phase;
use crossbeam_epoch::Guard;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// What to do about a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StallPolicy {
    /// Name it.
    Report,
    /// Name it and let go what it holds back, at the price of exclusiveness.
    Release,
}

/// What a queue is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueActivity {
    /// Nothing of the serializer's holds it back: it runs, or waits for something of its own.
    Running,
    /// Its next kernel waits for the token.
    WaitsForToken,
    /// Its next kernel has the token.
    HoldsToken,
    /// Its kernel was overtaken, and may still run.
    Overtaken,
    /// Its next kernel waits for the barrier of this transition epoch.
    WaitsForBarrier(u32),
}

/// A queue that something waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueWait {
    /// The queue.
    pub queue: QueueId,
    /// How many of its dispatches have completed.
    pub completed: u64,
    /// How many have to.
    pub until: u64,
    /// What it is doing.
    pub activity: QueueActivity,
}

/// What stands still.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stalled {
    /// An armed barrier.
    Barrier {
        /// Its transition epoch.
        epoch: u32,
        /// What it waits for.
        waits_for: Vec<QueueWait>,
        /// What waits for it: queues, and the number of the dispatch behind its packet.
        holds_back: Vec<(QueueId, u64)>,
    },
    /// The holder of the token.
    Holder {
        /// Its queue.
        queue: QueueId,
        /// The number of its dispatch, as far as completions tell: where a queue's kernels run side by
        /// side, as after a forced release, it can be another one of them.
        dispatch: u64,
        /// Queues that wait for the token.
        waiting: Vec<QueueId>,
    },
}

/// Something that stands still, and what was done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stall {
    /// What.
    pub what: Stalled,
    /// For how long.
    pub lasted: Duration,
    /// Whether it was released.
    pub released: bool,
}

/// Looks for stalls of one serializer. Made by [`Serializer::watch_stalls`]; it keeps the serializer
/// alive.
pub struct StallWatch<R: Runtime> {
    shared: Handle<R>,
    after: Duration,
    policy: StallPolicy,
    seen: Vec<Seen>,
}

/// What could stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Barrier(u32),
    Grant(QueueId, u32),
}

/// How far it was when, last time it moved.
#[derive(Debug)]
struct Seen {
    key: Key,
    progress: (usize, u64),
    at: Duration,
}

impl<R: Runtime> Serializer<R> {
    /// To look for what stands still for longer than `after`: longer than any kernel of the
    /// application takes from one completion to the next, or healthy ones pass for stalls.
    ///
    /// Each call of [`check_stalls`](StallWatch::check_stalls) names what still stands still again. A
    /// handler thread of the runtime's that hangs is not seen by this: without it nobody asks for the
    /// token, and nobody is known to have got anywhere.
    #[must_use]
    pub fn watch_stalls(&self, after: Duration, policy: StallPolicy) -> StallWatch<R> {
        StallWatch {
            shared: self.shared.clone(),
            after,
            policy,
            seen: Vec::new(),
        }
    }
}

impl<R: Runtime> StallWatch<R> {
    /// What has stood still for longer than was allowed, as of `now` (on any clock that only goes
    /// on). The first call starts the time. Where the process may be stopped (by SIGSTOP, by a debugger),
    /// leave out of `now` what lies between two calls that came too far apart: healthy kernels got nowhere then.
    ///
    /// It takes the transition lock for a moment, and allocates: it is for a thread of the host's
    /// own, or a timer's, and not for an interceptor or a handler.
    pub fn check_stalls(&mut self, now: Duration) -> Vec<Stall> {
        if self.shared.stage() >= Stage::Released {
            // Nothing of ours holds anybody any more; or everything was left, and nobody can let it go.
            return Vec::new();
        }
        let look = self.shared.look();
        self.remember(&look, now);
        let mut stalls: Vec<_> = self
            .seen
            .iter()
            .filter_map(|seen| {
                let lasted = now.saturating_sub(seen.at);
                let what = describe(&look, seen.key)?;
                (lasted >= self.after).then_some((
                    seen.key,
                    Stall {
                        what,
                        lasted,
                        released: false,
                    },
                ))
            })
            .collect();
        if self.policy == StallPolicy::Release {
            // The holder comes first, then the barriers, oldest first.
            if !stands(Step::ForceOlderFirst) {
                stalls.reverse();
            }
            for (key, stall) in &mut stalls {
                if !stall.what.holds_back_anybody() {
                    continue;
                }
                stall.released = self.shared.let_through(*key);
                if stall.released {
                    self.seen.iter_mut().for_each(|seen| seen.at = now);
                    break;
                }
            }
        }
        stalls.into_iter().map(|(_, stall)| stall).collect()
    }

    /// Notes who has moved since last time: the token's holder first, then the armed barriers.
    fn remember(&mut self, look: &Look, now: Duration) {
        let holders = look.queues.iter().filter(|q| q.phase == Phase::Granted);
        let holders = holders.map(|q| (Key::Grant(q.id, q.grant), (0, 0)));
        let armed = look.barriers.iter().filter(|b| b.armed);
        let barriers = armed.map(|b| {
            let waited = look.queues.iter().filter(|q| target(q, b.epoch).is_some());
            // One that gets there is counted no more: that alone is progress.
            let left = waited.clone().count();
            (
                Key::Barrier(b.epoch),
                (left, waited.map(|q| q.completed).sum()),
            )
        });
        let seen = holders.chain(barriers).map(|(key, progress)| {
            let before = self.seen.iter().find(|seen| seen.key == key);
            let same = before.filter(|seen| seen.progress == progress);
            Seen {
                key,
                progress,
                at: same.map_or(now, |seen| seen.at),
            }
        });
        self.seen = seen.collect();
    }
}

impl Stalled {
    fn holds_back_anybody(&self) -> bool {
        match self {
            Self::Barrier { holds_back, .. } => !holds_back.is_empty(),
            Self::Holder { waiting, .. } => !waiting.is_empty(),
        }
    }
}

fn target(queue: &QueueLook, epoch: u32) -> Option<u64> {
    let marks = queue.targets.iter();
    marks.copied().find(|m| m.1 == epoch).map(|(due, _)| due)
}

pub(crate) fn activity(look: &Look, queue: &QueueLook) -> QueueActivity {
    match queue.phase {
        Phase::Waiting => return QueueActivity::WaitsForToken,
        Phase::Granted => return QueueActivity::HoldsToken,
        Phase::Overrun => return QueueActivity::Overtaken,
        Phase::Idle | Phase::Removed | Phase::Vacant => {}
    }
    // All that came before its packet has completed, so that is what it has got to.
    let armed = |epoch| look.barriers.iter().any(|b| b.epoch == epoch && b.armed);
    let waits = queue
        .tags
        .iter()
        .find(|(due, epoch)| queue.completed + 1 >= *due && armed(*epoch));
    waits.map_or(QueueActivity::Running, |(_, epoch)| {
        QueueActivity::WaitsForBarrier(*epoch)
    })
}

/// Whom the barrier of that epoch waits for.
pub(crate) fn waited_for(look: &Look, epoch: u32) -> Vec<QueueWait> {
    let waits = look.queues.iter().filter_map(|queue| {
        Some(QueueWait {
            queue: queue.id,
            completed: queue.completed,
            until: target(queue, epoch)?,
            activity: activity(look, queue),
        })
    });
    waits.collect()
}

/// Queues that carry the packet of that epoch's barrier, and the number of the dispatch behind it.
pub(crate) fn held_back(look: &Look, epoch: u32) -> Vec<(QueueId, u64)> {
    let carries = |queue: &QueueLook| {
        let tags = queue.tags.iter();
        tags.copied().find(|tag| tag.1 == epoch).map(|(due, _)| due)
    };
    let held = look.queues.iter();
    held.filter_map(|queue| Some((queue.id, carries(queue)? - 1)))
        .collect()
}

fn describe(look: &Look, key: Key) -> Option<Stalled> {
    match key {
        Key::Barrier(epoch) => Some(Stalled::Barrier {
            epoch,
            waits_for: waited_for(look, epoch),
            holds_back: held_back(look, epoch),
        }),
        Key::Grant(id, _) => {
            let queue = look.queues.iter().find(|queue| queue.id == id)?;
            let waiting = look.queues.iter().filter(|q| q.phase == Phase::Waiting);
            Some(Stalled::Holder {
                queue: id,
                dispatch: queue.completed,
                waiting: waiting.map(|queue| queue.id).collect(),
            })
        }
    }
}

impl<R: Runtime> Shared<R> {
    /// Lets go what that thing holds back. False where it has moved meanwhile.
    fn let_through(self: &Arc<Self>, key: Key) -> bool {
        let mut after = Aftermath::new();
        let guard = self.domain.pin();
        let done = match key {
            Key::Grant(id, number) => self.overtake(id, number, &guard, &mut after),
            Key::Barrier(epoch) => self.force_one(epoch, &guard, &mut after),
        };
        after.finish(guard, self);
        done
    }

    /// Releases the token on behalf of the queue that holds it by that grant.
    pub(crate) fn overtake(
        self: &Arc<Self>,
        id: QueueId,
        grant: u32,
        guard: &Guard,
        after: &mut Aftermath,
    ) -> bool {
        let Some(cell) = self.cell(id) else {
            return false;
        };
        if cell.progress().generation() != id.generation() || !cell.seat().overtake(grant) {
            return false;
        }
        self.counters.overtaken.add(1);
        self.record(Event::Overtaken(id));
        if self.token.release() {
            self.grant(true, guard, after);
        }
        true
    }

    /// Clears by force the barrier of that epoch, and before it every older one that is armed. False,
    /// and nobody is forced, where that one has ended.
    pub(crate) fn force_one(&self, epoch: u32, guard: &Guard, after: &mut Aftermath) -> bool {
        // Under the transition lock: a transition that superseded it in between would hold back all that
        // it held, and the older ones would have been forced for nothing. (Where it clears in between,
        // they are as good as cleared: it counted all that they count.)
        let alone = if stands(Step::ForceUnderLock) {
            let Some(lock) = self.lock() else {
                return false;
            };
            Some(lock)
        } else {
            None
        };
        let forced = self.force(Some(epoch), guard, after);
        drop(alone);
        forced
    }

    /// Clears by force every armed barrier up to that of the epoch `last`, oldest first, or all. Whether
    /// it cleared the last of them.
    pub(crate) fn force(&self, last: Option<u32>, guard: &Guard, after: &mut Aftermath) -> bool {
        // First who is to be forced, in one walk: were they forced while it goes on, it would go past
        // the place of one that ends meanwhile, to barriers that have done nothing.
        let mut armed = Vec::new();
        let found = self.barriers.find(|barrier| {
            let is_last = last == Some(barrier.epoch);
            if barrier.life().is_armed() && (is_last || stands(Step::ForceOlderFirst)) {
                armed.push(NonNull::from(barrier));
            }
            is_last
        });
        if last.is_some() && (found.is_none() || found != armed.last().copied()) {
            return false;
        }
        let (mut forced, mut was_last) = (0, false);
        for barrier in armed {
            // SAFETY: it was in the list under the caller's pin, which goes on.
            let barrier = unsafe { barrier.as_ref() };
            was_last = barrier.force(&mut after.ended);
            if was_last {
                forced += 1;
                self.ended(barrier, |epoch| Event::Forced { epoch });
                self.store(guard, barrier.signal, 0);
            }
        }
        self.counters.forced.add(forced);
        was_last
    }
}

impl fmt::Display for QueueWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            queue,
            completed,
            until,
            ..
        } = self;
        write!(
            f,
            "{queue} ({completed} of {until} dispatches completed), which "
        )?;
        match self.activity {
            QueueActivity::Running => f.write_str("runs, or waits for something of its own"),
            QueueActivity::WaitsForToken => f.write_str("waits for the token"),
            QueueActivity::HoldsToken => f.write_str("holds the token"),
            QueueActivity::Overtaken => f.write_str("was overtaken, and may still run"),
            QueueActivity::WaitsForBarrier(epoch) => {
                write!(f, "waits for the barrier of epoch {epoch}")
            }
        }
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            Stalled::Barrier {
                epoch,
                waits_for,
                holds_back,
            } => {
                write!(f, "the barrier of epoch {epoch} waits")?;
                for wait in waits_for {
                    write!(f, "\n  for {wait}")?;
                }
                for (queue, dispatch) in holds_back {
                    write!(f, "\n  and holds back {queue} from dispatch {dispatch} on")?;
                }
            }
            Stalled::Holder {
                queue,
                dispatch,
                waiting,
            } => {
                write!(
                    f,
                    "{queue} holds the token with dispatch {dispatch} (it is its turn to run), which has not ended"
                )?;
                for queue in waiting {
                    write!(f, "\n  and {queue} waits for it")?;
                }
            }
        }
        let done = if self.released {
            "released, kernels may run side by side"
        } else {
            "not released"
        };
        write!(f, "\n  for {:.1?} now: {done}", self.lasted)
    }
}

impl<R: Runtime> fmt::Debug for StallWatch<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StallWatch")
            .field("after", &self.after)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
