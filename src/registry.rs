//! What can be found by a number without a lock: the serializers of this process that HSA's handlers
//! have to find, or a debugger.
//!
//! One immutable table, replaced as a whole:
//! - who *looks* pins itself, reads the table, takes a weak handle with it and unpins;
//! - who *changes* copies the table, changes the copy, and puts it in the old one's place by
//!   compare-exchange, again from the start where another change came first. The old table's
//!   destruction is deferred until nobody looks at it.
//!
//! A process has one serializer for each GPU, so the table is short and changes are rare. A
//! serializer that is gone has no entry.

use crate::domain::{Domain, LazyDomain};
use crate::sync::{Ordering, Step, Witness, stands};
use crossbeam_epoch::{Atomic, Owned};

struct Table<T> {
    entries: Vec<(u32, T)>,
    witness: Witness,
}

/// What to find by a number: weak handles of serializers, but in tests.
pub(crate) struct Registry<T> {
    table: Atomic<Table<T>>,
    /// Its own: a runtime is dropped by deferred callbacks of the serializers' domain, while that is
    /// pinned.
    domain: LazyDomain,
}

impl<T: Clone + Send + Sync + 'static> Registry<T> {
    #[cfg(not(hsa_serializer_loom))]
    pub(crate) const fn new() -> Self {
        Self {
            table: Atomic::null(),
            domain: LazyDomain::new(),
        }
    }

    /// loom's atomics are made within a model.
    #[cfg(hsa_serializer_loom)]
    pub(crate) fn new() -> Self {
        Self {
            table: Atomic::null(),
            domain: LazyDomain::new(),
        }
    }

    pub(crate) fn domain(&self) -> Domain {
        self.domain.get()
    }

    /// The serializer of that number, if it has not been dropped.
    ///
    /// The caller is not pinned here when it gets it: it may use it as it likes.
    #[cfg(any(feature = "hsa", hsa_serializer_loom, test))]
    pub(crate) fn find(&self, instance: u32) -> Option<T> {
        let guard = self.domain().pin();
        // Acquire: pairs with the exchange that put the table in its place.
        let table = self.table.load(Ordering::Acquire, &guard);
        // SAFETY: a table is destroyed when everybody has unpinned who was pinned when it was
        // replaced.
        let table = unsafe { table.as_ref() }?;
        table.witness.is_used("table");
        let (_, found) = table
            .entries
            .iter()
            .find(|(number, _)| *number == instance)?;
        Some(found.clone())
    }

    /// All that there are. The pin runs nothing: who asks may be a debugger.
    #[cfg(all(
        feature = "debugger",
        not(any(hsa_serializer_loom, hsa_serializer_shuttle))
    ))]
    pub(crate) fn all(&self) -> Vec<T> {
        let domain = self.domain();
        let pin = domain.pin_quietly();
        let table = self.table.load(Ordering::Acquire, pin.guard());
        // SAFETY: as in `find`.
        let entries = unsafe { table.as_ref() }.map(|table| &table.entries);
        let values = entries.into_iter().flatten();
        values.map(|(_, value)| value.clone()).collect()
    }

    pub(crate) fn insert(&self, instance: u32, serializer: T) {
        self.change(|entries| entries.push((instance, serializer.clone())));
    }

    pub(crate) fn remove(&self, instance: u32) {
        self.change(|entries| entries.retain(|(number, _)| *number != instance));
    }

    fn change(&self, change: impl Fn(&mut Vec<(u32, T)>)) {
        let domain = self.domain();
        let guard = domain.pin();
        let mut old = self.table.load(Ordering::Acquire, &guard);
        loop {
            // SAFETY: as in `find`.
            let table = unsafe { old.as_ref() };
            let mut entries = table.map(|t| t.entries.clone()).unwrap_or_default();
            change(&mut entries);
            let new = Owned::new(Table {
                entries,
                witness: Witness::new(),
            });
            if !stands(Step::TableByExchange) {
                old = self.table.swap(new, Ordering::AcqRel, &guard);
                break;
            }
            // AcqRel: who finds the new table sees what is in it.
            match self.table.compare_exchange(
                old,
                new,
                Ordering::AcqRel,
                // Acquire: the table that came first is read next.
                Ordering::Acquire,
                &guard,
            ) {
                Ok(_) => break,
                Err(lost) => old = lost.current,
            }
        }
        if !stands(Step::DeferTable) {
            // SAFETY: as in `find`; it is not freed.
            if let Some(table) = unsafe { old.as_ref() } {
                table.witness.reclaim();
            }
            return;
        }
        let old: Atomic<Table<T>> = old.into();
        domain.defer(&guard, move || {
            // SAFETY: it was replaced, by us alone, and everybody has unpinned since. Null where
            // there was none.
            drop(unsafe { old.try_into_owned() });
        });
        Domain::flush(guard);
        domain.pump();
    }
}

#[cfg(all(test, not(any(hsa_serializer_loom, hsa_serializer_shuttle))))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn what_is_removed_is_not_found_and_is_let_go_at_once() {
        // Like the real one it is not dropped.
        static REGISTRY: Registry<Arc<u32>> = Registry::new();
        let registry = &REGISTRY;
        let values = [Arc::new(1), Arc::new(2)];
        assert_eq!(registry.find(1), None);
        registry.insert(1, values[0].clone());
        registry.insert(2, values[1].clone());
        assert_eq!(registry.find(1).as_deref(), Some(&1));
        registry.remove(1);
        assert_eq!(registry.find(1), None);
        assert_eq!(registry.find(2).as_deref(), Some(&2));
        registry.remove(7);
        registry.remove(2);
        assert_eq!(registry.find(2), None);
        assert_eq!(values.each_ref().map(Arc::strong_count), [1, 1]);
    }

    /// Every table is replaced by one that is made of it: no insertion and no removal is lost, and
    /// nobody reads a table that was destroyed.
    #[test]
    fn threads_do_not_undo_each_others_changes() {
        const THREADS: u32 = 4;
        const ROUNDS: u32 = 500;
        static REGISTRY: Registry<Arc<()>> = Registry::new();
        let registry = &REGISTRY;
        // Made before there are threads: what they hand over inside of the standard library's
        // `Once`, ThreadSanitizer can't see.
        registry.domain();
        let value = Arc::new(());
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let value = &value;
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let number = round * THREADS + thread;
                        registry.insert(number, value.clone());
                        assert!(registry.find(number).is_some(), "{number} was lost");
                        registry.remove(number);
                        assert!(registry.find(number).is_none(), "{number} came back");
                    }
                });
            }
        });
        // What threads that were pinned at the time have held back.
        registry.domain().drain();
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
