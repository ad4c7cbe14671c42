//! Where the other calls find what a handle names.
//!
//! One immutable map, replaced as a whole: looking up takes no lock, so that a handle can be used in a
//! child of fork, whatever other threads of the parent's were doing. Who takes something out is the one
//! whose replacement took it away, so what is ended is ended once.

use crate::status::{
    HSA_SERIALIZER_BUSY, HSA_SERIALIZER_FOREIGN_HANDLE, HSA_SERIALIZER_STALE_HANDLE, Outcome,
    hsa_serializer_status_t,
};
use arc_swap::ArcSwapOption;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What the handles of one kind name.
pub(crate) struct Objects<T> {
    given: AtomicU64,
    map: ArcSwapOption<HashMap<u64, Arc<T>>>,
}

impl<T> Objects<T> {
    pub(crate) const fn new() -> Self {
        Self {
            given: AtomicU64::new(0),
            map: ArcSwapOption::const_empty(),
        }
    }

    /// Keeps it, and says under which number.
    pub(crate) fn keep(&self, object: T) -> u64 {
        // Relaxed: numbers differ, and that is all.
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        self.keep_as(number, object);
        number
    }

    /// Keeps it under a number of somebody else's.
    pub(crate) fn keep_as(&self, number: u64, object: T) {
        let object = Arc::new(object);
        self.map.rcu(|map| {
            let mut map = map.as_deref().cloned().unwrap_or_default();
            map.insert(number, object.clone());
            Some(Arc::new(map))
        });
    }

    /// Keeps it under that number unless something is kept there, and says what is.
    pub(crate) fn keep_first(&self, number: u64, object: T) -> Arc<T> {
        let object = Arc::new(object);
        let before = self.map.rcu(|map| {
            let mut map = map.as_deref().cloned().unwrap_or_default();
            map.entry(number).or_insert_with(|| object.clone());
            Some(Arc::new(map))
        });
        let first = before.and_then(|map| map.get(&number).cloned());
        first.unwrap_or(object)
    }

    /// All that is kept.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let map = self.map.load();
        map.iter().flat_map(|map| map.values().cloned()).collect()
    }

    pub(crate) fn find(&self, number: u64) -> Outcome<Arc<T>> {
        let map = self.map.load();
        let found = map.as_ref().and_then(|map| map.get(&number));
        found.cloned().ok_or_else(|| self.not_there(number))
    }

    /// Takes it out: of several who try, one does.
    pub(crate) fn take(&self, number: u64) -> Outcome<Arc<T>> {
        let before = self.map.rcu(|map| {
            let mut map = map.as_deref().cloned()?;
            map.remove(&number);
            Some(Arc::new(map))
        });
        let taken = before.and_then(|map| map.get(&number).cloned());
        taken.ok_or_else(|| self.not_there(number))
    }

    fn not_there(&self, number: u64) -> hsa_serializer_status_t {
        if number < self.given.load(Ordering::Relaxed) {
            HSA_SERIALIZER_STALE_HANDLE
        } else {
            HSA_SERIALIZER_FOREIGN_HANDLE
        }
    }
}

/// Takes a value out that calls come for one at a time, and its number with it. It waits for nobody: a thread that
/// has it may be one that the child of a fork does not have.
pub(crate) fn take_from<T>(objects: &Objects<Mutex<Option<T>>>, number: u64) -> Outcome<T> {
    let object = objects.find(number)?;
    let mut held = object.try_lock().map_err(|_| HSA_SERIALIZER_BUSY)?;
    let value = held.take().ok_or(HSA_SERIALIZER_STALE_HANDLE)?;
    objects.take(number)?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_taken_once_and_its_number_is_stale() {
        static OBJECTS: Objects<u32> = Objects::new();
        let objects = &OBJECTS;
        assert_eq!(objects.find(0), Err(HSA_SERIALIZER_FOREIGN_HANDLE));
        assert_eq!(objects.take(0), Err(HSA_SERIALIZER_FOREIGN_HANDLE));
        let numbers = [7, 8].map(|value| objects.keep(value));
        assert_eq!(*objects.find(numbers[1]).unwrap(), 8);
        let takers: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(move || objects.take(numbers[0])))
            .collect();
        let took = takers.into_iter().map(|t| t.join().unwrap());
        assert_eq!(took.filter(Result::is_ok).count(), 1);
        assert_eq!(objects.find(numbers[0]), Err(HSA_SERIALIZER_STALE_HANDLE));
        assert_eq!(objects.find(2), Err(HSA_SERIALIZER_FOREIGN_HANDLE));
    }
}
