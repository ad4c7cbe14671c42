//! Leaving everything as it is: from then on the runtime is not called, whatever is said or dropped.

use crate::pinned::Pinned;
use crate::script::everywhere;
use crate::shutdown::is_inert;
use crate::stage::{Virtual, short, toggle};
use hsa_serializer::SignalKind;
use softgpu::Kernel;

#[test]
fn s72_left_at_any_moment_it_calls_nothing_any_more() {
    everywhere(|mut script| {
        let record = script.v.spy().record().clone();
        let gpu = script.v.gpu().clone();
        script.v.serializer().leave();
        record.ends();
        is_inert(&script.v, &script.queues);
        // What moves by itself moves, and the host's handlers go on calling.
        script.v.steps(500);
        let rig = script.v.rig().clone();
        for queue in &script.queues {
            rig.destroy_queue(queue).unwrap();
        }
        script.v.steps(500);
        drop((rig, script));
        assert!(record.late().is_empty(), "{:?}", record.late());
        gpu.witness().assert_clean();
        // The application's own is one.
        assert!(gpu.signals().stats().live > 1, "some are left alone");
    });
}

#[test]
fn s72_a_runtime_that_has_gone_is_not_called_by_what_is_dropped_afterwards() {
    let mut v = Virtual::new(1);
    let (q0, q1) = (v.queue(), v.queue());
    v.rig().enable().unwrap();
    q0.submit(&[Kernel::endless().packet()]).unwrap();
    v.until(|_| q0.running() == 1);
    q1.submit(&[Kernel::lasting(1).packet()]).unwrap();
    v.rig().disable().unwrap();
    let pinned = Pinned::new(v.rig().serializer().domain());
    v.rig().enable().unwrap();
    let record = v.spy().record().clone();
    let domain = v.rig().serializer().domain().clone();
    let witness = v.gpu().clone();
    v.serializer().leave();
    record.ends();
    // What was deferred holds the serializer until the pin has ended and somebody reclaims.
    drop((v, q0, q1));
    assert!(domain.pending() > 0);
    drop(pinned);
    assert!(record.late().is_empty(), "{:?}", record.late());
    assert_eq!(domain.pending(), 0);
    witness.witness().assert_clean();
}

/// A call that makes several of the runtime's must not make the rest of them.
#[test]
fn s72_what_is_left_within_a_call_is_not_called_again() {
    for (kinds, what) in [
        (
            &[SignalKind::Escape, SignalKind::Ready, SignalKind::Block][..],
            "add_queue",
        ),
        (&[SignalKind::Barrier][..], "enable"),
    ] {
        for kind in kinds {
            let v = Virtual::new(1);
            let (record, serializer) = (v.spy().record().clone(), v.serializer().clone());
            let (kind, ends) = (*kind, record.clone());
            v.spy().on_create(move |created| {
                if created == kind {
                    serializer.leave();
                    ends.ends();
                }
            });
            match what {
                "enable" => drop(v.serializer().enable()),
                _ => drop(v.serializer().add_queue()),
            }
            // The hook holds the serializer that holds it.
            v.spy().on_create(|_| {});
            drop(v);
            let late = record.late();
            assert!(
                late.is_empty(),
                "{what} left while creating {kind:?}: {late:?}"
            );
        }
    }
}

/// Nobody grants any more, so a kernel that is dispatched later must not be made to wait.
#[test]
fn s72_after_leaving_no_dispatch_waits_for_what_nobody_will_do() {
    for on in [false, true] {
        let mut v = Virtual::new(1);
        let queue = v.queue();
        let done = v.signal(2);
        toggle(v.rig(), on);
        queue.submit(&[short(done).packet()]).unwrap();
        v.idle();
        v.serializer().leave();
        queue.submit(&[short(done).packet()]).unwrap();
        let stuck = v.waits().map(|stuck| stuck.to_string());
        assert_eq!((v.load(done), stuck), (0, None), "enabled: {on}");
    }
}
