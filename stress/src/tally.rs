//! How often each thing was done.

use crate::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<BTreeMap<&'static str, u64>>);

impl Tally {
    pub(crate) fn add(&self, what: &'static str, n: u64) {
        *lock(&self.0).entry(what).or_default() += n;
    }

    pub(crate) fn at_least(&self, what: &'static str, n: u64) {
        let mut all = lock(&self.0);
        let most = all.entry(what).or_default();
        *most = n.max(*most);
    }

    pub(crate) fn of(&self, what: &str) -> u64 {
        lock(&self.0).get(what).copied().unwrap_or(0)
    }

    /// Adds all of the other's, but for what is a maximum.
    pub(crate) fn take(&self, other: &Self) {
        for (what, n) in &*lock(&other.0) {
            if what.starts_with("most ") {
                self.at_least(what, *n);
            } else {
                self.add(what, *n);
            }
        }
    }

    /// All of them, by name.
    pub(crate) fn list(&self) -> Vec<(&'static str, u64)> {
        lock(&self.0).iter().map(|(what, n)| (*what, *n)).collect()
    }
}
