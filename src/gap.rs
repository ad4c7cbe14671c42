//! Work that the serializer did not see: a queue that was attached while it ran, or that the host let
//! pass unseen for a while.
//!
//! Unknown kernels can't be counted, so one *marker* packet stands for all of them: it has the barrier
//! bit, so it completes when everything in front of it has, and it is counted as one dispatch of the
//! disabled parity, whose completion the host reports like any other.
//!
//! | mode | the marker | what follows it |
//! |---|---|---|
//! | disabled | is a dispatch like any other | the next transition counts it |
//! | enabled | waits for the present epoch's barrier, and is counted in an epoch of its own, between the present one and the next | a transition, two epochs on, with the mode kept: kernels of the new epoch wait for the unknown ones, those that were dispatched before go on |
//!
//! # What is outside of the promise
//! A queue that never dispatches again never gets its marker, unless the host writes it at once (as it
//! may where the queue's type allows several producers). Until the marker is counted, the unknown
//! kernels may run beside serialized ones: nobody can wait for what he does not know.

use crate::dispatch::Queue;
use crate::error::{DispatchError, SignalError};
use crate::packet::{self, MAX_PACKETS};
use crate::queue::{DISPATCH, Mode, Word};
use crate::runtime::{Runtime, SignalKind};
use crate::shared::Aftermath;
use crate::sync::{Ordering, Step, stands};
use crate::ticket::Ticket;
use crate::transition::Transitions;
use crossbeam_epoch::Guard;
use hsa_sys::{AqlPacket, hsa_signal_t};
use std::fmt;

/// What has to be written for the unknown work of a queue.
#[derive(Debug)]
#[must_use = "the ticket has to be completed, and the packets have to be written"]
pub struct Marker {
    /// Hand it back to [`complete`](crate::Serializer::complete) when the marker has completed.
    pub ticket: Ticket,
    /// How many packets at the start of the caller's array have to be written in front of whatever
    /// the queue gets next, in order. The last of them is the marker: give it a completion signal that
    /// the host hears of.
    pub packets: usize,
}

/// Why a gap was not marked. Nothing was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GapError {
    /// As for a dispatch.
    Dispatch(DispatchError),
    /// The transition's signal could not be created.
    Signal(SignalError),
}

impl<R: Runtime> Queue<R> {
    /// Counts the unknown work that this queue holds now. Call it in the interceptor, before the
    /// queue's first dispatch after the gap, or before the queue is known to anybody.
    ///
    /// It takes the transition lock and, while the mode is enabled, creates a signal and is a
    /// transition: so, like [`enable`](crate::Serializer::enable) in an interceptor, not while a thread
    /// that is inside of one can wait for this queue's lock (see
    /// [what may be called from where](crate::docs::integrating#what-may-be-called-from-where)).
    ///
    /// # Errors
    /// Those of a [dispatch](Self::dispatch), and where a signal could not be had; nothing was counted
    /// then.
    pub fn gap(&mut self, packets: &mut [AqlPacket]) -> Result<Marker, GapError> {
        if packets.len() < MAX_PACKETS {
            let given = packets.len();
            return Err(GapError::Dispatch(DispatchError::TooFewPackets { given }));
        }
        let shared = self.shared().clone();
        let Some(_visit) = shared.visit() else {
            return Err(GapError::Dispatch(DispatchError::ShutDown));
        };
        let mut spare = None;
        loop {
            let mut after = Aftermath::new();
            // Before the lock: pinning may run what others have deferred.
            let guard = shared.domain.pin();
            let counted = match shared.lock() {
                Some(mut t) if !t.closed => {
                    self.count_unknown(&mut t, &mut spare, &guard, &mut after)
                }
                _ => Some(Err(DispatchError::ShutDown)),
            };
            after.finish(guard, &shared);
            match counted {
                Some(counted) => {
                    if let Some(signal) = spare {
                        shared.destroy_signal(signal);
                    }
                    let words = counted.map_err(GapError::Dispatch)?;
                    return Ok(self.mark(words, packets));
                }
                // Made outside of the lock: the runtime has locks of its own.
                None => {
                    let made = shared.create_signal(SignalKind::Barrier, 1);
                    spare = Some(made.map_err(GapError::Signal)?);
                }
            }
        }
    }

    /// Counts the marker: the word by whose epoch it waits, and its ticket's. `None` where that takes
    /// a signal and there is none to spare.
    fn count_unknown(
        &self,
        t: &mut Transitions,
        spare: &mut Option<hsa_signal_t>,
        guard: &Guard,
        after: &mut Aftermath,
    ) -> Option<Result<[Word; 2], DispatchError>> {
        let shared = self.shared();
        if shared.living(self.id()).is_none() {
            return Some(Err(DispatchError::QueueGone(self.id())));
        }
        let enabled = t.mode() == Mode::Enabled;
        let signal = if enabled { Some(spare.take()?) } else { None };
        // Relaxed: the lock orders it with transitions.
        let count = || Word(self.cell().word.fetch_add(DISPATCH, Ordering::Relaxed));
        let counted = (signal.is_none() || stands(Step::MarkerBeforeStamp)).then(count);
        let Some(signal) = signal else {
            return counted.map(|word| Ok([word, word]));
        };
        let (between, to) = (t.epoch.wrapping_add(1), t.epoch.wrapping_add(2));
        shared.advance(t, to, signal, None, guard, after);
        let word = counted.unwrap_or_else(count);
        Some(Ok([word, Word::new(word.id(), between)]))
    }

    /// The packets of a marker that was counted.
    ///
    /// It waits for the present epoch's barrier like a dispatch: in front of it, its completion would
    /// pass for that of a dispatch which the barrier counts.
    fn mark(&mut self, [present, own]: [Word; 2], packets: &mut [AqlPacket]) -> Marker {
        let written = self.packets_of_epoch(present, packets);
        packets[written] = packet::marker();
        Marker {
            ticket: Ticket::new(self.id(), own),
            packets: written + 1,
        }
    }
}

impl fmt::Display for GapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dispatch(e) => e.fmt(f),
            Self::Signal(e) => write!(f, "no signal for the transition: {e}"),
        }
    }
}

impl std::error::Error for GapError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Dispatch(e) => Some(e),
            Self::Signal(e) => Some(e),
        }
    }
}
