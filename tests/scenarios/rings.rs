//! C. Packets on their way through rings and interception.

use crate::stage::{SEEDS, Virtual, short, toggle};
use crate::token::{and, vendor};
use hsa_serializer::{CompleteErrorReason, Misuse, Report, Ticket};
use hsa_sys::{AqlPacket, FenceScope, PacketType, hsa_barrier_or_packet_t, hsa_signal_t};
use softgpu::{Kernel, QueueConfig};

#[test]
fn s27_packets_of_unknown_types_pass_unchanged() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let queue = v.queue();
        let done = v.signal(2);
        v.rig().enable().unwrap();
        let unknown = vendor(9).with_header(0x0f);
        assert_eq!(unknown.packet_type(), None);
        queue
            .submit(&[
                vendor(5),
                short(done).packet(),
                unknown,
                short(done).packet(),
            ])
            .unwrap();
        assert_eq!((queue.slot(0), queue.slot(4)), (vendor(5), unknown));
        v.idle();
        assert_eq!((v.load(done), queue.foreign()), (0, 2));
        assert_eq!(v.finish(queue).of().grants, 2);
    }
}

/// Batches of every size through rings of these slots, with toggles in between; all run once.
fn through_rings(slots: usize, batches: &[usize]) {
    let (mut wrapped, mut overflowed) = (0, 0);
    for seed in 0..20 {
        let mut v = Virtual::new(seed);
        let queues = [v.ring(slots), v.ring(slots)];
        let kernels: usize = batches.iter().sum();
        let done = v.signal(kernels as i64);
        for (n, size) in batches.iter().enumerate() {
            toggle(v.rig(), n % 3 != 0);
            let queue = &queues[v.draw(2) as usize];
            queue.submit(&vec![short(done).packet(); *size]).unwrap();
            overflowed += u64::from(queue.overflowing() > 0);
            let some = v.draw(20);
            v.steps(some);
        }
        v.idle();
        assert_eq!(v.load(done), 0);
        wrapped += queues
            .iter()
            .map(|q| q.write_index() / slots as u64)
            .sum::<u64>();
        let end = v.finish(queues);
        assert_eq!(end.kernels.started, kernels as u64);
        assert_eq!(end.of().completions, kernels as u64);
    }
    assert!(wrapped > 0 && overflowed > 0);
}

#[test]
fn s48_a_batch_larger_than_the_ring_makes_progress() {
    through_rings(16, &[100, 1, 60]);
}

#[test]
fn s50_batches_past_the_rings_end_run_each_packet_once() {
    through_rings(8, &[1, 2, 3, 5, 7, 1, 4, 6, 2, 9, 3, 3]);
}

#[test]
fn s49_seven_packets_a_dispatch_through_a_ring_of_64_lose_no_wake() {
    for seed in 0..20 {
        let instrument = |_: &AqlPacket| harness::Around {
            before: vec![vendor(1)],
            after: vec![vendor(2), vendor(3)],
        };
        let mut v = Virtual::instrumented(seed, Box::new(instrument));
        let queues = [v.ring(64), v.ring(64)];
        let done = v.signal(160);
        let mut overflowed = 0;
        for n in 0..80 {
            // The first kernel after an enabling has seven packets, with the transition packet.
            toggle(v.rig(), n % 4 != 3);
            let queue = &queues[n % 2];
            queue.submit(&[short(done).packet(); 2]).unwrap();
            overflowed += queue.overflowing();
            let some = v.draw(10);
            v.steps(some);
        }
        v.idle();
        assert_eq!(v.load(done), 0);
        assert!(overflowed > 0);
        let end = v.finish(queues);
        assert!(end.of().tags > 0 && end.of().grants >= 100);
    }
}

#[test]
fn s51_a_doorbell_past_what_is_published_runs_nothing_twice_and_nothing_early() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let queue = v.ring(16);
        let done = v.signal(20);
        for n in 0..20 {
            toggle(v.rig(), n % 4 < 2);
            queue.ring_doorbell(queue.write_index() + 10);
            let some = v.draw(6);
            v.steps(some);
            queue.submit(&[short(done).packet()]).unwrap();
        }
        assert!(queue.doorbell() > queue.write_index());
        v.idle();
        assert_eq!((v.load(done), queue.read_index()), (0, queue.write_index()));
        let end = v.finish(queue);
        assert_eq!((end.kernels.started, end.of().completions), (20, 20));
    }
}

#[test]
fn s53_a_slot_that_is_reserved_and_not_published_is_not_consumed() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let (q0, q1) = (v.queue(), v.queue());
        let done = v.signal(4);
        q0.submit(&[short(done).packet()]).unwrap();
        let torn = q0.reserve(1).unwrap();
        let direct = Kernel::lasting(100).packet();
        q0.write(torn, &direct);
        q0.ring_doorbell(torn);
        v.rig().enable().unwrap();
        q0.submit(&[short(done).packet()]).unwrap();
        q1.submit(&[short(done).packet()]).unwrap();
        v.rig().disable().unwrap();
        q1.submit(&[short(done).packet()]).unwrap();
        assert!(v.waits().is_some());
        // Everybody but what stands behind the torn packet, and what waits for that.
        assert_eq!((q0.read_index(), v.load(done)), (torn, 2));
        q0.publish(torn, direct.header());
        v.idle();
        assert_eq!(v.load(done), 0);
        let end = v.finish((q0, q1));
        assert_eq!((end.kernels.unseen, end.of().dispatches), (1, 4));
    }
}

#[test]
fn s54_a_completion_of_work_that_was_not_declared_is_flagged() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let (q0, q1) = (v.queue(), v.queue());
        let done = v.signal(3);
        v.rig().enable().unwrap();
        q0.submit(&[short(done).packet()]).unwrap();
        v.idle();
        // A direct doorbell: no interceptor saw it, but its completion is reported all the same,
        // with the ticket of the kernel before.
        q0.submit_unseen(&[short(done).packet()]).unwrap();
        v.idle();
        let raw = v.rig().serializer().last_completed().unwrap();
        let serializer = v.rig().serializer().inner();
        let error = serializer.complete(Ticket::from_raw(raw)).unwrap_err();
        assert_eq!(error.reason, CompleteErrorReason::Ahead);
        let id = error.ticket.queue();
        let _ = error.ticket.into_raw();
        let report = Report::Misuse(Misuse::CompletionAhead(id));
        assert_eq!(v.rig().reports().list(), [report, Report::Released]);
        // What was counted may not be true any more: nobody is held back from now on.
        assert!(v.rig().disable().is_err());
        q1.submit(&[short(done).packet()]).unwrap();
        v.idle();
        assert_eq!((v.load(done), v.rig().passed_on()), (0, 1));
        let end = v.finish_with(1, (q0, q1));
        assert_eq!((end.kernels.unseen, end.of().completions), (1, 1));
        assert_eq!((end.of().forced, end.of().overtaken), (0, 0));
    }
}

#[test]
fn s54_a_ticket_of_a_dispatch_that_never_was_is_flagged() {
    for dispatches in 0..3 {
        let mut v = Virtual::new(dispatches);
        let queue = v.queue();
        let done = v.signal(dispatches as i64);
        for _ in 0..dispatches {
            queue.submit(&[short(done).packet()]).unwrap();
        }
        v.idle();
        let id = v.rig().id_of(&queue).unwrap();
        let forged = Ticket::from_raw([id.to_raw(), dispatches << 32]);
        let error = v.rig().serializer().inner().check(forged).unwrap_err();
        assert_eq!(error.reason, CompleteErrorReason::NeverDispatched);
        assert_eq!(
            error.to_string(),
            format!("queue 0 has had no dispatch {dispatches}")
        );
        let _ = error.ticket.into_raw();
        for dispatch in 0..dispatches {
            let real = Ticket::from_raw([id.to_raw(), dispatch << 32]);
            let _ = v.rig().serializer().inner().check(real).unwrap().into_raw();
        }
        v.finish(queue);
    }
}

#[test]
fn s56_s57_every_injected_packet_has_system_fences_and_the_gates_the_barrier_bit() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let queues = [(); 2].map(|()| {
            v.queue_with(QueueConfig {
                check_fences: true,
                ..QueueConfig::default()
            })
        });
        let (goes_on, done) = (v.signal(1), v.signal(12));
        queues[0]
            .submit(&[Kernel::until(goes_on).packet()])
            .unwrap();
        v.until(|_| queues[0].running() == 1);
        for n in 0..6 {
            toggle(v.rig(), n % 2 == 0);
            for queue in &queues {
                queue.submit(&[short(done).packet()]).unwrap();
            }
        }
        let (mut transitions, mut gates) = (0, 0);
        let mut escapes = Vec::new();
        for queue in &queues {
            for index in queue.read_index()..queue.write_index() {
                let packet = queue.slot(index);
                if packet.packet_type() != Some(PacketType::BarrierOr) {
                    continue;
                }
                assert_eq!(packet.header() >> 9 & 3, FenceScope::System as u16);
                assert_eq!(packet.header() >> 11 & 3, FenceScope::System as u16);
                let gate = !packet.completion_signal().is_null();
                assert_eq!(packet.barrier_bit(), gate);
                let [own, escape, rest @ ..] = packet.dependencies().unwrap();
                assert!(!own.is_null() && (!gate || own == packet.completion_signal()));
                assert_eq!(rest, [hsa_signal_t::NULL; 3]);
                escapes.push(escape);
                *(if gate { &mut gates } else { &mut transitions }) += 1;
            }
        }
        assert_eq!((transitions, gates), (12, 12));
        // One for all, which holds while all is well.
        escapes.dedup();
        let holds: Vec<_> = escapes.iter().map(|escape| v.load(*escape)).collect();
        assert_eq!(holds, [1]);
        v.store(goes_on, 0);
        v.idle();
        assert_eq!(v.load(done), 0);
        assert_eq!(v.finish(queues).of().tags, 12);
    }
}

#[test]
fn s58_null_dependencies_of_the_applications_barriers_mean_what_they_did() {
    for seed in SEEDS {
        let mut v = Virtual::new(seed);
        let (q0, q1) = (v.queue(), v.queue());
        let (awaited, done) = (v.signal(1), v.signal(2));
        v.rig().enable().unwrap();
        let mut dep_signal = [hsa_signal_t::NULL; 5];
        dep_signal[3] = awaited;
        let or = AqlPacket::from(hsa_barrier_or_packet_t {
            dep_signal,
            ..Default::default()
        });
        q0.submit(&[and(&[]), short(done).packet()]).unwrap();
        q1.submit(&[or, short(done).packet()]).unwrap();
        assert!(v.waits().is_some());
        assert_eq!((v.load(done), q1.read_index()), (1, 0));
        v.store(awaited, 0);
        v.idle();
        assert_eq!(v.load(done), 0);
        assert_eq!(v.finish((q0, q1)).of().grants, 2);
    }
}

#[test]
fn s61_the_applications_own_barrier_bits_stay_as_they_were() {
    for (enabled, barrier, most) in [(false, false, 8), (false, true, 1), (true, false, 1)] {
        let mut v = Virtual::new(1);
        let queue = v.queue();
        let done = v.signal(8);
        toggle(v.rig(), enabled);
        let kernel = Kernel::lasting(1_000_000).completion(done);
        let kernel = if barrier { kernel.barrier() } else { kernel };
        queue.submit(&[kernel.packet(); 8]).unwrap();
        let last = queue.slot(queue.write_index() - 1);
        assert_eq!(last.barrier_bit(), barrier || enabled);
        v.idle();
        assert_eq!(v.load(done), 0);
        let most_running = v.finish(queue).kernels.most_running;
        assert_eq!(most_running == 1, most == 1, "{most_running}");
    }
}
