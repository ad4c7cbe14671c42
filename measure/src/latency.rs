//! Latencies of single calls while others toggle and complete.
//!
//! One thread dispatches, in bursts on two queues, and notes how long each dispatch took. A second one
//! does what the packet processors and the handlers do: it executes the gates, calls `ready`, and
//! completes, and notes how long each completion took. A third one toggles. The clock's own cost is
//! subtracted.

use crate::hot::{ROOM, add, serializer, toggle};
use crate::serialized::waits_for;
use crossbeam_queue::ArrayQueue;
use hdrhistogram::Histogram;
use hsa_serializer::{Ticket, hsa_signal_t};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::{Duration, Instant};

/// What was measured, in nanoseconds.
#[derive(Debug)]
pub struct Latencies {
    /// Of dispatches.
    pub dispatch: Histogram<u64>,
    /// Of completions.
    pub complete: Histogram<u64>,
    /// Transitions that took place meanwhile.
    pub transitions: u64,
    /// What reading the clock takes, which was subtracted.
    pub clock: u64,
}

/// The parts that are worth saying: what it is called, and how much of all lies below.
pub const PARTS: [(&str, f64); 4] = [
    ("median", 0.5),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("worst", 1.0),
];

/// A kernel on its way to its end.
struct Flight {
    ticket: Ticket,
    /// What its transition packet waits for, if it has one.
    transition: Option<hsa_signal_t>,
    /// Of a serialized kernel: its queue's `ready` and `block`.
    gates: Option<(hsa_signal_t, hsa_signal_t)>,
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are possible")
}

/// The median of what two readings of the clock in a row differ by.
pub(crate) fn clock() -> u64 {
    let mut all = histogram();
    for _ in 0..100_000 {
        let start = Instant::now();
        note(&mut all, start.elapsed(), 0);
    }
    all.value_at_quantile(0.5)
}

fn note(histogram: &mut Histogram<u64>, took: Duration, clock: u64) {
    let nanoseconds = took.as_nanos() as u64;
    let noted = histogram.record(nanoseconds.saturating_sub(clock));
    noted.expect("it grows as it has to");
}

/// Measures for so long, toggling after each `pause`.
#[must_use]
pub fn measure(lasts: Duration, pause: Duration) -> Latencies {
    const QUEUES: usize = 2;
    const BURST: usize = 16;
    let clock = clock();
    let serializer = serializer(64);
    let mut queues: Vec<_> = (0..QUEUES).map(|_| add(&serializer)).collect();
    // One for each queue: what stands behind a transition packet may wait for what the other one got later.
    let flights: [_; QUEUES] = std::array::from_fn(|_| ArrayQueue::<Flight>::new(4 * BURST));
    // Nothing more is to be dispatched; nothing more is.
    let (ends, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (mut dispatch, mut complete) = (histogram(), histogram());
    thread::scope(|scope| {
        scope.spawn(|| {
            let end = Instant::now() + lasts;
            while Instant::now() < end {
                toggle(&serializer);
                thread::sleep(pause);
                serializer.enable().expect("room for its signals");
                thread::sleep(pause);
                serializer.disable().expect("it was reserved");
                thread::sleep(pause);
            }
            ends.store(true, Relaxed);
        });
        scope.spawn(|| {
            let signals = serializer.runtime();
            let mut heads: [Option<Flight>; QUEUES] = [const { None }; QUEUES];
            // What the queues hold is looked at after `over`: then nothing is added.
            while !over.load(Acquire)
                || heads.iter().any(Option::is_some)
                || flights.iter().any(|queue| !queue.is_empty())
            {
                thread::yield_now();
                for (head, queue) in heads.iter_mut().zip(&flights) {
                    *head = head.take().or_else(|| queue.pop());
                    let goes_on = |flight: &mut Flight| {
                        let waits_for = flight.transition;
                        waits_for.is_none_or(|signal| signals.value(signal) == 0)
                    };
                    let Some(flight) = head.take_if(goes_on) else {
                        continue;
                    };
                    if let Some((ready, block)) = flight.gates {
                        signals.execute(ready);
                        assert!(serializer.ready(flight.ticket.queue()).keep());
                        assert_eq!(signals.value(block), 0, "nobody else has the token");
                        signals.execute(block);
                    }
                    let start = Instant::now();
                    let done = serializer.complete(flight.ticket);
                    note(&mut complete, start.elapsed(), clock);
                    done.expect("each is completed once");
                }
            }
        });
        let mut room = ROOM;
        while !ends.load(Relaxed) {
            for i in 0..BURST {
                let start = Instant::now();
                let done = queues[i % QUEUES].dispatch(&mut room);
                note(&mut dispatch, start.elapsed(), clock);
                let done = done.expect("it is not shut down");
                // The gates come in twos; a transition packet in front of them makes the number odd.
                let transition = (done.packets % 2 == 1).then(|| waits_for(&room[0]));
                let gates = done.serialized.then(|| {
                    let gates = &room[done.packets - 2..];
                    (waits_for(&gates[0]), waits_for(&gates[1]))
                });
                let mut flight = Flight {
                    ticket: done.ticket,
                    transition,
                    gates,
                };
                while let Err(back) = flights[i % QUEUES].push(flight) {
                    flight = back;
                    thread::yield_now();
                }
            }
        }
        // Release: who sees it sees all that was pushed.
        over.store(true, Release);
    });
    Latencies {
        dispatch,
        complete,
        transitions: serializer.statistics().transitions,
        clock,
    }
}
