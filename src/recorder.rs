//! The flight recorder: the last few hundred [events](crate::event) with their times, always on.
//!
//! # Participants
//! - *Writers*, any number at once, on slow paths. They never wait: a writer does a fixed number of
//!   steps, and where it finds its slot in use it gives its record up, which is counted.
//! - *Readers*, any number, at any moment.
//!
//! # A slot's states, by its stamp
//! | stamp | meaning | next |
//! |---|---|---|
//! | 0 | empty | claimed by a writer |
//! | 2n + 1 | record n is being written | the same writer stores 2n + 2 |
//! | 2n + 2 | record n is complete | claimed by a writer of a later record |
//!
//! A writer takes the next number, or has one of its own; the slot follows from it. It claims the slot by compare-exchange from
//! a complete (or empty) stamp of an earlier record, so a slot has one writer at a time. A slot that is
//! claimed, or holds a later record, is that of a writer that was interrupted for so long that the ring
//! has gone round; the record of whoever comes second is lost.
//!
//! A reader reads the stamp, the words, and the stamp again, and takes the record only if the stamp was
//! complete and is the same.
//!
//! Grants have a recorder of their own, or a serialized millisecond would push out all else. Who grants is
//! alone until the grant is given, and numbers grants anyway. So it [claims](Recorder::claim_alone)
//! its slot by a store and completes the record when the grant is given, which then need not wait for the
//! clock. Slots that are claimed so and never otherwise have one claimer at a time.
//!
//! # Orderings
//! Claiming acquires what the former writer stored, so that of each word the later record's value is
//! the later one. The words are stored with release and loaded with acquire: who reads a word of a
//! record sees that record's claim, so the second look at the stamp can't be the old one. The complete
//! stamp is stored with release and loaded with acquire: who sees it sees all of the record's words.

use crate::sync::{AtomicU64, Ordering, Step, stands, statistic};

/// Records that are kept. loom wants writers to meet.
pub(crate) const SLOTS: usize = if cfg!(hsa_serializer_loom) { 1 } else { 256 };

/// What a record consists of.
pub(crate) const WORDS: usize = 4;

#[derive(Debug)]
struct Slot {
    stamp: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Recorder {
    slots: Box<[Slot]>,
    /// Not ordered with anything: of two numbers the later one wins, whoever took it.
    next: AtomicU64,
    lost: statistic::AtomicU64,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        let slot = |_| Slot {
            stamp: AtomicU64::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        };
        Self {
            slots: (0..SLOTS).map(slot).collect(),
            next: AtomicU64::new(0),
            lost: statistic::AtomicU64::new(0),
        }
    }

    /// Keeps a record, or gives it up where its slot is in use.
    pub(crate) fn write(&self, words: [u64; WORDS]) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if !self.slot(number).claim(2 * number + 1) {
            self.lost.fetch_add(1, statistic::Ordering::Relaxed);
            return;
        }
        self.complete(number, words);
    }

    /// Claims the slot of that number for a record that is [completed](Self::complete) later, where nobody
    /// else claims meanwhile, and nobody ever by [`write`](Self::write). False where it is in use: then the
    /// record is lost.
    #[must_use]
    #[inline]
    pub(crate) fn claim_alone(&self, number: u64) -> bool {
        let slot = self.slot(number);
        // Acquire: as for an exchange.
        if slot.stamp.load(Ordering::Acquire) % 2 == 1 && stands(Step::AloneIfFree) {
            self.lost.fetch_add(1, statistic::Ordering::Relaxed);
            return false;
        }
        // Relaxed: who reads a word of this record sees this store, as the words are stored with release.
        slot.stamp.store(2 * number + 1, Ordering::Relaxed);
        true
    }

    /// Writes the record of that number, whose slot the caller has [claimed](Self::claim_alone).
    #[inline]
    pub(crate) fn complete(&self, number: u64, words: [u64; WORDS]) {
        self.slot(number).fill(words, 2 * number + 2);
    }

    /// Gives the slot of that number back as it is claimed, for who is alone in claiming still: nothing is
    /// recorded in it.
    pub(crate) fn unclaim(&self, number: u64) {
        // Release: for the next claim, as a completed record.
        self.slot(number).stamp.store(0, Ordering::Release);
    }

    #[inline]
    fn slot(&self, number: u64) -> &Slot {
        &self.slots[number as usize % SLOTS]
    }

    /// The number that the next record gets which is [written](Self::write).
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// The records that are complete, oldest first, with their numbers.
    pub(crate) fn read(&self) -> Vec<(u64, [u64; WORDS])> {
        let mut records: Vec<_> = self.slots.iter().filter_map(Slot::read).collect();
        records.sort_unstable_by_key(|(number, _)| *number);
        records
    }

    /// Records that were given up.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(statistic::Ordering::Relaxed)
    }
}

impl Slot {
    fn fill(&self, words: [u64; WORDS], complete: u64) {
        for (word, value) in self.words.iter().zip(words) {
            word.store(value, Ordering::Release);
        }
        self.stamp.store(complete, Ordering::Release);
    }

    fn claim(&self, claimed: u64) -> bool {
        if !stands(Step::RecordClaimed) {
            return true;
        }
        let seen = self.stamp.load(Ordering::Relaxed);
        if seen % 2 == 1 || seen > claimed {
            return false;
        }
        if !stands(Step::ClaimByExchange) {
            self.stamp.swap(claimed, Ordering::AcqRel);
            return true;
        }
        self.stamp
            .compare_exchange(seen, claimed, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// The number of the record that it holds, if it is complete, and the record.
    fn read(&self) -> Option<(u64, [u64; WORDS])> {
        let stamp = self.stamp.load(Ordering::Acquire);
        if stamp == 0 || stamp % 2 == 1 {
            return None;
        }
        let words = std::array::from_fn(|i| self.words[i].load(Ordering::Acquire));
        // Relaxed: see the module. Where a word was of a later record, that one's claim is seen.
        let same = self.stamp.load(Ordering::Relaxed) == stamp;
        (same || !stands(Step::StampReadAgain)).then_some((stamp / 2 - 1, words))
    }
}

#[cfg(all(test, not(any(hsa_serializer_loom, hsa_serializer_shuttle))))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_last_ones_are_kept_in_order() {
        let recorder = Recorder::new();
        assert!(recorder.read().is_empty());
        for n in 0..3 * SLOTS as u64 + 5 {
            recorder.write([n; WORDS]);
        }
        let kept: Vec<_> = recorder
            .read()
            .iter()
            .map(|(number, words)| {
                assert_eq!(*number, words[0]);
                words[0]
            })
            .collect();
        let last = 3 * SLOTS as u64 + 5;
        let expected: Vec<_> = (last - SLOTS as u64..last).collect();
        assert_eq!((kept, recorder.lost()), (expected, 0));
    }

    #[test]
    fn a_writer_that_is_interrupted_costs_records_and_nobody_waits() {
        let recorder = Recorder::new();
        recorder.write([0; WORDS]);
        // A writer that stands still in the second slot.
        let stuck = recorder.next.fetch_add(1, Ordering::Relaxed);
        assert!(recorder.slots[1].claim(2 * stuck + 1));
        for n in 2..2 * SLOTS as u64 + 2 {
            recorder.write([n; WORDS]);
        }
        assert_eq!(recorder.lost(), 2);
        let kept = recorder.read();
        assert_eq!(kept.len(), SLOTS - 1);
        assert!(kept.iter().all(|(number, _)| *number > SLOTS as u64));
        // One that comes after the ring has gone round.
        assert!(!recorder.slots[0].claim(1));
    }

    #[test]
    fn who_is_alone_is_refused_what_is_in_use_and_gives_back_what_it_claimed() {
        let recorder = Recorder::new();
        let (round, words) = (SLOTS as u64, [5; WORDS]);
        for (lost, number) in [0, 2, 7].into_iter().enumerate() {
            assert!(recorder.claim_alone(number));
            assert!(recorder.read().is_empty());
            assert!(!recorder.claim_alone(number + round));
            assert_eq!(recorder.lost(), lost as u64 + 1);
            recorder.unclaim(number);
            assert!(recorder.read().is_empty());
            assert!(recorder.claim_alone(number + round));
            recorder.complete(number + round, words);
            assert_eq!(recorder.read(), [(number + round, words)]);
            assert!(recorder.claim_alone(number + 2 * round));
            assert!(recorder.read().is_empty());
        }
    }

    #[test]
    fn records_of_many_threads_are_never_torn() {
        const RECORDS: u64 = 100_000;
        let recorder = Recorder::new();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|thread| {
                    let recorder = &recorder;
                    scope.spawn(move || {
                        (0..RECORDS).for_each(|n| recorder.write([n * 3 + thread; WORDS]));
                    })
                })
                .collect();
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    for (_, words) in recorder.read() {
                        assert_eq!(words, [words[0]; WORDS], "a record was torn");
                    }
                }
            });
            for writer in writers {
                writer.join().unwrap();
            }
            over.store(true, Ordering::Relaxed);
        });
        assert!(recorder.read().len() as u64 + recorder.lost() >= SLOTS as u64);
    }
}
