//! The kill switch: everything that is queued runs through without any further help of the host, and
//! detected misuse throws it.

use crate::pinned::Pinned;
use crate::script::everywhere;
use crate::shutdown::finishes;
use crate::spy::{Hooked, Seat, Spy};
use crate::stage::{Expect, Threaded, Virtual, bounded, short};
use hsa_serializer::{
    Builder, Completion, DispatchError, Domain, MAX_PACKETS, Misuse, OnMisuse, QueueId, Report,
    Runtime, Serializer, SignalKind, StallPolicy, Statistics, Ticket, hsa_signal_t, hsa_status_t,
};
use hsa_sys::AqlPacket;
use softgpu::{Config, Kernel};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const AFTER: Expect = Expect {
    misuse: 0,
    overlaps: true,
};

/// The host's handlers are gone from the moment of the switch on.
fn release_and_run_alone(v: &mut Virtual) {
    v.gpu().faults().change(|plan| plan.handlers_dead = true);
    v.serializer().release_all();
    let stuck = v.waits().map(|stuck| stuck.to_string());
    assert_eq!(stuck, None);
    let kernels = v.gpu().witness().kernels(v.gpu().agent(0));
    assert_eq!(kernels.started, kernels.ended);
    v.gpu().faults().change(|plan| plan.handlers_dead = false);
}

#[test]
fn s37_thrown_at_any_moment_it_lets_through_all_that_is_queued() {
    everywhere(|mut script| {
        release_and_run_alone(&mut script.v);
        let kernels = script.v.gpu().witness().kernels(script.v.gpu().agent(0));
        assert_eq!(kernels.ended as usize, script.submitted());
        let passed_on = script.v.rig().passed_on();
        let before = script.submitted();
        script.v.serializer().release_all();
        script.rest();
        script.assert_done();
        let after = (script.submitted() - before) as u64;
        assert_eq!(script.v.rig().passed_on() - passed_on, after, "turned away");
        finishes(&mut script.v);
        script.end(AFTER);
    });
}

#[test]
fn s37_s41_a_queue_that_goes_right_after_the_switch_holds_nobody_up() {
    for dies in 0..3 {
        everywhere(|mut script| {
            script
                .v
                .gpu()
                .faults()
                .change(|plan| plan.handlers_dead = true);
            script.v.serializer().release_all();
            let queue = script.queues[dies].clone();
            script.v.rig().destroy_queue(&queue).unwrap();
            let stuck = script.v.waits().map(|stuck| stuck.to_string());
            assert_eq!(stuck, None);
            script
                .v
                .gpu()
                .faults()
                .change(|plan| plan.handlers_dead = false);
            script.rest();
            assert_eq!(script.v.rig().serializer().in_flight(), []);
            finishes(&mut script.v);
            script.end(AFTER);
        });
    }
}

/// A program that nobody could serialize: the holder of the token waits for a kernel behind two
/// barriers. Another queue is in each state, some of which it gets to by overtaking the holder.
#[test]
fn s37_queues_in_every_state_run_through_without_one_completion_being_heard_of() {
    let states = [
        (Seat::Idle, false),
        (Seat::Reached, false),
        (Seat::Waiting, false),
        (Seat::Granted, true),
        (Seat::Running, true),
    ];
    for seed in crate::stage::SEEDS {
        for (state, overtakes) in states {
            let mut v = Virtual::new(seed);
            let queues = [v.queue(), v.queue(), v.queue(), v.queue()];
            let (hold, done) = (v.signal(1), v.signal(6));
            v.rig().enable().unwrap();
            queues[0]
                .submit(&[Kernel::until(hold).completion(done).packet()])
                .unwrap();
            v.until(|v| v.seat(&queues[0]) == Seat::Running);
            queues[1].submit(&[short(done).packet(); 2]).unwrap();
            if overtakes {
                v.until(|v| v.seat(&queues[1]) == Seat::Waiting);
                let policy = StallPolicy::Release;
                let mut watch = v.serializer().watch_stalls(Duration::ZERO, policy);
                let stalls = watch.check_stalls(Duration::ZERO);
                assert!(stalls[0].released, "{stalls:?}");
            }
            v.until(|v| v.seat(&queues[1]) == state);
            v.rig().disable().unwrap();
            let writes = short(done).writes(hold, 0);
            queues[2].submit(&[writes.packet()]).unwrap();
            v.rig().enable().unwrap();
            queues[3].submit(&[short(done).packet(); 2]).unwrap();
            if seed % 2 == 0 {
                assert!(overtakes || v.waits().is_some());
            }
            release_and_run_alone(&mut v);
            v.idle();
            assert_eq!(v.load(done), 0);
            assert_eq!(v.stats().overtaken, u64::from(overtakes));
            finishes(&mut v);
            v.finish_as(AFTER, queues);
        }
    }
}

#[test]
fn s37_dispatches_that_have_not_heard_of_it_are_let_through_as_well() {
    bounded(|| {
        for round in 0..60 {
            let t = Threaded::new(Config {
                signals: 2_048,
                ..Config::default()
            });
            let queues = [t.queue(), t.queue(), t.queue()];
            let (thrown, stop) = (AtomicBool::new(false), AtomicBool::new(false));
            thread::scope(|scope| {
                for queue in &queues {
                    scope.spawn(|| {
                        while !stop.load(SeqCst) {
                            queue.submit(&[Kernel::lasting(2_000).packet()]).unwrap();
                            while t.rig().in_flight() > 60 && !thrown.load(SeqCst) {
                                thread::yield_now();
                            }
                        }
                    });
                }
                t.rig().enable().unwrap();
                thread::sleep(Duration::from_micros(fastrand::u64(..2_000)));
                if round % 2 == 0 {
                    t.rig().disable().unwrap();
                }
                // Not one handler is called from here on, until everything has run.
                t.gpu().faults().change(|plan| plan.handlers_dead = true);
                thread::scope(|both| {
                    both.spawn(|| t.serializer().release_all());
                    both.spawn(|| t.serializer().release_all());
                });
                thrown.store(true, SeqCst);
                let before = t.rig().passed_on();
                while t.rig().passed_on() < before + 10 {
                    thread::yield_now();
                }
                stop.store(true, SeqCst);
            });
            t.idle();
            let kernels = t.gpu().witness().kernels(t.gpu().agent(0));
            assert_eq!(kernels.started, kernels.ended);
            t.gpu().faults().change(|plan| plan.handlers_dead = false);
            t.idle();
            t.finish_as(AFTER, queues);
        }
    });
}

/// The escape signal and the barriers open one after the other: what completes in between is let
/// through by the switch, whatever it was behind, and that is nobody's misuse.
#[test]
fn s37_what_the_switch_itself_lets_through_is_not_taken_for_misuse() {
    bounded(|| {
        let t = Threaded::new(Config::default());
        let queues = [t.queue(), t.queue(), t.queue()];
        let (goes_on, done) = (t.signal(1), t.signal(4));
        queues[0]
            .submit(&[Kernel::until(goes_on).packet()])
            .unwrap();
        t.until(|_| queues[0].running() == 1);
        t.rig().enable().unwrap();
        queues[1].submit(&[short(done).packet(); 2]).unwrap();
        t.rig().disable().unwrap();
        queues[2].submit(&[short(done).packet(); 2]).unwrap();
        // Whatever can go on between two of its writes does.
        let (writes, releases) = (Arc::new(AtomicU64::new(0)), thread::current().id());
        let counts = writes.clone();
        t.spy().on_write(move |_, _| {
            if thread::current().id() == releases {
                thread::sleep(Duration::from_millis(30));
                counts.fetch_add(1, SeqCst);
            }
        });
        t.serializer().release_all();
        t.spy().on_write(|_, _| {});
        assert_eq!(writes.load(SeqCst), 3, "two barriers and the escape signal");
        t.until(|t| t.load(done) == 0);
        assert_eq!(t.rig().reports().list(), []);
        assert_eq!((t.stats().misuse, t.stats().forced), (0, 2));
        t.store(goes_on, 0);
        t.idle();
        t.finish_as(AFTER, queues);
    });
}

/// What a host does that has lost count: a ticket used twice, one of nobody's.
#[derive(Clone, Copy, Debug)]
enum Breach {
    Ahead,
    Foreign,
}

fn breaks(v: &Virtual, breach: Breach) -> Misuse {
    let raw = match breach {
        Breach::Ahead => v.rig().serializer().last_completed().unwrap(),
        Breach::Foreign => [7, 7],
    };
    let error = v.serializer().complete(Ticket::from_raw(raw)).unwrap_err();
    let id = error.ticket.queue();
    let _ = error.ticket.into_raw();
    match breach {
        Breach::Ahead => Misuse::CompletionAhead(id),
        Breach::Foreign => Misuse::ForeignTicket(id),
    }
}

/// One queue holds the token for ever, another waits for it, a third for a barrier; a fourth has
/// nothing in flight.
fn held_up(on_misuse: OnMisuse) -> (Virtual, [softgpu::Queue; 4], hsa_signal_t, hsa_signal_t) {
    let make = |runtime| Hooked::new(Spy::new(runtime), on_misuse);
    let mut v = Virtual::made(1, make);
    let queues = [v.queue(), v.queue(), v.queue(), v.queue()];
    let (goes_on, done) = (v.signal(1), v.signal(3));
    queues[3].submit(&[Kernel::lasting(1).packet()]).unwrap();
    v.idle();
    v.rig().enable().unwrap();
    queues[0]
        .submit(&[Kernel::until(goes_on).completion(done).packet()])
        .unwrap();
    v.until(|_| queues[0].running() == 1);
    queues[1].submit(&[short(done).packet()]).unwrap();
    v.rig().disable().unwrap();
    queues[2].submit(&[short(done).packet()]).unwrap();
    assert!(v.waits().is_some());
    assert_eq!(v.load(done), 3);
    (v, queues, goes_on, done)
}

#[test]
fn s54_misuse_opens_everything_once_and_says_so() {
    for breach in [Breach::Ahead, Breach::Foreign] {
        let (mut v, queues, goes_on, done) = held_up(OnMisuse::Release);
        let misuse = breaks(&v, breach);
        let reports = [Report::Misuse(misuse), Report::Released];
        assert_eq!(v.rig().reports().list(), reports, "{breach:?}");
        assert!(v.waits().is_some(), "only the first queue's kernel is left");
        assert_eq!((v.load(done), v.rig().in_flight()), (1, 1));
        assert_eq!(v.stats().forced, 1);
        v.store(goes_on, 0);
        v.idle();
        let overlaps = true;
        v.finish_as(
            Expect {
                misuse: 1,
                overlaps,
            },
            queues,
        );
    }
}

#[test]
fn s54_where_the_host_wants_that_misuse_is_reported_and_nothing_else() {
    for breach in [Breach::Ahead, Breach::Foreign] {
        let (mut v, queues, goes_on, done) = held_up(OnMisuse::GoOn);
        let misuse = breaks(&v, breach);
        assert_eq!(v.rig().reports().list(), [Report::Misuse(misuse)]);
        assert!(v.waits().is_some());
        assert_eq!(v.load(done), 3, "nothing was let through");
        v.store(goes_on, 0);
        v.idle();
        assert_eq!(v.load(done), 0);
        // Nothing ran side by side, and it serializes on.
        v.gpu().witness().assert_clean();
        v.rig().enable().unwrap();
        assert_eq!((v.stats().forced, v.rig().passed_on()), (0, 0));
        v.rig().disable().unwrap();
        for queue in &queues {
            v.rig().destroy_queue(queue).unwrap();
        }
        v.idle();
    }
}

/// A runtime that refuses to destroy anything.
#[derive(Default)]
struct Refuses {
    made: AtomicU64,
    escape: AtomicU64,
    opened: AtomicU64,
    reports: Mutex<Vec<Report>>,
}

impl Runtime for Refuses {
    fn create_signal(&self, kind: SignalKind, _: i64) -> Result<hsa_signal_t, hsa_status_t> {
        let handle = self.made.fetch_add(1, SeqCst) + 1;
        if kind == SignalKind::Escape {
            self.escape.store(handle, SeqCst);
        }
        Ok(hsa_signal_t { handle })
    }

    fn destroy_signal(&self, _: hsa_signal_t) -> Result<(), hsa_status_t> {
        Err(hsa_status_t::ERROR)
    }

    fn store(&self, signal: hsa_signal_t, _: i64) {
        let escape = signal.handle == self.escape.load(SeqCst);
        self.opened.fetch_add(u64::from(escape), SeqCst);
    }

    fn compare_exchange(&self, _: hsa_signal_t, expected: i64, _: i64) -> i64 {
        expected
    }

    fn watch_ready(&self, _: hsa_signal_t, _: QueueId) -> Result<(), hsa_status_t> {
        Ok(())
    }

    fn report(&self, report: Report) {
        self.reports.lock().unwrap().push(report);
    }
}

/// More reports at once than anybody takes: 200 signals that can't be destroyed, when a pin ends.
fn overflows(on_misuse: OnMisuse) -> (Serializer<Refuses>, hsa_serializer::Queue<Refuses>) {
    let domain = Domain::new();
    let builder = Serializer::<Refuses>::builder().domain(domain.clone());
    let serializer = builder.on_misuse(on_misuse).build(Refuses::default());
    let queue = serializer.add_queue().unwrap();
    let pinned = Pinned::new(&domain);
    for _ in 0..100 {
        serializer.enable().unwrap();
        serializer.disable().unwrap();
    }
    assert_eq!(serializer.runtime().reports.lock().unwrap().len(), 0);
    drop(pinned);
    for _ in 0..10 {
        serializer.collect();
    }
    (serializer, queue)
}

fn counts(reports: &Mutex<Vec<Report>>) -> (usize, u64, usize) {
    let reports = reports.lock().unwrap();
    let mut counts = (0, 0, 0);
    for report in reports.iter() {
        match report {
            Report::DestroyFailed { .. } => counts.0 += 1,
            Report::Dropped(n) => counts.1 += n,
            Report::Released => counts.2 += 1,
            other => panic!("{other}"),
        }
    }
    counts
}

#[test]
fn s54_more_reports_than_anybody_takes_open_everything() {
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let (serializer, mut queue) = overflows(OnMisuse::Release);
    let runtime = serializer.runtime();
    let (failed, dropped, released) = counts(&runtime.reports);
    assert!(failed > 0 && dropped > 0, "{failed} {dropped}");
    assert_eq!(released, 1);
    assert_eq!(runtime.opened.load(SeqCst), 1);
    let turned_away = queue.dispatch(&mut packets).map(|d| d.packets);
    assert_eq!(turned_away, Err(DispatchError::ShutDown));
    let total = serializer.statistics().reclaimed;
    assert_eq!(failed as u64 + dropped, total, "each was told or counted");

    let (serializer, mut queue) = overflows(OnMisuse::GoOn);
    let runtime = serializer.runtime();
    let (failed, dropped, released) = counts(&runtime.reports);
    assert!(failed > 0 && dropped > 0, "{failed} {dropped}");
    assert_eq!((released, runtime.opened.load(SeqCst)), (0, 0));
    let dispatch = queue.dispatch(&mut packets).unwrap();
    let completed = serializer.complete(dispatch.ticket).unwrap();
    assert_eq!(completed, Completion::Counted);
}

/// The default is to open.
#[test]
fn s54_the_default_is_to_open() {
    let serializer = Builder::default().build(Refuses::default());
    let _queue = serializer.add_queue().unwrap();
    let error = serializer.complete(Ticket::from_raw([7, 7])).unwrap_err();
    let _ = error.ticket.into_raw();
    assert_eq!(counts_released(serializer.runtime()), 1);
    let Statistics { misuse, .. } = serializer.statistics();
    assert_eq!(misuse, 1);
}

fn counts_released(runtime: &Refuses) -> usize {
    let reports = runtime.reports.lock().unwrap();
    reports.iter().filter(|r| **r == Report::Released).count()
}
