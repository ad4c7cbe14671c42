//! What the profiler calls: the serializer of the moment, its predecessors for what they have counted,
//! and the queues that are handed on from one to the next with whatever is in them.

use crate::lock;
use crate::records::{Counted, Record, Records};
use crate::reign::{Attached, Reign};
use crate::runtime::Watched;
use crate::tally::Tally;
use harness::{BoxError, Counters, Dispatched, Serializing};
use hsa_serializer::{
    AddQueueError, DispatchError, Domain, GapError, Handler, MAX_PACKETS, Mode, Queue, QueueId,
    Serializer, Ticket,
};
use hsa_sys::{AqlPacket, SignalCondition, hsa_signal_t};
use softgpu::{Gpu, SignalKind};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

/// How a reign ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// `begin_shutdown`: what is queued goes on.
    Close,
    /// `release_all`: what is queued goes all at once.
    Kill,
}

thread_local! {
    /// Ending a reign turns serialization off: it is what the next `disable` of this thread does.
    static NEXT_DISABLE: std::cell::Cell<Option<Ending>> = const { std::cell::Cell::new(None) };
}

/// The half of a queue that its interceptor has.
pub(crate) struct Half {
    slot: Arc<Slot>,
}

/// A queue of the machine, with what it is to one serializer after another.
pub(crate) struct Slot {
    key: QueueId,
    /// Its name on the machine; set before its first kernel.
    pub(crate) queue: OnceLock<softgpu::QueueId>,
    /// The numbers of the kernels that are about to be intercepted; guards the submission.
    pub(crate) submitting: Mutex<()>,
    pub(crate) upcoming: Mutex<VecDeque<u32>>,
    /// It holds work that no serializer has counted.
    pub(crate) unseen: AtomicBool,
    pub(crate) gone: Arc<AtomicBool>,
    seat: Mutex<Seat>,
}

#[derive(Default)]
struct Seat {
    now: Option<(Arc<Reign>, Queue<Watched>)>,
    /// All that it was added to and that may still know it.
    all: Vec<(Arc<Reign>, QueueId)>,
    markers: Vec<Arc<Marker>>,
    gone: bool,
}

impl Slot {
    /// Its name to the serializer that knows it now.
    pub(crate) fn id(&self) -> Option<QueueId> {
        lock(&self.seat).now.as_ref().map(|(_, queue)| queue.id())
    }

    /// Whoever has finished knows it no longer.
    fn forget(&self, reign: u32) {
        let mut seat = lock(&self.seat);
        seat.all.retain(|(of, _)| of.number != reign);
        let old = seat.now.take_if(|(of, _)| of.number == reign);
        drop(seat);
        drop(old);
    }
}

/// A packet that stands for work that was not seen.
struct Marker {
    signal: hsa_signal_t,
    ticket: Mutex<Option<(Arc<Reign>, Ticket)>>,
}

/// A kernel under way.
pub(crate) struct Held {
    reign: Arc<Reign>,
    ticket: Ticket,
    kernel: u32,
}

/// See the [module](self).
pub(crate) struct Succession {
    pub(crate) gpu: Gpu,
    pub(crate) domain: Domain,
    current: Mutex<Arc<Reign>>,
    /// Those that have ended and are not finished.
    pub(crate) old: Mutex<Vec<Arc<Reign>>>,
    /// Every reign's log, in order.
    pub(crate) logs: Mutex<Vec<Arc<Mutex<crate::reign::Log>>>>,
    slots: Mutex<HashMap<QueueId, Arc<Slot>>>,
    pub(crate) records: Records,
    pub(crate) tally: Tally,
    pub(crate) end_in_interceptor: AtomicBool,
    ending: Mutex<()>,
    pub(crate) failures: Mutex<Vec<String>>,
}

impl Succession {
    pub(crate) fn new(gpu: &Gpu, domain: Domain) -> Self {
        let first = Arc::new(Reign::new(0, gpu, domain.clone()));
        Self {
            gpu: gpu.clone(),
            domain,
            logs: Mutex::new(vec![first.log.clone()]),
            current: Mutex::new(first),
            old: Mutex::default(),
            slots: Mutex::default(),
            records: Records::default(),
            tally: Tally::default(),
            end_in_interceptor: AtomicBool::new(false),
            ending: Mutex::new(()),
            failures: Mutex::default(),
        }
    }

    pub(crate) fn fail(&self, what: impl Into<String>) {
        lock(&self.failures).push(what.into());
    }

    pub(crate) fn current(&self) -> Arc<Reign> {
        lock(&self.current).clone()
    }

    /// The one of the moment, and those that are not finished.
    pub(crate) fn living(&self) -> Vec<Arc<Reign>> {
        let mut all = lock(&self.old).clone();
        all.push(self.current());
        all
    }

    pub(crate) fn slot(&self, key: QueueId) -> Option<Arc<Slot>> {
        lock(&self.slots).get(&key).cloned()
    }

    /// This reign has finished: no queue refers to it any more.
    pub(crate) fn forget(&self, reign: &Reign) {
        lock(&self.old).retain(|old| old.number != reign.number);
        let slots: Vec<_> = lock(&self.slots).values().cloned().collect();
        slots.iter().for_each(|slot| slot.forget(reign.number));
    }

    /// Makes the next [`disable`](Serializing::disable) of this thread an ending.
    pub(crate) fn end_at_disable(how: Ending) {
        NEXT_DISABLE.set(Some(how));
    }

    /// The same, past the profiler: others may toggle meanwhile.
    pub(crate) fn end_now(&self, how: Ending) {
        let (witness, agent) = (self.gpu.witness(), self.gpu.agent(0));
        witness.disable_begin(agent);
        self.end(how);
        witness.disable_end(agent);
    }

    /// Ends the reign of the moment and lets a fresh one begin.
    fn end(&self, how: Ending) {
        let _one_at_a_time = lock(&self.ending);
        let old = self.current();
        let now = self.gpu.now();
        let mut log = lock(&old.log);
        log.ends = Some(now);
        log.killed = (how == Ending::Kill).then_some(now);
        drop(log);
        match how {
            Ending::Close => old.serializer.begin_shutdown(),
            Ending::Kill => old.serializer.release_all(),
        }
        let fresh = Reign::new(old.number + 1, &self.gpu, self.domain.clone());
        lock(&self.logs).push(fresh.log.clone());
        lock(&self.old).push(old);
        *lock(&self.current) = Arc::new(fresh);
    }

    /// A kernel was passed on as it was.
    pub(crate) fn passed_on(&self, kernel: u32, begun: u64, slot: &Slot) {
        self.tally.add("passed on", 1);
        let reign = self.current();
        let mut log = lock(&reign.log);
        if log.ends.is_none() {
            log.leaked.get_or_insert(begun);
        }
        drop(log);
        let record = Record::new(None, begun, self.gpu.now(), &slot.gone);
        self.records.add(kernel, record);
    }

    /// Adds the queue to this serializer, with a marker for all that it holds.
    fn attach(
        self: &Succession,
        slot: &Arc<Slot>,
        seat: &mut Seat,
        reign: Arc<Reign>,
        packets: &mut Vec<AqlPacket>,
    ) -> Option<()> {
        let mut queue = reign.serializer.add_queue().ok()?;
        seat.all.push((reign.clone(), queue.id()));
        // Who has it knows the mode.
        let toggling = reign.toggling.try_lock();
        self.gap(seat, &reign, &mut queue, packets)?;
        let now = self.gpu.now();
        let enabled = reign.serializer.mode() == Mode::Enabled;
        let attached = Attached {
            at: now,
            covered: (toggling.is_ok() && enabled).then_some(now),
        };
        drop(toggling);
        if let Some(name) = slot.queue.get() {
            lock(&reign.log).attached.insert(*name, attached);
        }
        self.tally.add("queues handed on", 1);
        seat.now = Some((reign, queue));
        Some(())
    }

    /// Counts what the queue holds and nobody has seen.
    fn gap(
        &self,
        seat: &mut Seat,
        reign: &Arc<Reign>,
        queue: &mut Queue<Watched>,
        packets: &mut Vec<AqlPacket>,
    ) -> Option<()> {
        let signals = self.gpu.signals();
        // What can fail comes first.
        let created = signals.create_labelled(1, SignalKind::Interrupt, "marker");
        let signal = created.ok().filter(|signal| !signal.is_null())?;
        let mut inject = [AqlPacket::INVALID; MAX_PACKETS];
        let counted = match queue.gap(&mut inject) {
            Ok(counted) => counted,
            Err(e) => {
                let of_the_end = GapError::Dispatch(DispatchError::ShutDown);
                if e == of_the_end && !reign.ends() {
                    self.fail(format!("a gap, before the end: {e}"));
                }
                let _ = signals.destroy(signal);
                return None;
            }
        };
        let marker = Arc::new(Marker {
            signal,
            ticket: Mutex::new(Some((reign.clone(), counted.ticket))),
        });
        seat.markers.retain(|marker| lock(&marker.ticket).is_some());
        seat.markers.push(marker.clone());
        let pool = signals.clone();
        let handler = move |_| {
            let taken = lock(&marker.ticket).take();
            if let Some((reign, ticket)) = taken {
                reign
                    .serializer
                    .complete(ticket)
                    .expect("a marker's ticket");
                let _ = pool.destroy(marker.signal);
            }
            false
        };
        let registered = signals.on_signal(signal, SignalCondition::Lt, 1, Box::new(handler));
        registered.expect("the marker's signal is alive");
        let last = counted.packets - 1;
        inject[last] = inject[last].with_completion_signal(signal);
        packets.extend_from_slice(&inject[..counted.packets]);
        self.tally.add("gaps", 1);
        Some(())
    }

    /// The dispatch of a kernel; `None` where it is to be passed on.
    fn count(
        &self,
        slot: &Arc<Slot>,
        packets: &mut Vec<AqlPacket>,
    ) -> Option<(Arc<Reign>, Ticket, bool)> {
        let mut seat = lock(&slot.seat);
        let seat = &mut *seat;
        if seat.gone {
            return None;
        }
        let reign = self.current();
        let known = seat.now.as_ref();
        if known.is_none_or(|(of, _)| of.number != reign.number) {
            // The marker stands for what was unseen, too.
            slot.unseen.store(false, SeqCst);
            self.attach(slot, seat, reign.clone(), packets)?;
        } else if slot.unseen.swap(false, SeqCst) {
            let (of, mut queue) = seat.now.take()?;
            let done = self.gap(seat, &of, &mut queue, packets);
            seat.now = Some((of, queue));
            if done.is_none() {
                slot.unseen.store(true, SeqCst);
                return None;
            }
        }
        let (_, queue) = seat.now.as_mut()?;
        let mut inject = [AqlPacket::INVALID; MAX_PACKETS];
        match queue.dispatch(&mut inject) {
            Ok(dispatch) => {
                packets.extend_from_slice(&inject[..dispatch.packets]);
                Some((reign, dispatch.ticket, dispatch.serialized))
            }
            Err(e) => {
                if e == DispatchError::ShutDown && !reign.ends() {
                    self.fail(format!("a dispatch, before the end: {e}"));
                }
                None
            }
        }
    }
}

impl Serializing for Succession {
    type Queue = Half;
    type Ticket = Held;

    fn add_queue(&self) -> Result<Half, BoxError> {
        let (reign, queue) = loop {
            let reign = self.current();
            match reign.serializer.add_queue() {
                Ok(queue) => break (reign, queue),
                // It has ended, and its successor is about to begin.
                Err(AddQueueError::ShutDown) if reign.ends() => thread::yield_now(),
                Err(e) => return Err(e.into()),
            }
        };
        let key = queue.id();
        let slot = Arc::new(Slot {
            key,
            queue: OnceLock::new(),
            submitting: Mutex::new(()),
            upcoming: Mutex::default(),
            unseen: AtomicBool::new(false),
            gone: Arc::default(),
            seat: Mutex::new(Seat {
                all: vec![(reign.clone(), key)],
                now: Some((reign, queue)),
                ..Seat::default()
            }),
        });
        lock(&self.slots).insert(key, slot.clone());
        Ok(Half { slot })
    }

    fn id(half: &Half) -> QueueId {
        half.slot.key
    }

    fn dispatch(&self, half: &mut Half, packets: &mut Vec<AqlPacket>) -> Option<Dispatched<Held>> {
        let slot = &half.slot;
        if self.end_in_interceptor.swap(false, SeqCst) {
            self.tally.add("kills in interceptors", 1);
            self.end_now(Ending::Kill);
        }
        let kernel = lock(&slot.upcoming).pop_front().expect("a number");
        let begun = self.gpu.now();
        let Some((reign, ticket, serialized)) = self.count(slot, packets) else {
            self.passed_on(kernel, begun, slot);
            return None;
        };
        let (counted, ticket) = Counted::of(&reign, ticket);
        let record = Record::new(Some(counted), begun, self.gpu.now(), &slot.gone);
        self.records.add(kernel, record);
        self.tally.add("kernels", 1);
        let ticket = Held {
            reign,
            ticket,
            kernel,
        };
        Some(Dispatched { ticket, serialized })
    }

    fn complete(&self, held: Held) {
        self.records.completes(held.kernel, self.gpu.now());
        if let Err(e) = held.reign.serializer.complete(held.ticket) {
            self.fail(format!("a completion: {e}"));
            e.ticket.abandon();
        }
        self.records.reported(held.kernel, self.gpu.now());
    }

    fn abandon(&self, held: Held) {
        held.ticket.abandon();
    }

    /// Every reign has a runtime of its own, which calls it.
    fn ready(&self, _: QueueId) -> Handler {
        Handler::Drop
    }

    fn enable(&self) -> Result<bool, BoxError> {
        self.current().toggle(Serializer::enable)
    }

    fn disable(&self) -> Result<bool, BoxError> {
        if let Some(how) = NEXT_DISABLE.take() {
            self.end(how);
            return Ok(true);
        }
        self.current().toggle(Serializer::disable)
    }

    fn queue_destroyed(&self, key: QueueId) {
        let Some(slot) = lock(&self.slots).remove(&key) else {
            return self.fail("a queue was destroyed twice");
        };
        slot.gone.store(true, SeqCst);
        let mut seat = lock(&slot.seat);
        seat.gone = true;
        let (now, all) = (seat.now.take(), std::mem::take(&mut seat.all));
        let markers = std::mem::take(&mut seat.markers);
        drop(seat);
        for (reign, id) in all {
            // A shutdown that finished has given it up before.
            let _ = reign.serializer.queue_destroyed(id);
        }
        for marker in markers {
            let taken = lock(&marker.ticket).take();
            if let Some((_, ticket)) = taken {
                ticket.abandon();
                let _ = self.gpu.signals().destroy(marker.signal);
            }
        }
        drop(now);
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }
}
