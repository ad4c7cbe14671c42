//! What was passed over, by reason.

use std::collections::BTreeMap;
use std::fmt;

use crate::text::snippet;

/// Why a row or an event is not among the kernels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A row of another `Kind` than `KERNEL_DISPATCH`.
    Kind(String),
    /// A complete event of a category that is no kernel. Copies and fills (`gpu_memcpy`,
    /// `gpu_memset`) are among them: they are no kernel dispatches.
    Category(String),
    /// A complete event without a category.
    NoCategory,
    /// An event of another phase than `X`: metadata, flows, instants, counters.
    Phase(String),
    /// Half of a kernel that is written as a pair of begin (`B`) and end (`E`), as PyTorch's
    /// profiler does not. These are kernels that are lost.
    KernelHalf,
    /// An event without a phase or a kernel's category, such as the `{}` that ends some lists.
    NoPhase,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Kind(kind) => write!(f, "of kind {}", snippet(kind)),
            Reason::Category(category) => write!(f, "of category {}", snippet(category)),
            Reason::NoCategory => f.write_str("without a category"),
            Reason::Phase(phase) => write!(f, "of phase {}", snippet(phase)),
            Reason::KernelHalf => f.write_str("kernels as begin/end pairs"),
            Reason::NoPhase => f.write_str("without a phase"),
        }
    }
}

/// How many rows or events were skipped, by [`Reason`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skipped(BTreeMap<Reason, u64>);

impl Skipped {
    pub(crate) fn add(&mut self, reason: Reason) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// How many in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// How many for one reason.
    #[must_use]
    pub fn count(&self, reason: &Reason) -> u64 {
        self.0.get(reason).copied().unwrap_or(0)
    }

    /// The reasons that occurred, in order, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (&Reason, u64)> {
        self.0.iter().map(|(reason, &count)| (reason, count))
    }
}

/// `3 of category "gpu_memcpy", 1 of phase "M"`, or `none`; no more than eight reasons are named.
impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMED: usize = 8;
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (i, (reason, count)) in self.iter().take(NAMED).enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{count} {reason}")?;
        }
        let more: u64 = self.iter().skip(NAMED).map(|(_, count)| count).sum();
        if more > 0 {
            write!(f, ", {more} others")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_most_eight_reasons() {
        let mut skipped = Skipped::default();
        assert_eq!(skipped.to_string(), "none");
        for i in 0..10 {
            skipped.add(Reason::Kind(i.to_string()));
        }
        skipped.add(Reason::Kind("0".into()));
        assert_eq!(skipped.total(), 11);
        assert_eq!(skipped.count(&Reason::Kind("0".into())), 2);
        assert_eq!(skipped.count(&Reason::NoPhase), 0);
        let text = skipped.to_string();
        assert!(
            text.starts_with("2 of kind \"0\", 1 of kind \"1\""),
            "{text}"
        );
        assert!(text.ends_with("1 of kind \"7\", 2 others"), "{text}");
    }
}
