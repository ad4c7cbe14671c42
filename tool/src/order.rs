//! The order in which an application hears of the ends of one queue's kernels.
//!
//! The packet processor ends a kernel with the barrier bit after every earlier one of its queue, so an
//! application may rely on the earlier ones' signals once it has seen that kernel's. A profiler that
//! puts signals of its own in their place hears of the ends from handlers, which come in any order; so
//! it has to tell of such a kernel after it has told of all earlier ones. A kernel without the barrier
//! bit is told of at once: an earlier one may wait for what the application does when it hears of it.

use crate::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

struct State<T> {
    /// The number that the next kernel gets.
    next: u64,
    /// All kernels below this number were told of.
    first: u64,
    /// Those above it that were.
    told: BTreeSet<u64>,
    /// Kernels with the barrier bit that have ended and are not to be told of yet.
    held: BTreeMap<u64, T>,
    /// The queue executes nothing any more: some of its kernels never end.
    finished: bool,
}

/// The ends of one queue's kernels. `T` is what is needed to tell of one.
pub(crate) struct Order<T>(Mutex<State<T>>);

impl<T> Default for Order<T> {
    fn default() -> Self {
        Self(Mutex::new(State {
            next: 0,
            first: 0,
            told: BTreeSet::new(),
            held: BTreeMap::new(),
            finished: false,
        }))
    }
}

impl<T> Order<T> {
    /// A kernel's number. Called in the order of the packets.
    pub(crate) fn number(&self) -> u64 {
        let mut state = lock(&self.0);
        state.next += 1;
        state.next - 1
    }

    /// A kernel has ended: tells of it, and of those that waited for that, as far as it is their turn.
    ///
    /// `tell` is called under the queue's lock, so that nobody comes in between; it may not wait.
    pub(crate) fn ended(&self, number: u64, barrier: bool, end: T, tell: impl Fn(T)) {
        let state = &mut *lock(&self.0);
        if barrier && number > state.first && !state.finished {
            state.held.insert(number, end);
            return;
        }
        tell(end);
        state.told.insert(number);
        while state.told.remove(&state.first) {
            state.first += 1;
            if let Some(end) = state.held.remove(&state.first) {
                tell(end);
                state.told.insert(state.first);
            }
        }
    }

    /// Its queue executes nothing any more: those that wait for kernels which never end are told of.
    pub(crate) fn finish(&self, tell: impl Fn(T)) {
        let state = &mut *lock(&self.0);
        state.finished = true;
        std::mem::take(&mut state.held).into_values().for_each(tell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn told(ends: &[(u64, bool)]) -> Vec<u64> {
        let (order, told) = (Order::default(), RefCell::new(Vec::new()));
        for _ in 0..8 {
            order.number();
        }
        for (number, barrier) in ends {
            order.ended(*number, *barrier, *number, |n| told.borrow_mut().push(n));
        }
        told.into_inner()
    }

    #[test]
    fn one_with_the_barrier_bit_waits_for_all_before_it() {
        let (with, without) = (true, false);
        assert_eq!(told(&[(2, with), (1, with), (0, with)]), [0, 1, 2]);
        assert_eq!(told(&[(2, without), (1, with), (0, without)]), [2, 0, 1]);
        assert_eq!(told(&[(3, with), (1, without), (0, with)]), [1, 0]);
    }

    #[test]
    fn what_is_held_is_told_of_when_the_queue_goes() {
        let (order, told) = (Order::default(), RefCell::new(Vec::new()));
        let tell = |n| told.borrow_mut().push(n);
        let numbers: Vec<u64> = (0..4).map(|_| order.number()).collect();
        for number in &numbers[1..] {
            order.ended(*number, true, *number, tell);
        }
        assert!(told.borrow().is_empty());
        order.finish(tell);
        assert_eq!(*told.borrow(), [1, 2, 3]);
        // One that a handler had in its hands.
        order.ended(order.number(), true, 4, tell);
        assert_eq!(*told.borrow(), [1, 2, 3, 4]);
    }
}
