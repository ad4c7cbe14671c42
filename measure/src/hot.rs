//! Dispatch and completion on one thread, kernels unserialized.

use crate::{Shape, Signals};
use hsa_serializer::{AqlPacket, MAX_PACKETS, Queue, QueueId, Serializer, Ticket};
use std::time::{Duration, Instant};

/// The room for packets that an interceptor has.
pub(crate) type Room = [AqlPacket; MAX_PACKETS];
pub(crate) const ROOM: Room = [AqlPacket::INVALID; MAX_PACKETS];

pub(crate) fn serializer(signals: usize) -> Serializer<Signals> {
    Serializer::new(Signals::new(signals))
}

pub(crate) fn add(serializer: &Serializer<Signals>) -> Queue<Signals> {
    serializer.add_queue().expect("room for its signals")
}

/// One barrier more: on and off again, of which the first is superseded.
pub(crate) fn toggle(serializer: &Serializer<Signals>) {
    serializer.enable().expect("room for its signals");
    serializer.disable().expect("it was reserved");
}

#[inline(always)]
pub(crate) fn dispatch(queue: &mut Queue<Signals>, room: &mut Room) -> Ticket {
    queue.dispatch(room).expect("it is not shut down").ticket
}

#[inline(always)]
pub(crate) fn complete(serializer: &Serializer<Signals>, ticket: Ticket) {
    let completed = serializer.complete(ticket);
    completed.expect("each is completed once");
}

/// Dispatches one and completes it, over and over.
fn round_trips(serializer: Serializer<Signals>, mut queue: Queue<Signals>) -> Shape {
    let mut room = ROOM;
    Shape::timed(move |n| {
        for _ in 0..n {
            let ticket = dispatch(&mut queue, &mut room);
            complete(&serializer, ticket);
        }
    })
}

/// Dispatch and completion, with no barrier.
#[must_use]
pub fn no_barrier() -> Shape {
    let serializer = serializer(8);
    let queue = add(&serializer);
    round_trips(serializer, queue)
}

/// The same over so many queues in turn.
///
/// # Panics
/// Unless that is a power of two.
#[must_use]
pub fn over_queues(queues: usize) -> Shape {
    assert!(
        queues.is_power_of_two(),
        "queues in turn are found by a mask"
    );
    let serializer = serializer(2 * queues + 8);
    let mut each: Vec<_> = (0..queues).map(|_| add(&serializer)).collect();
    let mut room = ROOM;
    Shape::timed(move |n| {
        for i in 0..n {
            let ticket = dispatch(&mut each[i as usize & (queues - 1)], &mut room);
            complete(&serializer, ticket);
        }
    })
}

/// Dispatch and completion while another queue has a transition packet of a cleared barrier that it
/// has not executed.
#[must_use]
pub fn cleared_barrier_held() -> Shape {
    let serializer = serializer(16);
    let (mut long, mut holder) = (add(&serializer), add(&serializer));
    let queue = add(&serializer);
    let mut room = ROOM;
    let first = dispatch(&mut long, &mut room);
    toggle(&serializer);
    let held = holder.dispatch(&mut room).expect("it is not shut down");
    assert_eq!(held.packets, 1, "the barrier is armed");
    complete(&serializer, first);
    assert_eq!(serializer.statistics().barriers_live, 1);
    round_trips(serializer, queue).keeping((long, holder, held.ticket.into_raw()))
}

/// Dispatches alone, while a barrier is armed that waits for another queue: nothing of a queue that
/// was idle at the transition can complete before it clears.
#[must_use]
pub fn armed_dispatch() -> Shape {
    let serializer = serializer(16);
    let (mut long, mut queue) = (add(&serializer), add(&serializer));
    let mut room = ROOM;
    let first = dispatch(&mut long, &mut room);
    toggle(&serializer);
    Shape::timed(move |n| {
        for _ in 0..n {
            let _ = dispatch(&mut queue, &mut room).into_raw();
        }
    })
    .keeping((serializer, long, first.into_raw()))
}

/// How many of its dispatches a queue has in flight when the barriers are armed.
const BACKLOG: u64 = 1 << 20;

/// A queue with a backlog, and barriers that wait for it and for another queue's long kernel.
struct Backlog {
    serializer: Serializer<Signals>,
    queue: Queue<Signals>,
    /// The queue with the long kernel, and the one that dispatches in each epoch.
    _kept: [Queue<Signals>; 2],
    /// The next completion's ticket, in parts; those of the backlog are the queue's first ones.
    id: QueueId,
    next: u64,
}

impl Backlog {
    fn new(barriers: usize) -> Self {
        let serializer = serializer(2 * barriers + 32);
        let (mut long, mut other) = (add(&serializer), add(&serializer));
        let mut queue = add(&serializer);
        let mut room = ROOM;
        let _ = dispatch(&mut long, &mut room).into_raw();
        for _ in 0..BACKLOG {
            let _ = dispatch(&mut queue, &mut room).into_raw();
        }
        for _ in 0..barriers {
            toggle(&serializer);
            // One dispatch in each epoch, or the next transition would supersede its barrier.
            let _ = dispatch(&mut other, &mut room).into_raw();
        }
        // The transition packet, if it has to have one.
        let _ = dispatch(&mut queue, &mut room).into_raw();
        assert_eq!(serializer.statistics().barriers_live, barriers as u64);
        Self {
            id: queue.id(),
            next: 0,
            serializer,
            queue,
            _kept: [long, other],
        }
    }

    /// Dispatches one and completes one of the backlog, so many times.
    fn run(&mut self, n: u64) {
        let Self {
            serializer,
            queue,
            id,
            next,
            ..
        } = self;
        let mut room = ROOM;
        let first = *next;
        for number in first..first + n {
            let _ = dispatch(queue, &mut room).into_raw();
            complete(serializer, Ticket::from_raw([id.to_raw(), number << 32]));
        }
        *next += n;
    }

    fn left(&self) -> u64 {
        BACKLOG - self.next
    }
}

/// Dispatch and completion on a queue that so many live barriers wait for, all of them armed behind
/// another queue's long kernel as well. What completes was dispatched before the first of them.
#[must_use]
pub fn behind_barriers(barriers: usize) -> Shape {
    let mut backlog: Option<Backlog> = None;
    Shape::new(move |n| {
        let mut took = Duration::ZERO;
        let mut left = n;
        while left > 0 {
            // One stays in flight: it would make something due.
            if backlog.as_ref().is_none_or(|b| b.left() < 2) {
                backlog = Some(Backlog::new(barriers));
            }
            let backlog = backlog.as_mut().expect("it was just made");
            let now = left.min(backlog.left() - 1);
            let start = Instant::now();
            backlog.run(now);
            took += start.elapsed();
            left -= now;
        }
        took
    })
}
