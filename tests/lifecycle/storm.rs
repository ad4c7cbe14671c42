//! Timers of the system whose handler interrupts everything, every 100 microseconds.

use crate::child::in_child;
use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{Domain, MAX_PACKETS, Mode, Serializer};
use hsa_sys::AqlPacket;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

static ASKED: OnceLock<Serializer<Host>> = OnceLock::new();
static CALLS: AtomicU64 = AtomicU64::new(0);
static ENABLED: AtomicU64 = AtomicU64::new(0);
static LEAVES_AT: AtomicU64 = AtomicU64::new(u64::MAX);

extern "C" fn interrupts(_: c_int) {
    let calls = CALLS.fetch_add(1, SeqCst);
    if let Some(serializer) = ASKED.get() {
        let enabled = serializer.mode() == Mode::Enabled;
        ENABLED.fetch_add(u64::from(enabled), SeqCst);
        if calls >= LEAVES_AT.load(SeqCst) {
            serializer.leave();
        }
    }
}

/// Starts a timer of that kind, whose signals also end the system's waits early.
fn storm(timer: c_int, signal: c_int) {
    let every = libc::timeval {
        tv_sec: 0,
        tv_usec: 100,
    };
    let times = libc::itimerval {
        it_interval: every,
        it_value: every,
    };
    // SAFETY: the handler does what a signal handler may: it reads and adds to atomics. All
    // structures are alive, and one of zeroes is a `sigaction` with no flags and an empty mask.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = interrupts as *const () as usize;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
        assert_eq!(libc::setitimer(timer, &times, std::ptr::null_mut()), 0);
    }
}

const ROUNDS: u64 = 200;
/// SIGPROF comes by processor time, and no oftener than the system's clock ticks.
const SIGNALS: u64 = 50;
const LONG: Duration = Duration::from_secs(20);

/// Kernels of two queues, each completed by another thread; toggles and drains; then the end.
fn under_the_storm() {
    let s = ASKED.get_or_init(|| {
        let builder = Serializer::<Host>::builder().domain(Domain::new());
        builder.build(Host::default())
    });
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = &stop;
        for _ in 0..2 {
            scope.spawn(move || {
                let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
                while !stop.load(SeqCst) {
                    let mut queue = s.add_queue().unwrap();
                    for _ in 0..50 {
                        let dispatch = queue.dispatch(&mut packets).unwrap();
                        let runs = dispatch.packets == 0 && !dispatch.serialized;
                        if !runs {
                            dispatch.ticket.abandon();
                            break;
                        }
                        thread::yield_now();
                        s.complete(dispatch.ticket).unwrap();
                    }
                    s.queue_destroyed(queue.id()).unwrap();
                    let _ = s.ready(queue.id());
                }
            });
        }
        let since = Instant::now();
        let mut rounds = 0;
        while rounds < ROUNDS || CALLS.load(SeqCst) < SIGNALS && since.elapsed() < LONG {
            rounds += 1;
            s.enable().unwrap();
            s.drain(LONG).unwrap();
            s.disable().unwrap();
            s.drain(LONG).unwrap();
        }
        stop.store(true, SeqCst);
    });
    // A wait that runs out takes as long as it was to take.
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let mut stuck = s.add_queue().unwrap();
    let ticket = stuck.dispatch(&mut packets).unwrap().ticket;
    let timeout = Duration::from_millis(100);
    let waits: [fn(&Serializer<Host>, Duration) -> bool; 2] = [
        |s, timeout| s.drain(timeout).is_err(),
        |s, timeout| s.finish_shutdown(timeout).is_err(),
    ];
    for wait in waits {
        let since = Instant::now();
        assert!(wait(s, timeout));
        let took = since.elapsed();
        assert!(took >= timeout && took < LONG, "{took:?}");
    }
    s.complete(ticket).unwrap();
    s.queue_destroyed(stuck.id()).unwrap();
    let _ = s.ready(stuck.id());
    assert_eq!(s.finish_shutdown(LONG), Ok(()));
    let calls = CALLS.load(SeqCst);
    assert!(calls >= SIGNALS, "the storm was {calls} signals");
    assert!(ENABLED.load(SeqCst) > 0);
}

#[test]
fn s78_waits_and_transitions_under_a_storm_of_sigalrm() {
    in_child(s78_waits_and_transitions_under_a_storm_of_sigalrm, || {
        storm(libc::ITIMER_REAL, libc::SIGALRM);
        under_the_storm();
    });
}

#[test]
fn s78_waits_and_transitions_under_a_storm_of_sigprof() {
    in_child(s78_waits_and_transitions_under_a_storm_of_sigprof, || {
        storm(libc::ITIMER_PROF, libc::SIGPROF);
        under_the_storm();
    });
}

/// Whatever the one that leaves has interrupted.
#[test]
fn s72_s78_a_signal_handler_may_leave() {
    in_child(s72_s78_a_signal_handler_may_leave, || {
        LEAVES_AT.store(SIGNALS, SeqCst);
        let builder = Serializer::<Host>::builder().domain(Domain::new());
        let s = ASKED.get_or_init(|| builder.build(Host::default()));
        storm(libc::ITIMER_REAL, libc::SIGALRM);
        let since = Instant::now();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while s.enable().is_ok() && s.disable().is_ok() {
                        assert!(since.elapsed() < LONG, "nobody has left");
                        if let Ok(queue) = s.add_queue() {
                            s.queue_destroyed(queue.id()).unwrap();
                            let _ = s.ready(queue.id());
                        }
                        let _ = s.drain(LONG);
                    }
                });
            }
        });
        assert_eq!(s.finish_shutdown(LONG), Ok(()));
        assert!(CALLS.load(SeqCst) >= SIGNALS);
    });
}
