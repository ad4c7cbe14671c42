//! Faults that the lifecycle's soak, or its reading, has found, each made to strike by itself.

use harness::{Reports, SoftRuntime};
use hsa_serializer::{
    AqlPacket, DispatchError, Domain, DrainError, Handler, MAX_PACKETS, Queue, QueueId, Report,
    Runtime, Serializer, ShutdownError, SignalKind, StallPolicy, Stalled, Ticket,
};
use hsa_sys::{hsa_signal_t, hsa_signal_value_t, hsa_status_t};
use softgpu::{
    Config, Ends, Kernel, QueueConfig, SignalKind as SignalUse, ThreadedGpu, VirtualGpu,
};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

type Hook = Box<dyn Fn() + Send + Sync>;
type AfterStore = Box<dyn Fn(hsa_signal_t, hsa_signal_value_t) + Send + Sync>;

/// The emulated GPU's runtime, with something that another thread does right after a store.
struct Hooked {
    inner: SoftRuntime,
    after_store: Arc<OnceLock<AfterStore>>,
    at_destroy: Arc<OnceLock<Hook>>,
    at_report: Arc<OnceLock<Hook>>,
}

impl Runtime for Hooked {
    fn create_signal(
        &self,
        kind: SignalKind,
        initial: hsa_signal_value_t,
    ) -> Result<hsa_signal_t, hsa_status_t> {
        self.inner.create_signal(kind, initial)
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        if let Some(hook) = self.at_destroy.get() {
            hook();
        }
        self.inner.destroy_signal(signal)
    }

    fn store(&self, signal: hsa_signal_t, value: hsa_signal_value_t) {
        self.inner.store(signal, value);
        if let Some(hook) = self.after_store.get() {
            hook(signal, value);
        }
    }

    fn compare_exchange(
        &self,
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        desired: hsa_signal_value_t,
    ) -> hsa_signal_value_t {
        self.inner.compare_exchange(signal, expected, desired)
    }

    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        self.inner.watch_ready(ready, queue)
    }

    fn report(&self, report: Report) {
        if let Some(hook) = self.at_report.get() {
            hook();
        }
        self.inner.report(report);
    }
}

struct Rig {
    gpu: VirtualGpu,
    serializer: Serializer<Hooked>,
    reports: Reports,
    after_store: Arc<OnceLock<AfterStore>>,
    at_destroy: Arc<OnceLock<Hook>>,
    at_report: Arc<OnceLock<Hook>>,
}

fn rig() -> Rig {
    rig_in(Domain::new())
}

fn rig_in(domain: Domain) -> Rig {
    let gpu = VirtualGpu::new(Config {
        signals: 64,
        ..Config::default()
    });
    let reports = Reports::default();
    let (after_store, at_destroy) = (Arc::default(), Arc::default());
    let at_report = Arc::default();
    let runtime = Hooked {
        inner: SoftRuntime::new(gpu.gpu(), |_| Handler::Drop, reports.clone()),
        after_store: Arc::clone(&after_store),
        at_destroy: Arc::clone(&at_destroy),
        at_report: Arc::clone(&at_report),
    };
    let builder = Serializer::<Hooked>::builder().domain(domain);
    Rig {
        gpu,
        serializer: builder.build(runtime),
        reports,
        after_store,
        at_destroy,
        at_report,
    }
}

impl Rig {
    /// The packet processor gets to the queue's first serialized kernel.
    fn reach(&self, queue: &mut Queue<Hooked>) -> Ticket {
        let mut inject = [AqlPacket::INVALID; MAX_PACKETS];
        let kernel = queue.dispatch(&mut inject).unwrap();
        let [ready, ..] = inject[0].dependencies().unwrap();
        self.gpu.signals().store(ready, -1);
        kernel.ticket
    }
}

fn dispatch(queue: &mut Queue<Hooked>) -> Result<Ticket, DispatchError> {
    let mut inject = [AqlPacket::INVALID; MAX_PACKETS];
    Ok(queue.dispatch(&mut inject)?.ticket)
}

// What the escape signal lets through may complete at once, and that is not the host's fault.
#[test]
fn the_kill_switch_is_not_taken_for_misuse() {
    let rig = rig();
    let mut queues = [rig.serializer.add_queue(), rig.serializer.add_queue()].map(Result::unwrap);
    let in_flight = dispatch(&mut queues[0]).unwrap();
    rig.serializer.enable().unwrap();
    let behind = Mutex::new(Some(dispatch(&mut queues[1]).unwrap()));
    let (signals, serializer) = (rig.gpu.signals().clone(), rig.serializer.downgrade());
    let hook = move |signal, value| {
        if signals.label(signal) == "escape" && value == 0 {
            let serializer = serializer.upgrade().unwrap();
            let behind = behind.lock().unwrap().take().unwrap();
            thread::spawn(move || serializer.complete(behind).map(|_| ()).unwrap())
                .join()
                .unwrap();
        }
    };
    assert!(rig.after_store.set(Box::new(hook)).is_ok());
    rig.serializer.release_all();
    assert_eq!(rig.reports.list(), []);
    rig.serializer.complete(in_flight).unwrap();
    assert_eq!(rig.serializer.statistics().misuse, 0);
}

// After the kill switch nobody holds the token, and nothing waits for it.
#[test]
fn the_kill_switch_leaves_no_stall() {
    let rig = rig();
    let mut queue = rig.serializer.add_queue().unwrap();
    rig.serializer.enable().unwrap();
    let ticket = rig.reach(&mut queue);
    assert_eq!(rig.serializer.ready(queue.id()), Handler::Keep);
    assert_eq!(rig.serializer.statistics().grants, 1);
    rig.serializer.release_all();
    rig.serializer.complete(ticket).unwrap();
    let mut watch = rig
        .serializer
        .watch_stalls(Duration::from_millis(1), StallPolicy::Release);
    assert_eq!(watch.check_stalls(Duration::ZERO), []);
    assert_eq!(watch.check_stalls(Duration::from_secs(1)), []);
    assert_eq!(rig.serializer.statistics().overtaken, 0);
}

// A long kernel by itself holds back nobody, and what comes next would only run beside it.
#[test]
fn a_holder_that_nobody_waits_for_is_named_and_left_alone() {
    let rig = rig();
    let add = || rig.serializer.add_queue().unwrap();
    let (mut holder, mut other) = (add(), add());
    rig.serializer.enable().unwrap();
    let first = rig.reach(&mut holder);
    assert_eq!(rig.serializer.ready(holder.id()), Handler::Keep);
    let mut watch = rig
        .serializer
        .watch_stalls(Duration::from_millis(1), StallPolicy::Release);
    assert_eq!(watch.check_stalls(Duration::ZERO), []);
    let stalls = watch.check_stalls(Duration::from_secs(1));
    assert!(
        matches!(&stalls[..], [stall] if !stall.released),
        "{stalls:?}"
    );
    // As soon as somebody does wait, it is overtaken.
    let second = rig.reach(&mut other);
    assert_eq!(rig.serializer.ready(other.id()), Handler::Keep);
    let stalls = watch.check_stalls(Duration::from_secs(2));
    assert!(stalls.iter().any(|stall| stall.released), "{stalls:?}");
    assert_eq!(rig.serializer.statistics().overtaken, 1);
    for ticket in [first, second] {
        rig.serializer.complete(ticket).unwrap();
    }
}

// A report is a call of the runtime, and is not made pinned.
#[test]
fn the_end_waits_for_a_report_that_is_being_delivered() {
    let rig = rig();
    let (tell, told) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let gone = Mutex::new(Some(gone));
    let hook = move || {
        // The first report alone is held up.
        let gone = gone.lock().unwrap().take();
        if let Some(gone) = gone {
            let _ = tell.send(());
            let _ = gone.recv_timeout(Duration::from_secs(20));
        }
    };
    assert!(rig.at_report.set(Box::new(hook)).is_ok());
    let serializer = rig.serializer.clone();
    let reports = thread::spawn(move || {
        let foreign = Ticket::from_raw([0, 0]);
        serializer.complete(foreign).unwrap_err().ticket.abandon();
    });
    told.recv_timeout(Duration::from_secs(20)).unwrap();
    let ended = rig.serializer.finish_shutdown(Duration::from_millis(200));
    let Err(ShutdownError::TimedOut(remaining)) = ended else {
        panic!("{ended:?} while a report is delivered");
    };
    assert!(remaining.calls > 0, "{remaining}");
    drop(go);
    reports.join().unwrap();
    rig.serializer
        .finish_shutdown(Duration::from_secs(20))
        .unwrap();
}

// In the child of a fork, and where the runtime is gone, nothing completes any more.
#[test]
fn a_drain_does_not_wait_for_what_was_left() {
    let rig = rig();
    let mut queue = rig.serializer.add_queue().unwrap();
    let in_flight = dispatch(&mut queue).unwrap();
    rig.serializer.enable().unwrap();
    rig.serializer.leave();
    let begun = Instant::now();
    let drained = rig.serializer.drain(Duration::from_secs(5));
    assert_eq!(drained, Err(DrainError::Left));
    assert!(begun.elapsed() < Duration::from_secs(2));
    in_flight.abandon();
}

// As the stages say; a kernel behind gates that nobody opens would hang the application.
#[test]
fn what_was_left_serializes_nothing() {
    let rig = rig();
    let mut queue = rig.serializer.add_queue().unwrap();
    rig.serializer.enable().unwrap();
    rig.serializer.leave();
    let dispatched = dispatch(&mut queue).map(Ticket::abandon);
    assert_eq!(dispatched, Err(DispatchError::ShutDown));
}

// A barrier that has gone since it was found to stall leaves nothing to be forced; least of all the newer
// ones, which nobody has looked at.
#[test]
fn forcing_a_barrier_that_has_gone_forces_no_newer_one() {
    // Every 128th pin of a thread looks for what others have deferred, and the second look runs it. It
    // is to be the pin of the release.
    let went = (0..300).any(force_one_that_goes);
    assert!(went, "the barrier never went in time");
}

/// Whether the barrier went between the look and the release.
fn force_one_that_goes(pins: usize) -> bool {
    let domain = Domain::new();
    let rig = rig_in(domain.clone());
    let add = || rig.serializer.add_queue().unwrap();
    let mut queues = [add(), add(), add()];
    let first = dispatch(&mut queues[0]).unwrap();
    let (id, held) = (queues[0].id(), queues[2].id());
    rig.serializer.enable().unwrap();
    dispatch(&mut queues[2]).unwrap().abandon();
    let (_holds, other) = defer_a_destruction(domain);
    let (of, moved) = (rig.serializer.clone(), Mutex::new(Some((first, queues))));
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let goes = move || {
        let Some((first, mut queues)) = moved.lock().unwrap().take() else {
            return;
        };
        let of = of.clone();
        let events = thread::spawn(move || {
            // The first barrier clears and goes, as does the queue that it held back; the second one
            // waits for what was dispatched since.
            of.complete(first).map(|_| ()).unwrap();
            of.queue_destroyed(held).unwrap();
            let second = dispatch(&mut queues[1]).unwrap();
            of.disable().unwrap();
            (second, queues)
        });
        *keep.lock().unwrap() = Some(events.join().unwrap());
    };
    assert!(other.at_destroy.set(Box::new(goes)).is_ok());
    for _ in 0..pins {
        assert_eq!(rig.serializer.ready(id), Handler::Keep);
    }
    let mut watch = rig
        .serializer
        .watch_stalls(Duration::ZERO, StallPolicy::Release);
    let stalls = watch.check_stalls(Duration::ZERO);
    let went = kept.lock().unwrap().take();
    let [stall] = &stalls[..] else {
        panic!("{stalls:?}");
    };
    let hit = went.is_some() && matches!(stall.what, Stalled::Barrier { epoch: 1, .. });
    if hit {
        assert!(!stall.released, "{stall}");
        assert_eq!(rig.serializer.statistics().forced, 0);
    }
    if let Some((second, _queues)) = went {
        rig.serializer.complete(second).unwrap();
    }
    hit
}

/// Has something of the second one deferred that was not run yet, since a thread was pinned. A last handle
/// that goes would run it.
fn defer_a_destruction(domain: Domain) -> (Rig, Rig) {
    let (holds, other) = (rig_in(domain.clone()), rig_in(domain));
    let mut queue = holds.serializer.add_queue().unwrap();
    holds.serializer.enable().unwrap();
    let ticket = holds.reach(&mut queue);
    let (tell, told) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let hook = move |_, _| {
        // Whoever stores is pinned.
        let _ = tell.send(());
        let _ = released
            .lock()
            .unwrap()
            .recv_timeout(Duration::from_secs(20));
    };
    assert!(holds.after_store.set(Box::new(hook)).is_ok());
    let (serializer, id) = (holds.serializer.clone(), queue.id());
    let pinned = thread::spawn(move || {
        assert_eq!(serializer.ready(id), Handler::Keep);
    });
    told.recv_timeout(Duration::from_secs(20)).unwrap();
    let gone = other.serializer.add_queue().unwrap();
    other.serializer.queue_destroyed(gone.id()).unwrap();
    drop(release);
    pinned.join().unwrap();
    ticket.abandon();
    (holds, other)
}

// The emulated GPU's own: a queue's packets can't execute any more once it has faulted, and the host may
// destroy the signals that they name, also while the queue is being destroyed.
#[test]
fn a_queue_that_faults_while_it_is_destroyed_has_no_stale_packet() {
    let gpu = ThreadedGpu::new(Config::default());
    let signals = gpu.signals();
    for n in 0..3_000 {
        let waits = signals.create(1, SignalUse::GpuOnly).unwrap();
        let pool = signals.clone();
        let queue = QueueConfig {
            on_error: Some(Box::new(move |_, _| pool.destroy(waits).unwrap())),
            ..QueueConfig::default()
        };
        let queue = gpu.create_queue(gpu.agent(0), queue).unwrap();
        let fault = Kernel::lasting(0).ends(Ends::Fault).packet();
        let never = Kernel::lasting(0).completion(waits).barrier().packet();
        queue.submit(&[fault, never, never, never]).unwrap();
        for _ in 0..n % 300 {
            std::hint::spin_loop();
        }
        gpu.destroy_queue(&queue).unwrap();
        // Where it faulted first, its callback is called.
        gpu.wait_idle(Duration::from_secs(20)).unwrap();
        if signals.is_alive(waits) {
            signals.destroy(waits).unwrap();
        }
    }
    gpu.witness().assert_clean();
    gpu.finish();
}

// Though the runtime does not know the thread for its own.
#[test]
fn s42_whoever_is_inside_of_a_handlers_call_is_not_let_wait() {
    let rig = rig_in(Domain::new());
    let mut queue = rig.serializer.add_queue().unwrap();
    rig.serializer.enable().unwrap();
    let ticket = rig.reach(&mut queue);
    let answers = Arc::new(Mutex::new(Vec::new()));
    let (of, all) = (rig.serializer.downgrade(), answers.clone());
    let hook = move |_, _| {
        let of = of.upgrade().expect("alive");
        all.lock().unwrap().push(of.drain(Duration::ZERO));
    };
    assert!(rig.after_store.set(Box::new(hook)).is_ok());
    assert_eq!(rig.serializer.ready(queue.id()), Handler::Keep);
    let answers = std::mem::take(&mut *answers.lock().unwrap());
    assert!(!answers.is_empty(), "the grant is a store");
    assert!(
        answers
            .iter()
            .all(|a| *a == Err(DrainError::OnHandlerThread))
    );
    rig.serializer.release_all();
    ticket.abandon();
}
