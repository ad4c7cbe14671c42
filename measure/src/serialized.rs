//! The token, on one thread: what a serialized kernel costs the host.

use crate::hot::{ROOM, add, complete, serializer};
use crate::{Shape, Signals, latency};
use hsa_serializer::{AqlPacket, Queue, Serializer, Ticket, hsa_signal_t};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The signal that a packet of the serializer's waits for.
pub(crate) fn waits_for(packet: &AqlPacket) -> hsa_signal_t {
    packet.dependencies().expect("a barrier packet")[0]
}

/// A dispatch whose packets stand at the front of their queue.
pub(crate) struct Standing {
    pub(crate) ticket: Ticket,
    ready: hsa_signal_t,
    block: hsa_signal_t,
}

impl Standing {
    pub(crate) fn dispatch(queue: &mut Queue<Signals>) -> Self {
        let mut room = ROOM;
        let dispatched = queue.dispatch(&mut room).expect("it is not shut down");
        let gates = &room[dispatched.packets - 2..];
        Self {
            ticket: dispatched.ticket,
            ready: waits_for(&gates[0]),
            block: waits_for(&gates[1]),
        }
    }

    /// The first packet executes, and the handler is called.
    pub(crate) fn arrive(&self, serializer: &Serializer<Signals>) {
        serializer.runtime().execute(self.ready);
        assert!(serializer.ready(self.ticket.queue()).keep());
    }

    pub(crate) fn is_granted(&self, serializer: &Serializer<Signals>) -> bool {
        serializer.runtime().value(self.block) == 0
    }
}

/// So many queues, each with a kernel that waits for its grant but for the first, which has it.
pub(crate) fn all_ready(
    serializer: &Serializer<Signals>,
    queues: &mut [Queue<Signals>],
) -> Vec<Standing> {
    let standing: Vec<_> = queues.iter_mut().map(Standing::dispatch).collect();
    for one in &standing {
        one.arrive(serializer);
    }
    standing
}

/// So many queues, for completions each of which grants to the next queue.
const QUEUES: usize = 64;

/// Such completions, one after the other, and what they took as `each` says.
fn grants(
    signals: Signals,
    mut each: impl FnMut(&Serializer<Signals>, Ticket) -> Duration + Send + 'static,
) -> Shape {
    let serializer = Serializer::new(signals);
    let mut queues: Vec<_> = (0..QUEUES).map(|_| add(&serializer)).collect();
    serializer.enable().expect("room for its signals");
    Shape::batched(QUEUES as u64 - 1, move || {
        let mut standing = all_ready(&serializer, &mut queues);
        let last = standing.pop().expect("there are some");
        let took = standing
            .into_iter()
            .map(|one| each(&serializer, one.ticket))
            .sum();
        assert!(last.is_granted(&serializer));
        complete(&serializer, last.ticket);
        took
    })
}

/// From the call of a completion to the store that grants to the next queue. The clock's own cost is
/// subtracted.
#[must_use]
pub fn completion_to_grant() -> Shape {
    let clock = Duration::from_nanos(latency::clock());
    grants(
        Signals::noting(2 * QUEUES + 8),
        move |serializer, ticket| {
            let start = Instant::now();
            complete(serializer, ticket);
            let granted = serializer.runtime().granted_after(start);
            granted.expect("it is noted").saturating_sub(clock)
        },
    )
}

/// The whole of such a completion: when it returns, the grant is recorded as well. The clock's own cost is
/// subtracted.
#[must_use]
pub fn granting_completion() -> Shape {
    let clock = Duration::from_nanos(latency::clock());
    grants(Signals::new(2 * QUEUES + 8), move |serializer, ticket| {
        let start = Instant::now();
        complete(serializer, ticket);
        start.elapsed().saturating_sub(clock)
    })
}

/// The dispatch, `ready`, the grant and the completion of kernels that have no rivals.
#[must_use]
pub fn uncontended() -> Shape {
    let serializer = serializer(8);
    let mut queue = add(&serializer);
    serializer.enable().expect("room for its signals");
    Shape::timed(move |n| {
        for _ in 0..n {
            let one = Standing::dispatch(&mut queue);
            one.arrive(&serializer);
            complete(&serializer, one.ticket);
        }
    })
}

/// Serialized dispatches alone.
#[must_use]
pub fn dispatch_alone() -> Shape {
    let serializer = serializer(8);
    let mut queue = add(&serializer);
    serializer.enable().expect("room for its signals");
    Shape::timed(move |n| {
        for _ in 0..n {
            let one = black_box(Standing::dispatch(&mut queue));
            let _ = one.ticket.into_raw();
        }
    })
}
