//! Programs that serialization itself deadlocks: named, and released oldest first.

use crate::script::everywhere;
use crate::spy::{Seat, Spy};
use crate::stage::{Expect, SEEDS, Virtual, short, toggle};
use hsa_serializer::{QueueActivity, QueueId, Stall, StallPolicy, StallWatch, Stalled};
use hsa_sys::{AqlPacket, hsa_barrier_and_packet_t, hsa_signal_t};
use softgpu::{Config, Kernel, Queue, QueueConfig};
use std::time::Duration;

pub(crate) const AFTER: Duration = Duration::from_millis(5);

pub(crate) const OVERLAPS: Expect = Expect {
    misuse: 0,
    overlaps: true,
};

pub(crate) fn watch(v: &Virtual, policy: StallPolicy) -> StallWatch<Spy> {
    v.serializer().watch_stalls(AFTER, policy)
}

/// Everything that stands still when nothing has moved for as long as that takes.
pub(crate) fn stalls(watch: &mut StallWatch<Spy>, clock: &mut Duration) -> Vec<Stall> {
    assert_eq!(watch.check_stalls(*clock), [], "its time has just begun");
    let just_before = *clock + AFTER - Duration::from_nanos(1);
    assert_eq!(watch.check_stalls(just_before), []);
    *clock += AFTER;
    let stalls = watch.check_stalls(*clock);
    assert!(stalls.iter().all(|stall| stall.lasted == AFTER));
    stalls
}

#[track_caller]
fn holder(stall: &Stall) -> (QueueId, u64, Vec<QueueId>) {
    match &stall.what {
        Stalled::Holder {
            queue,
            dispatch,
            waiting,
        } => (*queue, *dispatch, waiting.clone()),
        what => panic!("{what:?}"),
    }
}

type Waits = (QueueId, u64, u64, QueueActivity);

#[track_caller]
fn barrier(stall: &Stall) -> (u32, Vec<Waits>, Vec<(QueueId, u64)>) {
    match &stall.what {
        Stalled::Barrier {
            epoch,
            waits_for,
            holds_back,
        } => {
            let waits = waits_for.iter();
            let waits = waits.map(|w| (w.queue, w.completed, w.until, w.activity));
            (*epoch, waits.collect(), holds_back.clone())
        }
        what => panic!("{what:?}"),
    }
}

/// Some rounds in which everything has to be as it should.
pub(crate) fn is_exact(v: &mut Virtual, queues: &[Queue]) {
    v.idle();
    let (overlaps, before) = (v.overlaps(), v.stats());
    let done = v.signal(3 * 8 * queues.len() as i64);
    for round in 0..8 {
        toggle(v.rig(), round % 2 == 0);
        for queue in queues {
            queue.submit(&[short(done).packet(); 3]).unwrap();
        }
        let some = v.draw(30);
        v.steps(some);
    }
    v.idle();
    assert_eq!((v.load(done), v.overlaps()), (0, overlaps));
    let after = v.stats();
    assert_eq!(after.grants - before.grants, 3 * 4 * queues.len() as u64);
    assert_eq!(
        (after.forced, after.overtaken),
        (before.forced, before.overtaken)
    );
}

#[test]
fn a_kernel_that_waits_for_one_that_was_not_granted_is_named_and_overtaken() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let queues = [v.queue(), v.queue(), v.queue()];
        let (written, done) = (v.signal(1), v.signal(5));
        let [q0, q1, q2] = [0, 1, 2].map(|n| v.id(&queues[n]));
        v.rig().enable().unwrap();
        queues[0].submit(&[short(done).packet(); 2]).unwrap();
        v.idle();
        let spins = Kernel::until(written).completion(done);
        queues[0].submit(&[spins.packet()]).unwrap();
        v.until(|v| v.seat(&queues[0]) == Seat::Running);
        queues[1]
            .submit(&[short(done).writes(written, 0).packet()])
            .unwrap();
        queues[2].submit(&[short(done).packet()]).unwrap();
        assert!(v.waits().is_some());
        let (mut reports, mut releases) = (
            watch(&v, StallPolicy::Report),
            watch(&v, StallPolicy::Release),
        );
        let mut clock = Duration::from_secs(7);
        let named = stalls(&mut reports, &mut clock);
        let [stall] = &named[..] else {
            panic!("{named:?}");
        };
        assert_eq!(holder(stall), (q0, 2, vec![q1, q2]));
        assert!(!stall.released);
        let text = stall.to_string();
        for part in [
            format!("{q0} holds the token with dispatch 2"),
            format!("{q1} waits for it"),
            format!("{q2} waits for it"),
            format!("for {AFTER:.1?} now"),
        ] {
            assert!(text.contains(&part), "{text}");
        }
        // Told and told again, and nothing is done about it.
        clock += AFTER;
        let again = reports.check_stalls(clock);
        assert_eq!((again.len(), again[0].lasted), (1, 2 * AFTER));
        assert!(v.waits().is_some());
        let released = stalls(&mut releases, &mut clock);
        assert!(released.len() == 1 && released[0].released);
        assert_eq!(holder(&released[0]), (q0, 2, vec![q1, q2]));
        assert_eq!((v.stats().overtaken, v.stats().forced), (1, 0));
        v.idle();
        assert_eq!(v.load(done), 0);
        assert_eq!(releases.check_stalls(clock + 9 * AFTER), []);
        is_exact(&mut v, &queues);
        drop((reports, releases));
        v.finish_as(OVERLAPS, queues);
    }
}

#[test]
fn a_kernel_in_flight_that_waits_for_one_behind_the_transition_packet_is_named_and_released() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let queues = [v.queue(), v.queue(), v.queue()];
        let (written, done) = (v.signal(1), v.signal(4));
        let [q0, q1, _] = [0, 1, 2].map(|n| v.id(&queues[n]));
        for queue in &queues[..2] {
            queue.submit(&[short(done).packet()]).unwrap();
        }
        v.idle();
        let spins = Kernel::until(written).completion(done);
        queues[0].submit(&[spins.packet()]).unwrap();
        v.until(|_| queues[0].running() == 1);
        v.rig().enable().unwrap();
        let writes = short(done).writes(written, 0);
        queues[1].submit(&[writes.packet()]).unwrap();
        assert!(v.waits().is_some());
        let mut releases = watch(&v, StallPolicy::Release);
        let mut clock = Duration::ZERO;
        let released = stalls(&mut releases, &mut clock);
        let [stall] = &released[..] else {
            panic!("{released:?}");
        };
        let waits = (q0, 1, 2, QueueActivity::Running);
        assert_eq!(barrier(stall), (1, vec![waits], vec![(q1, 1)]));
        let text = stall.to_string();
        for part in [
            format!("{q0} (1 of 2 dispatches completed)"),
            format!("holds back {q1} from dispatch 1 on"),
            "released".to_owned(),
        ] {
            assert!(text.contains(&part), "{text}");
        }
        assert_eq!((v.stats().overtaken, v.stats().forced), (0, 1));
        v.idle();
        assert_eq!(v.load(done), 0);
        is_exact(&mut v, &queues);
        drop(releases);
        v.finish_as(OVERLAPS, queues);
    }
}

fn waits_for(dep: hsa_signal_t) -> AqlPacket {
    let mut dep_signal = [hsa_signal_t::NULL; 5];
    dep_signal[0] = dep;
    hsa_barrier_and_packet_t {
        dep_signal,
        ..Default::default()
    }
    .into()
}

/// The circle that HIP programs can make: a copy was enqueued before its kernel was intercepted,
/// and a kernel in flight waits for a copy behind it in the same engine, which takes them in order.
#[test]
fn a_circle_through_a_copy_engine_is_named_and_released() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let queues = [v.queue(), v.queue()];
        let agent = v.gpu().agent(0);
        let engine = v.gpu().create_queue(agent, QueueConfig::default()).unwrap();
        let (kernel, copied, done) = (v.signal(1), v.signal(1), v.signal(2));
        let in_flight = Kernel::until(copied).completion(done);
        queues[0].submit(&[in_flight.packet()]).unwrap();
        v.until(|_| queues[0].running() == 1);
        let copy = Kernel::lasting(500).barrier();
        engine
            .submit(&[
                waits_for(kernel),
                copy.packet(),
                copy.writes(copied, 0).packet(),
            ])
            .unwrap();
        v.rig().enable().unwrap();
        // Only now is the kernel intercepted that the first copy waits for.
        let copied_from = short(done).writes(kernel, 0);
        queues[1].submit(&[copied_from.packet()]).unwrap();
        assert!(v.waits().is_some());
        let mut releases = watch(&v, StallPolicy::Release);
        let mut clock = Duration::ZERO;
        let released = stalls(&mut releases, &mut clock);
        let waits = (v.id(&queues[0]), 0, 1, QueueActivity::Running);
        let holds_back = (v.id(&queues[1]), 0);
        assert_eq!(barrier(&released[0]), (1, vec![waits], vec![holds_back]));
        v.idle();
        assert_eq!((v.load(done), v.stats().forced), (0, 1));
        is_exact(&mut v, &queues);
        v.gpu().destroy_queue(&engine).unwrap();
        drop((releases, engine));
        v.finish_as(OVERLAPS, queues);
    }
}

/// Two barriers, the newer of which holds back what the kernel that both wait for needs.
#[test]
fn barriers_are_released_oldest_first_and_one_at_a_time() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let queues = [v.queue(), v.queue(), v.queue()];
        let (written, first, last) = (v.signal(1), v.signal(1), v.signal(2));
        let [q0, q1, q2] = [0, 1, 2].map(|n| v.id(&queues[n]));
        let spins = Kernel::until(written).completion(last);
        queues[0].submit(&[spins.packet()]).unwrap();
        v.until(|_| queues[0].running() == 1);
        v.rig().enable().unwrap();
        queues[1].submit(&[short(first).packet()]).unwrap();
        v.rig().disable().unwrap();
        let writes = short(last).writes(written, 0);
        queues[2].submit(&[writes.packet()]).unwrap();
        assert!(v.waits().is_some());
        let mut releases = watch(&v, StallPolicy::Release);
        let mut clock = Duration::ZERO;
        let both = stalls(&mut releases, &mut clock);
        let [older, newer] = &both[..] else {
            panic!("{both:?}");
        };
        let runs = (q0, 0, 1, QueueActivity::Running);
        let waits = (q1, 0, 1, QueueActivity::WaitsForBarrier(1));
        assert_eq!(barrier(older), (1, vec![runs], vec![(q1, 0)]));
        assert_eq!(barrier(newer), (2, vec![runs, waits], vec![(q2, 0)]));
        assert!(
            newer
                .to_string()
                .contains("waits for the barrier of epoch 1")
        );
        assert_eq!((older.released, newer.released), (true, false));
        assert_eq!(releases.check_stalls(clock), [], "the time begins anew");
        // That was not it: what the older one held back has run.
        assert!(v.waits().is_some());
        assert_eq!((v.load(first), v.load(last), v.stats().forced), (0, 2, 1));
        let left = stalls(&mut releases, &mut clock);
        assert!(left.len() == 1 && left[0].released);
        assert_eq!(barrier(&left[0]), (2, vec![runs], vec![(q2, 0)]));
        v.idle();
        assert_eq!((v.load(last), v.stats().forced), (0, 2));
        is_exact(&mut v, &queues);
        drop(releases);
        v.finish_as(OVERLAPS, queues);
    }
}

/// The holder waits for a kernel of the next mode, behind the barrier that waits for the holder; and
/// another queue waits for the token.
#[test]
fn a_holder_is_overtaken_before_a_barrier_is_forced() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let queues = [v.queue(), v.queue(), v.queue()];
        let (written, done) = (v.signal(1), v.signal(3));
        v.rig().enable().unwrap();
        let spins = Kernel::until(written).completion(done);
        queues[0].submit(&[spins.packet()]).unwrap();
        v.until(|v| v.seat(&queues[0]) == Seat::Running);
        queues[2].submit(&[short(done).packet()]).unwrap();
        v.rig().disable().unwrap();
        let writes = short(done).writes(written, 0);
        queues[1].submit(&[writes.packet()]).unwrap();
        assert!(v.waits().is_some());
        let mut releases = watch(&v, StallPolicy::Release);
        let mut clock = Duration::ZERO;
        let both = stalls(&mut releases, &mut clock);
        assert_eq!(both.len(), 2);
        assert_eq!(
            holder(&both[0]),
            (v.id(&queues[0]), 0, vec![v.id(&queues[2])])
        );
        let (_, waits, _) = barrier(&both[1]);
        assert_eq!(waits[0].3, QueueActivity::HoldsToken);
        assert_eq!(waits[1].3, QueueActivity::WaitsForToken);
        assert_eq!((both[0].released, both[1].released), (true, false));
        assert!(v.waits().is_some());
        assert_eq!(v.load(done), 2);
        let left = stalls(&mut releases, &mut clock);
        let (_, waits, _) = barrier(&left[0]);
        assert_eq!((waits.len(), waits[0].3), (1, QueueActivity::Overtaken));
        assert!(left.len() == 1 && left[0].released);
        v.idle();
        assert_eq!(v.load(done), 0);
        assert_eq!((v.stats().overtaken, v.stats().forced), (1, 1));
        is_exact(&mut v, &queues);
        drop(releases);
        v.finish_as(OVERLAPS, queues);
    }
}

/// A long kernel by itself is no stall of the serializer's making.
#[test]
fn what_holds_back_nobody_is_named_and_not_released() {
    for on in [false, true] {
        let mut v = Virtual::new(1);
        let queues = [v.queue(), v.queue()];
        let (goes_on, done) = (v.signal(1), v.signal(2));
        toggle(v.rig(), on);
        let long = Kernel::until(goes_on).completion(done);
        queues[0].submit(&[long.packet()]).unwrap();
        v.until(|_| queues[0].running() == 1);
        if !on {
            v.rig().enable().unwrap();
        }
        let mut releases = watch(&v, StallPolicy::Release);
        let mut clock = Duration::ZERO;
        let named = stalls(&mut releases, &mut clock);
        assert_eq!((named.len(), named[0].released), (1, false));
        if on {
            assert_eq!(holder(&named[0]), (v.id(&queues[0]), 0, vec![]));
        } else {
            let waits = (v.id(&queues[0]), 0, 1, QueueActivity::Running);
            assert_eq!(barrier(&named[0]), (1, vec![waits], vec![]));
        }
        assert_eq!((v.stats().overtaken, v.stats().forced), (0, 0));
        v.store(goes_on, 0);
        queues[1].submit(&[short(done).packet()]).unwrap();
        v.idle();
        assert_eq!(v.load(done), 0);
        drop(releases);
        v.finish(queues);
    }
}

#[test]
fn what_moves_is_not_named_and_loses_nothing() {
    everywhere(|mut script| {
        let mut releases = watch(&script.v, StallPolicy::Release);
        loop {
            let now = Duration::from_nanos(script.v.gpu().now());
            assert_eq!(releases.check_stalls(now), []);
            if !script.moves_on() {
                break;
            }
        }
        script.assert_done();
        let stats = script.v.stats();
        assert_eq!((stats.forced, stats.overtaken), (0, 0));
        drop(releases);
        script.end(Expect::default());
    });
}

/// Kernels that each take nearly as long as is allowed, one after the other: somebody always moves.
#[test]
fn what_moves_slowly_is_not_named() {
    for on in [false, true] {
        let mut v = Virtual::with(Config {
            punctual: true,
            ..Config::seed(1)
        });
        let queues = [v.queue(), v.queue(), v.queue()];
        let done = v.signal(21);
        let slow = Kernel::lasting(AFTER.as_nanos() as u64 * 9 / 10).completion(done);
        toggle(v.rig(), on);
        for queue in &queues[..2] {
            queue.submit(&[slow.barrier().packet(); 10]).unwrap();
        }
        // A barrier that is armed all the time, and somebody behind it.
        toggle(v.rig(), !on);
        queues[2].submit(&[slow.packet()]).unwrap();
        let mut releases = watch(&v, StallPolicy::Release);
        while v.step() {
            let now = Duration::from_nanos(v.gpu().now());
            assert_eq!(releases.check_stalls(now), []);
        }
        assert_eq!(v.load(done), 0);
        assert!(v.gpu().now() > 9 * AFTER.as_nanos() as u64);
        drop(releases);
        v.finish(queues);
    }
}
