//! What a hostile review found, each once.

use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{
    AddQueueError, AqlPacket, BarrierSet, Domain, Handler, MAX_PACKETS, Misuse, QueueId, Report,
    Runtime, Serializer, SignalKind, hsa_signal_t, hsa_status_t,
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

fn host_serializer() -> (Host, Serializer<Host>) {
    let host = Host::default();
    let builder = Serializer::<Host>::builder().domain(Domain::new());
    (host.clone(), builder.build(host))
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
    let (host, s) = host_serializer();
    let mut queue = s.add_queue().unwrap();
    s.enable().unwrap();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let ticket = queue.dispatch(&mut packets).unwrap().ticket;
    s.complete(ticket).unwrap();
    let id = queue.id();
    assert_eq!(
        host.reports(),
        [Report::Misuse(Misuse::CompletionNotGranted(id))]
    );
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
    let (host, s) = host_serializer();
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
    assert_eq!(bare.0.destroyed.load(Ordering::Relaxed), 2);
}
