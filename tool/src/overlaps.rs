//! Whether serialized kernels ran alone, by the times that the GPU has written down.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// So many kernels are kept back, for those that began earlier and are heard of later: handlers come in
/// any order.
const KEPT: usize = 4096;

/// The kernels of one agent, in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct Overlaps {
    kept: BinaryHeap<Reverse<(u64, u64, bool)>>,
    /// When the last one of all, and of the serialized ones, ended.
    ended: u64,
    serialized_ended: u64,
    /// Kernels that began before another one had ended, one of the two being serialized.
    found: u64,
}

impl Overlaps {
    /// A kernel has ended: when it began, and ended, in ticks of its GPU.
    pub(crate) fn add(&mut self, start: u64, end: u64, serialized: bool) {
        self.kept.push(Reverse((start, end, serialized)));
        while self.kept.len() > KEPT {
            self.look();
        }
    }

    fn look(&mut self) -> bool {
        let Some(Reverse((start, end, serialized))) = self.kept.pop() else {
            return false;
        };
        let before = if serialized {
            self.ended
        } else {
            self.serialized_ended
        };
        self.found += u64::from(start < before);
        self.ended = self.ended.max(end);
        if serialized {
            self.serialized_ended = self.serialized_ended.max(end);
        }
        true
    }

    /// How many there are: no more will come.
    pub(crate) fn finish(mut self) -> u64 {
        while self.look() {}
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kernels: &[(u64, u64, bool)]) -> u64 {
        let mut overlaps = Overlaps::default();
        for &(start, end, serialized) in kernels {
            overlaps.add(start, end, serialized);
        }
        overlaps.finish()
    }

    #[test]
    fn only_what_runs_beside_a_serialized_kernel_is_one_in_whatever_order_it_is_heard_of() {
        let (alone, free) = (true, false);
        assert_eq!(found(&[(0, 5, alone), (5, 9, alone), (9, 12, free)]), 0);
        assert_eq!(found(&[(5, 9, alone), (0, 6, alone)]), 1);
        assert_eq!(found(&[(0, 9, free), (1, 8, free), (2, 3, free)]), 0);
        assert_eq!(found(&[(0, 9, free), (1, 8, alone), (20, 30, alone)]), 1);
        assert_eq!(found(&[(0, 9, alone), (1, 2, free), (3, 4, free)]), 2);
    }

    #[test]
    fn a_long_run_keeps_no_more_than_it_needs() {
        let mut overlaps = Overlaps::default();
        for n in 0..3 * KEPT as u64 {
            overlaps.add(10 * n, 10 * n + 4, true);
        }
        assert_eq!(overlaps.kept.len(), KEPT);
        assert_eq!(overlaps.finish(), 0);
    }
}
