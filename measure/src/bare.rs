//! What the machine asks for what nobody can spare, and what a list of barriers costs by the obvious
//! means.

use crate::Shape;
use crate::shape::wait_a_little;
use arc_swap::ArcSwap;
use crossbeam_utils::CachePadded;
use parking_lot::RwLock;
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// An atomic on a line (pair) of its own.
pub(crate) type Line = CachePadded<AtomicU64>;

fn lines(n: usize) -> Arc<[Line]> {
    (0..n).map(|_| Line::default()).collect()
}

/// The limit: two uncontended relaxed additions on separate lines.
#[must_use]
pub fn limit() -> Shape {
    limit_over(1)
}

/// The limit over so many queues in turn, each with two lines of its own.
///
/// # Panics
/// Unless that is a power of two.
#[must_use]
pub fn limit_over(queues: usize) -> Shape {
    assert!(
        queues.is_power_of_two(),
        "queues in turn are found by a mask"
    );
    let lines = lines(2 * queues);
    Shape::timed(move |n| {
        let lines = black_box(&lines[..]);
        for i in 0..n {
            let first = 2 * (i as usize & (queues - 1));
            lines[first].fetch_add(1, Relaxed);
            lines[first + 1].fetch_add(1, Relaxed);
        }
    })
}

/// Half of the limit: one addition, as one dispatch needs.
#[must_use]
pub fn one_addition() -> Shape {
    let line = lines(1);
    Shape::timed(move |n| {
        let line = black_box(&line[0]);
        for _ in 0..n {
            line.fetch_add(1, Relaxed);
        }
    })
}

/// The limit by two threads, each with two lines of its own.
#[must_use]
pub fn limit_two_threads() -> Shape {
    let each = || {
        let lines = lines(2);
        move |n: u64| {
            let lines = black_box(&lines[..]);
            for _ in 0..n {
                lines[0].fetch_add(1, Relaxed);
                lines[1].fetch_add(1, Relaxed);
            }
        }
    };
    Shape::pair(each(), each())
}

/// The limit of a dispatching and a completing thread: each adds to one line, not the same.
#[must_use]
pub fn limit_two_halves() -> Shape {
    let lines = lines(2);
    let half = |which: usize| {
        let lines = lines.clone();
        move |n: u64| {
            let line = black_box(&lines[which]);
            for _ in 0..n {
                line.fetch_add(1, Relaxed);
            }
        }
    };
    Shape::pair(half(0), half(1))
}

/// A line there and back: two threads write to it in turn, each as soon as it sees the other's.
#[must_use]
pub fn there_and_back() -> Shape {
    let lines = lines(1);
    let side = |parity: u64| {
        let lines = lines.clone();
        let mut turn = parity;
        move |n: u64| {
            for _ in 0..n {
                let mut spins = 0;
                while lines[0].load(Acquire) != turn {
                    spins += 1;
                    wait_a_little(spins);
                }
                lines[0].store(turn + 1, Release);
                turn += 2;
            }
        }
    };
    Shape::pair(side(0), side(1))
}

/// An epoch pin.
#[must_use]
pub fn pin() -> Shape {
    Shape::timed(|n| {
        for _ in 0..n {
            drop(black_box(crossbeam_epoch::pin()));
        }
    })
}

/// A call that returns what it is given.
#[must_use]
pub fn empty_call() -> Shape {
    Shape::timed(|n| {
        for i in 0..n {
            black_box(i);
        }
    })
}

/// What a barrier in a list is asked, whatever keeps the list.
struct Entry {
    armed: AtomicU64,
}

impl Entry {
    fn cleared() -> Self {
        Self {
            armed: AtomicU64::new(0),
        }
    }

    fn is_armed(&self) -> bool {
        self.armed.load(Relaxed) != 0
    }
}

fn entries<L: FromIterator<Entry>>(barriers: usize) -> L {
    (0..barriers).map(|_| Entry::cleared()).collect()
}

/// The counts of a dispatch and a completion, each of which looks through a list in that way.
fn looking_through<L: Send + 'static>(
    list: L,
    is_any_armed: impl Fn(&L) -> bool + Send + 'static,
) -> Shape {
    let lines = lines(2);
    Shape::timed(move |n| {
        let list = black_box(&list);
        for _ in 0..n {
            for line in &lines[..] {
                line.fetch_add(1, Relaxed);
                black_box(is_any_armed(list));
            }
        }
    })
}

/// The counts of a dispatch and a completion, each of which looks through a list of `barriers`
/// barriers under a reader's lock.
#[must_use]
pub fn list_under_rwlock(barriers: usize) -> Shape {
    let list: RwLock<VecDeque<Entry>> = RwLock::new(entries(barriers));
    looking_through(list, |list| list.read().iter().any(Entry::is_armed))
}

/// The same with the list behind an `ArcSwap`, which a transition would copy.
#[must_use]
pub fn list_under_arc_swap(barriers: usize) -> Shape {
    let list: ArcSwap<Vec<Entry>> = ArcSwap::from_pointee(entries(barriers));
    looking_through(list, |list| list.load().iter().any(Entry::is_armed))
}
