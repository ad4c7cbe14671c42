//! Where the hot calls find what a handle names: entries by number, which never move and never go.
//!
//! The first ones lie in a static array, so that their addresses are computed and not loaded. Behind them
//! are blocks of memory, each twice as long as the one before, made when they are needed.
//!
//! A number is given once, so an entry has one owner for ever, and who comes late finds it ended. That is
//! what an entry costs for each queue and each serializer that ever was.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Entries of one type. `FIRST` is a power of two.
pub(crate) struct Directory<T, const FIRST: usize> {
    given: AtomicU32,
    first: [T; FIRST],
    more: [OnceLock<Box<[T]>>; BLOCKS],
}

/// With `FIRST` of 64, some 2^31 entries.
const BLOCKS: usize = 25;

impl<T: Default, const FIRST: usize> Directory<T, FIRST> {
    pub(crate) const fn new(first: [T; FIRST]) -> Self {
        assert!(FIRST.is_power_of_two());
        Self {
            given: AtomicU32::new(0),
            first,
            more: [const { OnceLock::new() }; BLOCKS],
        }
    }

    /// Gives a number out, with its entry, which is as it was made. `None` where none is left.
    pub(crate) fn give(&self) -> Option<(u64, &T)> {
        // Relaxed: who hears of the number hears of what was done to its entry.
        let given = self
            .given
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_add(1))
            .ok()?;
        let number = u64::from(given);
        if given as usize >= FIRST {
            let (block, _) = Self::place(number)?;
            let length = FIRST << block;
            self.more[block].get_or_init(|| (0..length).map(|_| T::default()).collect());
        }
        Some((number, self.get(number)?))
    }

    /// The entry of that number, if its address is computed.
    #[inline(always)]
    pub(crate) fn get_first(&self, number: u64) -> Option<&T> {
        (number < FIRST as u64).then(|| &self.first[number as usize])
    }

    /// The entry of that number, if it can have been given out: whether it was, the entry says.
    #[inline(always)]
    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        if number < FIRST as u64 {
            return Some(&self.first[number as usize]);
        }
        self.get_more(number)
    }

    #[inline(never)]
    fn get_more(&self, number: u64) -> Option<&T> {
        let (block, index) = Self::place(number)?;
        self.more[block].get()?.get(index)
    }

    /// The block of a number behind the first ones, and its place there.
    fn place(number: u64) -> Option<(usize, usize)> {
        let number = usize::try_from(number).ok()?;
        let block = (number / FIRST).checked_ilog2()? as usize;
        (block < BLOCKS).then(|| (block, number - (FIRST << block)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn each_number_has_an_entry_of_its_own_that_stays() {
        static DIRECTORY: Directory<AtomicUsize, 4> =
            Directory::new([const { AtomicUsize::new(0) }; 4]);
        assert!(DIRECTORY.get(3).is_some() && DIRECTORY.get(4).is_none());
        for n in 0..100 {
            let (number, entry) = DIRECTORY.give().unwrap();
            assert_eq!((number, entry.load(Ordering::Relaxed)), (n, 0));
            entry.store(n as usize + 1, Ordering::Relaxed);
        }
        for n in 0..100 {
            let entry = DIRECTORY.get(n).unwrap();
            assert_eq!(entry.load(Ordering::Relaxed), n as usize + 1);
        }
        assert!(DIRECTORY.get(128).is_none() && DIRECTORY.get(u64::MAX).is_none());
    }
}
