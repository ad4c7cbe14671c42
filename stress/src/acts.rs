//! What the threads of a round do, each at random.

use crate::forks::fork_once;
use crate::pinned::Pinned;
use crate::round::{QUEUES, Round};
use crate::succession::{Ending, Succession};
use crate::{Options, lock};
use fastrand::Rng;
use hsa_serializer::{DrainError, ShutdownError, StallPolicy, Stalled};
use softgpu::{Ends, Kernel, QueueState};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

/// A program that can't be serialized takes a signal, until the round ends.
const STALLING: u64 = 150;

/// So many barriers at once make a transition a nested one.
const NESTED: u64 = 3;

/// So many losses of exclusiveness end a round.
const MOST_LOSSES: u64 = 400;

fn nap(rng: &mut Rng, most: Duration) {
    thread::sleep(most.mul_f64(rng.f64()));
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

type Act = fn(&Arc<Round>, &mut Rng);

/// Everything at once, for so long.
pub(crate) fn all(round: &Arc<Round>, lasts: Duration, seed: u64, options: &Options) {
    let once: [Act; 8] = [toggle, change_queues, drain, end, bury, look, pin, visit];
    let mut acts = vec![submit as Act; options.threads];
    acts.extend(once);
    acts.extend(options.forks.then_some(fork as Act));
    thread::scope(|scope| {
        let threads: Vec<_> = acts
            .into_iter()
            .zip(0..)
            .map(|(act, n)| {
                let mut rng = Rng::with_seed(seed ^ (n + 1) << 32);
                scope.spawn(move || {
                    while round.goes_on() {
                        act(round, &mut rng);
                    }
                })
            })
            .collect();
        let end = Instant::now() + lasts;
        let failed = || threads.iter().any(|t| t.is_finished());
        // The witness keeps the first thousand losses, and all are to be judged.
        let enough = || round.gpu.witness().counts().total() > MOST_LOSSES;
        let fine = || !failed() && lock(&round.succession().failures).is_empty();
        while Instant::now() < end && !enough() && fine() {
            // The thread of the host's that looks for stalls.
            thread::sleep(ms(2));
            for reign in round.succession().living() {
                reign.check_stalls();
            }
            round.give_up(false);
        }
        round.stop.store(true, SeqCst);
        // They may be inside of a wait that needs it.
        while threads.iter().any(|t| !t.is_finished()) {
            thread::sleep(ms(2));
            for reign in round.succession().living() {
                reign.check_stalls();
            }
            round.give_up(true);
        }
    });
}

fn submit(round: &Arc<Round>, rng: &mut Rng) {
    let place = rng.usize(..QUEUES);
    if round.is_full(place) {
        return thread::sleep(Duration::from_micros(50));
    }
    let kernel = Kernel::lasting(rng.u64(..20_000));
    match rng.u32(..1_000) {
        0..15 => stall(round, rng, place),
        15..20 => {
            round.submit(&round.queue(place), &[kernel.ends(Ends::Fault)]);
            round.tally().add("faults", 1);
        }
        20..40 => {
            round.submit(&round.queue(place), &[kernel.ends(Ends::Badly(-3))]);
        }
        40..60 => {
            round.submit_unseen(&round.queue(place), kernel);
            round.tally().add("unseen", 1);
        }
        // By a thread that ends at once.
        60..65 => {
            let round = round.clone();
            let passing = move || round.submit(&round.queue(place), &[kernel]);
            thread::spawn(passing).join().expect("it does not panic");
        }
        _ => {
            // Where signals are scarce a kernel is told from its number by being alone.
            let most = if round.scarce { 1 } else { 3 };
            let batch = vec![kernel; rng.usize(1..=most)];
            round.submit(&round.queue(place), &batch);
        }
    }
}

/// A kernel that waits for one of another queue.
fn stall(round: &Arc<Round>, rng: &mut Rng, place: usize) {
    if round.tally().of("programs that may stall") >= STALLING {
        return;
    }
    let Some(signal) = round.signal() else {
        return;
    };
    round.tally().add("programs that may stall", 1);
    let other = (place + rng.usize(1..QUEUES)) % QUEUES;
    round.gives_up(signal);
    round.submit(&round.queue(place), &[Kernel::until(signal)]);
    if rng.bool() {
        nap(rng, ms(1));
    }
    round.submit(
        &round.queue(other),
        &[Kernel::lasting(2_000).writes(signal, 0)],
    );
}

fn toggle(round: &Arc<Round>, rng: &mut Rng) {
    let mut on = rng.bool();
    let times = if rng.u8(..4) == 0 {
        rng.usize(3..12)
    } else {
        1
    };
    for n in 0..times {
        if n > 0 {
            // Somebody may dispatch, and nobody completes.
            nap(rng, Duration::from_micros(20));
        }
        // It fails where signals are scarce, and where the reign has just ended.
        let _ = if on {
            round.profiler.enable()
        } else {
            round.profiler.disable()
        };
        on = !on;
    }
    let serializer = &round.succession().current().serializer;
    if times > 1 && serializer.statistics().barriers_live >= NESTED {
        round.tally().add("nested toggles", 1);
    }
    nap(rng, Duration::from_micros(600));
}

/// Destroys a queue in a state that is wanted.
fn change_queues(round: &Arc<Round>, rng: &mut Rng) {
    let broken = (0..QUEUES).find(|place| round.queue(*place).0.state() != QueueState::Active);
    if let Some(place) = broken {
        if round.replace_queue(place, false) {
            round.tally().add("destroyed after a fault", 1);
        }
        return;
    }
    let wanted = ["holds", "waits", "is waited for", "is held back", "any"][rng.usize(..5)];
    // Not for long: there may never be one.
    let end = Instant::now() + ms(3);
    while Instant::now() < end && round.goes_on() {
        let found = find(round, wanted).or((wanted == "any").then(|| rng.usize(..QUEUES)));
        if let Some(place) = found {
            if round.replace_queue(place, rng.u8(..4) == 0) {
                round.tally().add(
                    match wanted {
                        "holds" => "destroyed with the token",
                        "waits" => "destroyed waiting for the token",
                        "is waited for" => "destroyed while waited for",
                        "is held back" => "destroyed behind a barrier",
                        _ => "destroyed anyhow",
                    },
                    1,
                );
            }
            break;
        }
    }
    nap(rng, ms(8));
}

/// A queue that stands like this now.
fn find(round: &Round, wanted: &str) -> Option<usize> {
    let reign = round.succession().current();
    let mut watch = reign
        .serializer
        .watch_stalls(Duration::ZERO, StallPolicy::Report);
    let mut ids = Vec::new();
    for stall in watch.check_stalls(Duration::ZERO) {
        match (stall.what, wanted) {
            (Stalled::Holder { queue, .. }, "holds") => ids.push(queue),
            (Stalled::Holder { waiting, .. }, "waits") => ids.extend(waiting),
            (Stalled::Barrier { waits_for, .. }, "is waited for") => {
                ids.extend(waits_for.iter().map(|wait| wait.queue));
            }
            (Stalled::Barrier { holds_back, .. }, "is held back") => {
                ids.extend(holds_back.iter().map(|held| held.0));
            }
            _ => {}
        }
    }
    (0..QUEUES).find(|place| {
        round
            .queue(*place)
            .1
            .id()
            .is_some_and(|id| ids.contains(&id))
    })
}

/// Drains, by a thread that ends then.
fn drain(round: &Arc<Round>, rng: &mut Rng) {
    nap(rng, ms(20));
    if rng.u8(..8) == 0 {
        return round.on_handler(|round| {
            let outcome = round
                .succession()
                .current()
                .serializer
                .drain(Duration::ZERO);
            if outcome != Err(DrainError::OnHandlerThread) {
                round
                    .succession()
                    .fail(format!("a drain on a handler's thread: {outcome:?}"));
            }
        });
    }
    let (of, timeout) = (round.clone(), ms(30).mul_f64(rng.f64()));
    let passing = thread::spawn(move || drain_for(&of, timeout));
    passing.join().expect("it does not panic");
}

fn drain_for(round: &Round, timeout: Duration) {
    let succession = round.succession();
    let reign = succession.current();
    let losses = || {
        let s = reign.serializer.statistics();
        (s.forced + s.overtaken, lock(&reign.log).killed)
    };
    let (before, bare, lost) = (round.gpu.now(), reign.uncovered(), losses());
    match reign.serializer.drain(timeout) {
        Ok(()) => {
            round.tally().add("drains", 1);
            let left = succession.records.in_flight(reign.number, before);
            if let Some(record) = left.filter(|_| losses() == lost) {
                // A release stores first and counts then.
                thread::sleep(ms(100));
                if losses() == lost {
                    succession.fail(format!("drained, but {record:?}"));
                }
            }
            if !reign.ends() {
                reign.cover(&bare);
            }
        }
        Err(DrainError::TimedOut(stuck)) => {
            round.tally().add("drains timed out", 1);
            if stuck.is_empty() {
                succession.fail("a drain that timed out for nobody");
            }
        }
        Err(DrainError::Signal(_)) if round.scarce => {}
        Err(e) => succession.fail(format!("a drain: {e}")),
    }
}

/// Ends the reign, in one of many ways, so that a fresh one begins.
fn end(round: &Arc<Round>, rng: &mut Rng) {
    nap(rng, ms(120));
    let how = if rng.bool() {
        Ending::Kill
    } else {
        Ending::Close
    };
    round.tally().add(
        match how {
            Ending::Kill => "kills",
            Ending::Close => "shutdowns",
        },
        1,
    );
    match rng.u8(..8) {
        0..3 => {
            // Beside no other transition, so that the witness knows the mode.
            Succession::end_at_disable(how);
            round.profiler.disable().expect("it always ends");
        }
        3 => round.on_handler(move |round| {
            round.succession().end_now(how);
            round.tally().add("endings on handlers", 1);
            let old = lock(&round.succession().old).last().cloned();
            let refused = old.map(|old| old.serializer.finish_shutdown(Duration::ZERO));
            if refused.is_some_and(|refused| refused != Err(ShutdownError::OnHandlerThread)) {
                round
                    .succession()
                    .fail("a shutdown finished on a handler's thread");
            }
        }),
        4 => round.succession().end_in_interceptor.store(true, SeqCst),
        5 => abdicate(round),
        _ => round.succession().end_now(how),
    }
}

/// All queues go, and then the last handle, on a handler's thread, without a shutdown's second phase.
fn abdicate(round: &Arc<Round>) {
    let succession = round.succession();
    succession.end_now(Ending::Close);
    let Some(reign) = lock(&succession.old).pop() else {
        return;
    };
    round.note(&reign);
    for place in 0..QUEUES {
        // As long as signals are scarce it may take more than one attempt.
        while !round.replace_queue(place, false) {
            thread::yield_now();
        }
    }
    round.tally().add("last handles dropped", 1);
    round.on_handler(move |_| drop(reign));
}

fn bury(round: &Arc<Round>, rng: &mut Rng) {
    nap(rng, ms(5));
    round.bury(rng, ms(20));
}

fn fork(round: &Arc<Round>, rng: &mut Rng) {
    nap(rng, ms(300));
    let succession = round.succession();
    let reigns = succession.living();
    match fork_once(&round.gpu, succession.domain.clone(), &reigns) {
        Ok(true) => round.tally().add("forks", 1),
        Ok(false) if round.scarce => {}
        Ok(false) => succession.fail("no signal for a fork's serializer"),
        Err(e) => succession.fail(format!("fork: {e}")),
    }
}

/// Diagnostics, and handler threads that are away for a while.
fn look(round: &Arc<Round>, rng: &mut Rng) {
    nap(rng, ms(10));
    for reign in round.succession().living() {
        let text = format!("{:?} {:?}", reign.serializer, reign.serializer.statistics());
        round.tally().add("bytes of diagnostics", text.len() as u64);
    }
    if rng.u8(..20) == 0 {
        let away = |is: bool| round.gpu.faults().change(|plan| plan.handlers_dead = is);
        away(true);
        nap(rng, ms(6));
        away(false);
    }
}

/// A thread sits pinned for a while, and nothing that is retired meanwhile can be reclaimed.
fn pin(round: &Arc<Round>, rng: &mut Rng) {
    nap(rng, ms(60));
    let domain = &round.succession().domain;
    let pinned = Pinned::new(domain);
    nap(rng, ms(30));
    let held = domain.pending() as u64;
    round.tally().add("held back by pins", held);
    round.tally().at_least("most held back by a pin", held);
    drop(pinned.ends());
    round.tally().add("pins", 1);
}

/// Threads that come, do a little of what others do all the time, and go.
fn visit(round: &Arc<Round>, rng: &mut Rng) {
    let acts: [Act; 4] = [submit, submit, toggle, look];
    let visitors: Vec<_> = (0..rng.usize(1..6))
        .map(|_| {
            let (round, mut rng) = (round.clone(), rng.fork());
            thread::spawn(move || {
                for _ in 0..rng.usize(1..4) {
                    acts[rng.usize(..acts.len())](&round, &mut rng);
                }
            })
        })
        .collect();
    round
        .tally()
        .add("threads that came and went", visitors.len() as u64);
    for visitor in visitors {
        visitor.join().expect("it does not panic");
    }
    nap(rng, ms(4));
}
