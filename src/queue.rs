//! A queue's state: the word that dispatches and transitions share, and the count of completions.
//!
//! # The word
//! ```text
//!  63                              32 31                               0
//! ┌──────────────────────────────────┬──────────────────────────────────┐
//! │ dispatches of this queue         │ transition epoch (odd: enabled)  │
//! └──────────────────────────────────┴──────────────────────────────────┘
//! ```
//! A dispatch adds 2^32: what comes back is its number and its epoch, together. A transition adds
//! 1: what comes back is how many dispatches came before it. Both are one atomic step on one word,
//! so a dispatch is counted by a transition or comes after it, never both and never neither.
//!
//! The count is in the high half, so its overflow falls off the top. The epoch must not carry into
//! the count: the stamp that would reach 2^32 adds 1 - 2^32 instead ([`stamp_increment`]).
//! Numbers compare by wrapping difference and are [widened](QueueCell::widen) against the count of
//! completions before anything is stored or compared by size; that is exact while fewer than 2^31
//! dispatches of one queue are in flight.
//!
//! # The progress
//! ```text
//!  63 62                48 47                                          0
//! ┌──┬────────────────────┬─────────────────────────────────────────────┐
//! │d │ generation         │ completions of this queue                   │
//! └──┴────────────────────┴─────────────────────────────────────────────┘
//! ```
//! `d` (dead) says that the queue is gone: its count is then infinite. The generation tells the
//! lives of a cell apart: a completion adds one by compare-exchange against the word that it
//! checked (which it guesses first: completions mostly come in the order of their numbers), so a
//! late completion of a dead queue can't count for the cell's next owner. A cell whose generations
//! are used up (32,767 lives) is never used again.
//!
//! 48 bits of completions last 16 years at 550,000 a second.
//!
//! # Cells
//! Cells live in a [`Slab`] for as long as the serializer, in chunks that never move. A completion
//! finds its cell by index, without a pin and without a reference count; that the cell may have
//! another owner by now is what the generation is for.

use crate::barrier::Barrier;
use crate::pending::{EVERYTHING, NEVER, Pending};
use crate::sync::{AtomicU32, AtomicU64, Ordering, between_store_and_load, statistic};
use crate::token::Seat;
use std::fmt;
use std::ptr;
// Not through the facade: making a chunk is no step of the protocol, and there are many of them.
use std::sync::atomic::AtomicPtr;

/// How kernels run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// As the application wrote them.
    Disabled,
    /// One at a time on the agent.
    Enabled,
}

impl Mode {
    pub(crate) const fn of_epoch(epoch: u32) -> Self {
        if epoch & 1 == 0 {
            Self::Disabled
        } else {
            Self::Enabled
        }
    }
}

const INDEX_BITS: u32 = 24;
const GENERATION_BITS: u32 = 15;
const GENERATIONS: u64 = 1 << GENERATION_BITS;

/// A queue's identity: never used again for another queue of any serializer of this process
/// (until 2^25 serializers were made).
///
/// Register it by value with the runtime's handler: a late call finds out by it that its queue has
/// gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct QueueId(u64);

impl QueueId {
    #[inline]
    pub(crate) fn new(instance: u32, generation: u32, index: u32) -> Self {
        Self(
            u64::from(instance) << (INDEX_BITS + GENERATION_BITS)
                | u64::from(generation) << INDEX_BITS
                | u64::from(index),
        )
    }

    /// The id as an integer, for handlers and C structures.
    #[must_use]
    pub const fn to_raw(self) -> u64 {
        self.0
    }

    /// The id of an integer. One that is of no queue is refused by whoever is given it.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The number of its serializer: [`Snapshot::serializer`](crate::Snapshot::serializer).
    #[must_use]
    pub const fn serializer(self) -> u32 {
        self.instance()
    }

    #[inline]
    pub(crate) const fn index(self) -> u32 {
        (self.0 & ((1 << INDEX_BITS) - 1)) as u32
    }

    #[inline]
    pub(crate) const fn generation(self) -> u64 {
        self.0 >> INDEX_BITS & (GENERATIONS - 1)
    }

    #[inline]
    pub(crate) const fn instance(self) -> u32 {
        (self.0 >> (INDEX_BITS + GENERATION_BITS)) as u32
    }
}

impl fmt::Display for QueueId {
    /// `queue 3`, or `queue 3.2` for the third queue that had that place, counted from 0.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {}", self.index())?;
        match self.generation() {
            0 => Ok(()),
            g => write!(f, ".{g}"),
        }
    }
}

impl fmt::Debug for QueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QueueId({self}, of serializer {})", self.instance())
    }
}

/// The value of a queue's word. See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

/// What a dispatch adds to the word.
pub(crate) const DISPATCH: u64 = 1 << 32;

impl Word {
    #[inline]
    pub(crate) const fn new(id: u32, epoch: u32) -> Self {
        Self((id as u64) << 32 | epoch as u64)
    }

    #[inline]
    pub(crate) const fn id(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(crate) const fn epoch(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(crate) const fn mode(self) -> Mode {
        Mode::of_epoch(self.epoch())
    }
}

/// What to add to a word so that its epoch goes from `from` to `to` and its count stays.
pub(crate) const fn stamp_increment(from: u32, to: u32) -> u64 {
    // The difference as if the epoch were 64 bits wide; where `to` wrapped, it is negative.
    (to as u64).wrapping_sub(from as u64)
}

const COUNT_BITS: u32 = 48;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
/// The part of the count that a dispatch's number says nothing of.
const HIGH_COUNT: u64 = COUNT & !(u32::MAX as u64);
const DEAD: u64 = 1 << 63;

/// The value of a queue's progress. See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress(pub(crate) u64);

impl Progress {
    #[inline]
    const fn new(generation: u64, count: u64) -> Self {
        Self(generation << COUNT_BITS | count & COUNT)
    }

    /// Completions, whether the queue is dead or not.
    #[inline]
    pub(crate) const fn count(self) -> u64 {
        self.0 & COUNT
    }

    /// Completions for whoever waits for them: a dead queue has completed everything.
    #[inline]
    pub(crate) const fn reached(self) -> u64 {
        if self.is_dead() {
            EVERYTHING
        } else {
            self.count()
        }
    }

    #[inline]
    pub(crate) const fn is_dead(self) -> bool {
        self.0 & DEAD != 0
    }

    #[inline]
    pub(crate) const fn generation(self) -> u64 {
        self.0 >> COUNT_BITS & (GENERATIONS - 1)
    }

    /// Whether this is a live queue of that generation.
    #[inline]
    pub(crate) const fn is_live(self, generation: u64) -> bool {
        self.0 >> COUNT_BITS == generation
    }
}

/// What became of adding a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Counted, and nothing is due.
    Quiet,
    /// Counted, and something is due: settle.
    Due,
    /// The queue is gone; nothing was counted.
    Gone,
    /// There was no dispatch left to complete; nothing was counted.
    Ahead,
}

/// One queue's shared state: a cache line that each dispatch writes, and one that each completion
/// writes. What else is in them is used by slow paths, and in the second one by the handlers and
/// granters of serialized kernels, which are completed by the same threads.
#[repr(C, align(64))]
pub(crate) struct QueueCell {
    /// Written by each dispatch; see the [module](self).
    pub(crate) word: AtomicU64,
    /// How many parties have to let go of the cell before it may have another owner.
    holds: AtomicU32,
    /// Transition packets that this queue carries and may not have executed.
    pub(crate) tags: Pending<Barrier>,
    /// Barriers that count dispatches of this queue.
    targets: Pending<Barrier>,

    completion: CompletionLine,
}

// The model checkers' atomics are larger.
#[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
const _: () = assert!(size_of::<QueueCell>() == 128);

#[repr(C, align(64))]
struct CompletionLine {
    /// Written by each completion; see the [module](self).
    progress: AtomicU64,
    /// The smallest count at which something of this queue's is due.
    due: AtomicU64,
    /// How far the progress was ahead of a completion's number, when that was not what had been
    /// guessed: generation and all, so that the sum of the two is the progress.
    lead: statistic::AtomicU64,
    /// The queue's part in the token's protocol.
    seat: Seat,
}

/// Parties that hold the cell of a queue that takes no part in the token's protocol: its
/// dispatching half and its registration.
pub(crate) const HOLDS: u32 = 2;
/// Parties that hold a serialized queue's cell: these, its `ready` handler, and the ready queues.
pub(crate) const SERIALIZED_HOLDS: u32 = 4;

impl QueueCell {
    fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            holds: AtomicU32::new(0),
            tags: Pending::new(),
            targets: Pending::new(),
            completion: CompletionLine {
                // Dead until it gets its first owner.
                progress: AtomicU64::new(DEAD),
                due: AtomicU64::new(NEVER),
                lead: statistic::AtomicU64::new(0),
                seat: Seat::new(),
            },
        }
    }

    /// Gives the cell to a new queue, of the generation that it is at.
    ///
    /// The caller holds the transition lock; every party of the former owner has let go, and a
    /// grace period has passed since [`leave_generation`](Self::leave_generation). So nothing but
    /// late completions can come, which the generation turns away.
    pub(crate) fn adopt(&self, holds: u32, count: u64, epoch: u32) {
        self.holds.store(holds, Ordering::Relaxed);
        self.word
            .store(Word::new(count as u32, epoch).0, Ordering::Relaxed);
        self.completion.due.store(NEVER, Ordering::Relaxed);
        let progress = Progress::new(self.progress().generation(), count).0;
        let lead = progress.wrapping_sub(u64::from(count as u32));
        self.completion
            .lead
            .store(lead, statistic::Ordering::Relaxed);
        // Release: who sees the queue alive sees all of the above.
        self.completion.progress.store(progress, Ordering::Release);
    }

    /// One of the parties is through with the cell. True for the last one.
    pub(crate) fn let_go(&self) -> bool {
        // AcqRel: the last one sees what all others did.
        self.holds.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Ends the generation of a dead queue whose parties have all let go. False where the cell has
    /// none left and must not be used again.
    ///
    /// It comes before the grace period: who is pinned and still reads the old generation was
    /// pinned before, so the cell gets no new owner while it stays pinned.
    pub(crate) fn leave_generation(&self) -> bool {
        let next = self.progress().generation() + 1;
        // SeqCst: before the deferral, whose pins it is compared with.
        self.completion
            .progress
            .store(DEAD | Progress::new(next, 0).0, Ordering::SeqCst);
        next < GENERATIONS - 1
    }

    #[inline]
    pub(crate) fn targets(&self) -> &Pending<Barrier> {
        &self.targets
    }

    #[inline]
    pub(crate) fn seat(&self) -> &Seat {
        &self.completion.seat
    }

    /// What the queue has completed. Sequentially consistent: a publisher's second half.
    #[inline]
    pub(crate) fn progress(&self) -> Progress {
        Progress(self.completion.progress.load(Ordering::SeqCst))
    }

    /// Adds a completion whose number is the count, as that of most is. `None` where that did not
    /// do, or may not have: [`add_completion`](Self::add_completion) finds out.
    ///
    /// What the exchange expects is guessed from the number, so that it need not wait for a load of
    /// what the last exchange has written: that takes as long again as the exchange itself. And
    /// nothing here is called, so that there is nothing to save: an exchange waits for every store
    /// before it.
    #[inline(always)]
    pub(crate) fn add_in_order(&self, generation: u64, word: Word) -> Option<Counted> {
        // Relaxed: the exchange validates it.
        let lead = self.completion.lead.load(statistic::Ordering::Relaxed);
        let guess = Progress(lead.wrapping_add(u64::from(word.id())));
        // Alive, of that generation, and the number in the count's low half: one comparison.
        let in_order = guess.0 & !HIGH_COUNT == generation << COUNT_BITS | u64::from(word.id());
        (in_order && self.exchange(guess).is_ok()).then(|| self.counted(guess))
    }

    /// Adds a completion of the dispatch `word` of the queue of that `generation`.
    #[inline(never)]
    pub(crate) fn add_completion(&self, generation: u64, word: Word) -> Counted {
        // Acquire, as where the exchange fails: with each completion that it counts that one's dispatch is
        // seen, so that none of them is missed by who asks below whether a dispatch is left.
        let mut seen = Progress(self.completion.progress.load(overtaken()));
        loop {
            if !seen.is_live(generation) && crate::sync::stands(crate::sync::Step::GenerationCheck)
            {
                return Counted::Gone;
            }
            // A dispatch that is itself not behind the count proves that one is left. Only where
            // completions overtook each other does it take a look at the dispatching half's line.
            if (word.id().wrapping_sub(seen.0 as u32) as i32) < 0 && !self.has_dispatch_left(seen) {
                return Counted::Ahead;
            }
            match self.exchange(seen) {
                Ok(_) => break,
                Err(now) => seen = Progress(now),
            }
        }
        // The next ones may come in order again, or keep this distance, and then nothing is
        // guessed. Relaxed: it is a guess.
        let lead = seen.0.wrapping_sub(u64::from(word.id()));
        self.completion
            .lead
            .store(lead, statistic::Ordering::Relaxed);
        self.counted(seen)
    }

    /// Adds a completion, if the progress is still as it was seen; else what it is now.
    #[inline(always)]
    fn exchange(&self, seen: Progress) -> Result<u64, u64> {
        // SeqCst, with the load of `due` that follows: the completer's half of the store-buffering
        // pair. Where a publisher's second read of the count misses this one, that load sees what
        // it published.
        self.completion
            .progress
            .compare_exchange(seen.0, seen.0 + 1, Ordering::SeqCst, overtaken())
    }

    /// Whether something is due, for who has counted one more than was seen.
    #[inline(always)]
    fn counted(&self, seen: Progress) -> Counted {
        between_store_and_load();
        if seen.count() + 1 < self.completion.due.load(Ordering::SeqCst)
            || !crate::sync::stands(crate::sync::Step::CompleterReadsDue)
        {
            Counted::Quiet
        } else {
            Counted::Due
        }
    }

    #[cold]
    fn has_dispatch_left(&self, seen: Progress) -> bool {
        // Relaxed: a ticket came from a dispatch, which happened before its completion, and the caller has
        // acquired the completions that it has seen.
        let dispatched = Word(self.word.load(Ordering::Relaxed)).id();
        dispatched.wrapping_sub(seen.0 as u32) as i32 > 0
    }

    /// Whether `word` is of a dispatch that the living queue of that generation has not had.
    pub(crate) fn is_ahead(&self, generation: u64, word: Word) -> bool {
        let dispatched = Word(self.word.load(Ordering::Relaxed)).id();
        self.progress().is_live(generation) && (dispatched.wrapping_sub(word.id()) as i32) <= 0
    }

    /// Declares the queue dead. False if it is not a live queue of that generation.
    pub(crate) fn kill(&self, generation: u64) -> bool {
        let mut seen = self.completion.progress.load(Ordering::Relaxed);
        loop {
            if !Progress(seen).is_live(generation) {
                return false;
            }
            // SeqCst: a removal is a completion of everything, and pairs with publishers alike.
            match self.completion.progress.compare_exchange_weak(
                seen,
                seen | DEAD,
                Ordering::SeqCst,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// The 64-bit number whose low half is `id`, next to what has been completed.
    #[inline]
    pub(crate) fn widen(&self, id: u32) -> u64 {
        let near = self.progress().count();
        near.wrapping_add_signed(i64::from(id.wrapping_sub(near as u32) as i32))
    }

    /// Announces that something is due at `count`; true if that is reached already: settle.
    ///
    /// Call it after pushing to [`targets`](Self::targets) or `tags`.
    pub(crate) fn announce(&self, count: u64) -> bool {
        // SeqCst, with the load below: the publisher's half of the store-buffering pair. Where
        // the load misses a completion, that completion's load of `due` sees this.
        self.completion.due.fetch_min(count, Ordering::SeqCst);
        between_store_and_load();
        self.progress().reached() >= count
            && crate::sync::stands(crate::sync::Step::PublisherRereads)
    }

    /// Takes away what is due: whoever looks now looks at everything that was pushed before.
    pub(crate) fn take_due(&self) {
        // SeqCst: a publisher whose announcement this takes away pushed before it; the swap reads
        // from it, so what it pushed is seen.
        self.completion.due.swap(NEVER, Ordering::SeqCst);
    }
}

impl fmt::Debug for QueueCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Word(self.word.load(Ordering::Relaxed));
        let progress = Progress(self.completion.progress.load(Ordering::Relaxed));
        f.debug_struct("QueueCell")
            .field("dispatched", &word.id())
            .field("epoch", &word.epoch())
            .field("completed", &progress.count())
            .field("dead", &progress.is_dead())
            .field("seat", self.seat())
            .finish_non_exhaustive()
    }
}

/// The first cells are in chunks of so many, and found by two shifts: the address is what a completion
/// waits for. For model checkers each atomic costs, used or not.
const FEW_CHUNK: usize = if cfg!(any(hsa_serializer_loom, hsa_serializer_shuttle)) {
    2
} else {
    8
};
/// How many they are.
const FEW: usize = 64 * FEW_CHUNK;
/// The chunks after that grow by a quarter of what there is: four of them double the number of cells.
/// They are as many as an index of [`INDEX_BITS`] can name.
const MANY_CHUNKS: usize = 4 * (INDEX_BITS - FEW.ilog2()) as usize;
/// How many cells a slab can have.
pub(crate) const CELLS: usize = (1 << INDEX_BITS) - 8;

/// How a completion that may have been overtaken looks at the progress: with each completion that is counted
/// there it has to see that one's dispatch.
#[inline(always)]
fn overtaken() -> Ordering {
    if crate::sync::stands(crate::sync::Step::OvertakenAcquires) {
        Ordering::Acquire
    } else {
        Ordering::Relaxed
    }
}

/// Cells by index, in chunks that never move and live as long as the slab.
pub(crate) struct Slab {
    /// The first cell of each chunk; null until it is made.
    few: [AtomicPtr<QueueCell>; FEW / FEW_CHUNK],
    many: [AtomicPtr<QueueCell>; MANY_CHUNKS],
}

/// Where a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    chunk: usize,
    /// Within the chunk.
    cell: usize,
    /// How many cells the chunk has.
    size: usize,
}

impl Slab {
    pub(crate) fn new() -> Self {
        Self {
            few: std::array::from_fn(|_| AtomicPtr::default()),
            many: std::array::from_fn(|_| AtomicPtr::default()),
        }
    }

    /// The place of one of the first cells.
    #[inline(always)]
    fn few(index: usize) -> Place {
        Place {
            chunk: index / FEW_CHUNK,
            cell: index % FEW_CHUNK,
            size: FEW_CHUNK,
        }
    }

    /// The place of one of the others: the index's first bit says which four chunks, the next two which
    /// of them.
    fn many(index: usize) -> Place {
        let size_log = index.ilog2() - 2;
        let four = (size_log - (FEW.ilog2() - 2)) as usize;
        let size = 1 << size_log;
        Place {
            chunk: 4 * four + (index >> size_log) - 4,
            cell: index & (size - 1),
            size,
        }
    }

    /// The cell of that index, if its chunk was made. `index` has [`INDEX_BITS`] at most.
    #[inline(always)]
    pub(crate) fn get(&self, index: u32) -> Option<&QueueCell> {
        let index = index as usize;
        if index >= FEW {
            return self.get_of_many(index);
        }
        let place = Self::few(index);
        // SAFETY: the chunk has more cells than `place` says.
        unsafe { Self::cell(&self.few[place.chunk], place.cell) }
    }

    /// Whether a look at that index calls nothing.
    #[inline(always)]
    pub(crate) fn is_near(index: u32) -> bool {
        (index as usize) < FEW
    }

    #[inline(never)]
    fn get_of_many(&self, index: usize) -> Option<&QueueCell> {
        let place = Self::many(index);
        // SAFETY: as above.
        unsafe { Self::cell(&self.many[place.chunk], place.cell) }
    }

    /// # Safety
    /// The chunk, if it was made, has more than `place` cells.
    #[inline(always)]
    unsafe fn cell(chunk: &AtomicPtr<QueueCell>, place: usize) -> Option<&QueueCell> {
        // Acquire: the cells as they were made.
        let first = chunk.load(Ordering::Acquire);
        // SAFETY: the caller's promise; a chunk stays where it is until the slab is dropped, and the
        // chunk's borrow is one of the slab.
        (!first.is_null()).then(|| unsafe { &*first.add(place) })
    }

    /// The cell of that index, making its chunk where needed. `index` is below [`CELLS`]; one caller at
    /// a time.
    pub(crate) fn make(&self, index: u32) -> &QueueCell {
        if let Some(cell) = self.get(index) {
            return cell;
        }
        let index = index as usize;
        let (place, chunks) = if index < FEW {
            (Self::few(index), &self.few[..])
        } else {
            (Self::many(index), &self.many[..])
        };
        let cells: Box<[QueueCell]> = (0..place.size).map(|_| QueueCell::new()).collect();
        let first = Box::into_raw(cells).cast::<QueueCell>();
        // Release: who finds the chunk sees its cells.
        chunks[place.chunk].store(first, Ordering::Release);
        // SAFETY: it has more cells than `place` says, and stays until the slab is dropped.
        unsafe { &*first.add(place.cell) }
    }

    /// All chunks, with how many cells each has if it was made.
    fn chunks(&self) -> impl Iterator<Item = (&AtomicPtr<QueueCell>, usize)> {
        let many = self.many.iter().enumerate();
        let few = self.few.iter().map(|chunk| (chunk, FEW_CHUNK));
        few.chain(many.map(|(i, chunk)| (chunk, (FEW / 4) << (i / 4))))
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        for (chunk, size) in self.chunks() {
            let first = chunk.load(Ordering::Relaxed);
            if !first.is_null() {
                let cells = ptr::slice_from_raw_parts_mut(first, size);
                // SAFETY: it was made by `Box::into_raw` with so many cells, and nobody else is here.
                drop(unsafe { Box::from_raw(cells) });
            }
        }
    }
}

impl fmt::Debug for Slab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made =
            |(chunk, _): &(&AtomicPtr<QueueCell>, _)| !chunk.load(Ordering::Relaxed).is_null();
        let chunks = self.chunks().filter(made).count();
        f.debug_struct("Slab").field("chunks", &chunks).finish()
    }
}

#[cfg(all(test, not(any(hsa_serializer_loom, hsa_serializer_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn stamps_keep_the_count_where_the_epoch_wraps() {
        let word = AtomicU64::new(Word::new(7, u32::MAX).0);
        word.fetch_add(stamp_increment(u32::MAX, 0), Ordering::Relaxed);
        assert_eq!(Word(word.load(Ordering::Relaxed)), Word::new(7, 0));
        word.fetch_add(stamp_increment(0, 1), Ordering::Relaxed);
        assert_eq!(Word(word.load(Ordering::Relaxed)), Word::new(7, 1));
        let word = AtomicU64::new(Word::new(7, u32::MAX - 1).0);
        word.fetch_add(stamp_increment(u32::MAX - 1, 0), Ordering::Relaxed);
        assert_eq!(Word(word.load(Ordering::Relaxed)), Word::new(7, 0));
    }

    #[test]
    fn the_count_falls_off_the_top_and_the_epoch_stays() {
        let word = AtomicU64::new(Word::new(u32::MAX, 5).0);
        word.fetch_add(DISPATCH, Ordering::Relaxed);
        assert_eq!(Word(word.load(Ordering::Relaxed)), Word::new(0, 5));
    }

    fn alive(count: u64, dispatched: u32) -> QueueCell {
        let cell = QueueCell::new();
        cell.adopt(HOLDS, count, 0);
        cell.word
            .store(Word::new(dispatched, 0).0, Ordering::Relaxed);
        cell
    }

    #[test]
    fn ids_widen_around_the_completions() {
        let cell = alive((1 << 32) - 2, u32::MAX - 1);
        assert_eq!(cell.widen(u32::MAX - 1), (1 << 32) - 2);
        assert_eq!(cell.widen(1), (1 << 32) + 1);
        assert_eq!(cell.widen(u32::MAX - 2), (1 << 32) - 3);
    }

    #[test]
    fn a_completion_of_another_life_is_not_counted() {
        let cell = alive(0, 2);
        assert_eq!(cell.add_completion(1, Word::new(0, 0)), Counted::Gone);
        assert_eq!(cell.add_completion(0, Word::new(0, 0)), Counted::Quiet);
        assert!(!cell.kill(1));
        assert!(cell.kill(0));
        assert!(!cell.kill(0));
        assert_eq!(cell.add_completion(0, Word::new(1, 0)), Counted::Gone);
        assert_eq!(cell.progress().count(), 1);
        assert!(cell.leave_generation());
        cell.adopt(HOLDS, 0, 0);
        assert_eq!(cell.add_completion(0, Word::new(1, 0)), Counted::Gone);
        assert_eq!(cell.progress(), Progress::new(1, 0));
    }

    #[test]
    fn completions_ahead_of_the_dispatches_are_refused() {
        let cell = alive(0, 2);
        assert_eq!(cell.add_completion(0, Word::new(1, 0)), Counted::Quiet);
        assert_eq!(cell.add_completion(0, Word::new(0, 0)), Counted::Quiet);
        assert_eq!(cell.add_completion(0, Word::new(0, 0)), Counted::Ahead);
        assert_eq!(cell.progress().count(), 2);
    }

    #[test]
    fn places_are_dense_and_distinct() {
        let slab = Slab::new();
        let sizes: Vec<_> = slab.chunks().map(|(_, size)| size).collect();
        let mut expected = (0, 0);
        for index in 0..100_000 {
            let (place, before) = if index < FEW {
                (Slab::few(index), 0)
            } else {
                (Slab::many(index), slab.few.len())
            };
            assert_eq!((before + place.chunk, place.cell), expected);
            assert_eq!(place.size, sizes[expected.0]);
            expected.1 += 1;
            if expected.1 == place.size {
                expected = (expected.0 + 1, 0);
            }
        }
        // Every index that an id can name is of a chunk that there is, made or not.
        let last = Slab::many((1 << INDEX_BITS) - 1);
        assert_eq!((last.chunk, last.cell), (MANY_CHUNKS - 1, last.size - 1));
        assert!(slab.get((1 << INDEX_BITS) - 1).is_none());
    }

    #[test]
    fn at_most_a_quarter_of_many_cells_is_not_used_yet() {
        for cells in FEW + 1..10_000 {
            let place = Slab::many(cells - 1);
            let unused = place.size - 1 - place.cell;
            assert!(4 * unused <= cells, "{unused} of {cells}");
        }
    }

    #[test]
    fn a_cell_stays_where_it_is_and_goes_with_its_slab() {
        let slab = Slab::new();
        let first = ptr::from_ref(slab.make(0));
        for index in 0..1000 {
            let made = ptr::from_ref(slab.make(index));
            assert_eq!(slab.get(index).map(ptr::from_ref), Some(made));
        }
        assert_eq!(slab.get(0).map(ptr::from_ref), Some(first));
    }

    #[test]
    fn a_cell_runs_out_of_generations() {
        let cell = alive(0, 0);
        for _ in 0..GENERATIONS - 2 {
            assert!(cell.leave_generation());
        }
        assert!(!cell.leave_generation());
    }
}
