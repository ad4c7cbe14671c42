//! The same job by the crate and by a serializer under locks, through the trait by which the profiler
//! of the examples uses either: the calls are those that a profiler makes.

use crate::hot::{ROOM, Room};
use crate::serialized::waits_for;
use crate::shape::wait_a_little;
use crate::{Shape, Signals};
use harness::{BoxError, Counters, Dispatched, LockedSerializer, Serializing};
use hsa_serializer::{AqlPacket, Handler, Queue, QueueId, Serializer, Ticket};
use locked::{ProfilerSerializer, Retire};
use std::sync::Arc;
use std::time::Instant;

/// The crate, as an interceptor uses it that keeps the room for its packets.
#[derive(Debug)]
pub struct OfTheCrate(Serializer<Signals>);

/// The dispatching half, with that room.
#[derive(Debug)]
pub struct Half {
    queue: Queue<Signals>,
    room: Room,
}

impl Serializing for OfTheCrate {
    type Queue = Half;
    type Ticket = Ticket;

    fn add_queue(&self) -> Result<Half, BoxError> {
        let queue = self.0.add_queue()?;
        Ok(Half { queue, room: ROOM })
    }

    fn id(half: &Half) -> QueueId {
        half.queue.id()
    }

    #[inline(always)]
    fn dispatch(
        &self,
        half: &mut Half,
        packets: &mut Vec<AqlPacket>,
    ) -> Option<Dispatched<Ticket>> {
        let dispatch = half.queue.dispatch(&mut half.room).ok()?;
        if dispatch.packets > 0 {
            packets.extend_from_slice(&half.room[..dispatch.packets]);
        }
        Some(Dispatched {
            ticket: dispatch.ticket,
            serialized: dispatch.serialized,
        })
    }

    #[inline(always)]
    fn complete(&self, ticket: Ticket) {
        let completed = self.0.complete(ticket);
        completed.expect("each is completed once");
    }

    fn abandon(&self, ticket: Ticket) {
        ticket.abandon();
    }

    fn ready(&self, queue: QueueId) -> Handler {
        self.0.ready(queue)
    }

    fn enable(&self) -> Result<bool, BoxError> {
        Serializing::enable(&self.0)
    }

    fn disable(&self) -> Result<bool, BoxError> {
        Serializing::disable(&self.0)
    }

    fn queue_destroyed(&self, queue: QueueId) {
        Serializing::queue_destroyed(&self.0, queue);
    }

    fn counters(&self) -> Counters {
        self.0.counters()
    }
}

/// The crate.
#[must_use]
pub fn of_the_crate(signals: &Signals) -> OfTheCrate {
    OfTheCrate(Serializer::new(signals.clone()))
}

/// The yardstick, with the seed's fault mended.
#[must_use]
pub fn locked(signals: &Signals) -> LockedSerializer<Signals> {
    LockedSerializer(ProfilerSerializer::new(signals.clone(), Retire::Drained))
}

/// A queue of either, and what its interceptor keeps.
struct Side<S: Serializing> {
    serializer: Arc<S>,
    queue: S::Queue,
    packets: Vec<AqlPacket>,
    signals: Signals,
}

impl<S: Serializing> Side<S> {
    fn new(serializer: &Arc<S>, signals: &Signals) -> Self {
        Self {
            serializer: serializer.clone(),
            queue: serializer.add_queue().expect("room for its signals"),
            packets: Vec::with_capacity(8),
            signals: signals.clone(),
        }
    }

    #[inline(always)]
    fn dispatch(&mut self) -> S::Ticket {
        self.packets.clear();
        let dispatched = self.serializer.dispatch(&mut self.queue, &mut self.packets);
        dispatched.expect("it is not shut down").ticket
    }

    #[inline(always)]
    fn round_trip(&mut self) {
        let ticket = self.dispatch();
        self.serializer.complete(ticket);
    }

    /// A serialized kernel, with what the packet processor does: it reaches the first gate, waits at
    /// the second one until it is granted, and ends.
    fn serialized(&mut self) {
        let ticket = self.dispatch();
        let gates = &self.packets[self.packets.len() - 2..];
        let (ready, block) = (waits_for(&gates[0]), waits_for(&gates[1]));
        self.signals.execute(ready);
        let keep = self.serializer.ready(S::id(&self.queue)).keep();
        assert!(keep);
        let mut spins = 0;
        while self.signals.value(block) != 0 {
            spins += 1;
            wait_a_little(spins);
        }
        self.signals.execute(block);
        self.serializer.complete(ticket);
    }
}

/// Dispatch and completion, kernels unserialized, on one thread.
pub fn disabled<S: Serializing>(make: impl FnOnce(&Signals) -> S) -> Shape {
    let signals = Signals::new(64);
    let serializer = Arc::new(make(&signals));
    let mut side = Side::new(&serializer, &signals);
    Shape::timed(move |n| (0..n).for_each(|_| side.round_trip()))
}

/// The same by two threads on queues of their own.
pub fn disabled_pair<S: Serializing>(make: impl FnOnce(&Signals) -> S) -> Shape {
    let signals = Signals::new(64);
    let serializer = Arc::new(make(&signals));
    let each = || {
        let mut side = Side::new(&serializer, &signals);
        move |n| (0..n).for_each(|_| side.round_trip())
    };
    Shape::pair(each(), each())
}

/// Dispatch, ready, grant and completion of a serialized kernel, on one thread.
pub fn enabled<S: Serializing>(make: impl FnOnce(&Signals) -> S) -> Shape {
    let signals = Signals::new(64);
    let serializer = Arc::new(make(&signals));
    let mut side = Side::new(&serializer, &signals);
    serializer.enable().expect("room for its signals");
    Shape::timed(move |n| (0..n).for_each(|_| side.serialized()))
}

/// The same by two threads on queues of their own: each kernel waits until it is granted.
pub fn enabled_pair<S: Serializing>(make: impl FnOnce(&Signals) -> S) -> Shape {
    let signals = Signals::new(64);
    let serializer = Arc::new(make(&signals));
    let each = || {
        let mut side = Side::new(&serializer, &signals);
        move |n| (0..n).for_each(|_| side.serialized())
    };
    let (a, b) = (each(), each());
    serializer.enable().expect("room for its signals");
    Shape::pair(a, b)
}

/// Dispatch and completion on a queue while so many barriers that it has dealt with are live, behind
/// another queue's long kernel.
///
/// Only the yardstick can be measured like that: it lets a kernel behind an armed barrier complete.
/// What the crate costs there is [`behind_barriers`](crate::hot::behind_barriers).
#[must_use]
pub fn locked_behind_barriers(barriers: usize) -> Shape {
    let signals = Signals::new(2 * barriers + 64);
    let serializer = Arc::new(locked(&signals));
    let mut long = Side::new(&serializer, &signals);
    let mut side = Side::new(&serializer, &signals);
    let held = long.dispatch();
    for i in 0..barriers {
        let changed = if i % 2 == 0 {
            serializer.enable()
        } else {
            serializer.disable()
        };
        assert!(changed.expect("room for its signal"));
    }
    if barriers % 2 == 1 {
        // So that kernels run unserialized. One more barrier is not what an odd number is for.
        serializer.disable().expect("room for its signal");
    }
    Shape::timed(move |n| (0..n).for_each(|_| side.round_trip())).keeping((long, held))
}

/// Kernels in flight on each queue while it is toggled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// None.
    Idle,
    /// One.
    OneEach,
}

/// Toggles between two kernels that end, which is when the yardstick destroys barriers.
const BETWEEN: u64 = 16;

/// Enable and disable, with so many queues.
///
/// After every 16 pairs a kernel of the first queue comes and goes (or, where each has one in flight, all
/// of them end, untimed): that is when the yardstick destroys its barriers. The crate does it at once.
pub fn toggle<S: Serializing>(
    make: impl FnOnce(&Signals) -> S,
    queues: usize,
    load: Load,
) -> Shape {
    let signals = Signals::new(2 * queues + 128);
    let serializer = Arc::new(make(&signals));
    let mut sides: Vec<_> = (0..queues)
        .map(|_| Side::new(&serializer, &signals))
        .collect();
    let mut in_flight: Vec<S::Ticket> = match load {
        Load::Idle => Vec::new(),
        Load::OneEach => sides.iter_mut().map(Side::dispatch).collect(),
    };
    Shape::batched(BETWEEN, move || {
        let start = Instant::now();
        for _ in 0..BETWEEN {
            serializer.enable().expect("room for its signals");
            serializer.disable().expect("room for its signal");
        }
        if load == Load::Idle {
            sides[0].round_trip();
            return start.elapsed();
        }
        let took = start.elapsed();
        // All of them end, and the same number comes again.
        for ticket in in_flight.drain(..) {
            serializer.complete(ticket);
        }
        in_flight.extend(sides.iter_mut().map(Side::dispatch));
        took
    })
}
