//! A serializer and a runtime that do what the real ones do, and let a scenario look in and step in
//! between.

use harness::{BoxError, Counters, Dispatched, Serializing, SoftRuntime};
use hsa_serializer::{
    Handler, Queue as Half, QueueId, Report, Runtime, Serializer, SignalKind, Ticket,
};
use hsa_sys::{AqlPacket, hsa_signal_t, hsa_signal_value_t, hsa_status_t};
use softgpu::SignalPool;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};
use std::thread::{self, ThreadId};

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

/// The runtime of a scenario.
pub(crate) struct Spy {
    inner: SoftRuntime,
    /// The `block` signal that each thread created last: a queue's `ready` handler comes after it.
    blocks: Mutex<HashMap<ThreadId, hsa_signal_t>>,
    seats: Mutex<HashMap<QueueId, (hsa_signal_t, hsa_signal_t)>>,
    on_write: RwLock<Option<OnWrite>>,
}

impl Spy {
    pub(crate) fn new(inner: SoftRuntime) -> Self {
        Self {
            inner,
            blocks: Mutex::default(),
            seats: Mutex::default(),
            on_write: RwLock::default(),
        }
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
        let signal = self.inner.create_signal(kind, initial)?;
        if kind == SignalKind::Block {
            let mut blocks = self.blocks.lock().unwrap();
            blocks.insert(thread::current().id(), signal);
        }
        Ok(signal)
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        self.inner.destroy_signal(signal)
    }

    fn store(&self, signal: hsa_signal_t, value: hsa_signal_value_t) {
        self.writes(signal, value);
        self.inner.store(signal, value);
    }

    fn compare_exchange(
        &self,
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        desired: hsa_signal_value_t,
    ) -> hsa_signal_value_t {
        self.writes(signal, desired);
        self.inner.compare_exchange(signal, expected, desired)
    }

    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        let block = self.blocks.lock().unwrap()[&thread::current().id()];
        self.seats.lock().unwrap().insert(queue, (ready, block));
        self.inner.watch_ready(ready, queue)
    }

    fn report(&self, report: Report) {
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
    hook: RwLock<Option<Hook>>,
    last: Mutex<Option<[u64; 2]>>,
}

impl Hooked {
    pub(crate) fn new(inner: Serializer<Spy>) -> Self {
        Self {
            inner,
            hook: RwLock::default(),
            last: Mutex::default(),
        }
    }

    pub(crate) fn inner(&self) -> &Serializer<Spy> {
        &self.inner
    }

    /// The ticket that was completed last.
    pub(crate) fn last_completed(&self) -> Option<[u64; 2]> {
        *self.last.lock().unwrap()
    }

    /// Called within every dispatch.
    pub(crate) fn on_dispatch(&self, hook: impl Fn(Moment, QueueId) + Send + Sync + 'static) {
        *self.hook.write().unwrap() = Some(Arc::new(hook));
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
        self.at(Moment::Entered, queue.id());
        let dispatched = self.inner.dispatch(queue, packets);
        self.at(Moment::Counted, queue.id());
        dispatched
    }

    fn complete(&self, ticket: Ticket) {
        let raw = ticket.into_raw();
        *self.last.lock().unwrap() = Some(raw);
        Serializing::complete(&self.inner, Ticket::from_raw(raw));
    }

    fn abandon(&self, ticket: Ticket) {
        self.inner.abandon(ticket);
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
