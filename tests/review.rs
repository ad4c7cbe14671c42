//! What a hostile review found, each once.

#[path = "lifecycle/pinned.rs"]
mod pinned;

use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{
    AddQueueError, AqlPacket, BarrierSet, DispatchError, Domain, Handler, MAX_PACKETS, Misuse,
    OnMisuse, Queue, QueueId, Report, Runtime, Serializer, SignalKind, Stall, StallPolicy, Ticket,
    hsa_signal_t, hsa_status_t,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

type Hook = Box<dyn Fn(QueueId) -> Result<(), hsa_status_t> + Send + Sync>;

/// Signals that are numbers and nothing else, so that threads meet in the crate and not here.
#[derive(Clone, Default)]
struct Bare(Arc<Counts>);

#[derive(Default)]
struct Counts {
    created: AtomicU64,
    destroyed: AtomicU64,
    on_watch: OnceLock<Hook>,
    /// A handle that goes while a `ready` signal is exchanged.
    goes: Mutex<Option<Serializer<Bare>>>,
}

impl Runtime for Bare {
    fn create_signal(&self, _: SignalKind, _: i64) -> Result<hsa_signal_t, hsa_status_t> {
        let handle = self.0.created.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(hsa_signal_t { handle })
    }

    fn destroy_signal(&self, _: hsa_signal_t) -> Result<(), hsa_status_t> {
        self.0.destroyed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn store(&self, _: hsa_signal_t, _: i64) {}

    fn compare_exchange(&self, _: hsa_signal_t, _: i64, _: i64) -> i64 {
        let goes = self.0.goes.lock().unwrap().take();
        drop(goes);
        0
    }

    fn watch_ready(&self, _: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        self.0.on_watch.get().map_or(Ok(()), |hook| hook(queue))
    }

    fn report(&self, report: Report) {
        panic!("{report}");
    }
}

fn bare_set() -> BarrierSet<Bare> {
    let builder = Serializer::<Bare>::builder().domain(Domain::new());
    BarrierSet::with(builder, Bare::default())
}

fn host_serializer(on_misuse: OnMisuse) -> (Host, Serializer<Host>) {
    let host = Host::default();
    let builder = Serializer::<Host>::builder().domain(Domain::new());
    (host.clone(), builder.on_misuse(on_misuse).build(host))
}

/// A transition counts a queue that everybody leaves at that moment: its barrier ends all the same,
/// and the cell's next owner inherits nothing. Settlers of queues that die while their barrier is
/// superseded touch no freed memory.
#[test]
fn barriers_end_while_queues_come_and_go_and_are_settled_late() {
    let set = bare_set();
    let stop = AtomicBool::new(false);
    let ended = Arc::new(AtomicU64::new(0));
    let latest = AtomicU64::new(0);
    let first = set.arm(|_| {}).unwrap();
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
                while !stop.load(Ordering::Relaxed) {
                    let mut queue = set.add_queue().unwrap();
                    let id = queue.id();
                    latest.store(id.to_raw(), Ordering::Relaxed);
                    for _ in 0..3 {
                        queue.dispatch(&mut packets).unwrap().ticket.abandon();
                    }
                    drop(queue);
                    set.queue_destroyed(id).unwrap();
                }
            });
        }
        s.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let ended = ended.clone();
                let count = move |_| {
                    ended.fetch_add(1, Ordering::Relaxed);
                };
                drop(set.arm(count).unwrap());
            }
        });
        s.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = first.drain_queue(QueueId::from_raw(latest.load(Ordering::Relaxed)));
            }
        });
        thread::sleep(Duration::from_secs(3));
        stop.store(true, Ordering::Relaxed);
    });
    let begun = Instant::now();
    while set.statistics().reclaim_pending > 0 && begun.elapsed() < Duration::from_secs(20) {
        set.collect();
    }
    let stats = set.statistics();
    println!("{stats:?}");
    assert!(stats.superseded > 0 && stats.transitions_that_counted > 0 && stats.queues_gone > 0);
    assert_eq!(stats.cleared + stats.superseded, stats.barriers);
    // The first one counted for nobody here.
    assert_eq!(ended.load(Ordering::Relaxed) + 1, stats.barriers);
    assert_eq!((stats.barriers_live, stats.reclaimed), (0, stats.barriers));
}

#[test]
fn a_guessed_id_does_not_take_a_live_queues_signal() {
    let builder = Serializer::<Bare>::builder().domain(Domain::new());
    let s = builder.build(Bare::default());
    let first = s.add_queue().unwrap();
    let next = AtomicU64::new(first.id().to_raw());
    let stop = AtomicBool::new(false);
    let mut queues = vec![first];
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = s.ready(QueueId::from_raw(next.load(Ordering::Relaxed)));
            }
        });
        for _ in 0..20_000 {
            next.fetch_add(1, Ordering::Relaxed);
            queues.push(s.add_queue().unwrap());
        }
        stop.store(true, Ordering::Relaxed);
    });
    s.collect();
    assert_eq!(s.runtime().0.destroyed.load(Ordering::Relaxed), 0);
}

#[test]
fn barriers_that_end_at_once_tell_it_oldest_first() {
    let builder = Serializer::<Host>::builder().domain(Domain::new());
    let set = BarrierSet::with(builder, Host::default());
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let (mut long, mut other) = (set.add_queue().unwrap(), set.add_queue().unwrap());
    let held = long.dispatch(&mut packets).unwrap().ticket;
    let order = Arc::new(Mutex::new(Vec::new()));
    for n in 0..4 {
        let order = order.clone();
        drop(set.arm(move |_| order.lock().unwrap().push(n)).unwrap());
        other.dispatch(&mut packets).unwrap().ticket.abandon();
    }
    set.queue_destroyed(other.id()).unwrap();
    set.complete(held).unwrap();
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
}

#[test]
fn misuse_is_reported_by_the_call_that_notices_it() {
    let not_granted = |on_misuse| {
        let (host, s) = host_serializer(on_misuse);
        let mut queue = s.add_queue().unwrap();
        s.enable().unwrap();
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let ticket = queue.dispatch(&mut packets).unwrap().ticket;
        s.complete(ticket).unwrap();
        (host, s, queue)
    };
    let report = |queue: &Queue<Host>| Report::Misuse(Misuse::CompletionNotGranted(queue.id()));
    // By default the same call lets everything through, and says so.
    let (host, s, mut queue) = not_granted(OnMisuse::Release);
    assert_eq!(host.reports(), [report(&queue), Report::Released]);
    let refused = queue.dispatch(&mut [AqlPacket::INVALID; MAX_PACKETS]);
    assert_eq!(refused.unwrap_err(), DispatchError::ShutDown);
    drop((s, queue));
    assert_eq!((host.live_signals(), host.reports().len()), (0, 2));

    let (host, s, queue) = not_granted(OnMisuse::GoOn);
    let id = queue.id();
    assert_eq!(host.reports(), [report(&queue)]);
    let ready = host.ready_signal(id).unwrap();
    for _ in 0..2 {
        // A runtime that lets `ready` become -1 once more, though the queue waits already.
        host.store(ready, -1);
        assert_eq!(s.ready(id), Handler::Keep);
    }
    assert_eq!(
        host.reports().last(),
        Some(&Report::Misuse(Misuse::ReadyNotIdle(id)))
    );
}

#[test]
fn an_id_that_the_runtime_has_seen_is_not_used_again() {
    let bare = Bare::default();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let hook: Hook = Box::new(move |queue| {
        let mut seen = noted.lock().unwrap();
        seen.push(queue);
        if seen.len() == 1 {
            return Err(hsa_status_t::ERROR_INVALID_SIGNAL);
        }
        Ok(())
    });
    assert!(bare.0.on_watch.set(hook).is_ok());
    let s = Serializer::<Bare>::builder()
        .domain(Domain::new())
        .build(bare.clone());
    assert_eq!(
        s.add_queue().unwrap_err(),
        AddQueueError::Watch(hsa_status_t::ERROR_INVALID_SIGNAL)
    );
    assert_eq!(bare.0.destroyed.load(Ordering::Relaxed), 2);
    let queue = s.add_queue().unwrap();
    let seen = seen.lock().unwrap();
    assert_ne!(seen[0], seen[1]);
    assert_eq!(seen[1], queue.id());
    assert_eq!(s.ready(seen[0]), Handler::Drop);
}

/// The serializer closes while a queue is being added: the queue is not added, but its handler is
/// there and is told to go before its signal does.
#[test]
fn a_queue_that_shutdown_overtakes_goes_the_way_of_every_queue() {
    let bare = Bare::default();
    let s = Serializer::<Bare>::builder()
        .domain(Domain::new())
        .build(bare.clone());
    let (closer, id) = (s.downgrade(), Arc::new(AtomicU64::new(0)));
    let noted = id.clone();
    let hook: Hook = Box::new(move |queue| {
        noted.store(queue.to_raw(), Ordering::Relaxed);
        closer.upgrade().unwrap().begin_shutdown();
        Ok(())
    });
    assert!(bare.0.on_watch.set(hook).is_ok());
    assert_eq!(s.add_queue().unwrap_err(), AddQueueError::ShutDown);
    s.collect();
    let destroyed = || bare.0.destroyed.load(Ordering::Relaxed);
    assert_eq!(destroyed(), 1, "block; ready waits for its handler");
    let id = QueueId::from_raw(id.load(Ordering::Relaxed));
    assert_eq!(s.ready(id), Handler::Drop);
    assert_eq!(destroyed(), 2);
    assert_eq!(s.ready(id), Handler::Drop);
}

#[test]
fn a_weak_handle_that_was_the_last_says_drop() {
    let (host, s) = host_serializer(OnMisuse::Release);
    let queue = s.add_queue().unwrap();
    let (weak, id) = (s.downgrade(), queue.id());
    assert_eq!(weak.ready(id), Handler::Keep);
    drop((queue, s));
    assert_eq!(weak.ready(id), Handler::Drop);
    assert!(weak.upgrade().is_none());
    assert_eq!(host.live_signals(), 0);

    // Every other handle goes while `ready` runs: its signal goes with the one that `ready` had.
    let bare = Bare::default();
    let builder = Serializer::<Bare>::builder().domain(Domain::new());
    let s = builder.build(bare.clone());
    let (weak, id) = (s.downgrade(), s.add_queue().unwrap().id());
    assert_eq!(weak.ready(id), Handler::Keep);
    *bare.0.goes.lock().unwrap() = Some(s);
    assert_eq!(weak.ready(id), Handler::Drop);
    let destroyed = bare.0.destroyed.load(Ordering::Relaxed);
    assert_eq!(destroyed, 3, "ready, block and escape");
}

const LONG: Duration = Duration::from_secs(10);

/// One look at the beginning and one after a time that is too long for anything to stand still.
fn look_twice(s: &Serializer<Host>, between: impl FnOnce()) -> Vec<Stall> {
    let mut watch = s.watch_stalls(LONG, StallPolicy::Release);
    assert_eq!(watch.check_stalls(Duration::ZERO), []);
    between();
    watch.check_stalls(LONG)
}

/// A queue that reaches its count drops out of what is waited for: that, too, is progress.
#[test]
fn a_barrier_with_a_completion_since_the_last_look_does_not_stand_still() {
    let (_, s) = host_serializer(OnMisuse::Release);
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let mut queues = [(); 2].map(|()| s.add_queue().unwrap());
    let [first, second] = queues
        .each_mut()
        .map(|queue| queue.dispatch(&mut packets).unwrap().ticket);
    s.enable().unwrap();
    let stalls = look_twice(&s, || _ = s.complete(first).unwrap());
    assert_eq!(stalls, [], "a queue has completed what was waited for");
    s.complete(second).unwrap();
    assert_eq!(s.statistics().forced, 0);
}

/// A queue that has the token, and its kernel's ticket.
fn holder(s: &Serializer<Host>) -> (Queue<Host>, Ticket) {
    s.enable().unwrap();
    let mut queue = s.add_queue().unwrap();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let ticket = queue.dispatch(&mut packets).unwrap().ticket;
    let ready = s.runtime().ready_signal(queue.id()).unwrap();
    s.runtime().decrement(ready);
    assert_eq!(s.ready(queue.id()), Handler::Keep);
    assert_eq!(s.statistics().grants, 1);
    (queue, ticket)
}

/// Nobody holds anybody back any more, so nothing is to be named, and no exclusiveness to be lost.
#[test]
fn nothing_stands_still_once_everything_was_let_through() {
    let (_, s) = host_serializer(OnMisuse::Release);
    let (queue, ticket) = holder(&s);
    let end = || {
        s.release_all();
        s.complete(ticket).unwrap();
    };
    assert_eq!(look_twice(&s, end), []);
    assert_eq!(s.statistics().overtaken, 0);
    drop(queue);
}

/// Nothing that somebody would have to open is handed out any more, and nothing is said to have been
/// opened.
#[test]
fn what_was_left_holds_nobody_back_and_lets_nobody_through() {
    let (host, s) = host_serializer(OnMisuse::Release);
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let (mut queue, ticket) = holder(&s);
    let mut other = s.add_queue().unwrap();
    s.disable().unwrap();
    let live = host.live_signals();
    s.leave();
    for queue in [&mut queue, &mut other] {
        // Turned away, or as it is: but without a packet that waits.
        let waits = queue.dispatch(&mut packets).map(|d| {
            d.ticket.abandon();
            d.packets
        });
        assert!(matches!(waits, Ok(0) | Err(_)), "{waits:?}");
    }
    assert_eq!(look_twice(&s, || s.release_all()), []);
    let stats = s.statistics();
    assert_eq!((stats.forced, stats.overtaken), (0, 0));
    ticket.abandon();
    drop((s, queue, other));
    assert_eq!(host.live_signals(), live);
}

/// A marker's completion can't pass for that of a dispatch which the present barrier counts.
#[test]
fn a_marker_waits_for_the_barrier_of_its_epoch() {
    let (host, s) = host_serializer(OnMisuse::Release);
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let (mut queue, mut other) = (s.add_queue().unwrap(), s.add_queue().unwrap());
    let before = queue.dispatch(&mut packets).unwrap().ticket;
    s.enable().unwrap();
    other.dispatch(&mut packets).unwrap().ticket.abandon();
    let waits_for = packets[0].dependencies();
    let barrier = waits_for.unwrap()[0];
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let marker = queue.gap(&mut packets).unwrap();
    assert_eq!(marker.packets, 2);
    assert_eq!(packets[0].dependencies(), waits_for);
    assert_eq!(host.value(barrier), Some(1));
    s.complete(before).unwrap();
    assert_eq!(host.value(barrier), Some(0));
    s.complete(marker.ticket).unwrap();
    assert_eq!(s.statistics().misuse, 0);
}

/// A runtime that refuses to destroy from some time on, and is left by the first report of it.
#[derive(Default)]
struct Leaves {
    made: AtomicU64,
    refuses: AtomicBool,
    serializer: OnceLock<hsa_serializer::WeakSerializer<Leaves>>,
    kept: Mutex<Option<Serializer<Leaves>>>,
    reports: AtomicU64,
}

impl Runtime for Leaves {
    fn create_signal(&self, _: SignalKind, _: i64) -> Result<hsa_signal_t, hsa_status_t> {
        let handle = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(hsa_signal_t { handle })
    }

    fn destroy_signal(&self, _: hsa_signal_t) -> Result<(), hsa_status_t> {
        if self.refuses.load(Ordering::Relaxed) {
            Err(hsa_status_t::ERROR_INVALID_SIGNAL)
        } else {
            Ok(())
        }
    }

    fn store(&self, _: hsa_signal_t, _: i64) {}

    fn compare_exchange(&self, _: hsa_signal_t, expected: i64, _: i64) -> i64 {
        expected
    }

    fn watch_ready(&self, _: hsa_signal_t, _: QueueId) -> Result<(), hsa_status_t> {
        Ok(())
    }

    fn report(&self, _: Report) {
        self.reports.fetch_add(1, Ordering::Relaxed);
        let serializer = self.serializer.get().and_then(|weak| weak.upgrade());
        // Not dropped here: giving a handle up is more than a report may do.
        let serializer = serializer.expect("alive");
        serializer.leave();
        *self.kept.lock().unwrap() = Some(serializer);
    }
}

#[test]
fn a_report_that_leaves_is_the_last() {
    let builder = Serializer::<Leaves>::builder().domain(Domain::new());
    let serializer = builder.build(Leaves::default());
    let weak = serializer.downgrade();
    assert!(serializer.runtime().serializer.set(weak).is_ok());
    let queue = serializer.add_queue().unwrap();
    // The last two signals, that in reserve and the escape signal, go together.
    serializer.enable().unwrap();
    serializer.queue_destroyed(queue.id()).unwrap();
    assert_eq!(serializer.ready(queue.id()), Handler::Drop);
    drop(queue);
    serializer.collect();
    let runtime = serializer.runtime();
    assert_eq!(runtime.reports.load(Ordering::Relaxed), 0);
    runtime.refuses.store(true, Ordering::Relaxed);
    let _ = serializer.finish_shutdown(Duration::from_secs(5));
    assert_eq!(runtime.reports.load(Ordering::Relaxed), 1);
    let kept = runtime.kept.lock().unwrap().take();
    assert!(kept.is_some());
}

#[test]
fn a_cut_of_what_was_left_is_not_withdrawn() {
    let serializer = Serializer::<Host>::builder()
        .domain(Domain::new())
        .build(Host::default());
    let mut queue = serializer.add_queue().unwrap();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let in_flight = queue.dispatch(&mut packets).unwrap();
    let cut = serializer.cut().unwrap();
    serializer.leave();
    assert!(!cut.withdraw(), "nobody may open it any more");
    assert_eq!(serializer.statistics().forced, 0);
    in_flight.ticket.abandon();
}

#[test]
fn an_id_that_nobody_has_had_is_not_given_up() {
    let serializer = Serializer::<Host>::builder()
        .domain(Domain::new())
        .build(Host::default());
    let queue = serializer.add_queue().unwrap();
    serializer.begin_shutdown();
    let id = queue.id();
    // The next life of its place, which never comes.
    let next = QueueId::from_raw(id.to_raw() + (1 << 24));
    let unknown = Err(hsa_serializer::UnknownQueue(next));
    assert_eq!(serializer.queue_destroyed(next), unknown);
    assert_eq!(serializer.queue_destroyed(id), Ok(()));
    assert_eq!(serializer.queue_destroyed(id), Ok(()), "it was given up");
    assert_eq!(serializer.queue_destroyed(next), unknown);
}

#[test]
fn what_has_finished_stays_so() {
    let (host, domain) = (Host::default(), Domain::new());
    let serializer = Serializer::<Host>::builder()
        .domain(domain.clone())
        .build(host.clone());
    let queue = serializer.add_queue().unwrap();
    assert!(serializer.try_finish_shutdown().is_err());
    assert_eq!(serializer.ready(queue.id()), Handler::Drop);
    assert_eq!(serializer.finish_shutdown(Duration::from_secs(20)), Ok(()));
    let pinned = pinned::Pinned::new(&domain);
    // Its place becomes free a grace period later.
    drop(queue);
    assert!(domain.pending() > 0);
    assert_eq!(serializer.try_finish_shutdown(), Ok(()));
    drop(pinned);
    assert_eq!(host.live_signals(), 0);
}
