//! What happens, told as it happens to an observer, and kept for a while by the
//! [recorder](crate::recorder).
//!
//! # Where events come from
//! From the slow paths, at the step that they name. An unserialized dispatch or completion with
//! nothing to wait for and nothing due tells nothing. Where a runtime has no observer nothing of it is
//! compiled: [`Runtime::observer`](crate::Runtime::observer) is then the constant `None`.

use crate::queue::{Mode, QueueId};
use hsa_sys::hsa_signal_t;
use std::fmt;
use std::time::Duration;

/// Something that has happened. Barriers are named by their transition epoch.
///
/// # In which order
/// Each step that lets somebody else go on is told before it: a barrier is [made](Self::Made) before
/// a dispatch can find it, a kernel is [granted](Self::Granted) before it can run, the token is
/// [released](Self::Released) before the next one is granted. So of one barrier and of one queue the
/// events come in the order of their lives:
///
/// | of | order |
/// |---|---|
/// | a barrier | Transition, Made, any of (Armed, Tagged, Drained), one of (Cleared, Superseded, Forced), Drained, Retired, Reclaimed |
/// | a queue | QueueAdded, any number of (Ready, Granted, Released or Overtaken), QueueGone |
///
/// One thing can't be told before it is done: that somebody *won* a step which others race for. So
/// Cleared, Superseded and Forced can come a moment after what another thread made of them (Retired, for
/// one), and QueueGone a moment after a Granted that ran beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A transition to that epoch begins. Cuts, drains and gaps are transitions that keep the mode.
    Transition {
        /// The new epoch.
        epoch: u32,
        /// The mode of its dispatches.
        mode: Mode,
    },
    /// A barrier was made.
    Made {
        /// Its epoch.
        epoch: u32,
        /// Its signal.
        signal: hsa_signal_t,
    },
    /// Every queue was looked at: from now on the barrier clears as soon as these have completed.
    Armed {
        /// The barrier's epoch.
        epoch: u32,
        /// How many queues it waits for.
        waits_for: u32,
    },
    /// A dispatch took the barrier's packet along.
    Tagged {
        /// The barrier's epoch.
        epoch: u32,
        /// The dispatch's queue.
        queue: QueueId,
        /// The number of the dispatch behind the packet.
        dispatch: u64,
    },
    /// The queue's packet of the barrier is known to have executed, or never to execute.
    Drained {
        /// The barrier's epoch.
        epoch: u32,
        /// The queue.
        queue: QueueId,
    },
    /// The barrier has cleared: all that it waited for has completed.
    Cleared {
        /// Its epoch.
        epoch: u32,
    },
    /// The barrier gave way to the next one, before anybody waited for it.
    Superseded {
        /// Its epoch.
        epoch: u32,
    },
    /// The barrier was cleared by force: kernels may run side by side that should not.
    Forced {
        /// Its epoch.
        epoch: u32,
    },
    /// The barrier was taken out of the list: nobody can wait for it any more.
    Retired {
        /// Its epoch.
        epoch: u32,
    },
    /// The barrier's signal was destroyed.
    Reclaimed {
        /// Its epoch.
        epoch: u32,
        /// The signal; its handle may be another one's by now.
        signal: hsa_signal_t,
    },
    /// A queue was added.
    QueueAdded(QueueId),
    /// A queue is gone.
    QueueGone(QueueId),
    /// The queue has got to its next serialized kernel, and waits for its turn.
    Ready(QueueId),
    /// The queue's kernel has its turn.
    Granted {
        /// The queue.
        queue: QueueId,
        /// How long it waited for it.
        waited: Duration,
    },
    /// The queue has given its turn back: its kernel has completed, or the queue is gone.
    Released(QueueId),
    /// The queue's turn was taken away, while its kernel may still run.
    Overtaken(QueueId),
    /// Everything was let through.
    LetThrough,
}

/// Who is told of events. See [`Runtime::observer`](crate::Runtime::observer).
///
/// # What it may do
/// It is called by whatever thread takes the step, the runtime's handler threads and the
/// application's dispatching ones among them, under an epoch pin and in some cases under the
/// transition lock. So it must be quick, must not wait, must not panic, and must call nothing of the
/// serializer but [`mode`](crate::Serializer::mode) and [`leave`](crate::Serializer::leave); nor may
/// it call HSA, since an interceptor's or handler's locks may be held. Whoever wants to do more puts
/// the event into a queue, and does it on a thread of his own.
///
/// After the end ([finished](crate::Serializer::finish_shutdown), [left](crate::Serializer::leave), or
/// the child of a fork) it is called no more.
pub trait Observer: Send + Sync {
    /// This has happened, or is about to; [`Event`] says in which order.
    fn event(&self, event: Event);
}

/// An event as the recorder keeps it, beside its time.
pub(crate) type Words = [u64; 3];

impl Event {
    /// What a recorded one consists of. Of the others nothing is kept.
    pub(crate) fn to_words(self) -> Words {
        let of_barrier = |kind, epoch: u32| [kind, u64::from(epoch), 0];
        let of_queue = |kind, queue: QueueId| [kind, queue.to_raw(), 0];
        match self {
            Self::Transition { epoch, .. } => of_barrier(1, epoch),
            Self::Cleared { epoch } => of_barrier(2, epoch),
            Self::Superseded { epoch } => of_barrier(3, epoch),
            Self::Forced { epoch } => of_barrier(4, epoch),
            Self::Retired { epoch } => of_barrier(5, epoch),
            Self::QueueAdded(queue) => of_queue(6, queue),
            Self::QueueGone(queue) => of_queue(7, queue),
            Self::Granted { queue, waited } => [8, queue.to_raw(), nanoseconds(waited)],
            Self::Overtaken(queue) => of_queue(9, queue),
            Self::LetThrough => [10, 0, 0],
            _ => [0; 3],
        }
    }

    /// The event of these words, if they are of one that is recorded.
    pub(crate) fn from_words([kind, name, more]: Words) -> Option<Self> {
        let (epoch, queue) = (name as u32, QueueId::from_raw(name));
        Some(match kind {
            1 => Self::Transition {
                epoch,
                mode: Mode::of_epoch(epoch),
            },
            2 => Self::Cleared { epoch },
            3 => Self::Superseded { epoch },
            4 => Self::Forced { epoch },
            5 => Self::Retired { epoch },
            6 => Self::QueueAdded(queue),
            7 => Self::QueueGone(queue),
            8 => Self::Granted {
                queue,
                waited: Duration::from_nanos(more),
            },
            9 => Self::Overtaken(queue),
            10 => Self::LetThrough,
            _ => return None,
        })
    }
}

/// A time as statistics add it up: 584 years fit.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transition { epoch, mode } => {
                let mode = match mode {
                    Mode::Enabled => "one at a time",
                    Mode::Disabled => "as the application likes",
                };
                write!(f, "transition {epoch}: kernels from now on run {mode}")
            }
            Self::Made { epoch, signal } => {
                write!(f, "barrier {epoch} made, of signal {:#x}", signal.handle)
            }
            Self::Armed { epoch, waits_for } => {
                write!(f, "barrier {epoch} armed: it waits for {waits_for} queues")
            }
            Self::Tagged {
                epoch,
                queue,
                dispatch,
            } => write!(f, "kernel {dispatch} of {queue} waits for barrier {epoch}"),
            Self::Drained { epoch, queue } => {
                write!(f, "{queue} is through with barrier {epoch}")
            }
            Self::Cleared { epoch } => write!(f, "barrier {epoch} cleared"),
            Self::Superseded { epoch } => write!(f, "barrier {epoch} superseded"),
            Self::Forced { epoch } => write!(f, "barrier {epoch} cleared by force"),
            Self::Retired { epoch } => write!(f, "barrier {epoch} retired"),
            Self::Reclaimed { epoch, signal } => write!(
                f,
                "barrier {epoch} reclaimed, signal {:#x} destroyed",
                signal.handle
            ),
            Self::QueueAdded(queue) => write!(f, "{queue} added"),
            Self::QueueGone(queue) => write!(f, "{queue} gone"),
            Self::Ready(queue) => write!(f, "{queue} waits for its turn"),
            Self::Granted { queue, waited } => {
                write!(f, "{queue} has its turn, after waiting {waited:.1?}")
            }
            Self::Released(queue) => write!(f, "{queue} gives its turn back"),
            Self::Overtaken(queue) => {
                write!(
                    f,
                    "{queue} lost its turn, while its kernel may still be running"
                )
            }
            Self::LetThrough => f.write_str("everything let through, for good"),
        }
    }
}

#[cfg(all(test, not(any(hsa_serializer_loom, hsa_serializer_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_comes_back_as_it_was() {
        let queue = QueueId::from_raw(u64::MAX - 7);
        let epoch = u32::MAX - 1;
        let recorded = [
            Event::Transition {
                epoch,
                mode: Mode::of_epoch(epoch),
            },
            Event::Cleared { epoch },
            Event::Superseded { epoch },
            Event::Forced { epoch },
            Event::Retired { epoch },
            Event::QueueAdded(queue),
            Event::QueueGone(queue),
            Event::Granted {
                queue,
                waited: Duration::from_nanos(1 << 40),
            },
            Event::Overtaken(queue),
            Event::LetThrough,
        ];
        for event in recorded {
            assert_eq!(Event::from_words(event.to_words()), Some(event));
        }
        let not = [
            Event::Ready(queue),
            Event::Released(queue),
            Event::Armed {
                epoch,
                waits_for: 1,
            },
        ];
        for event in not {
            assert_eq!(Event::from_words(event.to_words()), None);
        }
    }
}
