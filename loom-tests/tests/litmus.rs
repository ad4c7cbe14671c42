//! A litmus test of the one pair that loom checks only with an added fence (`docs/verification.md`): the
//! publisher announces what is due and reads the count; the completer adds to the count and reads what
//! is due. On real threads, with the same kinds of accesses, it counts how often each misses the other.
//!
//! That must never happen, and it is a measurement, not a proof: so the same loop runs with weaker
//! accesses, where it has to happen, or the loop would not have seen it.
//!
//! An atomic read-modify-write is a full fence on x86, also a relaxed one, so there the crate's own
//! pair can't fail whatever its orderings. The second pair shows what the orderings are for: both halves
//! store by a plain store.

#![cfg(not(hsa_serializer_loom))]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::time::{Duration, Instant};

/// Nothing is due.
const NEVER: u64 = u64::MAX;
/// Each pair runs so long.
const LONG: Duration = Duration::from_millis(400);
/// The control runs so long at most, or until it has seen it so often.
const LONGEST: Duration = Duration::from_secs(5);
const ENOUGH: usize = 100;
/// Tries in a row: the two threads do their halves of all of them and only then wait for each other. The
/// completer starts late and the publisher dawdles, so that somewhere on the way they are abreast.
const TRIES: usize = 512;
const LATE: usize = 2_000;
const DAWDLE: usize = 8;

/// The machine's cores that this thread may use, where that can be told.
#[cfg(target_os = "linux")]
fn cores() -> Vec<usize> {
    let mut set = no_cores();
    // SAFETY: it writes a set of that size; 0 is the calling thread.
    let told = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    let all = 0..if told == 0 {
        libc::CPU_SETSIZE as usize
    } else {
        0
    };
    // SAFETY: below the set's size.
    all.filter(|core| unsafe { libc::CPU_ISSET(*core, &set) })
        .collect()
}

/// Keeps this thread on a core: two on one core see nothing of each other's store buffers, and a busy
/// machine's scheduler likes to put them there.
#[cfg(target_os = "linux")]
fn stay_on(core: Option<&usize>) {
    if let Some(core) = core {
        let mut set = no_cores();
        // SAFETY: below the set's size; 0 is the calling thread, which goes on as it was where that fails.
        unsafe {
            libc::CPU_SET(*core, &mut set);
            libc::sched_setaffinity(0, size_of_val(&set), &set);
        }
    }
}

#[cfg(target_os = "linux")]
fn no_cores() -> libc::cpu_set_t {
    // SAFETY: plain bits, for which all zero is the empty set.
    unsafe { std::mem::zeroed() }
}

#[cfg(not(target_os = "linux"))]
fn cores() -> Vec<usize> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
fn stay_on(_: Option<&usize>) {}

/// Passes some time, in which nothing is stored.
fn pass(steps: usize) {
    for step in 0..steps {
        std::hint::black_box(step);
    }
}

/// On a line of its own, as the crate's are.
#[repr(align(128))]
struct Line(AtomicU64);

/// The two locations, and whether the completer has missed the publisher.
struct Try {
    due: Line,
    count: Line,
    missed: AtomicUsize,
}

/// Where two threads wait for each other.
struct Meeting {
    arrived: AtomicUsize,
    over: AtomicUsize,
}

impl Meeting {
    /// Spins until both are here, so that they go on within nanoseconds of each other.
    fn meet(&self, times: usize) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0_u32;
        while self.arrived.load(Ordering::Acquire) < 2 * times {
            spins += 1;
            if spins % 1_000 == 0 {
                // The other one may have no core.
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// What both halves do to the two locations; true where a half has missed the other.
struct Pair {
    name: &'static str,
    publish: fn(due: &AtomicU64, count: &AtomicU64) -> bool,
    complete: fn(due: &AtomicU64, count: &AtomicU64) -> bool,
}

/// As in `QueueCell::announce` and `QueueCell::add_completion`.
const CRATE: Pair = Pair {
    name: "the crate's",
    publish: |due, count| {
        due.fetch_min(1, Ordering::SeqCst);
        count.load(Ordering::SeqCst) < 1
    },
    complete: |due, count| {
        let _ = count.compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed);
        1 < due.load(Ordering::SeqCst)
    },
};

const STORES: Pair = Pair {
    name: "plain stores, SeqCst",
    publish: |due, count| {
        due.store(1, Ordering::SeqCst);
        count.load(Ordering::SeqCst) < 1
    },
    complete: |due, count| {
        count.store(1, Ordering::SeqCst);
        1 < due.load(Ordering::SeqCst)
    },
};

/// What loom's facade makes of it.
const FENCES: Pair = Pair {
    name: "weak accesses with a fence between",
    publish: |due, count| {
        due.store(1, Ordering::Release);
        fence(Ordering::SeqCst);
        count.load(Ordering::Acquire) < 1
    },
    complete: |due, count| {
        count.store(1, Ordering::Release);
        fence(Ordering::SeqCst);
        1 < due.load(Ordering::Acquire)
    },
};

/// The control: nothing forbids both to miss.
const WEAK: Pair = Pair {
    name: "plain stores, Release and Acquire",
    publish: |due, count| {
        due.store(1, Ordering::Release);
        count.load(Ordering::Acquire) < 1
    },
    complete: |due, count| {
        count.store(1, Ordering::Release);
        1 < due.load(Ordering::Acquire)
    },
};

/// Runs the pair for that long, or until both have missed each other so often: how often they did, of how
/// many tries.
fn run(pair: &Pair, cores: &[usize], long: Duration, until: usize) -> (usize, usize) {
    let tries: Vec<_> = (0..TRIES)
        .map(|_| Try {
            due: Line(AtomicU64::new(NEVER)),
            count: Line(AtomicU64::new(0)),
            missed: AtomicUsize::new(0),
        })
        .collect();
    let meeting = Meeting {
        arrived: AtomicUsize::new(0),
        over: AtomicUsize::new(0),
    };
    let (mut both, mut rounds) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            stay_on(cores.get(1));
            for round in 0.. {
                meeting.meet(2 * round + 1);
                if meeting.over.load(Ordering::Relaxed) == 1 {
                    break;
                }
                pass(LATE);
                for t in &tries {
                    let missed = (pair.complete)(&t.due.0, &t.count.0);
                    t.missed.store(usize::from(missed), Ordering::Relaxed);
                }
                meeting.meet(2 * round + 2);
            }
        });
        let start = Instant::now();
        while both < until && start.elapsed() < long {
            meeting.meet(2 * rounds + 1);
            let missed = tries.iter().map(|t| {
                pass(DAWDLE);
                (pair.publish)(&t.due.0, &t.count.0)
            });
            let missed: Vec<_> = missed.collect();
            meeting.meet(2 * rounds + 2);
            for (t, missed) in tries.iter().zip(missed) {
                both += usize::from(missed && t.missed.load(Ordering::Relaxed) == 1);
                t.due.0.store(NEVER, Ordering::Relaxed);
                t.count.0.store(0, Ordering::Relaxed);
            }
            rounds += 1;
        }
        meeting.over.store(1, Ordering::Relaxed);
        meeting.meet(2 * rounds + 1);
    });
    let of = rounds * TRIES;
    println!("{:<36} {both:>6} of {of} tries missed by both", pair.name);
    (both, of)
}

#[test]
fn a_publisher_and_a_completer_do_not_both_miss_each_other() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("SKIPPED: with one core nothing is reordered that a thread could see");
        return;
    }
    let cores = cores();
    stay_on(cores.first());
    for pair in [&CRATE, &STORES, &FENCES] {
        let (both, tries) = run(pair, &cores, LONG, usize::MAX);
        assert!(tries > 0, "{}: nothing was tried", pair.name);
        assert_eq!(both, 0, "{}: both missed each other", pair.name);
    }
    let (both, tries) = run(&WEAK, &cores, LONGEST, ENOUGH);
    // Other machines may reorder it or not; x86 does: a store waits in a buffer.
    if cfg!(target_arch = "x86_64") {
        assert!(both > 0, "in {tries} tries the control has seen nothing");
    }
}
