//! Busy time, overlap and makespan of one agent's kernels.

/// What is measured; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// The kernels' own times together.
    pub(crate) sum: u128,
    /// While at least one ran.
    pub(crate) busy: u64,
    /// While at least two ran.
    pub(crate) overlap: u64,
    /// How many ran at once.
    pub(crate) most: usize,
    /// From the first submission to the last end.
    pub(crate) makespan: u64,
}

impl Times {
    /// Measures kernels, given as start and end; the first was submitted at `first`.
    pub(crate) fn of(first: u64, kernels: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut times = Self::default();
        let mut changes = Vec::new();
        for (start, end) in kernels {
            times.sum += u128::from(end - start);
            times.makespan = times.makespan.max(end - first);
            // One that takes no time runs beside nothing.
            if start < end {
                changes.extend([(start, true), (end, false)]);
            }
        }
        // At one moment, ends come first: false is less than true.
        changes.sort_unstable();
        let (mut running, mut since) = (0, first);
        for (now, starts) in changes {
            if running >= 1 {
                times.busy += now - since;
            }
            if running >= 2 {
                times.overlap += now - since;
            }
            since = now;
            if starts {
                running += 1;
            } else {
                running -= 1;
            }
            times.most = times.most.max(running);
        }
        times
    }
}
