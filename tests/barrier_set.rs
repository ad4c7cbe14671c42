//! What a `BarrierSet` says of itself and of its barriers.

#[path = "lifecycle/pinned.rs"]
mod pinned;

use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{
    AddQueueError, AqlPacket, BarrierSet, Builder, DispatchError, Domain, MAX_PACKETS, QueueId,
    Runtime, SignalKind, TransitionError, hsa_signal_t, hsa_status_t,
};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier as Rendezvous, OnceLock};

fn set(host: &Host, domain: Domain) -> BarrierSet<Host> {
    BarrierSet::with(Builder::default().domain(domain), host.clone())
}

#[test]
fn a_signal_may_be_destroyed_once_its_barrier_has_ended_and_every_packet_has_executed() {
    let host = Host::default();
    let set = set(&host, Domain::new());
    let mut queue = set.add_queue().unwrap();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let before = queue.dispatch(&mut packets).unwrap();
    let barrier = set.arm(|_| {}).unwrap();
    assert_eq!(host.value(barrier.signal()), Some(1));
    assert!(!barrier.is_safe_to_destroy(), "it is armed");
    let first = queue.dispatch(&mut packets).unwrap();
    set.complete(before.ticket).unwrap();
    assert_eq!(host.value(barrier.signal()), Some(0));
    assert!(
        !barrier.is_safe_to_destroy(),
        "a packet may not have executed"
    );
    set.complete(first.ticket).unwrap();
    assert!(barrier.is_safe_to_destroy());
}

#[test]
fn collecting_reclaims_what_has_ended() {
    let domain = Domain::new();
    let set = set(&Host::default(), domain.clone());
    let mut queue = set.add_queue().unwrap();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let before = queue.dispatch(&mut packets).unwrap();
    drop(set.arm(|_| {}).unwrap());
    let pinned = pinned::Pinned::new(&domain);
    set.complete(before.ticket).unwrap();
    // Kept: a last handle that goes collects, too.
    let _left = pinned.ends();
    let pending = |set: &BarrierSet<Host>| set.statistics().reclaim_pending;
    assert!(pending(&set) > 0, "something is to be collected");
    set.collect();
    assert_eq!(pending(&set), 0);
    assert_eq!(set.statistics().reclaimed, 1);
}

#[test]
fn what_waits_for_a_barrier_that_never_ends_is_not_called_and_goes_with_the_set() {
    let set = set(&Host::default(), Domain::new());
    let mut queue = set.add_queue().unwrap();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let before = queue.dispatch(&mut packets).unwrap();
    let called = Arc::new(AtomicBool::new(false));
    let calls = called.clone();
    drop(set.arm(move |_| calls.store(true, SeqCst)).unwrap());
    before.ticket.abandon();
    drop((queue, set));
    assert!(!called.load(SeqCst));
    assert_eq!(Arc::strong_count(&called), 1, "the callback leaks");
}

#[test]
fn a_tag_that_goes_with_its_queue_has_not_drained() {
    for dies in [false, true] {
        let set = set(&Host::default(), Domain::new());
        let (mut long, mut tagged) = (set.add_queue().unwrap(), set.add_queue().unwrap());
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let before = long.dispatch(&mut packets).unwrap();
        drop(set.arm(|_| {}).unwrap());
        let behind = tagged.dispatch(&mut packets).unwrap();
        set.complete(before.ticket).unwrap();
        assert_eq!(
            set.statistics().retired,
            0,
            "its packet may not have executed"
        );
        if dies {
            set.queue_destroyed(tagged.id()).unwrap();
            behind.ticket.abandon();
        } else {
            set.complete(behind.ticket).unwrap();
        }
        let stats = set.statistics();
        let drained = u64::from(!dies);
        assert_eq!((stats.retired, stats.retired_after_drain), (1, drained));
    }
}

#[test]
fn a_set_ends_once_its_queues_are_gone_and_every_signal_with_it() {
    let host = Host::default();
    let set = set(&host, Domain::new());
    let (mut first, second) = (set.add_queue().unwrap(), set.add_queue().unwrap());
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let before = first.dispatch(&mut packets).unwrap();
    drop(set.arm(|_| {}).unwrap());
    let left = set.try_finish().unwrap_err();
    assert_eq!(left.queues, [(first.id(), 1), (second.id(), 0)]);
    // Nothing was done: it goes on.
    let behind = first.dispatch(&mut packets).unwrap();
    assert_eq!(behind.packets, 1);
    let ticket = set.check(before.ticket).unwrap();
    set.try_complete(ticket).unwrap();
    behind.ticket.abandon();
    set.queue_destroyed(first.id()).unwrap();
    set.queue_destroyed(second.id()).unwrap();
    assert_eq!(set.try_finish(), Ok(()));
    assert_eq!(
        host.live_signals(),
        0,
        "of what lives, nothing is of this set"
    );
    assert_eq!(set.arm(|_| {}).map(drop), Err(TransitionError::ShutDown));
    assert_eq!(set.add_queue().map(drop), Err(AddQueueError::ShutDown));
    assert_eq!(set.try_finish(), Ok(()));
}

/// A host whose next signal takes until it is told to go on.
#[derive(Clone, Default)]
struct Slow {
    host: Host,
    hook: Arc<OnceLock<(Rendezvous, Rendezvous)>>,
}

impl Runtime for Slow {
    fn create_signal(&self, kind: SignalKind, initial: i64) -> Result<hsa_signal_t, hsa_status_t> {
        if let Some((within, go_on)) = self.hook.get() {
            within.wait();
            go_on.wait();
        }
        self.host.create_signal(kind, initial)
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        self.host.destroy_signal(signal)
    }

    fn store(&self, signal: hsa_signal_t, value: i64) {
        self.host.store(signal, value);
    }

    fn compare_exchange(&self, signal: hsa_signal_t, expected: i64, desired: i64) -> i64 {
        self.host.compare_exchange(signal, expected, desired)
    }

    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        self.host.watch_ready(ready, queue)
    }
}

#[test]
fn a_barrier_whose_signal_is_being_made_while_misuse_opens_everything_is_not_armed() {
    let slow = Slow::default();
    let set = BarrierSet::with(Builder::default().domain(Domain::new()), slow.clone());
    let mut queue = set.add_queue().unwrap();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let other = BarrierSet::with(Builder::default().domain(Domain::new()), Host::default());
    let mut others = other.add_queue().unwrap();
    let foreign = others.dispatch(&mut packets).unwrap().ticket;
    let signals = slow.host.live_signals();
    let (within, go_on) = (Rendezvous::new(2), Rendezvous::new(2));
    let (within, go_on) = slow.hook.get_or_init(|| (within, go_on));
    std::thread::scope(|scope| {
        let ended = Arc::new(AtomicBool::new(false));
        let called = ended.clone();
        let arming = scope.spawn(|| set.arm(move |_| called.store(true, SeqCst)));
        within.wait();
        let misuse = set.complete(foreign).unwrap_err();
        other.complete(misuse.ticket).unwrap();
        go_on.wait();
        let refused = arming.join().unwrap().unwrap_err();
        assert_eq!(refused, TransitionError::ShutDown);
        assert!(!ended.load(SeqCst), "there was no barrier");
    });
    assert_eq!(
        slow.host.live_signals(),
        signals,
        "its signal is gone again"
    );
    let turned_away = queue.dispatch(&mut packets).unwrap_err();
    assert_eq!(turned_away, DispatchError::ShutDown);
}
