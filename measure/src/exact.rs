//! What is counted and not timed. Each needs the [counting allocator](crate::allocations::Counting).

use crate::Signals;
use crate::allocations::{Allocated, during};
use crate::hot::{ROOM, add, complete, dispatch, toggle};
use crate::serialized::{Standing, all_ready};
use hsa_serializer::{Domain, Handler, Queue, Serializer, Ticket};

/// In a domain of its own: nothing is freed here that others have deferred.
fn serializer(signals: Signals) -> Serializer<Signals> {
    Serializer::<Signals>::builder()
        .domain(Domain::new())
        .build(signals)
}

/// A thread's first pin registers it, which allocates.
fn register(serializer: &Serializer<Signals>) {
    let id = add(serializer).id();
    serializer.queue_destroyed(id).expect("it was just added");
    assert_eq!(serializer.ready(id), Handler::Drop);
    serializer.collect();
}

/// Every queue dispatches a kernel behind a barrier, and completes it: each has had a target and a tag.
fn use_once(serializer: &Serializer<Signals>, queues: &mut [Queue<Signals>]) {
    let mut room = ROOM;
    for _ in 0..2 {
        let before: Vec<_> = queues.iter_mut().map(|q| dispatch(q, &mut room)).collect();
        toggle(serializer);
        let after: Vec<_> = queues.iter_mut().map(|q| dispatch(q, &mut room)).collect();
        for ticket in before.into_iter().chain(after) {
            complete(serializer, ticket);
        }
    }
    serializer.collect();
}

/// Bytes that each of so many queues takes, all of which have been used: what the crate holds for
/// them all, over their number. The dispatching halves are the host's.
#[must_use]
pub fn bytes_per_queue(queues: usize) -> f64 {
    let serializer = serializer(Signals::new(2 * queues + 16));
    register(&serializer);
    let mut all = Vec::with_capacity(queues);
    let (held, ()) = during(|| {
        all.extend((0..queues).map(|_| add(&serializer)));
        use_once(&serializer, &mut all);
    });
    held.bytes as f64 / queues as f64
}

/// Bytes that each of so many live barriers takes, which all wait for the kernels of so many queues:
/// what is more than for one barrier less, on average.
#[must_use]
pub fn bytes_per_barrier(barriers: usize, queues: usize) -> f64 {
    let serializer = serializer(Signals::new(2 * (barriers + queues) + 32));
    register(&serializer);
    let mut room = ROOM;
    let mut last = add(&serializer);
    let mut all: Vec<_> = (0..queues).map(|_| add(&serializer)).collect();
    use_once(&serializer, &mut all);
    let mut tickets = Vec::with_capacity(queues + barriers);
    tickets.extend(all.iter_mut().map(|q| dispatch(q, &mut room)));
    let (held, ()) = during(|| {
        for _ in 0..barriers {
            toggle(&serializer);
            // Somebody dispatches in each epoch, or the next transition would supersede its barrier.
            tickets.push(dispatch(&mut last, &mut room));
        }
    });
    assert_eq!(serializer.statistics().barriers_live, barriers as u64);
    for ticket in tickets {
        complete(&serializer, ticket);
    }
    held.bytes as f64 / barriers as f64
}

/// The most barriers that are live at once while somebody toggles so many times behind one long kernel,
/// and nobody else dispatches.
#[must_use]
pub fn barriers_behind_a_long_kernel(toggles: usize) -> u64 {
    let serializer = serializer(Signals::new(64));
    let mut long = add(&serializer);
    let held = dispatch(&mut long, &mut { ROOM });
    for _ in 0..toggles / 2 {
        toggle(&serializer);
    }
    let most = serializer.statistics().barriers_live_most;
    complete(&serializer, held);
    most
}

/// The writes to signals from a serialized kernel's completion to the next queue's grant.
#[must_use]
pub fn writes_per_grant() -> u64 {
    let serializer = serializer(Signals::counting(16));
    let mut queues = [add(&serializer), add(&serializer)];
    serializer.enable().expect("room for its signals");
    let mut standing = all_ready(&serializer, &mut queues).into_iter();
    let (first, second) = (standing.next(), standing.next());
    let (first, second) = (first.expect("of two"), second.expect("of two"));
    let before = serializer.runtime().writes();
    complete(&serializer, first.ticket);
    assert!(second.is_granted(&serializer));
    let writes = serializer.runtime().writes() - before;
    complete(&serializer, second.ticket);
    writes
}

const NOTHING: Allocated = Allocated { times: 0, bytes: 0 };

/// What a step allocates.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// What it is.
    pub what: &'static str,
    /// What it allocated.
    pub allocated: Allocated,
}

/// A hundred transitions, behind each of which every one of these queues dispatches a kernel and
/// completes it: what the dispatches allocate, and what the first one's completions do. That drains
/// a tag, and retires the barrier where there is no other queue.
fn behind_transitions(
    serializer: &Serializer<Signals>,
    long: &mut Queue<Signals>,
    queues: &mut [&mut Queue<Signals>],
) -> (Allocated, Allocated) {
    let mut room = ROOM;
    let (mut firsts, mut drains) = (NOTHING, NOTHING);
    let mut tickets = Vec::with_capacity(queues.len());
    for _ in 0..100 {
        let held = dispatch(long, &mut room);
        toggle(serializer);
        for queue in &mut *queues {
            let (made, first) = during(|| queue.dispatch(&mut room).expect("it is not shut down"));
            assert_eq!(first.packets, 1, "it is behind an armed barrier");
            firsts += made;
            tickets.push(first.ticket);
        }
        complete(serializer, held);
        let mut tickets = tickets.drain(..);
        let first = tickets.next().expect("there is a queue");
        let (made, ()) = during(|| complete(serializer, first));
        drains += made;
        tickets.for_each(|ticket| complete(serializer, ticket));
        serializer.collect();
    }
    (firsts, drains)
}

/// A hundred completions that drain a tag, first where another queue still holds the barrier, then
/// where it retires. They are none of the [`steps`]: where a completion reclaims something (a block of
/// tags that are all drained, a barrier), the collector allocates a block for what is deferred, and
/// frees it later.
#[must_use]
pub fn reclaiming() -> [Step; 2] {
    let serializer = serializer(Signals::new(256));
    register(&serializer);
    let (mut long, mut queue) = (add(&serializer), add(&serializer));
    let mut other = add(&serializer);
    let (_, drains) = behind_transitions(&serializer, &mut long, &mut [&mut queue, &mut other]);
    let (_, retires) = behind_transitions(&serializer, &mut long, &mut [&mut queue]);
    [
        Step {
            what: "a hundred completions that drain a tag",
            allocated: drains,
        },
        Step {
            what: "a hundred completions that drain a tag and retire its barrier",
            allocated: retires,
        },
    ]
}

/// What each step of the hot paths allocates, each done many times.
#[must_use]
pub fn steps() -> Vec<Step> {
    const TIMES: usize = 1000;
    let serializer = serializer(Signals::new(256));
    register(&serializer);
    let (mut long, mut queue) = (add(&serializer), add(&serializer));
    let mut room = ROOM;
    let mut steps = Vec::new();
    let mut step = |what, allocated| steps.push(Step { what, allocated });
    let mut tickets: Vec<Ticket> = Vec::with_capacity(TIMES);

    let (made, ()) = during(|| tickets.extend((0..TIMES).map(|_| dispatch(&mut queue, &mut room))));
    step("a thousand dispatches", made);
    let finish = |tickets: &mut Vec<Ticket>| {
        during(|| {
            for ticket in tickets.drain(..) {
                complete(&serializer, ticket);
            }
        })
        .0
    };
    step("a thousand completions", finish(&mut tickets));

    // Not of one transition alone: now and then a queue's entries go on to another block.
    let (firsts, _) = behind_transitions(&serializer, &mut long, &mut [&mut queue]);
    step(
        "the first dispatch after each of a hundred transitions",
        firsts,
    );

    serializer.enable().expect("room for its signals");
    let (mut dispatched, mut readies, mut ends) = (NOTHING, NOTHING, NOTHING);
    for _ in 0..TIMES {
        let (made, standing) = during(|| Standing::dispatch(&mut queue));
        dispatched += made;
        let (made, ()) = during(|| standing.arrive(&serializer));
        readies += made;
        let (made, ()) = during(|| complete(&serializer, standing.ticket));
        ends += made;
    }
    step("a thousand serialized dispatches", dispatched);
    step("a thousand readies, each with its grant", readies);
    step("a thousand completions of serialized kernels", ends);
    steps
}
