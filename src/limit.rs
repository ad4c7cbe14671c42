//! A limit on run-ahead: how many dispatches of a queue may be in flight.
//!
//! An application that dispatches faster than the GPU runs, as every one does once kernels run one by one,
//! piles up packets, completion signals and whatever else the host keeps for each kernel. A host that
//! wants a bound says it with each dispatch ([`Queue::try_dispatch`]), and is told where it is reached.
//!
//! # Why it does not wait
//! There is no variant that waits until there is room. A dispatch is counted in the interceptor, which runs
//! under the queue's own lock. Were it to wait there, whatever the application would do next is not done: a
//! barrier packet or a signal store that its earlier kernels wait for never comes, a thread that wants to
//! destroy the queue waits for the lock, and where the interceptor runs on the handler's thread nobody
//! reports the very completion that would make room. Each of these is a deadlock in a program that is
//! healthy. So the host keeps what it can't dispatch, and dispatches it from where completions come.
//!
//! # Why the answer is right
//! Dispatches of a queue come one at a time (`&mut`), so between the look and the dispatch the number can
//! only fall, by completions.

use crate::dispatch::{Dispatch, Queue};
use crate::error::DispatchError;
use crate::queue::Word;
use crate::runtime::Runtime;
use crate::shared::Stage;
use crate::sync::Ordering;
use hsa_sys::AqlPacket;

impl<R: Runtime> Queue<R> {
    /// [`dispatch`](Self::dispatch), unless `limit` dispatches of this queue, or more, are in flight.
    ///
    /// It reads the completing half's cache line, which `dispatch` does not. Otherwise it costs, promises
    /// and fails as that does. Keep what was refused, with all that the application submits behind it, and
    /// try again when a completion of this queue has come: as long as something is in flight, one comes.
    /// With a limit of 0 everything is refused.
    ///
    /// # Errors
    /// [`Full`](DispatchError::Full), before anything is counted; and those of `dispatch`, which come first
    /// once the serializer has ended.
    pub fn try_dispatch(
        &mut self,
        packets: &mut [AqlPacket],
        limit: u64,
    ) -> Result<Dispatch, DispatchError> {
        let in_flight = self.in_flight();
        // After the end nobody may be left who reports completions: nothing is to wait for them.
        if in_flight >= limit && self.shared().stage() == Stage::Open {
            return Err(DispatchError::Full { in_flight });
        }
        self.dispatch(packets)
    }

    /// How many dispatches of this queue have not completed, gaps' markers among them. None of a queue that
    /// is gone.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        let cell = self.cell();
        // Relaxed: this half writes the count itself.
        let dispatched = cell.widen(Word(cell.word.load(Ordering::Relaxed)).id());
        let progress = cell.progress();
        if progress.is_live(self.id().generation()) {
            dispatched.saturating_sub(progress.count())
        } else {
            0
        }
    }
}
