//! What happens at transitions and not at every kernel.

use crate::hot::{ROOM, add, complete, dispatch, serializer, toggle};
use crate::{Shape, Signals};
use hsa_serializer::{BarrierHandle, BarrierSet, Handler, Queue, Serializer, Ticket};
use std::hint::black_box;
use std::thread;
use std::time::Instant;

/// Whether a kernel is in flight, so that the barrier is armed when the next one is dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// Every kernel of before has completed.
    Cleared,
    /// One of another queue's has not.
    Armed,
}

/// The first dispatch of a queue after a transition.
#[must_use]
pub fn first_dispatch(barrier: Barrier) -> Shape {
    const QUEUES: usize = 64;
    let serializer = serializer(2 * QUEUES + 16);
    let mut long = add(&serializer);
    let mut queues: Vec<_> = (0..QUEUES).map(|_| add(&serializer)).collect();
    let mut tickets = Vec::with_capacity(QUEUES);
    let mut room = ROOM;
    Shape::batched(QUEUES as u64, move || {
        let held = (barrier == Barrier::Armed).then(|| dispatch(&mut long, &mut room));
        toggle(&serializer);
        let start = Instant::now();
        for queue in &mut queues {
            let first = queue.dispatch(&mut room).expect("it is not shut down");
            tickets.push(first.ticket);
        }
        let took = start.elapsed();
        for ticket in held.into_iter().chain(tickets.drain(..)) {
            complete(&serializer, ticket);
        }
        took
    })
}

/// So many live barriers, each with a tag of one queue: the tickets of the kernels that drain them, in
/// order. The first barrier has cleared.
fn tagged(
    serializer: &Serializer<Signals>,
    long: &mut Queue<Signals>,
    queue: &mut Queue<Signals>,
    barriers: usize,
) -> Vec<Ticket> {
    let mut room = ROOM;
    let held = dispatch(long, &mut room);
    let tickets = (0..barriers)
        .map(|_| {
            toggle(serializer);
            dispatch(queue, &mut room)
        })
        .collect();
    complete(serializer, held);
    tickets
}

/// A completion that drains its tag, which was its barrier's last: so many barriers are live when the
/// first one comes, and they go oldest first, since each waits for the kernel that carries the tag of the
/// one before it.
#[must_use]
pub fn draining(barriers: usize) -> Shape {
    let serializer = serializer(2 * barriers + 16);
    let (mut long, mut queue) = (add(&serializer), add(&serializer));
    Shape::batched(barriers as u64, move || {
        let tickets = tagged(&serializer, &mut long, &mut queue, barriers);
        let start = Instant::now();
        for ticket in tickets {
            complete(&serializer, ticket);
        }
        start.elapsed()
    })
}

/// An armed barrier over one queue, and that queue.
pub(crate) fn armed() -> (BarrierHandle<Signals>, Queue<Signals>) {
    let set = BarrierSet::new(Signals::new(8));
    let mut queue = set.add_queue().expect("the first one");
    let _ = dispatch(&mut queue, &mut { ROOM }).into_raw();
    let barrier = set.arm(|_| {}).expect("room for its signal");
    (barrier, queue)
}

/// `drain_queue` of an armed barrier.
#[must_use]
pub fn drain_armed() -> Shape {
    let (barrier, queue) = armed();
    let id = queue.id();
    Shape::timed(move |n| {
        for _ in 0..n {
            black_box(barrier.drain_queue(black_box(id)));
        }
    })
    .keeping(queue)
}

/// A queue that is added, destroyed, and whose handler is called for the last time.
#[must_use]
pub fn add_and_remove() -> Shape {
    let serializer = serializer(64);
    Shape::timed(move |n| {
        for _ in 0..n {
            let id = add(&serializer).id();
            serializer.queue_destroyed(id).expect("it was just added");
            assert_eq!(serializer.ready(id), Handler::Drop);
        }
    })
}

/// That shape, while so many threads are registered with the domain, and idle.
#[must_use]
pub fn beside_idle_threads(threads: usize, shape: impl FnOnce() -> Shape) -> Shape {
    let shape = shape();
    let idle: Vec<_> = (0..threads)
        .map(|_| {
            let (end, ends) = std::sync::mpsc::channel::<()>();
            let (registered, is_registered) = std::sync::mpsc::channel();
            let thread = thread::spawn(move || {
                // Its first pin registers it; a queue that goes pins.
                let serializer = serializer(8);
                drop(add(&serializer));
                registered.send(()).expect("it is waited for");
                // Until the other end goes.
                let _ = ends.recv();
            });
            is_registered.recv().expect("the thread says so");
            (end, thread)
        })
        .collect();
    shape.keeping(Idle(idle))
}

struct Idle(Vec<(std::sync::mpsc::Sender<()>, thread::JoinHandle<()>)>);

impl Drop for Idle {
    fn drop(&mut self) {
        for (end, thread) in self.0.drain(..) {
            drop(end);
            // Where it has panicked, that was said.
            let _ = thread.join();
        }
    }
}
