//! The end in two phases: at any moment, from any thread, any number of times; what is left when time
//! is over; and that nothing is called afterwards.

use crate::pinned::Pinned;
use crate::script::{Script, everywhere};
use crate::stage::{Expect, Virtual, short, toggle};
use hsa_serializer::{
    AddQueueError, CompleteErrorReason, Handler, Remaining, ShutdownError, SignalError,
    TransitionError,
};
use softgpu::{Config, Failure, Kernel, Queue};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);

/// What a shutdown that is tried once says is left.
fn remaining(v: &Virtual) -> Remaining {
    match v.serializer().finish_shutdown(Duration::ZERO) {
        Err(ShutdownError::TimedOut(remaining)) => remaining,
        outcome => panic!("{outcome:?}"),
    }
}

/// Finishes, with the handlers called in between; from then on nothing may be called.
pub(crate) fn finishes(v: &mut Virtual) {
    let done = (0..20).any(|_| {
        v.idle();
        v.serializer().try_finish_shutdown().is_ok()
    });
    assert!(done, "{:?}", v.serializer().try_finish_shutdown());
    v.spy().record().ends();
    let left = v.gpu().describe().handlers;
    let ours = left.iter().filter(|(signal, ..)| signal.label == "ready");
    assert_eq!(ours.count(), 0, "handlers of ours that are registered");
}

/// Everything that can be said to a serializer that has ended, which does nothing any more.
pub(crate) fn is_inert(v: &Virtual, queues: &[Queue]) {
    let serializer = v.serializer();
    serializer.begin_shutdown();
    assert_eq!(serializer.finish_shutdown(Duration::ZERO), Ok(()));
    assert_eq!(serializer.try_finish_shutdown(), Ok(()));
    assert_eq!(serializer.enable(), Err(TransitionError::ShutDown));
    assert_eq!(serializer.disable(), Err(TransitionError::ShutDown));
    let added = serializer.add_queue().map(|queue| queue.id());
    assert_eq!(added, Err(AddQueueError::ShutDown));
    let _ = serializer.drain(Duration::ZERO);
    serializer.release_all();
    serializer.collect();
    for queue in queues {
        let Some(id) = v.rig().id_of(queue) else {
            continue;
        };
        assert_eq!(serializer.ready(id), Handler::Drop);
    }
}

#[test]
fn s15_begun_at_any_moment_it_lets_what_is_queued_through_and_finishes() {
    let mut turns = 0;
    everywhere(|mut script| {
        script.v.serializer().begin_shutdown();
        script.v.serializer().begin_shutdown();
        turns += 1;
        script.refuses = turns % 2 == 0;
        script.rest();
        script.assert_done();
        finishes(&mut script.v);
        is_inert(&script.v, &script.queues);
        script.ends();
    });
}

#[test]
fn s15_finished_at_any_moment_it_says_what_is_left_and_finishes_later() {
    let mut left = 0;
    everywhere(|mut script| {
        match script.v.serializer().finish_shutdown(Duration::ZERO) {
            Ok(()) => assert_eq!(script.v.rig().in_flight(), 0),
            Err(ShutdownError::TimedOut(mut remaining)) => {
                remaining.queues.sort_by_key(|(id, _)| id.to_raw());
                assert_eq!(remaining.queues, script.v.rig().serializer().in_flight());
                assert_eq!((remaining.calls, remaining.deferred), (0, 0));
                left += remaining.queues.len();
            }
            Err(e) => panic!("{e}"),
        }
        script.refuses = true;
        script.rest();
        script.assert_done();
        finishes(&mut script.v);
        is_inert(&script.v, &script.queues);
        script.ends();
    });
    assert!(left > 0);
}

#[test]
fn s47_destroying_a_queue_after_the_shutdown_has_finished_is_a_success_and_does_nothing() {
    let mut v = Virtual::new(1);
    let (q0, q1) = (v.queue(), v.queue());
    let ids = [v.id(&q0), v.id(&q1)];
    v.rig().enable().unwrap();
    q0.submit(&[Kernel::lasting(5).packet()]).unwrap();
    finishes(&mut v);
    for id in ids {
        assert_eq!(v.serializer().queue_destroyed(id), Ok(()));
    }
    let end = v.finish((q0, q1));
    assert_eq!(end.of().queues_gone, 2);
}

#[test]
fn s37_a_shutdown_with_a_dispatch_that_never_ends_is_bounded_and_names_it() {
    let mut v = Virtual::new(1);
    let (q0, q1, q2) = (v.queue(), v.queue(), v.queue());
    let done = v.signal(3);
    let endless = Kernel::endless().packet();
    q0.submit(&[endless, endless, short(done).packet()])
        .unwrap();
    assert!(v.waits().is_some());
    v.rig().enable().unwrap();
    q1.submit(&[short(done).packet()]).unwrap();
    assert!(v.waits().is_some());
    let ids = [v.id(&q0), v.id(&q1)];
    let mut expected = Remaining::default();
    expected.queues = vec![(ids[0], 2), (ids[1], 1)];
    expected.barriers = 1;
    // The third queue has nothing in flight and is given up; its handler has to say Drop.
    expected.handlers = 3;
    assert_eq!(remaining(&v), expected);
    let since = Instant::now();
    let timeout = Duration::from_millis(30);
    let error = v.serializer().finish_shutdown(timeout).unwrap_err();
    assert!(since.elapsed() >= timeout && since.elapsed() < LONG);
    assert_eq!(error, ShutdownError::TimedOut(expected.clone()));
    let text = error.to_string();
    let named = format!("{} (2 in flight)", ids[0]);
    assert!(text.contains(&named), "{text}");
    assert!(v.waits().is_some());
    expected.handlers = 2;
    assert_eq!(remaining(&v), expected);
    // One more way out: everything is let through, and the queue that is stuck is destroyed.
    v.serializer().release_all();
    v.rig().destroy_queue(&q0).unwrap();
    v.idle();
    finishes(&mut v);
    assert_eq!(v.load(done), 1, "the one of the second queue");
    let overlaps = true;
    let misuse = 0;
    v.finish_as(Expect { misuse, overlaps }, (q0, q1, q2));
}

#[test]
fn s71_with_the_handlers_thread_gone_a_shutdown_is_bounded_and_can_be_left_or_dropped() {
    for leaves in [false, true] {
        let mut v = Virtual::new(1);
        let (q0, q1) = (v.queue(), v.queue());
        q0.submit(&[Kernel::lasting(5).packet()]).unwrap();
        v.gpu().faults().change(|plan| plan.handlers_dead = true);
        v.steps(20);
        // Armed, and nobody hears of the completion that it waits for.
        v.rig().enable().unwrap();
        q1.submit(&[Kernel::lasting(5).packet()]).unwrap();
        v.steps(20);
        let mut expected = Remaining::default();
        expected.queues = vec![(v.id(&q0), 1), (v.id(&q1), 1)];
        expected.barriers = 1;
        expected.handlers = 2;
        assert_eq!(remaining(&v), expected);
        for queue in [&q0, &q1] {
            v.rig().destroy_queue(queue).unwrap();
        }
        // Only the handlers are left, which nobody calls.
        expected = Remaining::default();
        expected.handlers = 2;
        assert_eq!(remaining(&v), expected);
        let (record, gpu) = (v.spy().record().clone(), v.gpu().clone());
        if leaves {
            v.serializer().leave();
            record.ends();
        }
        drop((v, q0, q1));
        gpu.witness().assert_clean();
        assert!(record.late().is_empty(), "{:?}", record.late());
        // The two `ready` signals, the one in reserve and the escape signal.
        assert_eq!(gpu.signals().stats().live, if leaves { 4 } else { 0 });
    }
}

#[test]
fn s79_a_foreign_pin_is_what_a_shutdown_waits_for_and_all() {
    let mut v = Virtual::new(1);
    let queues = [v.queue(), v.queue()];
    let pinned = Pinned::new(v.rig().serializer().domain());
    let expected_handlers = remaining(&v).handlers;
    assert_eq!(expected_handlers, 2);
    v.idle();
    let mut expected = Remaining::default();
    // Of each queue `ready` and `block`.
    expected.deferred = 4;
    assert_eq!(remaining(&v), expected);
    let timeout = Duration::from_millis(20);
    assert!(v.serializer().finish_shutdown(timeout).is_err());
    drop(pinned);
    finishes(&mut v);
    v.finish(queues);
}

/// A grace period passes before it says that it has finished.
#[test]
fn s79_a_pin_in_the_last_moment_holds_the_end_back() {
    let mut v = Virtual::new(1);
    let queue = v.queue();
    v.serializer().begin_shutdown();
    let _ = v.serializer().try_finish_shutdown();
    v.idle();
    let pinned = Pinned::new(v.rig().serializer().domain());
    for _ in 0..5 {
        assert!(v.serializer().try_finish_shutdown().is_err());
    }
    drop(pinned);
    finishes(&mut v);
    v.finish(queue);
}

#[test]
fn s63_a_call_under_way_is_waited_for() {
    let mut v = Virtual::new(1);
    let (entered, enters) = mpsc::channel();
    let (goes_on, until) = mpsc::channel::<()>();
    let until = Mutex::new(until);
    v.spy().on_create(move |_| {
        entered.send(()).unwrap();
        until.lock().unwrap().recv().unwrap();
    });
    let serializer = v.serializer().clone();
    let call = thread::spawn(move || serializer.enable());
    enters.recv().unwrap();
    let mut expected = Remaining::default();
    expected.calls = 1;
    assert_eq!(remaining(&v), expected);
    v.spy().on_create(|_| {});
    goes_on.send(()).unwrap();
    assert_eq!(call.join().unwrap(), Err(TransitionError::ShutDown));
    finishes(&mut v);
    v.finish(());
}

#[test]
fn s69_a_late_completion_after_the_end_is_harmless_and_destroys_nothing() {
    let mut script = Script::new(1);
    let id = script.v.id(&script.queues[0]);
    script.rest();
    let raw = script.v.rig().serializer().last_completed().unwrap();
    finishes(&mut script.v);
    for raw in [raw, [id.to_raw(), 0]] {
        let late = hsa_serializer::Ticket::from_raw(raw);
        let outcome = script.v.serializer().complete(late).unwrap();
        assert_eq!(outcome, hsa_serializer::Completion::QueueGone);
    }
    script.ends();
}

#[test]
fn s54_misuse_after_the_end_is_refused_and_told_to_nobody() {
    let mut v = Virtual::new(1);
    let queue = v.queue();
    queue.submit(&[Kernel::lasting(1).packet()]).unwrap();
    finishes(&mut v);
    let nobodys = hsa_serializer::Ticket::from_raw([7, 7]);
    let error = v.serializer().complete(nobodys).unwrap_err();
    assert_eq!(error.reason, CompleteErrorReason::Foreign);
    let _ = error.ticket.into_raw();
    v.serializer().collect();
    v.rig().destroy_queue(&queue).unwrap();
    let (record, gpu) = (v.spy().record().clone(), v.gpu().clone());
    drop((v, queue));
    assert!(record.late().is_empty(), "{:?}", record.late());
    assert_eq!(gpu.signals().stats().live, 0);
}

#[test]
fn s36_s66_handlers_that_come_late_or_twice_call_nothing_after_the_end() {
    let (mut late, mut repeated) = (0, 0);
    for seed in crate::stage::SEEDS {
        let mut v = Virtual::new(seed);
        v.gpu().faults().change(|plan| {
            plan.handler_twice = 0.4;
            plan.handler_late = 0.4;
            plan.late_by = 20_000;
            plan.handler_after_destroy = 0.5;
        });
        let queues = [v.queue(), v.queue(), v.queue()];
        let done = v.signal(30);
        for n in 0..30 {
            toggle(v.rig(), n / 5 % 2 == 0);
            let queue = &queues[v.draw(3) as usize];
            queue.submit(&[short(done).packet()]).unwrap();
            let some = v.draw(8);
            v.steps(some);
        }
        v.serializer().begin_shutdown();
        let finished = (0..100_000).any(|_| {
            v.steps(1);
            v.serializer().try_finish_shutdown().is_ok()
        });
        assert!(finished, "{:?}", v.serializer().try_finish_shutdown());
        v.spy().record().ends();
        // Those that are still to come.
        v.idle();
        assert_eq!(v.load(done), 0);
        late += v.gpu().handlers().late;
        repeated += v.gpu().handlers().repeated;
        v.finish(queues);
    }
    assert!(late > 0 && repeated > 0);
}

/// The host hears of a deep backlog only after the end has begun. `LIFECYCLE_BACKLOG` says how deep.
#[test]
fn s65_a_backlog_that_nobody_has_heard_of_does_not_keep_the_end_from_coming() {
    let backlog = std::env::var("LIFECYCLE_BACKLOG").ok();
    let kernels = backlog.map_or(20_000, |text| text.parse().unwrap());
    let mut v = Virtual::with(Config {
        signals: 2 * kernels + 1_000,
        interrupt_signals: 2 * kernels as u64 + 500,
        ..Config::seed(1)
    });
    let queues = [v.queue(), v.queue()];
    let done = v.signal(kernels as i64);
    v.gpu().faults().change(|plan| plan.handlers_dead = true);
    for n in 0..kernels / 100 {
        let batch = [Kernel::lasting(10).completion(done).packet(); 100];
        queues[n % 2].submit(&batch).unwrap();
    }
    assert!(v.waits().is_none());
    v.rig().enable().unwrap();
    let left = remaining(&v);
    let in_flight: u64 = left.queues.iter().map(|(_, n)| n).sum();
    assert_eq!((in_flight, left.barriers), (kernels as u64, 1));
    v.gpu().faults().change(|plan| plan.handlers_dead = false);
    finishes(&mut v);
    assert_eq!(v.load(done), 0);
    v.finish(queues);
}

#[test]
fn s63_without_an_escape_signal_there_is_no_queue_and_nothing_is_kept() {
    for failure in [Failure::OutOfResources, Failure::NullHandle] {
        for skipped in 0..3 {
            let v = Virtual::new(1);
            let nth = AtomicU64::new(0);
            let gpu = v.gpu().clone();
            v.spy().on_create(move |_| {
                if nth.fetch_add(1, SeqCst) == skipped {
                    gpu.faults().fail_next_creates(1, failure);
                }
            });
            let error = v.serializer().add_queue().map(|queue| queue.id());
            let which = match (skipped, error.unwrap_err()) {
                (0, AddQueueError::Escape(error))
                | (1, AddQueueError::Ready(error))
                | (2, AddQueueError::Block(error)) => error,
                (_, error) => panic!("{error}"),
            };
            let null = which == SignalError::NullHandle;
            assert_eq!(null, failure == Failure::NullHandle);
            // The escape signal, where it was made, is the serializer's and not the queue's.
            let kept = u64::from(skipped > 0);
            assert_eq!(v.gpu().signals().stats().live, kept);
            assert_eq!((v.stats().queues, v.stats().queues_added), (0, 0));
            v.spy().on_create(|_| {});
            let queue = v.queue();
            let done = v.signal(1);
            v.rig().enable().unwrap();
            queue.submit(&[short(done).packet()]).unwrap();
            let mut v = v;
            v.idle();
            assert_eq!(v.load(done), 0);
            finishes(&mut v);
            v.finish(queue);
        }
    }
}
