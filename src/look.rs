//! A look at everything at one moment: queues, barriers, the token, and who waits for whom.
//!
//! It is taken under an epoch pin, so it sees each barrier that it names alive. Dispatches, completions
//! and handlers go on meanwhile: each number is right for itself. Who acts on it takes the transition lock
//! as well, so that no transition is half seen; who only shows it ([`snapshot`](crate::snapshot)) does
//! without, and finds the queues by their cells.

use crate::barrier::{Barrier, Life};
use crate::pending::Pending;
use crate::queue::QueueId;
use crate::runtime::Runtime;
use crate::shared::Shared;
use crate::token::Phase;
use crossbeam_epoch::Guard;
use hsa_sys::hsa_signal_t;
use std::sync::Arc;

/// A count and the epoch of the barrier that waits for it, or that a queue waits for from there on.
pub(crate) type Mark = (u64, u32);

/// A queue, at one moment.
#[derive(Debug)]
pub(crate) struct QueueLook {
    pub(crate) id: QueueId,
    pub(crate) dispatched: u64,
    pub(crate) completed: u64,
    pub(crate) phase: Phase,
    pub(crate) grant: u32,
    /// Since when it has been in that phase, if it waits for the token or holds it.
    pub(crate) since: Option<u64>,
    /// Barriers that wait until so many of its dispatches have completed.
    pub(crate) targets: Vec<Mark>,
    /// Barriers whose packet it carries, which has executed for certain when so many have completed.
    pub(crate) tags: Vec<Mark>,
}

/// A barrier, at one moment.
#[derive(Debug)]
pub(crate) struct BarrierLook {
    pub(crate) epoch: u32,
    pub(crate) armed: bool,
    pub(crate) life: Life,
    pub(crate) signal: hsa_signal_t,
    /// When it was made.
    pub(crate) made: u64,
}

/// Everything, at one moment.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) queues: Vec<QueueLook>,
    /// Oldest first.
    pub(crate) barriers: Vec<BarrierLook>,
}

/// The entries, with counts that start where the queue's own do.
fn marks(pending: &Pending<Barrier>, start: u64, near: u64, guard: &Guard) -> Vec<Mark> {
    let mut marks = Vec::new();
    pending.for_each(near, guard, |due, barrier| {
        // SAFETY: the entry was pending under this pin, so the barrier is reclaimed after it.
        let epoch = unsafe { barrier.as_ref() }.epoch;
        marks.push((due.wrapping_sub(start), epoch));
    });
    marks
}

impl<R: Runtime> Shared<R> {
    /// Looks at everything, while no transition takes place.
    pub(crate) fn look(self: &Arc<Self>) -> Look {
        // Before the lock: pinning may run what others have deferred.
        let guard = self.domain.pin();
        let t = self.lock();
        let queues = t.iter().flat_map(|t| t.registered());
        self.look_at(queues.map(|(id, _)| id), &guard)
    }

    /// Looks at these queues and all barriers.
    pub(crate) fn look_at(&self, ids: impl Iterator<Item = QueueId>, guard: &Guard) -> Look {
        let queues = ids.filter_map(|id| {
            let cell = self.living(id)?;
            let (dispatched, completed) = self.counts(cell);
            let near = cell.progress().count();
            let state = cell.seat().state();
            Some(QueueLook {
                id,
                dispatched,
                completed,
                phase: state.phase(),
                grant: state.grant(),
                since: cell.seat().since.get(),
                targets: marks(cell.targets(), self.start.count, near, guard),
                tags: marks(&cell.tags, self.start.count, near, guard),
            })
        });
        let queues = queues.collect();
        let barriers = self.barriers.collect(|barrier| {
            let life = barrier.life();
            BarrierLook {
                epoch: barrier.epoch,
                armed: life.is_armed(),
                life,
                signal: barrier.signal,
                made: barrier.made,
            }
        });
        Look { queues, barriers }
    }

    /// The queues that are alive, found without a lock: by their cells.
    pub(crate) fn living_queues(&self) -> impl Iterator<Item = QueueId> {
        let cells = (0..).map_while(|index| Some((index, self.slab.get(index)?)));
        cells.filter_map(|(index, cell)| {
            let progress = cell.progress();
            let generation = progress.generation();
            let id = QueueId::new(self.instance, generation as u32, index);
            progress.is_live(generation).then_some(id)
        })
    }
}
