//! The end of a process, and of threads: nothing of it calls the runtime by itself.

use crate::busy::Busy;
use crate::child::{in_child, in_child_with};
use crate::guarded::Guarded;
use crate::pinned::{Left, Pinned};
use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{
    Completion, Domain, Handler, MAX_PACKETS, Queue, QueueId, Runtime, Serializer, SignalKind,
    hsa_signal_t, hsa_status_t,
};
use hsa_sys::AqlPacket;
use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Ends the process as `exit` in C does, on this thread.
fn exits() -> ! {
    // SAFETY: what runs at the end of a process runs now; the other threads go on meanwhile.
    unsafe { libc::exit(0) }
}

static KEPT: OnceLock<Busy> = OnceLock::new();

/// What a tool keeps that is never told that the process ends.
fn kept() -> &'static Busy {
    KEPT.get_or_init(|| Busy::new(Domain::process()))
}

#[test]
fn s72_a_process_may_exit_with_work_in_every_state() {
    in_child(s72_a_process_may_exit_with_work_in_every_state, || {
        kept().serializer.runtime().forbid_everybody();
        exits();
    });
}

/// The main thread returns, which is the test harness's here.
#[test]
fn s72_a_process_may_return_from_main_with_work_in_every_state() {
    in_child(
        s72_a_process_may_return_from_main_with_work_in_every_state,
        || kept().serializer.runtime().forbid_everybody(),
    );
}

#[test]
fn s72_a_process_may_exit_while_another_thread_holds_the_transition_lock() {
    in_child(
        s72_a_process_may_exit_while_another_thread_holds_the_transition_lock,
        || {
            let builder = Serializer::<Guarded>::builder().domain(Domain::new());
            let idle = builder.build(Guarded::new());
            let toggles = idle.clone();
            idle.runtime().stores_stay.store(true, SeqCst);
            thread::spawn(move || toggles.enable());
            while idle.runtime().storing.load(SeqCst) == 0 {
                thread::yield_now();
            }
            idle.runtime().forbid_everybody();
            exits();
        },
    );
}

#[test]
fn s72_a_thread_may_end_the_process_while_others_dispatch() {
    in_child(
        s72_a_thread_may_end_the_process_while_others_dispatch,
        || {
            let serializer = &kept().serializer;
            let rounds: &AtomicU64 = Box::leak(Box::default());
            for n in 0..3 {
                thread::spawn(move || {
                    let mut queue = serializer.add_queue().unwrap();
                    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
                    loop {
                        if n == 0 {
                            serializer.enable().unwrap();
                            serializer.disable().unwrap();
                        } else {
                            // What runs is another test's matter.
                            queue.dispatch(&mut packets).unwrap().ticket.abandon();
                        }
                        rounds.fetch_add(1, SeqCst);
                    }
                });
            }
            while rounds.load(SeqCst) < 1_000 {
                thread::yield_now();
            }
            serializer.runtime().forbid_this_thread();
            exits();
        },
    );
}

/// Retires something while somebody else is pinned. Once that pin has ended this thread pins so many
/// times more, without a call that reclaims.
fn leaves_garbage(busy: &Busy, domain: &Domain, pins: u64) -> Left {
    let pinned = Pinned::new(domain);
    for _ in 0..2 {
        busy.serializer.enable().unwrap();
        busy.serializer.disable().unwrap();
    }
    let left = pinned.ends();
    let idle = busy.queues[4].id();
    for _ in 0..pins {
        // A late call of a handler.
        assert_eq!(busy.serializer.ready(idle), Handler::Keep);
    }
    left
}

/// How many pins it takes until one of them runs the garbage: a thread that ends one earlier would run
/// it by its last one, which gives its handle back.
fn pins_that_collect(domain: &Domain) -> u64 {
    let busy = kept();
    let runtime = busy.serializer.runtime();
    let mut seen = None;
    for pins in 0..400 {
        let (left, pending) = thread::scope(|scope| {
            let ending = scope.spawn(|| {
                let left = leaves_garbage(busy, domain, pins);
                let pending = domain.pending();
                runtime.forbid_this_thread();
                (left, pending)
            });
            ending.join().unwrap()
        });
        runtime.allow();
        if pending == 0 && seen.is_none() {
            seen = Some(pins);
        }
        drop(left);
    }
    seen.expect("a pin in so many collects")
}

#[test]
fn s80_a_thread_that_ends_runs_nothing_that_was_deferred() {
    in_child(
        s80_a_thread_that_ends_runs_nothing_that_was_deferred,
        || {
            let domain = Domain::process();
            let pins = pins_that_collect(&domain);
            assert!(pins > 0);
            // It is not lost either.
            kept().serializer.collect();
            assert_eq!(domain.pending(), 0);
        },
    );
}

#[test]
fn s80_a_process_that_exits_runs_nothing_that_was_deferred() {
    in_child(
        s80_a_process_that_exits_runs_nothing_that_was_deferred,
        || {
            let domain = Domain::process();
            let pins = pins_that_collect(&domain) - 1;
            let ends = thread::spawn(move || {
                let left = leaves_garbage(kept(), &domain, pins);
                assert!(domain.pending() > 0);
                std::mem::forget(left);
                kept().serializer.runtime().forbid_everybody();
                exits();
            });
            let _ = ends.join();
            unreachable!("the process has ended");
        },
    );
}

/// A queue's life, of which something is left to be reclaimed.
fn lives(s: &Serializer<Host>) {
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let mut queue = s.add_queue().unwrap();
    let first = queue.dispatch(&mut packets).unwrap();
    let runs = first.packets == 0 && !first.serialized;
    s.enable().unwrap();
    queue.dispatch(&mut packets).unwrap().ticket.abandon();
    s.disable().unwrap();
    if runs {
        let counted = s.complete(first.ticket).unwrap();
        assert_eq!(counted, Completion::Counted);
    } else {
        first.ticket.abandon();
    }
    s.queue_destroyed(queue.id()).unwrap();
    assert_eq!(s.ready(queue.id()), Handler::Drop);
}

#[test]
fn s79_what_a_thousand_threads_leave_behind_is_reclaimed() {
    let (host, domain) = (Host::default(), Domain::new());
    let builder = Serializer::<Host>::builder().domain(domain.clone());
    let s = builder.build(host.clone());
    let mut most = 0;
    for _ in 0..50 {
        let pinned = Pinned::new(&domain);
        thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| lives(&s));
            }
        });
        most = most.max(domain.pending());
        drop(pinned);
    }
    assert!(most > 20, "{most}: they left nothing behind");
    s.disable().unwrap();
    for _ in 0..1_000 {
        s.collect();
    }
    let stats = s.statistics();
    assert_eq!(
        (stats.reclaim_pending, stats.barriers_live),
        (0, 0),
        "{stats:?}"
    );
    assert_eq!((stats.queues_gone, stats.queues), (1_000, 0));
    assert_eq!((stats.barriers, stats.misuse), (stats.reclaimed, 0));
    drop(s);
    assert_eq!((host.live_signals(), host.reports()), (0, vec![]));
}

thread_local! {
    /// What a tool keeps for a thread.
    static TOOL: RefCell<Option<(Serializer<Host>, Queue<Host>)>> = const { RefCell::new(None) };
}

/// A thread's own storage holds the last handle, and goes before or after what the library keeps there.
#[test]
fn s42_the_last_handle_may_go_with_a_threads_storage() {
    for first in [false, true] {
        for domain in [Domain::new(), Domain::process()] {
            let host = Host::default();
            let builder = Serializer::<Host>::builder().domain(domain);
            let kept = host.clone();
            let ends = thread::spawn(move || {
                if first {
                    TOOL.set(None);
                }
                let s = builder.build(kept);
                let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
                let mut queue = s.add_queue().unwrap();
                s.enable().unwrap();
                queue.dispatch(&mut packets).unwrap().ticket.abandon();
                s.disable().unwrap();
                TOOL.set(Some((s, queue)));
            });
            ends.join().unwrap();
            // A pin of another test's, where the domain is the process's.
            for _ in 0..10_000 {
                if host.live_signals() == 0 {
                    break;
                }
                Serializer::new(Host::default()).collect();
                thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(host.live_signals(), 0, "{first}");
        }
    }
}

/// Signals without anything that the standard library would have to look up.
#[derive(Default)]
struct Flat {
    made: AtomicU64,
    values: [AtomicI64; 32],
}

impl Flat {
    fn value(&self, signal: hsa_signal_t) -> &AtomicI64 {
        &self.values[signal.handle as usize % 32]
    }
}

impl Runtime for Flat {
    fn create_signal(&self, _: SignalKind, initial: i64) -> Result<hsa_signal_t, hsa_status_t> {
        let handle = self.made.fetch_add(1, SeqCst) + 1;
        let signal = hsa_signal_t { handle };
        self.value(signal).store(initial, SeqCst);
        Ok(signal)
    }

    fn destroy_signal(&self, _: hsa_signal_t) -> Result<(), hsa_status_t> {
        Ok(())
    }

    fn store(&self, signal: hsa_signal_t, value: i64) {
        self.value(signal).store(value, SeqCst);
    }

    fn compare_exchange(&self, signal: hsa_signal_t, expected: i64, desired: i64) -> i64 {
        let cell = self.value(signal);
        let outcome = cell.compare_exchange(expected, desired, SeqCst, SeqCst);
        outcome.unwrap_or_else(|seen| seen)
    }

    fn watch_ready(&self, _: hsa_signal_t, _: QueueId) -> Result<(), hsa_status_t> {
        Ok(())
    }
}

fn marks(text: &str) {
    // SAFETY: the buffer is alive and as long as said.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}

/// The loader itself says what it is asked: between the marks, nothing.
#[test]
fn s77_the_loader_is_asked_for_nothing() {
    let said = in_child_with(
        s77_the_loader_is_asked_for_nothing,
        &[("LD_DEBUG", "bindings,files,symbols"), ("LD_BIND_NOW", "1")],
        || {
            let s = Serializer::<Flat>::builder()
                .domain(Domain::new())
                .build(Flat::default());
            let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
            marks("the hot path begins\n");
            let mut queue = s.add_queue().unwrap();
            for _ in 0..1_000 {
                for _ in 0..3 {
                    let first = queue.dispatch(&mut packets).unwrap();
                    s.complete(first.ticket).unwrap();
                }
                s.enable().unwrap();
                let serialized = queue.dispatch(&mut packets).unwrap();
                let ready = packets[serialized.packets - 2].completion_signal();
                s.runtime().value(ready).store(-1, SeqCst);
                assert_eq!(s.ready(queue.id()), Handler::Keep);
                s.complete(serialized.ticket).unwrap();
                s.disable().unwrap();
            }
            s.queue_destroyed(queue.id()).unwrap();
            assert_eq!(s.ready(queue.id()), Handler::Drop);
            marks("the hot path ends\n");
            // So that the test is seen to see it.
            // SAFETY: the name ends with 0, and what is found is not called.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"qsort".as_ptr()) };
            assert!(!found.is_null());
            marks("a look-up has been\n");
            assert_eq!((s.statistics().grants, s.statistics().misuse), (1_000, 0));
        },
    );
    let Some(said) = said else { return };
    let after = |mark: &str| said.split_once(mark).map(|(_, after)| after).unwrap();
    let (hot, rest) = after("the hot path begins\n")
        .split_once("the hot path ends\n")
        .unwrap();
    let (looked_up, _) = rest.split_once("a look-up has been\n").unwrap();
    assert!(looked_up.contains("qsort"), "the loader says nothing here");
    assert_eq!(hot, "");
}
