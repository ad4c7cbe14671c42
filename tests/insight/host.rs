//! A runtime of plain integers that keeps what it is told, whose clock the test turns, and whose calls the
//! test can step into.

use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{
    Domain, Event, Observer, QueueId, Report, Runtime, Serializer, SignalKind, hsa_signal_t,
    hsa_status_t,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::Duration;

type Hook<T> = RwLock<Option<Arc<dyn Fn(T) + Send + Sync>>>;

/// The runtime. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Rig(Arc<Inner>);

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) host: Host,
    /// Nanoseconds.
    clock: AtomicU64,
    events: Mutex<Vec<Event>>,
    is_watched: AtomicBool,
    on_create: Hook<SignalKind>,
    on_store: Hook<hsa_signal_t>,
    on_event: Hook<Event>,
}

fn call<T>(hook: &Hook<T>, with: T) {
    let hook = hook.read().unwrap().clone();
    if let Some(hook) = hook {
        hook(with);
    }
}

impl Rig {
    pub(crate) fn host(&self) -> &Host {
        &self.0.host
    }

    /// From here on events are kept.
    pub(crate) fn watch(&self) {
        self.0.is_watched.store(true, SeqCst);
    }

    /// What has happened since it was asked last.
    pub(crate) fn events(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.events.lock().unwrap())
    }

    /// Time passes.
    pub(crate) fn pass(&self, time: Duration) {
        self.0.clock.fetch_add(time.as_nanos() as u64, SeqCst);
    }

    /// Called in front of every creation.
    pub(crate) fn on_create(&self, hook: impl Fn(SignalKind) + Send + Sync + 'static) {
        *self.0.on_create.write().unwrap() = Some(Arc::new(hook));
    }

    /// Called in front of every store.
    pub(crate) fn on_store(&self, hook: impl Fn(hsa_signal_t) + Send + Sync + 'static) {
        *self.0.on_store.write().unwrap() = Some(Arc::new(hook));
    }

    /// Called with every event, after it was kept.
    pub(crate) fn on_event(&self, hook: impl Fn(Event) + Send + Sync + 'static) {
        *self.0.on_event.write().unwrap() = Some(Arc::new(hook));
    }

    /// No hooks any more.
    pub(crate) fn let_go(&self) {
        *self.0.on_create.write().unwrap() = None;
        *self.0.on_store.write().unwrap() = None;
        *self.0.on_event.write().unwrap() = None;
    }

    /// Every signal that was created was destroyed, and nobody has the runtime any more.
    pub(crate) fn is_left_by_all(&self) {
        assert_eq!(self.host().live_signals(), 0, "signals were left");
        assert_eq!(self.host().reports(), []);
        assert_eq!(Arc::strong_count(&self.0), 1, "the serializer was left");
    }
}

/// A serializer in a domain of its own.
pub(crate) fn serializer(rig: &Rig) -> Serializer<Rig> {
    Serializer::<Rig>::builder()
        .domain(Domain::new())
        .build(rig.clone())
}

impl Observer for Inner {
    fn event(&self, event: Event) {
        self.events.lock().unwrap().push(event);
        call(&self.on_event, event);
    }
}

impl Runtime for Rig {
    fn create_signal(&self, kind: SignalKind, initial: i64) -> Result<hsa_signal_t, hsa_status_t> {
        call(&self.0.on_create, kind);
        self.host().create_signal(kind, initial)
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        self.host().destroy_signal(signal)
    }

    fn store(&self, signal: hsa_signal_t, value: i64) {
        call(&self.0.on_store, signal);
        self.host().store(signal, value);
    }

    fn compare_exchange(&self, signal: hsa_signal_t, expected: i64, desired: i64) -> i64 {
        self.host().compare_exchange(signal, expected, desired)
    }

    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        self.host().watch_ready(ready, queue)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.clock.load(SeqCst))
    }

    fn observer(&self) -> Option<&dyn Observer> {
        self.0.is_watched.load(SeqCst).then_some(&*self.0)
    }

    fn report(&self, report: Report) {
        self.host().report(report);
    }
}

/// A place where threads stop: what they call there, what says that one has come, and what lets one go.
pub(crate) fn halt() -> (impl Fn() + Send + Sync + 'static, Receiver<()>, Sender<()>) {
    let (come, has_come) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let ends = Mutex::new((come, may_go));
    let stop = move || {
        let ends = ends.lock().unwrap();
        ends.0.send(()).unwrap();
        ends.1.recv().unwrap();
    };
    (stop, has_come, go)
}

/// Runs it on a thread, and fails where it has not returned in time.
pub(crate) fn in_time<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || done.send(run()));
    is_done
        .recv_timeout(Duration::from_secs(60))
        .expect("it returns in time, and does not panic")
}
