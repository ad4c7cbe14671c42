//! A look at everything at one moment: queues, barriers, the token, and who waits for whom.
//!
//! It is taken under the transition lock and an epoch pin, so it sees each barrier that it names
//! alive. Dispatches, completions and handlers go on meanwhile: each number is right for itself.

use crate::barrier::Barrier;
use crate::pending::Pending;
use crate::queue::QueueId;
use crate::runtime::Runtime;
use crate::shared::Shared;
use crate::token::Phase;
use crossbeam_epoch::Guard;
use std::sync::Arc;

/// A count and the epoch of the barrier that waits for it, or that a queue waits for from there on.
pub(crate) type Mark = (u64, u32);

/// A queue, at one moment.
#[derive(Debug)]
pub(crate) struct QueueLook {
    pub(crate) id: QueueId,
    pub(crate) completed: u64,
    pub(crate) phase: Phase,
    pub(crate) grant: u32,
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
}

/// Everything, at one moment.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) queues: Vec<QueueLook>,
    /// Oldest first.
    pub(crate) barriers: Vec<BarrierLook>,
}

/// The entries, with counts that start where the queue's own do.
fn marks(pending: &Pending<Barrier>, start: u64, guard: &Guard) -> Vec<Mark> {
    let mut marks = Vec::new();
    pending.for_each(guard, |due, barrier| {
        // SAFETY: the entry was pending under this pin, so the barrier is reclaimed after it.
        let epoch = unsafe { barrier.as_ref() }.epoch;
        marks.push((due.wrapping_sub(start), epoch));
    });
    marks
}

impl<R: Runtime> Shared<R> {
    /// Looks at everything.
    pub(crate) fn look(self: &Arc<Self>) -> Look {
        // Before the lock: pinning may run what others have deferred.
        let guard = self.domain.pin();
        let t = self.lock();
        let queues = t
            .iter()
            .flat_map(|t| t.registered())
            .filter_map(|(id, _)| {
                let cell = self.living(id)?;
                let (_, completed) = self.counts(cell);
                let state = cell.seat.state();
                Some(QueueLook {
                    id,
                    completed,
                    phase: state.phase(),
                    grant: state.grant(),
                    targets: marks(cell.targets(), self.start.count, &guard),
                    tags: marks(&cell.tags, self.start.count, &guard),
                })
            })
            .collect();
        let barriers = self.barriers.collect(|barrier| BarrierLook {
            epoch: barrier.epoch,
            armed: barrier.life().is_armed(),
        });
        Look { queues, barriers }
    }
}
