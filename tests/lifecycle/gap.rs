//! Work that passed unseen: queues that are attached while they run, or that the host let go by for
//! a while.

use crate::script::everywhere;
use crate::spy::Spy;
use crate::stage::{Expect, Rig, Virtual, short, toggle};
use harness::Serializing;
use hsa_serializer::{DispatchError, GapError, MAX_PACKETS, Mode, Queue as Half, SignalError};
use hsa_sys::{AqlPacket, SignalCondition, hsa_signal_t};
use softgpu::{Config, Failure, Interceptor, Kernel, Queue, QueueConfig, SignalKind};
use std::sync::Arc;
use std::thread;

/// Kernels of the queue that nobody sees.
fn unseen(queue: &Queue, kernels: usize, goes_on: hsa_signal_t, done: hsa_signal_t) {
    let kernel = Kernel::until(goes_on).completion(done).packet();
    queue.submit_unseen(&vec![kernel; kernels]).unwrap();
}

#[test]
fn s55_the_unknown_kernels_of_a_gap_are_waited_for_and_then_all_is_exact() {
    for (seed, on) in crate::stage::SEEDS.zip([false, true].into_iter().cycle()) {
        for k in [0, 1, 3] {
            let mut v = Virtual::new(seed);
            let (q0, q1) = (v.queue(), v.queue());
            let (goes_on, marker) = (v.signal(1), v.signal(1));
            let (unknown, known) = (v.signal(k as i64), v.signal(6));
            toggle(v.rig(), on);
            unseen(&q0, k, goes_on, unknown);
            let some = v.draw(10);
            v.steps(some);
            v.rig().serializer().gap_next(v.id(&q0), marker);
            q0.submit(&[short(known).packet()]).unwrap();
            assert_eq!(v.rig().serializer().gap_outcomes(), [Ok(1)]);
            if !on {
                // Counted like a kernel: the next transition waits for it.
                v.rig().enable().unwrap();
            }
            q1.submit(&[short(known).packet(); 2]).unwrap();
            if k > 0 {
                assert!(v.waits().is_some());
                assert_eq!((v.load(unknown), v.load(marker)), (k as i64, 1));
                let beside = if on { 6 } else { 5 };
                assert!(v.load(known) >= beside, "nothing of the new mode runs");
                v.store(goes_on, 0);
            }
            v.idle();
            assert_eq!((v.load(unknown), v.load(marker), v.load(known)), (0, 0, 3));
            // Exact from here on: counted are those that are in flight, and no others.
            let before = v.stats();
            v.rig().disable().unwrap();
            v.rig().enable().unwrap();
            let counted = v.stats().transitions_that_counted - before.transitions_that_counted;
            assert_eq!(counted, 0);
            q0.submit(&[short(known).packet()]).unwrap();
            v.rig().disable().unwrap();
            q1.submit(&[short(known).packet(); 2]).unwrap();
            v.idle();
            let counted = v.stats().transitions_that_counted - before.transitions_that_counted;
            assert_eq!((counted, v.load(known)), (1, 0));
            let end = v.finish((q0, q1));
            assert_eq!(end.kernels.unseen, k as u64);
            assert_eq!(end.of().dispatches, end.of().completions);
        }
    }
}

/// A gap at any moment of a run in which everything else goes on.
#[test]
fn s55_a_gap_at_any_moment_keeps_later_work_behind_the_unknown_kernels() {
    let mut held_back = 0;
    everywhere(|mut script| {
        let (goes_on, marker, unknown) =
            (script.v.signal(1), script.v.signal(1), script.v.signal(2));
        let queue = script.queues[0].clone();
        unseen(&queue, 2, goes_on, unknown);
        script
            .v
            .rig()
            .serializer()
            .gap_next(script.v.id(&queue), marker);
        let enabled = script.v.serializer().mode() == Mode::Enabled;
        let before = script.v.rig().serializer().under_way();
        // Where kernels are serialized marking is a transition; what is dispatched from now on
        // waits, and what was dispatched before does not.
        queue.submit(&[short(script.v.signal(1)).packet()]).unwrap();
        assert!(matches!(
            script.v.rig().serializer().gap_outcomes()[..],
            [Ok(1 | 2)]
        ));
        if enabled {
            let later = script.v.signal(1);
            script.queues[1].submit(&[short(later).packet()]).unwrap();
            while script.v.step() {}
            assert_eq!((script.v.load(unknown), script.v.load(later)), (2, 1));
            let now = script.v.rig().serializer().under_way();
            let of_its_own = script.v.id(&queue).to_raw();
            let stuck = before.intersection(&now).filter(|raw| raw[0] != of_its_own);
            assert_eq!(stuck.count(), 0, "those of other queues went on");
            held_back += 1;
        }
        script.v.store(goes_on, 0);
        script.rest();
        script.assert_done();
        assert_eq!((script.v.load(unknown), script.v.load(marker)), (0, 0));
        script.end(Expect::default());
    });
    assert!(held_back > 50, "{held_back}");
}

/// What a host puts in front of a queue that it attaches to, cut down to what this needs.
fn intercepts(rig: &Arc<Rig>, mut half: Half<Spy>) -> Interceptor {
    let weak = Arc::downgrade(rig);
    Box::new(move |given, out| {
        let rig = weak.upgrade().unwrap();
        for kernel in given {
            let dispatched = rig.serializer().dispatch(&mut half, out).unwrap();
            let signals = rig.gpu().signals().clone();
            let done = signals.create(1, SignalKind::Interrupt).unwrap();
            let kernel = kernel.with_completion_signal(done);
            out.push(if dispatched.serialized {
                kernel.with_barrier_bit()
            } else {
                kernel
            });
            let (weak, mut ticket) = (weak.clone(), Some(dispatched.ticket));
            let completes = move |_| {
                let rig = weak.upgrade().unwrap();
                rig.serializer().complete(ticket.take().unwrap());
                rig.gpu().signals().destroy(done).unwrap();
                false
            };
            let below = SignalCondition::Lt;
            signals
                .on_signal(done, below, 1, Box::new(completes))
                .unwrap();
        }
    })
}

#[test]
fn s55_attaching_to_a_queue_that_runs_marks_it_before_anybody_knows_it() {
    for (seed, on) in crate::stage::SEEDS.zip([false, true].into_iter().cycle()) {
        for k in [0, 1, 4] {
            let mut v = Virtual::new(seed);
            let other = v.queue();
            let (goes_on, marker) = (v.signal(1), v.signal(1));
            let (unknown, known) = (v.signal(k as i64), v.signal(3));
            // Nobody intercepts it, and it runs.
            let config = QueueConfig::default();
            let queue = v.gpu().create_queue(v.gpu().agent(0), config).unwrap();
            unseen(&queue, k, goes_on, unknown);
            let some = v.draw(10);
            v.steps(some);
            toggle(v.rig(), on);
            let mut half = v.serializer().add_queue().unwrap();
            let id = half.id();
            let packets = v.rig().serializer().gap(&mut half, marker).unwrap();
            // Its type allows several producers, so the host writes the marker at once.
            queue.submit_unseen(&packets).unwrap();
            queue.set_interceptor(intercepts(v.rig(), half));
            if !on {
                v.rig().enable().unwrap();
            }
            queue.submit(&[Kernel::lasting(50).packet()]).unwrap();
            other.submit(&[short(known).packet(); 3]).unwrap();
            if k > 0 {
                assert!(v.waits().is_some());
                assert_eq!((v.load(unknown), v.load(known)), (k as i64, 3));
                v.store(goes_on, 0);
            }
            v.idle();
            assert_eq!((v.load(unknown), v.load(marker), v.load(known)), (0, 0, 0));
            let stats = v.stats();
            assert_eq!((stats.dispatches, stats.completions), (5, 5));
            v.rig().disable().unwrap();
            assert_eq!(v.stats().transitions_that_counted, 1, "of the marker");
            // The profiler knows nothing of it, so its host says that it is gone.
            v.gpu().destroy_queue(&queue).unwrap();
            v.serializer().queue_destroyed(id).unwrap();
            v.idle();
            v.finish((other, queue));
        }
    }
}

#[test]
fn s20_s55_whatever_was_toggled_before_a_queue_is_attached_the_last_word_counts() {
    for toggles in 0..5 {
        let mut v = Virtual::new(toggles);
        for n in 0..toggles {
            toggle(v.rig(), n % 2 == 0);
        }
        let on = toggles % 2 == 1;
        let queue = v.queue();
        let (goes_on, marker) = (v.signal(1), v.signal(1));
        let (unknown, known) = (v.signal(2), v.signal(4));
        unseen(&queue, 2, goes_on, unknown);
        v.rig().serializer().gap_next(v.id(&queue), marker);
        queue.submit(&[short(known).packet(); 4]).unwrap();
        v.store(goes_on, 0);
        v.idle();
        assert_eq!((v.load(unknown), v.load(known)), (0, 0));
        assert_eq!(v.stats().grants, if on { 4 } else { 0 });
        v.finish(queue);
    }
}

#[test]
fn s63_a_gap_that_gets_no_signal_counts_nothing() {
    for failure in [Failure::OutOfResources, Failure::NullHandle] {
        let mut v = Virtual::new(1);
        let queue = v.queue();
        let (first, second, known) = (v.signal(1), v.signal(1), v.signal(2));
        v.rig().enable().unwrap();
        let before = v.stats();
        v.gpu().faults().change(|plan| {
            // The profiler's own completion signal is the first that is created.
            plan.fail_next_creates = None;
        });
        v.rig().reserve(4);
        v.gpu().faults().fail_next_creates(1, failure);
        v.rig().serializer().gap_next(v.id(&queue), first);
        queue.submit(&[short(known).packet()]).unwrap();
        let outcomes = v.rig().serializer().gap_outcomes();
        match failure {
            Failure::NullHandle => {
                let error = GapError::Signal(SignalError::NullHandle);
                assert_eq!(outcomes, [Err(error)]);
            }
            Failure::OutOfResources => {
                assert!(matches!(
                    outcomes[..],
                    [Err(GapError::Signal(SignalError::Status(_)))]
                ));
            }
        }
        let stats = v.stats();
        assert_eq!(stats.transitions, before.transitions);
        assert_eq!(stats.dispatches, before.dispatches + 1, "the kernel's own");
        v.rig().serializer().gap_next(v.id(&queue), second);
        queue.submit(&[short(known).packet()]).unwrap();
        v.idle();
        assert_eq!((v.load(first), v.load(second), v.load(known)), (1, 0, 0));
        v.finish(queue);
    }
}

#[test]
fn s55_a_gap_is_refused_where_a_dispatch_is() {
    let v = Virtual::with(Config::default());
    let mut few = [AqlPacket::INVALID; MAX_PACKETS - 1];
    let mut enough = [AqlPacket::INVALID; MAX_PACKETS];
    let mut gone = v.serializer().add_queue().unwrap();
    let given = few.len();
    let error = gone.gap(&mut few).unwrap_err();
    assert_eq!(
        error,
        GapError::Dispatch(DispatchError::TooFewPackets { given })
    );
    let mut closed = v.serializer().add_queue().unwrap();
    v.serializer().queue_destroyed(gone.id()).unwrap();
    for on in [false, true] {
        toggle(v.rig(), on);
        let error = gone.gap(&mut enough).unwrap_err();
        let expected = GapError::Dispatch(DispatchError::QueueGone(gone.id()));
        assert_eq!(error, expected);
    }
    v.serializer().begin_shutdown();
    let error = closed.gap(&mut enough).unwrap_err();
    assert_eq!(error, GapError::Dispatch(DispatchError::ShutDown));
    assert_eq!(v.stats().dispatches, 0);
    v.serializer().queue_destroyed(closed.id()).unwrap();
    drop((gone, closed));
    v.finish(());
}

/// It makes its signal outside of the lock, and the shutdown comes there.
#[test]
fn s55_a_gap_that_a_shutdown_overtakes_counts_nothing() {
    let v = Virtual::new(1);
    let mut half = v.serializer().add_queue().unwrap();
    v.rig().enable().unwrap();
    let before = v.stats();
    let closer = v.serializer().downgrade();
    v.spy().on_create(move |_| {
        let closer = closer.upgrade().unwrap();
        // Not within the runtime's method, but at its time.
        let closes = thread::spawn(move || closer.begin_shutdown());
        closes.join().unwrap();
    });
    let error = half.gap(&mut [AqlPacket::INVALID; MAX_PACKETS]);
    let expected = GapError::Dispatch(DispatchError::ShutDown);
    assert_eq!(error.unwrap_err(), expected);
    assert_eq!(v.stats(), before);
    v.serializer().queue_destroyed(half.id()).unwrap();
    drop(half);
    v.finish(());
}
