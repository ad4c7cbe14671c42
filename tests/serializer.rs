//! The serializer's calls one by one, on a runtime without a GPU; lines of docs/scenarios.md that need
//! no more than that, by number.

use hsa_serializer::doc_runtime::{Failure, Host};
use hsa_serializer::{
    AddQueueError, AqlPacket, CompleteErrorReason, Completion, DispatchError, Domain, Handler,
    MAX_PACKETS, Misuse, Mode, Queue, Report, Runtime, Serializer, SignalError, Ticket, Transition,
    TransitionError, UnknownQueue, hsa_signal_t, hsa_status_t,
};

fn serializer() -> (Host, Serializer<Host>) {
    let host = Host::default();
    let serializer = Serializer::<Host>::builder()
        .domain(Domain::new())
        .build(host.clone());
    (host, serializer)
}

/// A queue as a packet processor with one kernel at a time sees it.
struct Lane {
    queue: Queue<Host>,
    ready: hsa_signal_t,
    block: hsa_signal_t,
}

impl Lane {
    fn new(s: &Serializer<Host>) -> Self {
        let mut queue = s.add_queue().unwrap();
        let ready = s.runtime().ready_signal(queue.id()).unwrap();
        let was = s.mode();
        s.enable().unwrap();
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let probe = queue.dispatch(&mut packets).unwrap();
        let block = packets[probe.packets - 1].completion_signal();
        let lane = Self {
            queue,
            ready,
            block,
        };
        lane.reach(s);
        lane.run(s, probe.ticket);
        if was == Mode::Disabled {
            s.disable().unwrap();
        }
        lane
    }

    fn dispatch(&mut self) -> (Ticket, usize) {
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let d = self.queue.dispatch(&mut packets).unwrap();
        (d.ticket, d.packets)
    }

    /// Packet 2 executes, and the handler is called.
    fn reach(&self, s: &Serializer<Host>) {
        assert_eq!(s.runtime().value(self.ready), Some(0));
        s.runtime().decrement(self.ready);
        assert_eq!(s.ready(self.queue.id()), Handler::Keep);
    }

    fn is_granted(&self, s: &Serializer<Host>) -> bool {
        s.runtime().value(self.block) == Some(0)
    }

    /// Packet 3 executes, the kernel runs and completes.
    fn run(&self, s: &Serializer<Host>, ticket: Ticket) {
        assert!(self.is_granted(s));
        s.runtime().decrement(self.block);
        assert_eq!(s.complete(ticket).unwrap(), Completion::Counted);
        assert_eq!(s.runtime().value(self.ready), Some(0));
        assert_eq!(s.runtime().value(self.block), Some(1));
    }
}

fn lanes<const N: usize>(s: &Serializer<Host>) -> [Lane; N] {
    std::array::from_fn(|_| Lane::new(s))
}

#[test]
fn the_token_goes_from_queue_to_queue_in_the_order_of_arrival() {
    let (_, s) = serializer();
    let mut lanes = lanes::<4>(&s);
    s.enable().unwrap();
    let mut tickets: Vec<_> = lanes.iter_mut().map(|l| Some(l.dispatch().0)).collect();
    for i in [2, 0, 3, 1] {
        lanes[i].reach(&s);
    }
    for i in [2, 0, 3, 1] {
        for (j, lane) in lanes.iter().enumerate() {
            assert_eq!(
                lane.is_granted(&s),
                i == j,
                "queue {j} while it is {i}'s turn"
            );
        }
        lanes[i].run(&s, tickets[i].take().unwrap());
    }
    let stats = s.statistics();
    assert_eq!(stats.contenders, 0);
    assert_eq!(stats.grants_contended, 3);
}

#[test]
fn s3_a_queue_that_was_ready_is_granted_after_disable() {
    let (_, s) = serializer();
    let mut lanes = lanes::<2>(&s);
    s.enable().unwrap();
    let (d1, _) = lanes[0].dispatch();
    let (d2, _) = lanes[1].dispatch();
    lanes[0].reach(&s);
    lanes[1].reach(&s);
    s.disable().unwrap();
    assert!(!lanes[1].is_granted(&s));
    lanes[0].run(&s, d1);
    assert!(lanes[1].is_granted(&s));
    lanes[1].run(&s, d2);
}

#[test]
fn s4_s15_completions_after_a_pause_are_counted_and_release_the_token() {
    let (_, s) = serializer();
    let mut lanes = lanes::<2>(&s);
    s.enable().unwrap();
    let (d1, _) = lanes[0].dispatch();
    let (d2, _) = lanes[1].dispatch();
    s.disable().unwrap();
    let (d3, packets) = lanes[0].dispatch();
    assert_eq!(packets, 1, "only the transition packet");
    lanes[0].reach(&s);
    lanes[0].run(&s, d1);
    lanes[1].reach(&s);
    lanes[1].run(&s, d2);
    s.complete(d3).unwrap();
    let stats = s.statistics();
    assert_eq!(stats.dispatches, stats.completions);
    assert_eq!(stats.contenders, 0);
}

#[test]
fn s9_enabling_often_is_enabling_once() {
    let (_, s) = serializer();
    assert!(matches!(s.enable().unwrap(), Transition::Changed { .. }));
    assert_eq!(s.enable().unwrap(), Transition::Unchanged);
    assert_eq!(s.enable().unwrap(), Transition::Unchanged);
    let mut queue = s.add_queue().unwrap();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    assert!(queue.dispatch(&mut packets).unwrap().serialized);
    assert!(matches!(
        s.disable().unwrap(),
        Transition::Changed { waiting_for: 1 }
    ));
    assert_eq!(s.disable().unwrap(), Transition::Unchanged);
    assert!(!queue.dispatch(&mut packets).unwrap().serialized);
}

#[test]
fn s30_completions_in_any_order_are_counted_right() {
    let (host, s) = serializer();
    let mut queue = s.add_queue().unwrap();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let mut tickets: Vec<_> = (0..3)
        .map(|_| queue.dispatch(&mut packets).unwrap().ticket)
        .collect();
    s.enable().unwrap();
    let behind = queue.dispatch(&mut packets).unwrap();
    assert_eq!(behind.packets, 3);
    let barrier = packets[0].dependencies().unwrap()[0];
    while let Some(ticket) = tickets.pop() {
        assert_eq!(host.value(barrier), Some(1));
        s.complete(ticket).unwrap();
    }
    assert_eq!(host.value(barrier), Some(0));
}

#[test]
fn s36_a_late_or_repeated_ready_does_nothing() {
    let (host, s) = serializer();
    let mut lanes = lanes::<2>(&s);
    s.enable().unwrap();
    let (d0, _) = lanes[0].dispatch();
    let (d1, _) = lanes[1].dispatch();
    assert_eq!(s.ready(lanes[0].queue.id()), Handler::Keep);
    assert!(!lanes[0].is_granted(&s), "it was not ready yet");
    lanes[0].reach(&s);
    for _ in 0..3 {
        assert_eq!(s.ready(lanes[0].queue.id()), Handler::Keep);
    }
    lanes[1].reach(&s);
    assert_eq!(s.statistics().contenders, 2);
    lanes[0].run(&s, d0);
    assert_eq!(s.ready(lanes[0].queue.id()), Handler::Keep);
    lanes[1].run(&s, d1);
    assert_eq!(s.statistics().contenders, 0);
    assert_eq!(host.reports(), []);
}

// SCENARIOS 41, R4.
#[test]
fn s41_r4_a_queue_destroyed_in_every_state_lets_the_others_go_on() {
    for destroyed in ["idle", "waiting", "granted", "running"] {
        let (host, s) = serializer();
        let mut lanes = lanes::<3>(&s);
        s.enable().unwrap();
        let mut tickets: Vec<_> = lanes.iter_mut().map(|l| Some(l.dispatch().0)).collect();
        match destroyed {
            "idle" => {
                lanes[0].reach(&s);
                lanes[2].reach(&s);
            }
            "waiting" => {
                lanes[0].reach(&s);
                lanes[1].reach(&s);
                lanes[2].reach(&s);
            }
            _ => {
                lanes[1].reach(&s);
                lanes[0].reach(&s);
                lanes[2].reach(&s);
            }
        }
        if destroyed == "running" {
            host.decrement(lanes[1].block);
        }
        let id = lanes[1].queue.id();
        s.queue_destroyed(id).unwrap();
        assert_eq!(s.queue_destroyed(id), Err(UnknownQueue(id)));
        assert_eq!(
            host.value(lanes[1].ready),
            Some(-1),
            "the handler is called"
        );
        assert_eq!(s.ready(id), Handler::Drop);
        assert_eq!(s.ready(id), Handler::Drop);
        for i in [0, 2] {
            lanes[i].run(&s, tickets[i].take().unwrap());
        }
        let late = tickets[1].take().unwrap();
        assert_eq!(
            s.complete(late).unwrap(),
            Completion::QueueGone,
            "{destroyed}"
        );
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        assert_eq!(
            lanes[1].queue.dispatch(&mut packets).unwrap_err(),
            DispatchError::QueueGone(id)
        );
        s.disable().unwrap();
        s.collect();
        assert_eq!(s.statistics().contenders, 0);
        assert_eq!(host.value(lanes[1].ready), None);
        assert_eq!(host.value(lanes[1].block), None);
        drop((lanes, s));
        assert_eq!(host.live_signals(), 0, "{destroyed}");
        assert_eq!(host.reports(), []);
    }
}

#[test]
fn s63_a_transition_without_a_signal_does_not_happen() {
    for (failure, error) in [
        (
            Failure::Status(hsa_status_t::ERROR_OUT_OF_RESOURCES),
            SignalError::Status(hsa_status_t::ERROR_OUT_OF_RESOURCES),
        ),
        (Failure::NullHandle, SignalError::NullHandle),
    ] {
        let (host, s) = serializer();
        let mut queue = s.add_queue().unwrap();
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let d1 = queue.dispatch(&mut packets).unwrap();
        let before = (host.live_signals(), s.statistics().transitions);
        host.fail_creations(Some(failure));
        assert_eq!(s.enable(), Err(TransitionError::Signal(error)));
        assert_eq!(s.mode(), Mode::Disabled);
        assert_eq!((host.live_signals(), s.statistics().transitions), before);
        let d2 = queue.dispatch(&mut packets).unwrap();
        assert_eq!((d2.packets, d2.serialized), (0, false));
        // Turning off can't fail: turning on has reserved its signal.
        host.fail_creations(None);
        s.enable().unwrap();
        host.fail_creations(Some(failure));
        s.disable().unwrap();
        s.complete(d1.ticket).unwrap();
        s.complete(d2.ticket).unwrap();
    }
}

#[test]
fn s63_a_queue_without_a_signal_is_not_added() {
    let (host, s) = serializer();
    host.fail_creations(Some(Failure::NullHandle));
    let refused = |s: &Serializer<Host>| s.add_queue().unwrap_err();
    let null = SignalError::NullHandle;
    // The first queue comes with the escape signal.
    assert_eq!(refused(&s), AddQueueError::Escape(null));
    assert_eq!(host.live_signals(), 0);
    host.fail_creations(None);
    let first = s.add_queue().unwrap();
    assert_eq!(host.live_signals(), 3);
    host.fail_creations(Some(Failure::NullHandle));
    assert_eq!(refused(&s), AddQueueError::Ready(null));
    assert_eq!(host.live_signals(), 3);
    host.fail_creations(None);
    let second = s.add_queue().unwrap();
    assert_eq!(host.live_signals(), 5);
    drop((first, second, s));
    assert_eq!(host.live_signals(), 0);
}

#[test]
fn a_foreign_or_used_ticket_is_refused_and_comes_back() {
    let (host, s) = serializer();
    let (_, other) = serializer();
    let mut queue = s.add_queue().unwrap();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let ticket = queue.dispatch(&mut packets).unwrap().ticket;
    let error = other.complete(ticket).unwrap_err();
    assert_eq!(error.reason, CompleteErrorReason::Foreign);
    let raw = error.ticket.into_raw();
    s.complete(Ticket::from_raw(raw)).unwrap();
    let error = s.complete(Ticket::from_raw(raw)).unwrap_err();
    assert_eq!(error.reason, CompleteErrorReason::Ahead);
    assert!(error.to_string().contains("queue 0"), "{error}");
    let _ = error.ticket.into_raw();
    let mut told = vec![
        Report::Misuse(Misuse::CompletionAhead(queue.id())),
        Report::Released,
    ];
    assert_eq!(host.reports(), told);
    for raw in [
        [0, 0],
        [u64::MAX, u64::MAX],
        [queue.id().to_raw() | 0xffff, 7],
    ] {
        let error = s.complete(Ticket::from_raw(raw)).unwrap_err();
        assert_eq!(error.reason, CompleteErrorReason::Foreign);
        let foreign = error.ticket.queue();
        let _ = error.ticket.into_raw();
        told.push(Report::Misuse(Misuse::ForeignTicket(foreign)));
    }
    assert_eq!(host.reports(), told, "let through once");
}

#[test]
fn a_ticket_that_is_tried_and_refused_is_no_misuse() {
    let (host, s) = serializer();
    let (other_host, other) = serializer();
    let mut queue = s.add_queue().unwrap();
    assert_eq!(queue.id().serializer(), s.number());
    assert_ne!(s.number(), other.number());
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let ticket = queue.dispatch(&mut packets).unwrap().ticket;
    let error = other.try_complete(ticket).unwrap_err();
    assert_eq!(error.reason, CompleteErrorReason::Foreign);
    let raw = error.ticket.into_raw();
    s.try_complete(Ticket::from_raw(raw)).unwrap();
    let error = s.try_complete(Ticket::from_raw(raw)).unwrap_err();
    assert_eq!(error.reason, CompleteErrorReason::Ahead);
    error.ticket.abandon();
    assert_eq!((host.reports(), other_host.reports()), (vec![], vec![]));
    assert_eq!(s.statistics().completions, 1);
    // Nothing was let through.
    s.enable().unwrap();
    assert!(queue.dispatch(&mut packets).unwrap().serialized);
}

#[test]
fn a_short_array_is_refused_before_anything_is_counted() {
    let (_, s) = serializer();
    let mut queue = s.add_queue().unwrap();
    for given in 0..MAX_PACKETS {
        let mut packets = vec![AqlPacket::INVALID; given];
        assert_eq!(
            queue.dispatch(&mut packets).unwrap_err(),
            DispatchError::TooFewPackets { given }
        );
    }
    assert_eq!(s.statistics().dispatches, 0);
}

#[test]
fn after_shutdown_began_dispatches_come_back_and_queued_work_goes_on() {
    let (host, s) = serializer();
    let mut lanes = lanes::<2>(&s);
    s.enable().unwrap();
    let (d0, _) = lanes[0].dispatch();
    let (d1, _) = lanes[1].dispatch();
    lanes[0].reach(&s);
    s.begin_shutdown();
    s.begin_shutdown();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let before = s.statistics().dispatches;
    for lane in &mut lanes {
        assert_eq!(
            lane.queue.dispatch(&mut packets).unwrap_err(),
            DispatchError::ShutDown
        );
    }
    assert_eq!(s.statistics().dispatches, before);
    assert_eq!(s.enable(), Err(TransitionError::ShutDown));
    assert_eq!(s.disable(), Err(TransitionError::ShutDown));
    assert_eq!(s.add_queue().unwrap_err(), AddQueueError::ShutDown);
    lanes[1].reach(&s);
    lanes[0].run(&s, d0);
    lanes[1].run(&s, d1);
    drop((lanes, s));
    assert_eq!(host.live_signals(), 0);
    assert_eq!(host.reports(), []);
}

#[test]
fn what_wraps_around_goes_on() {
    let host = Host::default();
    let s = Serializer::<Host>::builder()
        .domain(Domain::new())
        .starting_at(u32::MAX - 5, (1 << 32) - 3)
        .build(host.clone());
    let mut queue = s.add_queue().unwrap();
    let ready = host.ready_signal(queue.id()).unwrap();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    for round in 0..12 {
        let first = queue.dispatch(&mut packets).unwrap();
        s.enable().unwrap();
        let second = queue.dispatch(&mut packets).unwrap();
        assert_eq!(second.packets, 3, "round {round}");
        let barrier = packets[0].dependencies().unwrap()[0];
        assert_eq!(host.value(barrier), Some(1));
        s.complete(first.ticket).unwrap();
        assert_eq!(host.value(barrier), Some(0));
        s.disable().unwrap();
        let third = queue.dispatch(&mut packets).unwrap();
        assert_eq!(third.packets, 1, "round {round}");
        let barrier = packets[0].dependencies().unwrap()[0];
        host.decrement(ready);
        let _ = s.ready(queue.id());
        s.complete(second.ticket).unwrap();
        assert_eq!(host.value(barrier), Some(0));
        s.complete(third.ticket).unwrap();
        s.collect();
        assert_eq!(s.statistics().barriers_live, 0, "round {round}");
    }
    assert_eq!(s.statistics().dispatches, 36);
}

// SCENARIOS 66: by generation.
#[test]
fn s66_a_late_call_for_a_queue_whose_place_has_another_owner_does_nothing() {
    let (host, s) = serializer();
    let first = s.add_queue().unwrap();
    let old = first.id();
    s.queue_destroyed(old).unwrap();
    assert_eq!(s.ready(old), Handler::Drop);
    drop(first);
    for _ in 0..3 {
        s.collect();
    }
    let mut second = s.add_queue().unwrap();
    assert_ne!(second.id(), old);
    assert_eq!(
        second.id().to_string(),
        "queue 0.1",
        "the place is used again"
    );
    let ready = host.ready_signal(second.id()).unwrap();
    s.enable().unwrap();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let d = second.dispatch(&mut packets).unwrap();
    host.decrement(ready);
    assert_eq!(s.ready(old), Handler::Drop);
    assert_eq!(host.value(ready), Some(-1), "not taken by the late call");
    let stale = Ticket::from_raw([old.to_raw(), d.ticket.into_raw()[1]]);
    assert_eq!(s.complete(stale).unwrap(), Completion::QueueGone);
    assert_eq!(s.statistics().completions, 0);
    assert_eq!(s.queue_destroyed(old), Err(UnknownQueue(old)));
}

#[test]
fn queues_come_and_go_by_thousands_in_bounded_memory() {
    let (host, s) = serializer();
    let mut most = 0;
    for _ in 0..5_000 {
        let queue = s.add_queue().unwrap();
        let id = queue.id();
        s.queue_destroyed(id).unwrap();
        assert_eq!(s.ready(id), Handler::Drop);
        drop(queue);
        most = most.max(host.live_signals());
    }
    assert!(most <= 16, "{most} signals");
    let stats = s.statistics();
    assert_eq!(
        (stats.queues_added, stats.queues_gone, stats.queues),
        (5_000, 5_000, 0)
    );
    let last = s.add_queue().unwrap();
    let place: u32 = last.id().to_string()["queue ".len()..]
        .split('.')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(place < 16, "place {place}");
}

/// By the system's clock, which goes on with every look at it.
#[test]
fn who_is_granted_at_once_has_not_waited() {
    let (_, s) = serializer();
    let mut lane = Lane::new(&s);
    let before = s.statistics();
    s.enable().unwrap();
    for _ in 0..100 {
        let (ticket, _) = lane.dispatch();
        lane.reach(&s);
        lane.run(&s, ticket);
    }
    s.disable().unwrap();
    let after = s.statistics();
    assert_eq!(after.grants - before.grants, 100);
    assert_eq!(after.token_waited, 0);
    assert!(after.serialized > before.serialized);
}

/// Where nothing may be called, the queues beyond the first 512 are left, and can be gone on with.
#[test]
fn a_completion_is_begun_near_for_the_first_queues_alone() {
    fn dispatch(queue: &mut Queue<Host>) -> Ticket {
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        queue.dispatch(&mut packets).unwrap().ticket
    }
    let (_, s) = serializer();
    let mut queues: Vec<_> = (0..514).map(|_| s.add_queue().unwrap()).collect();
    for (n, queue) in queues.iter_mut().enumerate() {
        let raw = dispatch(queue).into_raw();
        let begun = s.begin_completion::<true>(Ticket::from_raw(raw));
        assert_eq!(begun.is_ok(), n < 512, "queue {n}");
        if let Err(begun) = begun {
            let completion = s.go_on_completing(raw, begun).unwrap();
            assert_eq!(completion, Completion::Counted);
        }
        let begun = s.begin_completion::<false>(dispatch(queue));
        assert!(begun.is_ok(), "queue {n}");
    }
    let statistics = s.statistics();
    assert_eq!(
        (statistics.dispatches, statistics.completions),
        (1028, 1028)
    );

    // Also in a place that had another owner.
    let first = queues.swap_remove(0);
    s.queue_destroyed(first.id()).unwrap();
    assert_eq!(s.ready(first.id()), Handler::Drop);
    drop(first);
    for _ in 0..3 {
        s.collect();
    }
    let mut second = s.add_queue().unwrap();
    assert_eq!(second.id().to_string(), "queue 0.1");
    assert!(s.begin_completion::<true>(dispatch(&mut second)).is_ok());
}

/// The one that a runtime has where it says nothing else.
#[test]
fn the_clock_goes_on() {
    let host = Host::default();
    let before = host.now();
    std::thread::sleep(std::time::Duration::from_millis(2));
    let passed = host.now() - before;
    assert!(passed >= std::time::Duration::from_millis(2), "{passed:?}");
}

#[test]
fn everything_can_be_sent_and_shared_as_promised() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Serializer<Host>>();
    sync::<Serializer<Host>>();
    send::<Queue<Host>>();
    send::<Ticket>();
    sync::<Ticket>();
    assert_eq!(size_of::<Ticket>(), 16);
}
