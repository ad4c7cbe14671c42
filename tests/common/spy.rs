//! A serializer and a runtime that do what the real ones do, and let a scenario look in and step in
//! between.

use harness::{BoxError, Counters, Dispatched, Serializing, SoftRuntime};
use hsa_serializer::{
    Domain, GapError, Handler, MAX_PACKETS, OnMisuse, Queue as Half, QueueId, Report, Runtime,
    Serializer, SignalKind, Ticket,
};
use hsa_sys::{AqlPacket, SignalCondition, hsa_signal_t, hsa_signal_value_t, hsa_status_t};
use softgpu::SignalPool;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// What a queue is doing, by its two signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Seat {
    Idle,
    /// Its `ready` packet has executed and the handler was not called yet.
    Reached,
    Waiting,
    Granted,
    /// Its `block` packet has executed.
    Running,
}

type OnWrite = Arc<dyn Fn(hsa_signal_t, hsa_signal_value_t) + Send + Sync>;
type OnCreate = Arc<dyn Fn(SignalKind) + Send + Sync>;
type OnReport = Arc<dyn Fn(Report) + Send + Sync>;

/// What the emulated GPU's handler threads are called.
const HANDLERS: &str = "handlers-";

/// Whether the calling thread is one of the emulated GPU's that call handlers.
pub(crate) fn is_handler_thread() -> bool {
    let thread = thread::current();
    thread.name().is_some_and(|name| name.starts_with(HANDLERS))
}

/// The runtime of a scenario.
pub(crate) struct Spy {
    inner: SoftRuntime,
    /// The `block` signal that each thread created last: a queue's `ready` handler comes after it.
    blocks: Mutex<HashMap<ThreadId, hsa_signal_t>>,
    seats: Mutex<HashMap<QueueId, (hsa_signal_t, hsa_signal_t)>>,
    on_write: RwLock<Option<OnWrite>>,
    on_create: RwLock<Option<OnCreate>>,
    on_report: RwLock<Option<OnReport>>,
    record: Arc<Record>,
}

/// What was called of the runtime. It outlives the serializer.
#[derive(Default)]
pub(crate) struct Record {
    ended: AtomicBool,
    late: Mutex<Vec<&'static str>>,
}

impl Record {
    /// From here on nothing may be called any more.
    pub(crate) fn ends(&self) {
        self.ended.store(true, SeqCst);
    }

    /// What was called all the same.
    pub(crate) fn late(&self) -> Vec<&'static str> {
        self.late.lock().unwrap().clone()
    }

    fn called(&self, function: &'static str) {
        if self.ended.load(SeqCst) {
            self.late.lock().unwrap().push(function);
        }
    }
}

impl Spy {
    pub(crate) fn new(inner: SoftRuntime) -> Self {
        Self {
            inner,
            blocks: Mutex::default(),
            seats: Mutex::default(),
            on_write: RwLock::default(),
            on_create: RwLock::default(),
            on_report: RwLock::default(),
            record: Arc::default(),
        }
    }

    pub(crate) fn signals(&self) -> &SignalPool {
        self.inner.signals()
    }

    pub(crate) fn record(&self) -> &Arc<Record> {
        &self.record
    }

    /// The `ready` and `block` signals of a queue.
    pub(crate) fn seat_signals(&self, queue: QueueId) -> (hsa_signal_t, hsa_signal_t) {
        self.seats.lock().unwrap()[&queue]
    }

    pub(crate) fn seat(&self, signals: &SignalPool, queue: QueueId) -> Seat {
        let (ready, block) = self.seat_signals(queue);
        match (signals.load(ready), signals.load(block)) {
            (0, _) => Seat::Idle,
            (-1, _) => Seat::Reached,
            (_, 0) => Seat::Granted,
            (_, -1) => Seat::Running,
            _ => Seat::Waiting,
        }
    }

    /// Called in front of every store and compare-exchange with the value to be stored, on the
    /// thread that stores.
    pub(crate) fn on_write(
        &self,
        hook: impl Fn(hsa_signal_t, hsa_signal_value_t) + Send + Sync + 'static,
    ) {
        *self.on_write.write().unwrap() = Some(Arc::new(hook));
    }

    /// Called in front of every creation.
    pub(crate) fn on_create(&self, hook: impl Fn(SignalKind) + Send + Sync + 'static) {
        *self.on_create.write().unwrap() = Some(Arc::new(hook));
    }

    /// Called with every report.
    pub(crate) fn on_report(&self, hook: impl Fn(Report) + Send + Sync + 'static) {
        *self.on_report.write().unwrap() = Some(Arc::new(hook));
    }

    fn writes(&self, signal: hsa_signal_t, value: hsa_signal_value_t) {
        let hook = self.on_write.read().unwrap().clone();
        if let Some(hook) = hook {
            hook(signal, value);
        }
    }
}

impl Runtime for Spy {
    fn create_signal(
        &self,
        kind: SignalKind,
        initial: hsa_signal_value_t,
    ) -> Result<hsa_signal_t, hsa_status_t> {
        self.record.called("create");
        let hook = self.on_create.read().unwrap().clone();
        if let Some(hook) = hook {
            hook(kind);
        }
        let signal = self.inner.create_signal(kind, initial)?;
        if kind == SignalKind::Block {
            let mut blocks = self.blocks.lock().unwrap();
            blocks.insert(thread::current().id(), signal);
        }
        Ok(signal)
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        self.record.called("destroy");
        self.inner.destroy_signal(signal)
    }

    fn store(&self, signal: hsa_signal_t, value: hsa_signal_value_t) {
        self.record.called("store");
        self.writes(signal, value);
        self.inner.store(signal, value);
    }

    fn compare_exchange(
        &self,
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        desired: hsa_signal_value_t,
    ) -> hsa_signal_value_t {
        self.record.called("compare-exchange");
        self.writes(signal, desired);
        self.inner.compare_exchange(signal, expected, desired)
    }

    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        self.record.called("watch");
        let block = self.blocks.lock().unwrap()[&thread::current().id()];
        self.seats.lock().unwrap().insert(queue, (ready, block));
        self.inner.watch_ready(ready, queue)
    }

    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn is_handler_thread(&self) -> bool {
        is_handler_thread()
    }

    fn report(&self, report: Report) {
        self.record.called("report");
        let hook = self.on_report.read().unwrap().clone();
        if let Some(hook) = hook {
            hook(report);
        }
        self.inner.report(report);
    }
}

/// Where in an interceptor a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Nothing was counted yet.
    Entered,
    /// The kernel is counted; its packets are not written yet.
    Counted,
}

type Hook = Arc<dyn Fn(Moment, QueueId) + Send + Sync>;

/// The serializer of a scenario.
pub(crate) struct Hooked {
    inner: Serializer<Spy>,
    domain: Domain,
    hook: RwLock<Option<Hook>>,
    last: Mutex<Option<[u64; 2]>>,
    /// Tickets that were given out and not handed back.
    under_way: Mutex<HashSet<[u64; 2]>>,
    gaps: Mutex<HashMap<QueueId, hsa_signal_t>>,
    gap_outcomes: Mutex<Vec<Result<usize, GapError>>>,
}

impl Hooked {
    pub(crate) fn new(runtime: Spy, on_misuse: OnMisuse) -> Self {
        let domain = Domain::new();
        let builder = Serializer::<Spy>::builder().domain(domain.clone());
        Self {
            inner: builder.on_misuse(on_misuse).build(runtime),
            domain,
            hook: RwLock::default(),
            last: Mutex::default(),
            under_way: Mutex::default(),
            gaps: Mutex::default(),
            gap_outcomes: Mutex::default(),
        }
    }

    pub(crate) fn inner(&self) -> &Serializer<Spy> {
        &self.inner
    }

    pub(crate) fn spy(&self) -> &Spy {
        self.inner.runtime()
    }

    pub(crate) fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The ticket that was completed last.
    pub(crate) fn last_completed(&self) -> Option<[u64; 2]> {
        *self.last.lock().unwrap()
    }

    /// Tickets, in raw form, that were given out and not handed back.
    pub(crate) fn under_way(&self) -> HashSet<[u64; 2]> {
        self.under_way.lock().unwrap().clone()
    }

    /// How many kernels of each queue are under way; queues without any are left out.
    pub(crate) fn in_flight(&self) -> Vec<(QueueId, u64)> {
        let mut all = HashMap::<QueueId, u64>::new();
        for raw in self.under_way.lock().unwrap().iter() {
            *all.entry(QueueId::from_raw(raw[0])).or_default() += 1;
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by_key(|(id, _)| id.to_raw());
        all
    }

    /// Called within every dispatch.
    pub(crate) fn on_dispatch(&self, hook: impl Fn(Moment, QueueId) + Send + Sync + 'static) {
        *self.hook.write().unwrap() = Some(Arc::new(hook));
    }

    /// The next dispatch of that queue has a gap in front of it, whose marker completes `done`.
    pub(crate) fn gap_next(&self, queue: QueueId, done: hsa_signal_t) {
        self.gaps.lock().unwrap().insert(queue, done);
    }

    /// What became of each gap: how many packets it took.
    pub(crate) fn gap_outcomes(&self) -> Vec<Result<usize, GapError>> {
        self.gap_outcomes.lock().unwrap().clone()
    }

    /// Marks a gap now, and listens for its marker.
    pub(crate) fn gap(
        &self,
        queue: &mut Half<Spy>,
        done: hsa_signal_t,
    ) -> Result<Vec<AqlPacket>, GapError> {
        let mut packets = vec![AqlPacket::INVALID; MAX_PACKETS];
        let marker = queue.gap(&mut packets)?;
        packets.truncate(marker.packets);
        let last = packets.last_mut().unwrap();
        *last = last.with_completion_signal(done);
        let raw = marker.ticket.into_raw();
        let weak = self.inner.downgrade();
        let completes = move |_| {
            if let Some(serializer) = weak.upgrade() {
                serializer.complete(Ticket::from_raw(raw)).unwrap();
            }
            false
        };
        let signals = self.spy().signals();
        signals
            .on_signal(done, SignalCondition::Lt, 1, Box::new(completes))
            .unwrap();
        Ok(packets)
    }

    fn at(&self, moment: Moment, queue: QueueId) {
        let hook = self.hook.read().unwrap().clone();
        if let Some(hook) = hook {
            hook(moment, queue);
        }
    }
}

impl Serializing for Hooked {
    type Queue = Half<Spy>;
    type Ticket = Ticket;

    fn add_queue(&self) -> Result<Half<Spy>, BoxError> {
        Serializing::add_queue(&self.inner)
    }

    fn id(queue: &Half<Spy>) -> QueueId {
        queue.id()
    }

    fn dispatch(
        &self,
        queue: &mut Half<Spy>,
        packets: &mut Vec<AqlPacket>,
    ) -> Option<Dispatched<Ticket>> {
        let gap = self.gaps.lock().unwrap().remove(&queue.id());
        if let Some(done) = gap {
            let marked = self.gap(queue, done);
            let outcome = marked.as_ref().map(Vec::len).map_err(|e| *e);
            self.gap_outcomes.lock().unwrap().push(outcome);
            packets.extend(marked.unwrap_or_default());
        }
        self.at(Moment::Entered, queue.id());
        let dispatched = self.inner.dispatch(queue, packets).map(|dispatched| {
            let raw = dispatched.ticket.into_raw();
            self.under_way.lock().unwrap().insert(raw);
            Dispatched {
                ticket: Ticket::from_raw(raw),
                ..dispatched
            }
        });
        self.at(Moment::Counted, queue.id());
        dispatched
    }

    fn complete(&self, ticket: Ticket) {
        let raw = ticket.into_raw();
        *self.last.lock().unwrap() = Some(raw);
        self.under_way.lock().unwrap().remove(&raw);
        Serializing::complete(&self.inner, Ticket::from_raw(raw));
    }

    fn abandon(&self, ticket: Ticket) {
        let raw = ticket.into_raw();
        self.under_way.lock().unwrap().remove(&raw);
    }

    fn ready(&self, queue: QueueId) -> Handler {
        self.inner.ready(queue)
    }

    fn enable(&self) -> Result<bool, BoxError> {
        Serializing::enable(&self.inner)
    }

    fn disable(&self) -> Result<bool, BoxError> {
        Serializing::disable(&self.inner)
    }

    fn queue_destroyed(&self, queue: QueueId) {
        Serializing::queue_destroyed(&self.inner, queue);
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }
}
