//! The dispatching half of a queue.

use crate::error::DispatchError;
use crate::handle::Handle;
use crate::packet::{self, MAX_PACKETS};
use crate::queue::{DISPATCH, Mode, QueueCell, QueueId, Word};
use crate::runtime::Runtime;
use crate::shared::{Aftermath, Shared, Stage};
use crate::sync::{Ordering, Step, fence, stands};
use crate::ticket::Ticket;
use crate::token::Phase;
use hsa_sys::{AqlPacket, hsa_signal_t};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// No epoch: nothing was dealt with yet.
const NONE: u64 = u64::MAX;

/// The dispatching half of a queue: made by [`Serializer::add_queue`], kept where the queue's
/// interceptor finds it.
///
/// HSA calls an interceptor under the queue's own lock, so dispatches of one queue come one at a
/// time and in packet order. The library relies on that, and `&mut` makes it hard to break:
///
/// ```compile_fail
/// # use hsa_serializer::{AqlPacket, Queue, Runtime};
/// fn two_threads<R: Runtime>(queue: &Queue<R>) {
///     let mut packets = [AqlPacket::INVALID; 4];
///     let _ = queue.dispatch(&mut packets);
/// }
/// ```
///
/// ```compile_fail
/// # use hsa_serializer::{Queue, Runtime};
/// fn two_halves<R: Runtime>(queue: Queue<R>) -> (Queue<R>, Queue<R>) {
///     (queue.clone(), queue)
/// }
/// ```
///
/// Their twins compile:
///
/// ```
/// # use hsa_serializer::{AqlPacket, Queue, Runtime};
/// fn one_thread<R: Runtime>(queue: &mut Queue<R>) {
///     let mut packets = [AqlPacket::INVALID; 4];
///     let _ = queue.dispatch(&mut packets);
/// }
/// fn one_half<R: Runtime>(queue: Queue<R>) -> Queue<R> {
///     queue
/// }
/// ```
///
/// Dropping it does not remove the queue: its packets may still execute. Say
/// [`queue_destroyed`](crate::Serializer::queue_destroyed) for that.
///
/// [`Serializer::add_queue`]: crate::Serializer::add_queue
pub struct Queue<R: Runtime> {
    shared: Handle<R>,
    cell: NonNull<QueueCell>,
    id: QueueId,
    /// The epoch in which a dispatch needs nothing: dealt with, and kernels run unserialized.
    quiet: u64,
    /// The epoch whose barrier was dealt with.
    dealt: u64,
    escape: hsa_signal_t,
    /// Whether its kernels run alone while kernels are serialized. A set's queues only wait for barriers.
    takes_part: bool,
    /// What stands in front of each serialized kernel: it is always the same, and copied.
    gates: [AqlPacket; 2],
}

/// What a dispatch has to do.
#[derive(Debug)]
#[must_use = "the ticket has to be completed, and the packets have to be written"]
pub struct Dispatch {
    /// Hand it back to [`complete`](crate::Serializer::complete) when the packet processor is
    /// through with the kernel.
    pub ticket: Ticket,
    /// How many packets at the start of the caller's array have to be written in front of the
    /// caller's own, in order.
    pub packets: usize,
    /// Whether the kernel is serialized. If so, the kernel's packet and the last packet of its
    /// *group* need the barrier bit. The group is the injected packets, the caller's packets that
    /// belong in front of this kernel, the kernel, and the caller's packets that belong behind it:
    /// not the interceptor's whole batch, which may hold several kernels. The ticket is completed
    /// when the group's last packet has.
    pub serialized: bool,
}

/// A dispatch that is counted, and of which more is to be done.
#[doc(hidden)]
#[derive(Debug)]
#[must_use = "it is counted"]
pub struct Begun(Word);

impl<R: Runtime> Queue<R> {
    pub(crate) fn new(
        shared: Handle<R>,
        id: QueueId,
        cell: NonNull<QueueCell>,
        [ready, block, escape]: [hsa_signal_t; 3],
    ) -> Self {
        Self {
            shared,
            cell,
            id,
            quiet: NONE,
            dealt: NONE,
            escape,
            takes_part: !ready.is_null(),
            gates: [ready, block].map(|signal| packet::gate(signal, escape)),
        }
    }

    /// This queue's identity.
    #[must_use]
    pub fn id(&self) -> QueueId {
        self.id
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<R>> {
        &self.shared
    }

    #[inline]
    pub(crate) fn cell(&self) -> &QueueCell {
        // SAFETY: the cell is in the slab, whose chunks neither move nor go while `shared` lives.
        unsafe { self.cell.as_ref() }
    }

    /// Counts one kernel and says what has to stand in front of it.
    ///
    /// This is the point of no return: the kernel has to be written to the queue, or the queue has
    /// to be destroyed. Do what can fail before it.
    ///
    /// On the fast path (kernels run unserialized, and this is not the queue's first since a
    /// transition) it is one atomic addition. It never locks; it allocates and calls the runtime
    /// only where its slow path comes to reclaiming (see [`Domain`](crate::Domain)).
    ///
    /// # Errors
    /// [`TooFewPackets`](DispatchError::TooFewPackets) where `packets` has fewer than
    /// [`MAX_PACKETS`] elements, before anything is counted; [`ShutDown`](DispatchError::ShutDown)
    /// after [`begin_shutdown`](crate::Serializer::begin_shutdown): pass the kernel on as it is, or
    /// refuse it; [`QueueGone`](DispatchError::QueueGone) where the slow path meets a queue that was
    /// destroyed (the fast path has no check for it: a kernel of a destroyed queue never runs).
    ///
    /// `packets` is written only as far as [`Dispatch::packets`] says.
    #[inline]
    pub fn dispatch(&mut self, packets: &mut [AqlPacket]) -> Result<Dispatch, DispatchError> {
        if packets.len() < MAX_PACKETS {
            return Err(DispatchError::TooFewPackets {
                given: packets.len(),
            });
        }
        match self.begin() {
            Ok(dispatch) => Ok(dispatch),
            Err(begun) => self.go_on(begun, packets),
        }
    }

    /// The fast half of [`dispatch`](Self::dispatch), by itself: for who has nothing to save where it does.
    /// What it could not end has to be [gone on](Self::go_on) with: it is counted.
    ///
    /// # Errors
    /// What is left to do.
    #[doc(hidden)]
    #[inline(always)]
    pub fn begin(&mut self) -> Result<Dispatch, Begun> {
        // Relaxed: the addition and the transition's stamp are on one word, and that is all that
        // has to be ordered. Where the epoch is new, the slow path acquires.
        let mut word = Word(self.cell().word.fetch_add(DISPATCH, Ordering::Relaxed));
        if !stands(Step::OneWord) {
            let later = Word(self.cell().word.load(Ordering::Relaxed));
            word = Word::new(word.id(), later.epoch());
        }
        if u64::from(word.epoch()) != self.quiet {
            return Err(Begun(word));
        }
        Ok(Dispatch {
            ticket: Ticket::new(self.id, word),
            packets: 0,
            serialized: false,
        })
    }

    /// The rest of a dispatch that was begun; `packets` has [`MAX_PACKETS`] elements.
    ///
    /// # Errors
    /// As [`dispatch`](Self::dispatch).
    #[doc(hidden)]
    pub fn go_on(
        &mut self,
        begun: Begun,
        packets: &mut [AqlPacket],
    ) -> Result<Dispatch, DispatchError> {
        self.dispatch_slow(begun.0, packets)
    }

    /// The first dispatch of an epoch, or a serialized one.
    #[inline(never)]
    fn dispatch_slow(
        &mut self,
        word: Word,
        packets: &mut [AqlPacket],
    ) -> Result<Dispatch, DispatchError> {
        let epoch = u64::from(word.epoch());
        if self.shared.stage() == Stage::Left {
            // What it would wait for never comes. It stays counted: nobody reads that any more.
            return Err(DispatchError::ShutDown);
        }
        if epoch != self.dealt {
            // Acquire: the transition pushed its barrier, or closed, before it stamped this word.
            fence(Ordering::Acquire);
            let closed = self.shared.closed.load(Ordering::Relaxed) == epoch;
            if closed && stands(Step::ClosedIsRead) {
                // No transition comes after closing, so nobody has counted it: it can be undone.
                self.cell().word.fetch_sub(DISPATCH, Ordering::Relaxed);
                return Err(DispatchError::ShutDown);
            }
        }
        // What was counted on a dead queue counts for nobody.
        if self.cell().seat().phase() == Phase::Removed {
            return Err(DispatchError::QueueGone(self.id));
        }
        let mut written = self.packets_of_epoch(word, packets);
        let serialized = word.mode() == Mode::Enabled && self.takes_part;
        if serialized {
            packets[written..written + 2].copy_from_slice(&self.gates);
            written += 2;
        } else {
            self.quiet = epoch;
        }
        Ok(Dispatch {
            ticket: Ticket::new(self.id, word),
            packets: written,
            serialized,
        })
    }

    /// Deals with the epoch of a dispatch, if that was not done: writes the transition packet, if the
    /// queue has to wait; how many packets that is.
    pub(crate) fn packets_of_epoch(&mut self, word: Word, packets: &mut [AqlPacket]) -> usize {
        let epoch = u64::from(word.epoch());
        if epoch == self.dealt {
            return 0;
        }
        // Acquire: the transition pushed its barrier before it stamped this word.
        fence(Ordering::Acquire);
        let signal = self.hand_out(word);
        self.dealt = epoch;
        match signal {
            Some(signal) => {
                packets[0] = packet::transition(signal, self.escape);
                1
            }
            None => 0,
        }
    }

    /// The signal of this epoch's barrier, if this queue has to wait for it.
    #[cold]
    fn hand_out(&self, word: Word) -> Option<hsa_signal_t> {
        let mut after = Aftermath::new();
        let guard = self.shared.domain.pin();
        let signal = self
            .shared
            .hand_out(self.id, self.cell(), word, &guard, &mut after);
        after.finish(guard, &self.shared);
        signal
    }
}

impl<R: Runtime> Drop for Queue<R> {
    fn drop(&mut self) {
        let mut after = Aftermath::new();
        let guard = self.shared.domain.pin();
        self.shared.let_go(self.id.index(), &guard, &mut after);
        after.finish(guard, &self.shared);
    }
}

// SAFETY: the cell is `Sync` and lives as long as `shared`, which the queue holds; nothing is tied
// to a thread. `R` itself is shared, not moved, and `Runtime` is `Send + Sync`.
unsafe impl<R: Runtime> Send for Queue<R> {}
// SAFETY: through `&Queue` only the id can be read.
unsafe impl<R: Runtime> Sync for Queue<R> {}

impl<R: Runtime> fmt::Debug for Queue<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("id", &self.id)
            .field("cell", self.cell())
            .finish_non_exhaustive()
    }
}
