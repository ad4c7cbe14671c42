//! Draining: waiting for what is in flight now, and for nothing that comes later.
//!
//! A queue's count is of completions and not of positions: kernels of one queue may complete out of
//! order, so a later one's completion could pass for an earlier one's. Therefore a drain makes a
//! *cut*: a barrier in front of whatever is dispatched from now on, two epochs on, with the mode as it
//! is. While it stands nothing behind it can complete, so the count can be reached by what came before
//! the cut alone; and when every queue has reached its count the barrier clears and later work goes on.
//! Where nothing is in flight there is nothing to cut.
//!
//! So a cut is to a program what a transition is, also while nothing is serialized: one in which a
//! kernel in flight waits for a later one stands still, for as long as the cut stands. Who does not wait
//! any more can [withdraw](Cut::withdraw) it, which is the release of a stall.
//!
//! It waits outside of every lock.

use crate::error::SignalError;
use crate::handle::Handle;
use crate::queue::QueueId;
use crate::runtime::{Runtime, SignalKind};
use crate::serializer::Serializer;
use crate::shared::{Aftermath, Shared, Stage};
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Shortest and longest pause between two looks.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(2)];

/// A wait with an end.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// `None` if it is later than any clock can say.
    end: Option<Instant>,
    pause: Duration,
}

impl Waiting {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            end: Instant::now().checked_add(timeout),
            pause: PAUSES[0],
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    pub(crate) fn wait(&mut self) {
        thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(PAUSES[1]);
    }
}

/// What was in flight at one moment. Made by [`Serializer::cut`].
///
/// Dropping it takes nothing back: later work goes on waiting, on the GPU, for what was in flight. It
/// keeps the serializer alive.
pub struct Cut<R: Runtime> {
    shared: Handle<R>,
    /// The transition epoch of its barrier; none where nothing is dispatched any more.
    epoch: Option<u32>,
    /// Queues, and the counts that they have to reach.
    until: Vec<(QueueId, u64)>,
}

/// Why a drain has not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DrainError {
    /// The signal for the cut could not be created. Nothing was done.
    Signal(SignalError),
    /// It was called on a thread that calls the runtime's handlers, and would wait for itself.
    /// Nothing was done.
    OnHandlerThread,
    /// Everything was [left](Serializer::leave), or this is the child of a fork: nothing is known of
    /// what is in flight.
    Left,
    /// The time is over. These queues are stuck: how many of their dispatches have not completed.
    TimedOut(Vec<(QueueId, u64)>),
}

impl<R: Runtime> Serializer<R> {
    /// Waits until everything that is in flight now has been reported complete, or its queue is gone.
    /// What is dispatched meanwhile is not waited for; it waits, on the GPU, for what is.
    ///
    /// That holds in either mode, and goes on after a time-out: a program in which a kernel in flight
    /// needs a later one stands still until a [stall is released](crate::StallPolicy::Release) or
    /// everything [is](Self::release_all). Who would rather take it back makes a [cut](Self::cut), waits
    /// himself, and [withdraws](Cut::withdraw) it.
    ///
    /// Not in an interceptor, nor under a lock that one takes, nor on a handler's thread: what it
    /// waits for needs them. It is refused on a thread that is known to be a handler's
    /// ([`Runtime::is_handler_thread`]); on one that is not it sits out its time.
    ///
    /// Where a stall or everything is released meanwhile, later work may pass for earlier.
    ///
    /// # Errors
    /// Where the cut could not be made; on a handler's thread; after the end; on time-out, with who is
    /// stuck.
    pub fn drain(&self, timeout: Duration) -> Result<(), DrainError> {
        if self.shared.on_handler_thread() {
            return Err(DrainError::OnHandlerThread);
        }
        let cut = self.cut().map_err(|e| match e {
            SignalError::Left => DrainError::Left,
            e => DrainError::Signal(e),
        })?;
        let mut waiting = Waiting::new(timeout);
        loop {
            let stuck = cut.in_flight();
            if stuck.is_empty() {
                return Ok(());
            }
            if waiting.is_over() {
                return Err(DrainError::TimedOut(stuck));
            }
            waiting.wait();
        }
    }

    /// What is in flight now; see [`drain`](Self::drain). It never waits: for hosts that wait in a way
    /// of their own.
    ///
    /// # Errors
    /// Where its signal could not be created, or everything was left. Nothing was done then.
    pub fn cut(&self) -> Result<Cut<R>, SignalError> {
        let (epoch, until) = self.shared.cut()?;
        Ok(Cut {
            shared: self.shared.clone(),
            epoch,
            until,
        })
    }
}

impl<R: Runtime> Cut<R> {
    /// The queues that are not through yet: how many of their dispatches have not completed.
    #[must_use]
    pub fn in_flight(&self) -> Vec<(QueueId, u64)> {
        let left = self.until.iter().filter_map(|(id, until)| {
            let reached = self.shared.living(*id)?.progress().reached();
            (reached < *until).then(|| (*id, until - reached))
        });
        left.collect()
    }

    /// Lets go what waits for it, though something of it is in flight, and says whether that was needed:
    /// false where it has ended, or a later transition's barrier holds all that back.
    ///
    /// It is the release of a stall: older barriers are cleared with it, kernels may run side by side
    /// that should not have, and that is counted ([`forced`](crate::Statistics::forced)). It takes the
    /// transition lock for a moment.
    pub fn withdraw(self) -> bool {
        let mut after = Aftermath::new();
        let guard = self.shared.domain.pin();
        // After the end it has let go, or nobody may.
        let open = self.shared.stage() < Stage::Released;
        let epoch = self.epoch.filter(|_| open);
        let forced = epoch.is_some_and(|epoch| self.shared.force_one(epoch, &guard, &mut after));
        after.finish(guard, &self.shared);
        forced
    }
}

/// The cut's epoch, if it has a barrier; queues, and the counts that they have to reach.
type Behind = (Option<u32>, Vec<(QueueId, u64)>);

impl<R: Runtime> Shared<R> {
    /// Queues with something in flight, and the counts that they have to reach; with a barrier behind
    /// that, unless nothing is dispatched any more.
    fn cut(self: &Arc<Self>) -> Result<Behind, SignalError> {
        let Some(_visit) = self.visit() else {
            // Who ends it may not have got to closing: a stamp from before would be too small.
            self.close();
            let mut t = self
                .lock()
                .filter(|_| self.stage() < Stage::Left)
                .ok_or(SignalError::Left)?;
            self.sweep(&mut t);
            return Ok((None, self.not_reached(t.registered())));
        };
        let signal = self.create_signal(SignalKind::Barrier, 1)?;
        let mut after = Aftermath::new();
        // Before the lock: pinning may run what others have deferred.
        let guard = self.domain.pin();
        let mut spare = Some(signal);
        let until = {
            self.lock().map(|mut t| {
                let epoch = spare.take_if(|_| !t.closed).map(|signal| {
                    let to = t.epoch.wrapping_add(2);
                    self.advance(&mut t, to, signal, None, &guard, &mut after);
                    to
                });
                (epoch, self.not_reached(t.registered()))
            })
        };
        after.finish(guard, self);
        if let Some(signal) = spare {
            self.destroy_signal(signal);
        }
        self.collect();
        until.ok_or(SignalError::Left)
    }

    fn not_reached(&self, stamps: impl Iterator<Item = (QueueId, u64)>) -> Vec<(QueueId, u64)> {
        let behind = |(id, stamp): &(QueueId, u64)| {
            let living = self.living(*id);
            living.is_some_and(|cell| cell.progress().reached() < *stamp)
        };
        stamps.filter(behind).collect()
    }
}

impl<R: Runtime> fmt::Debug for Cut<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cut").field(&self.in_flight()).finish()
    }
}

impl fmt::Display for DrainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(e) => write!(f, "no signal for the cut: {e}"),
            Self::OnHandlerThread => {
                f.write_str("the runtime's handler thread would wait for itself")
            }
            Self::Left => f.write_str("everything was left, or this is the child of a fork"),
            Self::TimedOut(stuck) => {
                f.write_str("still in flight")?;
                for (i, (queue, n)) in stuck.iter().enumerate() {
                    let before = if i == 0 { ": " } else { ", " };
                    write!(f, "{before}{n} of {queue}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for DrainError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Signal(e) => Some(e),
            _ => None,
        }
    }
}
