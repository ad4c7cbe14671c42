//! Everything that is timed, by groups: what criterion runs, and what the documents' tables are of.

use crate::yardstick::{self, Load, locked, of_the_crate};
use crate::{Shape, bare, hot, pairs, rare, serialized};
use std::fmt;

/// Something to be timed.
pub struct Bench {
    /// What it is.
    pub name: String,
    make: Box<dyn Fn() -> Shape>,
}

impl Bench {
    fn new(name: impl Into<String>, make: impl Fn() -> Shape + 'static) -> Self {
        Self {
            name: name.into(),
            make: Box::new(make),
        }
    }

    /// Prepares it.
    #[must_use]
    pub fn make(&self) -> Shape {
        (self.make)()
    }
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bench").field(&self.name).finish()
    }
}

/// What belongs together.
#[derive(Debug)]
pub struct Group {
    /// What it is about.
    pub name: &'static str,
    /// Its benches.
    pub benches: Vec<Bench>,
}

fn group(name: &'static str, benches: Vec<Bench>) -> Group {
    Group { name, benches }
}

/// How many live barriers there are.
pub const BARRIERS: [usize; 4] = [1, 8, 64, 512];
/// How many queues are toggled.
pub const QUEUES: [usize; 4] = [1, 8, 64, 1024];
/// Threads that are registered with the domain and idle.
pub const THREADS: usize = 256;

/// One of several of its kind.
fn each<const N: usize>(
    numbers: [usize; N],
    what: &'static str,
    make: fn(usize) -> Shape,
) -> impl Iterator<Item = Bench> {
    let bench = move |n| Bench::new(format!("{what}, {n}"), move || make(n));
    numbers.into_iter().map(bench)
}

/// Of every kernel.
#[must_use]
pub fn hot() -> Vec<Group> {
    let one = vec![
        Bench::new("limit", bare::limit),
        Bench::new("epoch pin", bare::pin),
        Bench::new("no barrier", hot::no_barrier),
        Bench::new("barrier armed, queue waited for", || {
            hot::behind_barriers(1)
        }),
        Bench::new("cleared barrier held by another", hot::cleared_barrier_held),
        Bench::new("one addition", bare::one_addition),
        Bench::new(
            "barrier armed, dispatches of another queue",
            hot::armed_dispatch,
        ),
        Bench::new("through the profilers' trait", || {
            yardstick::disabled(of_the_crate)
        }),
        Bench::new("locked, through the same", || yardstick::disabled(locked)),
    ];
    let queues = each([1, 8, 64], "limit", bare::limit_over)
        .chain(each([1, 8, 64], "crate", hot::over_queues))
        .collect();
    let barriers = std::iter::once(Bench::new("crate, 0", || hot::behind_barriers(0)))
        .chain(each(BARRIERS, "crate", hot::behind_barriers))
        .chain(each(BARRIERS, "locked", yardstick::locked_behind_barriers))
        .chain(each(
            BARRIERS,
            "list under parking_lot::RwLock",
            bare::list_under_rwlock,
        ))
        .chain(each(
            BARRIERS,
            "list under arc-swap",
            bare::list_under_arc_swap,
        ))
        .collect();
    let serialized = vec![
        Bench::new("dispatch alone", serialized::dispatch_alone),
        Bench::new(
            "dispatch, ready, grant, completion",
            serialized::uncontended,
        ),
        Bench::new(
            "completion to the next queue's grant",
            serialized::completion_to_grant,
        ),
        Bench::new(
            "the whole of such a completion",
            serialized::granting_completion,
        ),
        Bench::new("through the profilers' trait", || {
            yardstick::enabled(of_the_crate)
        }),
        Bench::new("locked, through the same", || yardstick::enabled(locked)),
    ];
    vec![
        group("disabled, one thread", one),
        group("disabled, over so many queues", queues),
        group("disabled, so many live barriers", barriers),
        group("enabled, one thread", serialized),
    ]
}

/// Of two threads.
#[must_use]
pub fn threads() -> Vec<Group> {
    let own = vec![
        Bench::new("limit", bare::limit_two_threads),
        Bench::new("crate", pairs::own_queues),
        Bench::new("through the profilers' trait", || {
            yardstick::disabled_pair(of_the_crate)
        }),
        Bench::new("locked, through the same", || {
            yardstick::disabled_pair(locked)
        }),
    ];
    let halves = vec![
        Bench::new("limit", bare::limit_two_halves),
        Bench::new("crate", pairs::two_halves),
        Bench::new("limit, tickets handed over", pairs::limit_handed_over),
        Bench::new("crate, tickets handed over", pairs::handed_over),
    ];
    let enabled = vec![
        Bench::new("a line there and back", bare::there_and_back),
        Bench::new("through the profilers' trait", || {
            yardstick::enabled_pair(of_the_crate)
        }),
        Bench::new("locked, through the same", || {
            yardstick::enabled_pair(locked)
        }),
    ];
    vec![
        group("disabled, two threads on queues of their own", own),
        group("disabled, a dispatching and a completing thread", halves),
        group("enabled, two threads on queues of their own", enabled),
    ]
}

/// Of transitions and what follows from them.
#[must_use]
pub fn rare() -> Vec<Group> {
    use rare::Barrier::{Armed, Cleared};
    let toggles = [Load::Idle, Load::OneEach].into_iter().flat_map(|load| {
        QUEUES.into_iter().flat_map(move |queues| {
            let what = match load {
                Load::Idle => "idle",
                Load::OneEach => "a kernel in flight each",
            };
            [
                Bench::new(format!("crate, {queues} queues, {what}"), move || {
                    yardstick::toggle(of_the_crate, queues, load)
                }),
                Bench::new(format!("locked, {queues} queues, {what}"), move || {
                    yardstick::toggle(locked, queues, load)
                }),
            ]
        })
    });
    let first = vec![
        Bench::new("barrier armed", || rare::first_dispatch(Armed)),
        Bench::new("barrier cleared", || rare::first_dispatch(Cleared)),
    ];
    let draining = each(BARRIERS, "crate", rare::draining).collect();
    let drain_queue = vec![
        Bench::new("empty call", bare::empty_call),
        Bench::new("drain_queue, armed", rare::drain_armed),
    ];
    let queues = vec![Bench::new("add and remove", rare::add_and_remove)];
    let beside = |shape: fn() -> Shape| move || rare::beside_idle_threads(THREADS, shape);
    let threads = vec![
        Bench::new("dispatch + completion", beside(hot::no_barrier)),
        Bench::new(
            "first dispatch, barrier armed",
            beside(|| rare::first_dispatch(Armed)),
        ),
        Bench::new("a completion that drains, 8", beside(|| rare::draining(8))),
        Bench::new(
            "enable + disable, 1 queue",
            beside(|| yardstick::toggle(of_the_crate, 1, Load::Idle)),
        ),
    ];
    vec![
        group("enable + disable", toggles.collect()),
        group("first dispatch after a transition", first),
        group(
            "a completion that drains its tag, so many live barriers",
            draining,
        ),
        group("drain_queue of a barrier alone", drain_queue),
        group("a queue", queues),
        group("256 registered threads, idle", threads),
    ]
}
