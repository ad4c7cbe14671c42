//! A program in which one queue holds up another.
#![allow(dead_code, reason = "each test target uses its own part")]

use hsa_serializer::doc_runtime;
use hsa_serializer::{
    AqlPacket, Handler, MAX_PACKETS, Observer, Queue, QueueId, Report, Runtime, Serializer,
    SignalKind, Ticket, hsa_signal_t, hsa_status_t,
};
use hsa_serializer_inspect::Traced;
use std::sync::Mutex;
use std::time::{Duration, Instant};

type OnNow = Box<dyn Fn() + Send + Sync>;

/// Plain integers, with an observer for `tracing`.
pub(crate) struct Host {
    pub(crate) inner: doc_runtime::Host,
    traced: Traced,
    began: Instant,
    on_now: Mutex<Option<OnNow>>,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            inner: doc_runtime::Host::default(),
            traced: Traced::new(0xa001),
            began: Instant::now(),
            on_now: Mutex::default(),
        }
    }
}

impl Host {
    /// Called once, when somebody looks at the clock next: who turns it on or off does so under the lock.
    pub(crate) fn on_now(&self, hook: impl Fn() + Send + Sync + 'static) {
        *self.on_now.lock().unwrap() = Some(Box::new(hook));
    }
}

impl Runtime for Host {
    fn create_signal(&self, kind: SignalKind, initial: i64) -> Result<hsa_signal_t, hsa_status_t> {
        self.inner.create_signal(kind, initial)
    }

    fn destroy_signal(&self, signal: hsa_signal_t) -> Result<(), hsa_status_t> {
        self.inner.destroy_signal(signal)
    }

    fn store(&self, signal: hsa_signal_t, value: i64) {
        self.inner.store(signal, value);
    }

    fn compare_exchange(&self, signal: hsa_signal_t, expected: i64, desired: i64) -> i64 {
        self.inner.compare_exchange(signal, expected, desired)
    }

    fn watch_ready(&self, ready: hsa_signal_t, queue: QueueId) -> Result<(), hsa_status_t> {
        self.inner.watch_ready(ready, queue)
    }

    fn now(&self) -> Duration {
        let hook = self.on_now.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
        self.began.elapsed()
    }

    fn observer(&self) -> Option<&dyn Observer> {
        Some(&self.traced)
    }

    fn report(&self, report: Report) {
        self.inner.report(report);
    }
}

/// Queue 0 has its turn, and queue 1 waits for it.
pub(crate) struct Held {
    pub(crate) serializer: Serializer<Host>,
    queues: Vec<(Queue<Host>, Ticket)>,
}

impl Held {
    pub(crate) fn new() -> Self {
        let builder = Serializer::<Host>::builder().agent(0xa001);
        let serializer = builder.build(Host::default());
        serializer.enable().unwrap();
        let queues = (0..2).map(|_| {
            let mut queue = serializer.add_queue().unwrap();
            let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
            let dispatch = queue.dispatch(&mut packets).unwrap();
            let host = &serializer.runtime().inner;
            host.decrement(host.ready_signal(queue.id()).unwrap());
            assert_eq!(serializer.ready(queue.id()), Handler::Keep);
            (queue, dispatch.ticket)
        });
        let queues = queues.collect();
        Self { serializer, queues }
    }

    pub(crate) fn end(self) {
        for (queue, ticket) in self.queues {
            ticket.abandon();
            let id = queue.id();
            drop(queue);
            self.serializer.queue_destroyed(id).unwrap();
            let _ = self.serializer.ready(id);
        }
    }
}
