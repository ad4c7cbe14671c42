//! Who waits for whom.

use super::{BarrierState, Snapshot};
use crate::queue::QueueId;
use crate::stall::QueueActivity;
use std::fmt;

/// Who waits, or is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Party {
    /// A queue.
    Queue(QueueId),
    /// The barrier of that transition epoch.
    Barrier(u32),
}

/// That somebody waits for somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wait {
    /// Who waits.
    pub who: Party,
    /// For whom.
    pub whom: Party,
}

impl Snapshot {
    /// Who waits for whom.
    #[must_use]
    pub fn waits(&self) -> Vec<Wait> {
        let mut waits = Vec::new();
        let mut add = |who, whom| waits.push(Wait { who, whom });
        for queue in &self.queues {
            let who = Party::Queue(queue.queue);
            match queue.activity {
                QueueActivity::WaitsForToken => {
                    for holder in self.holders() {
                        add(who, Party::Queue(holder.queue));
                    }
                }
                QueueActivity::WaitsForBarrier(epoch) => add(who, Party::Barrier(epoch)),
                _ => {}
            }
        }
        for barrier in &self.barriers {
            if barrier.state == BarrierState::Armed {
                for wait in &barrier.waits_for {
                    add(Party::Barrier(barrier.epoch), Party::Queue(wait.queue));
                }
            }
        }
        waits
    }

    /// Those whom others wait for and who wait for nobody, each with all that wait for it in the end: the
    /// nearest first.
    #[must_use]
    pub fn roots(&self) -> Vec<(Party, Vec<Party>)> {
        let waits = self.waits();
        let mut roots: Vec<Party> = waits.iter().map(|wait| wait.whom).collect();
        roots.retain(|party| waits.iter().all(|wait| wait.who != *party));
        roots.sort_unstable();
        roots.dedup();
        let behind = |root: &Party| {
            let mut behind = vec![*root];
            let mut next = 0;
            while let Some(whom) = behind.get(next).copied() {
                let who = waits.iter().filter(|wait| wait.whom == whom);
                for wait in who {
                    if !behind.contains(&wait.who) {
                        behind.push(wait.who);
                    }
                }
                next += 1;
            }
            behind.remove(0);
            behind
        };
        roots.iter().map(|root| (*root, behind(root))).collect()
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(queue) => queue.fmt(f),
            Self::Barrier(epoch) => write!(f, "barrier {epoch}"),
        }
    }
}
