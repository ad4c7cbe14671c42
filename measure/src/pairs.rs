//! Two threads.

use crate::hot::{ROOM, add, complete, dispatch, serializer};
use crate::shape::wait_a_little;
use crate::{Shape, bare};
use crossbeam_queue::ArrayQueue;
use hsa_serializer::Ticket;
use std::hint::black_box;
use std::sync::Arc;

/// Each of two threads dispatches and completes on a queue of its own.
#[must_use]
pub fn own_queues() -> Shape {
    let serializer = serializer(16);
    let each = || {
        let serializer = serializer.clone();
        let mut queue = add(&serializer);
        let mut room = ROOM;
        move |n: u64| {
            for _ in 0..n {
                let ticket = dispatch(&mut queue, &mut room);
                complete(&serializer, ticket);
            }
        }
    };
    Shape::pair(each(), each())
}

/// One thread dispatches on a queue, another completes what the first one had dispatched before: they
/// meet nowhere but in the crate.
#[must_use]
pub fn two_halves() -> Shape {
    let serializer = serializer(8);
    let queue = Arc::new(parking_lot::Mutex::new(add(&serializer)));
    let id = queue.lock().id().to_raw();
    // Dispatched and not completed between two runs.
    let mut lead = 0;
    let mut next = 0_u64;
    let ahead = queue.clone();
    Shape::prepared_pair(
        move |n| {
            let mut queue = ahead.lock();
            while lead < n {
                let _ = dispatch(&mut queue, &mut { ROOM }).into_raw();
                lead += 1;
            }
        },
        move |n| {
            let mut queue = queue.lock();
            let mut room = ROOM;
            for _ in 0..n {
                let _ = dispatch(&mut queue, &mut room).into_raw();
            }
        },
        move |n| {
            for number in next..next + n {
                complete(&serializer, Ticket::from_raw([id, number << 32]));
            }
            next += n;
        },
    )
}

/// How many tickets may be under way from one thread to the other.
const UNDER_WAY: usize = 1024;

/// What one thread dispatches, another completes, handed over through a queue of tickets.
#[must_use]
pub fn handed_over() -> Shape {
    let serializer = serializer(8);
    let mut queue = add(&serializer);
    let mut room = ROOM;
    handed(
        move || dispatch(&mut queue, &mut room).into_raw(),
        move |raw| complete(&serializer, Ticket::from_raw(raw)),
    )
}

/// The same with the limit in the place of the crate.
#[must_use]
pub fn limit_handed_over() -> Shape {
    let (here, there) = (
        Arc::new(bare::Line::default()),
        Arc::new(bare::Line::default()),
    );
    let add = std::sync::atomic::AtomicU64::fetch_add;
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    handed(
        move || [1, add(&here, 1, relaxed)],
        move |[_, got]| {
            black_box(got);
            add(&there, 1, relaxed);
        },
    )
}

fn handed(
    mut make: impl FnMut() -> [u64; 2] + Send + 'static,
    mut take: impl FnMut([u64; 2]) + Send + 'static,
) -> Shape {
    let under_way = Arc::new(ArrayQueue::new(UNDER_WAY));
    let taken = under_way.clone();
    Shape::pair(
        move |n| {
            for _ in 0..n {
                let mut raw = make();
                let mut spins = 0;
                while let Err(back) = under_way.push(raw) {
                    raw = back;
                    spins += 1;
                    wait_a_little(spins);
                }
            }
        },
        move |n| {
            for _ in 0..n {
                let mut spins = 0;
                let raw = loop {
                    if let Some(raw) = taken.pop() {
                        break raw;
                    }
                    spins += 1;
                    wait_a_little(spins);
                };
                take(raw);
            }
        },
    )
}
