//! Tickets: what a dispatch hands out and its completion hands back.

use crate::queue::{Mode, QueueId, Word};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tickets that were dropped and never completed, in this process.
static LOST: AtomicU64 = AtomicU64::new(0);

/// The receipt of one dispatch: its queue and the word it got. 16 bytes.
///
/// It is used up by [`Serializer::complete`](crate::Serializer::complete), so that safe code can't
/// complete a dispatch twice:
///
/// ```compile_fail
/// # use hsa_serializer::{Runtime, Serializer, Ticket};
/// fn twice<R: Runtime>(serializer: &Serializer<R>, ticket: Ticket) {
///     let _ = serializer.complete(ticket);
///     let _ = serializer.complete(ticket);
/// }
/// ```
///
/// Its twin compiles:
///
/// ```
/// # use hsa_serializer::{Runtime, Serializer, Ticket};
/// fn once<R: Runtime>(serializer: &Serializer<R>, ticket: Ticket) {
///     let _ = serializer.complete(ticket);
/// }
/// ```
///
/// A ticket that is dropped completes nothing: its kernel counts as in flight for ever (until its
/// queue is gone). [`Ticket::lost`] counts them.
#[must_use = "a dispatch whose ticket is dropped counts as in flight until its queue is gone"]
pub struct Ticket {
    queue: QueueId,
    word: u64,
}

const _: () = assert!(size_of::<Ticket>() == 16);

impl Ticket {
    #[inline]
    pub(crate) fn new(queue: QueueId, word: Word) -> Self {
        Self {
            queue,
            word: word.0,
        }
    }

    /// The queue that it was dispatched on.
    #[inline]
    #[must_use]
    pub fn queue(&self) -> QueueId {
        self.queue
    }

    /// Its place among the dispatches of its queue, from 0; the low 32 bits.
    #[inline]
    #[must_use]
    pub fn dispatch(&self) -> u32 {
        self.word().id()
    }

    /// The mode that its kernel runs in, whatever the mode is now.
    #[inline]
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.word().mode()
    }

    #[inline]
    pub(crate) fn word(&self) -> Word {
        Word(self.word)
    }

    #[inline]
    pub(crate) fn used(self) {
        std::mem::forget(self);
    }

    /// Gives the ticket up because its kernel will never run: its queue is gone, for which
    /// [`queue_destroyed`](crate::Serializer::queue_destroyed) settles everything. It does not
    /// count as lost.
    pub fn abandon(self) {
        self.used();
    }

    /// The ticket as two plain integers, for hosts that keep it in a C structure. It does not
    /// count as lost.
    #[must_use]
    pub fn into_raw(self) -> [u64; 2] {
        let raw = [self.queue.to_raw(), self.word];
        self.used();
        raw
    }

    /// A ticket from what [`into_raw`](Self::into_raw) gave.
    ///
    /// Integers from elsewhere do no harm to memory, but a completion that was none may clear a
    /// barrier early. [`complete`](crate::Serializer::complete) refuses another serializer's queue,
    /// and a completion when none is left; [`check`](crate::Serializer::check) refuses, besides, a
    /// dispatch that has not been. One dispatch's ticket used twice passes for another one's of
    /// its queue until too many have come: use each pair once.
    pub fn from_raw(raw: [u64; 2]) -> Self {
        Self {
            queue: QueueId::from_raw(raw[0]),
            word: raw[1],
        }
    }

    /// How many tickets of this process were dropped without having been completed.
    #[must_use]
    pub fn lost() -> u64 {
        // A statistic: nothing is ordered by it.
        LOST.load(Ordering::Relaxed)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("queue", &self.queue)
            .field("dispatch", &self.dispatch())
            .field("mode", &self.mode())
            .finish()
    }
}
