//! Looking at everything at any time.

use crate::script::{Script, everywhere};
use crate::spy::Spy;
use crate::stage::{Expect, Virtual};
use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{
    BarrierSet, Domain, Handler, MAX_PACKETS, Serializer, StallPolicy, StallWatch,
};
use hsa_sys::AqlPacket;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// All that can be printed of a serializer.
fn prints(v: &Virtual, watch: &mut StallWatch<Spy>) -> usize {
    let serializer = v.serializer();
    let mut text = format!("{serializer:?} {:?} {watch:?}", serializer.statistics());
    for stall in watch.check_stalls(Duration::ZERO) {
        text += &format!("{stall} {stall:?}");
    }
    text.len()
}

#[test]
fn s67_everything_can_be_looked_at_after_every_step_and_is_as_it_was() {
    for seed in crate::script::SEEDS {
        let mut looked_at = Script::new(seed);
        let mut left_alone = Script::new(seed);
        let policy = StallPolicy::Report;
        let mut watch = looked_at
            .v
            .serializer()
            .watch_stalls(Duration::ZERO, policy);
        loop {
            assert!(prints(&looked_at.v, &mut watch) > 100);
            let went = looked_at.moves_on();
            assert_eq!(went, left_alone.moves_on());
            let stats = [looked_at.v.stats(), left_alone.v.stats()];
            assert_eq!(stats[0], stats[1]);
            if !went {
                break;
            }
        }
        drop(watch);
        looked_at.end(Expect::default());
        left_alone.end(Expect::default());
    }
}

#[test]
fn s67_after_the_end_there_is_nothing_to_be_seen() {
    everywhere(|mut script| {
        let policy = StallPolicy::Release;
        let mut watch = script.v.serializer().watch_stalls(Duration::ZERO, policy);
        script.v.serializer().begin_shutdown();
        script.refuses = true;
        script.rest();
        crate::shutdown::finishes(&mut script.v);
        for n in 0..3 {
            assert_eq!(watch.check_stalls(Duration::from_secs(n)), []);
        }
        assert!(prints(&script.v, &mut watch) > 100);
        drop(watch);
        script.ends();
    });
}

/// Barriers are retired, reclaimed and their handles given out again by thousands meanwhile.
#[test]
fn s67_on_threads_everything_can_be_looked_at_while_signals_are_recycled() {
    let host = Host::default();
    let builder = Serializer::<Host>::builder().domain(Domain::new());
    let s = builder.build(host.clone());
    let builder = Serializer::<Host>::builder().domain(Domain::new());
    let set = BarrierSet::with(builder, host.clone());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (s, set, stop) = (&s, &set, &stop);
        scope.spawn(move || {
            let policy = StallPolicy::Report;
            let mut watch = s.watch_stalls(Duration::ZERO, policy);
            let mut looked = 0;
            while !stop.load(SeqCst) || looked < 100 {
                let stalls = watch.check_stalls(Duration::ZERO);
                let text: String = stalls.iter().map(ToString::to_string).collect();
                let more = format!("{text} {s:?} {set:?} {:?}", s.statistics());
                looked += more.len().min(1);
            }
        });
        scope.spawn(move || {
            let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
            let mut queue = set.add_queue().unwrap();
            while !stop.load(SeqCst) {
                let before = queue.dispatch(&mut packets).unwrap();
                let barrier = set.arm(|_| {}).unwrap();
                let behind = queue.dispatch(&mut packets).unwrap();
                assert!(!format!("{barrier:?}").is_empty() && barrier.tags() == 1);
                set.complete(before.ticket).unwrap();
                set.complete(behind.ticket).unwrap();
                assert!(format!("{queue:?} {barrier:?}").len() > 10);
            }
        });
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        for _ in 0..3_000 {
            let mut queue = s.add_queue().unwrap();
            let first = queue.dispatch(&mut packets).unwrap();
            s.enable().unwrap();
            queue.dispatch(&mut packets).unwrap().ticket.abandon();
            s.disable().unwrap();
            s.complete(first.ticket).unwrap();
            s.queue_destroyed(queue.id()).unwrap();
            assert_eq!(s.ready(queue.id()), Handler::Drop);
        }
        stop.store(true, SeqCst);
    });
    assert_eq!(s.statistics().barriers, 6_000);
    drop((s, set));
    assert_eq!((host.live_signals(), host.reports()), (0, vec![]));
}
