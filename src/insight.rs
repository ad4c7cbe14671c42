//! What a serializer keeps beside its protocol: who wants it, what has happened lately, since when.
//!
//! Nothing of the protocol depends on any of it, but for [who wants it](crate::requests). It is used on
//! slow paths alone.

use crate::barrier::Barrier;
use crate::event::{Event, nanoseconds};
use crate::queue::{Mode, QueueCell, QueueId};
#[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
use crate::recorder::Recorder;
use crate::requests::Requests;
use crate::runtime::Runtime;
use crate::shared::{OPEN, Shared, Stage};
use crate::statistics::Statistics;
use crate::sync::statistic::{AtomicU64, Ordering};
use crossbeam_epoch::Guard;
use std::fmt;
use std::time::Duration;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Insight {
    pub(crate) requests: Requests,
    /// The agent's handle, where the host has said it.
    pub(crate) agent: Option<u64>,
    /// When the mode has changed last, or this was made. A statistic.
    pub(crate) turned: AtomicU64,
    #[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
    recorder: Recorder,
    #[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
    grants: Recorder,
}

impl Insight {
    pub(crate) fn new(agent: Option<u64>, now: Duration) -> Self {
        Self {
            requests: Requests::new(),
            agent,
            turned: AtomicU64::new(nanoseconds(now)),
            #[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
            recorder: Recorder::new(),
            #[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
            grants: Recorder::new(),
        }
    }
}

#[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
impl Insight {
    /// What the recorders hold, in the order in which it happened: each grant says how many other records
    /// there were before it.
    pub(crate) fn records(&self) -> Vec<[u64; 4]> {
        let grant = |(_, [at, kind, name, more]): (u64, [u64; 4])| {
            ((kind >> KIND_BITS, false), [at, kind & KIND, name, more])
        };
        let other = |(number, words)| ((number, true), words);
        let mut records: Vec<_> = self.grants.read().into_iter().map(grant).collect();
        records.extend(self.recorder.read().into_iter().map(other));
        records.sort_by_key(|(place, _)| *place);
        records.into_iter().map(|(_, words)| words).collect()
    }

    pub(crate) fn records_lost(&self) -> u64 {
        self.recorder.lost() + self.grants.lost()
    }

    fn keep(&self, event: Event, now: u64) {
        self.recorder.write(words(event, now));
    }

    /// Keeps a place for the grant of that number, for who is about to grant. `None` where there is none.
    #[inline]
    fn claim_grant(&self, number: u64) -> Option<Place> {
        let before = self.recorder.next();
        let place = Place { number, before };
        self.grants.claim_alone(number).then_some(place)
    }

    fn keep_grant(&self, place: &Place, event: Event, now: u64) {
        let [at, kind, name, more] = words(event, now);
        let words = [at, place.before << KIND_BITS | kind, name, more];
        self.grants.complete(place.number, words);
    }

    fn unclaim_grant(&self, place: &Place) {
        self.grants.unclaim(place.number);
    }
}

/// How much of a grant's second word says that it is one.
#[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
const KIND_BITS: u32 = 8;
#[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
const KIND: u64 = (1 << KIND_BITS) - 1;

#[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
fn words(event: Event, now: u64) -> [u64; 4] {
    let [kind, name, more] = event.to_words();
    [now, kind, name, more]
}

/// Nothing is recorded: each of a recorder's steps would multiply what model checkers have to explore.
#[cfg(any(hsa_serializer_loom, hsa_serializer_shuttle))]
impl Insight {
    pub(crate) fn records(&self) -> Vec<[u64; 4]> {
        Vec::new()
    }

    pub(crate) fn records_lost(&self) -> u64 {
        0
    }

    fn keep(&self, event: Event, _now: u64) {
        let _ = event.to_words();
    }

    fn claim_grant(&self, number: u64) -> Option<Place> {
        Some(Place { number, before: 0 })
    }

    fn keep_grant(&self, place: &Place, event: Event, now: u64) {
        let Place { number, before } = place;
        self.keep(event, now + number + before);
    }

    fn unclaim_grant(&self, _: &Place) {}
}

/// Where a grant is recorded.
#[derive(Debug)]
pub(crate) struct Place {
    number: u64,
    /// How many other records come before it.
    before: u64,
}

/// A time at which something begins to wait. A statistic: nothing is ordered by it.
pub(crate) struct Since(AtomicU64);

/// Of a time that will be known in a moment.
const UNKNOWN: u64 = u64::MAX;

impl Since {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(UNKNOWN))
    }

    pub(crate) fn set(&self, now: u64) {
        self.0.store(now, Ordering::Relaxed);
    }

    /// What it was, which it is no more: who looks while the runtime hangs finds no older time.
    fn forget(&self) -> u64 {
        let was = self.0.load(Ordering::Relaxed);
        self.0.store(UNKNOWN, Ordering::Relaxed);
        was
    }

    /// Sets it, unless somebody has set it meanwhile.
    fn know(&self, now: u64) {
        let _ = self
            .0
            .compare_exchange(UNKNOWN, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<u64> {
        let since = self.0.load(Ordering::Relaxed);
        (since != UNKNOWN).then_some(since)
    }
}

impl fmt::Debug for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// Whether a queue has waited for its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waited {
    /// It was ready, and granted at once.
    Not,
    /// Since it was ready.
    InLine,
}

impl<R: Runtime> Shared<R> {
    /// The time, in nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        nanoseconds(self.runtime.now())
    }

    /// What was counted, and read off the queues: dispatches, completions, and how many queues there are.
    pub(crate) fn statistics_of(
        &self,
        (dispatches, completions, queues): (u64, u64, u64),
    ) -> Statistics {
        let counted = self.counters.read();
        let mut serialized = counted.serialized;
        // Relaxed, both: statistics are of no one moment.
        let open = self.closed.load(Ordering::Relaxed) == OPEN;
        if open && Mode::of_epoch(self.epoch.load(Ordering::Relaxed)) == Mode::Enabled {
            serialized += self
                .now()
                .saturating_sub(self.insight.turned.load(Ordering::Relaxed));
        }
        Statistics {
            serialized,
            dispatches,
            completions,
            queues,
            contenders: u64::from(self.token.contenders()),
            grants: self.token.granted.get(),
            grants_contended: self.token.contended.get(),
            reclaim_pending: self.domain.pending() as u64,
            ..counted
        }
    }

    /// Tells an event that is not recorded.
    #[inline(always)]
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        if let Some(observer) = self.runtime.observer() {
            // After the end, or in the child of a fork, nothing of the host's is called.
            if self.stage() < Stage::Finished {
                observer.event(event());
            }
        }
    }

    /// Tells an event and records it, as of now.
    pub(crate) fn record(&self, event: Event) {
        self.record_at(event, self.now());
    }

    /// Tells an event and records it, as of a time that was looked at.
    pub(crate) fn record_at(&self, event: Event, now: u64) {
        self.tell(|| event);
        self.insight.keep(event, now);
    }

    /// Counts a grant that is about to be given, and keeps a place to record it.
    ///
    /// Whoever is the granter is the only one until the queue's seat says that it is granted: then it can be
    /// overtaken or removed, and somebody else grants. So all that is the granter's alone is done before.
    #[inline]
    pub(crate) fn counts_grant(&self, contended: bool) -> Option<Place> {
        self.token.granted.add_alone(1);
        self.token.contended.add_alone(contended.into());
        self.insight.claim_grant(self.token.granted.get())
    }

    /// For who did not grant after all; he is the granter still.
    #[cold]
    pub(crate) fn takes_grant_back(&self, contended: bool, place: Option<Place>) {
        self.token.granted.sub_alone(1);
        self.token.contended.sub_alone(contended.into());
        if let Some(place) = place {
            self.insight.unclaim_grant(&place);
        }
    }

    /// Lets the queue's kernel go that has been granted the token; and tells, counts and records that.
    ///
    /// The clock and the record come after the store: the kernel need not wait for them. So what follows
    /// from a grant may have an earlier time; its place among the records is right all the same.
    pub(crate) fn grants_to(
        &self,
        queue: QueueId,
        cell: &QueueCell,
        waited: Waited,
        place: Option<Place>,
        guard: &Guard,
    ) {
        let seat = cell.seat();
        let since = seat.since.forget();
        let granted = |now: u64| {
            let waited = match waited {
                Waited::Not => 0,
                Waited::InLine => now.saturating_sub(since),
            };
            let event = Event::Granted {
                queue,
                waited: Duration::from_nanos(waited),
            };
            (waited, event)
        };
        // Before anybody can be told what follows from it.
        self.tell(|| granted(self.now()).1);
        // The queue may be removed from here on; its signals live until the caller unpins.
        self.store(guard, seat.block(), 0);
        let now = self.now();
        let (waited, event) = granted(now);
        seat.since.know(now);
        if waited > 0 {
            self.counters.token_waited.add(waited);
            self.counters.token_waited_most.at_least(waited);
        }
        if let Some(place) = place {
            self.insight.keep_grant(&place, event, now);
        }
    }

    /// Tells how a barrier has ended, and counts how long it was armed.
    pub(crate) fn ended(&self, barrier: &Barrier, event: impl FnOnce(u32) -> Event) {
        let now = self.now();
        let armed = now.saturating_sub(barrier.made);
        self.counters.barriers_armed.add(armed);
        self.counters.barriers_armed_most.at_least(armed);
        self.record_at(event(barrier.epoch), now);
    }

    /// The mode has changed: counts how long kernels were serialized. Under the transition lock.
    pub(crate) fn mode_changed(&self, to: Mode) {
        let now = self.now();
        if to == Mode::Disabled {
            self.count_serialized(now);
        }
        self.insight.turned.store(now, Ordering::Relaxed);
    }

    /// Counts how long kernels were serialized until now. Under the transition lock.
    pub(crate) fn count_serialized(&self, now: u64) {
        let since = self.insight.turned.load(Ordering::Relaxed);
        self.counters.serialized.add(now.saturating_sub(since));
    }
}

#[cfg(all(test, not(any(hsa_serializer_loom, hsa_serializer_shuttle))))]
mod tests {
    use super::*;
    use crate::recorder::SLOTS;

    #[test]
    fn a_grant_that_was_not_given_leaves_its_place() {
        let insight = Insight::new(None, Duration::ZERO);
        let place = insight.claim_grant(0).unwrap();
        assert!(insight.claim_grant(SLOTS as u64).is_none());
        insight.unclaim_grant(&place);
        assert!(insight.claim_grant(SLOTS as u64).is_some());
    }

    #[test]
    fn what_either_recorder_has_lost_is_counted() {
        let insight = Insight::new(None, Duration::ZERO);
        assert_eq!(insight.records_lost(), 0);
        assert!(insight.recorder.claim_alone(0));
        assert!(insight.grants.claim_alone(0));
        for lost in 1..4 {
            assert!(!insight.grants.claim_alone(SLOTS as u64));
            assert_eq!(insight.records_lost(), lost);
        }
        for lost in 4..6 {
            assert!(!insight.recorder.claim_alone(SLOTS as u64));
            assert_eq!(insight.records_lost(), lost);
        }
    }
}
