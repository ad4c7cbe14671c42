//! What the host knows of each kernel, and by it the judgement of what the witness saw: a kernel may
//! run beside another one only where exclusiveness was given up, and that was counted and told.

use crate::lock;
use crate::reign::{Log, Reign};
use hsa_serializer::{QueueId, Ticket};
use softgpu::{KernelView, Violation};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// A kernel that a serializer counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) reign: u32,
    pub(crate) queue: QueueId,
    pub(crate) dispatch: u64,
    pub(crate) epoch: u32,
}

impl Counted {
    /// What a ticket says; it is given back.
    pub(crate) fn of(reign: &Reign, ticket: Ticket) -> (Self, Ticket) {
        let (queue, dispatch) = (ticket.queue(), u64::from(ticket.dispatch()));
        let raw = ticket.into_raw();
        let epoch = raw[1] as u32;
        let counted = Self {
            reign: reign.number,
            queue,
            dispatch,
            epoch,
        };
        (counted, Ticket::from_raw(raw))
    }
}

/// A kernel that was intercepted.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// `None` if it was passed on as it was.
    pub(crate) counted: Option<Counted>,
    /// By the machine's clock: from when to when it was dispatched.
    pub(crate) begun: u64,
    pub(crate) at: u64,
    /// When its completion was about to be reported, and when it had been.
    pub(crate) completed: Option<u64>,
    pub(crate) reported: Option<u64>,
    /// Its queue is gone.
    pub(crate) gone: Arc<AtomicBool>,
}

impl Record {
    /// Of a kernel that has just been dispatched, or passed on, to a queue that may go.
    pub(crate) fn new(
        counted: Option<Counted>,
        begun: u64,
        at: u64,
        gone: &Arc<AtomicBool>,
    ) -> Self {
        Self {
            counted,
            begun,
            at,
            completed: None,
            reported: None,
            gone: gone.clone(),
        }
    }
}

/// Every kernel of a round, by its number.
#[derive(Debug, Default)]
pub(crate) struct Records(Mutex<HashMap<u32, Record>>);

impl Records {
    pub(crate) fn add(&self, kernel: u32, record: Record) {
        lock(&self.0).insert(kernel, record);
    }

    /// Its completion is about to be reported.
    pub(crate) fn completes(&self, kernel: u32, now: u64) {
        if let Some(record) = lock(&self.0).get_mut(&kernel) {
            record.completed = Some(now);
        }
    }

    /// Its completion was reported.
    pub(crate) fn reported(&self, kernel: u32, now: u64) {
        if let Some(record) = lock(&self.0).get_mut(&kernel) {
            record.reported = Some(now);
        }
    }

    /// A kernel of this serializer that was dispatched before that time and is neither completed nor
    /// lost with its queue.
    pub(crate) fn in_flight(&self, reign: u32, before: u64) -> Option<Record> {
        let all = lock(&self.0);
        let of_reign = |record: &&Record| {
            let counted = record.counted.is_some_and(|c| c.reign == reign);
            counted && record.at < before && record.completed.is_none() && !record.gone.load(SeqCst)
        };
        all.values().find(of_reign).cloned()
    }

    /// Which of these violations nothing that was given up explains, and what else is not as the logs
    /// tell it.
    pub(crate) fn unexplained(
        &self,
        violations: &[Violation],
        logs: &[Arc<Mutex<Log>>],
    ) -> Vec<String> {
        let all = lock(&self.0);
        let logs: Vec<_> = logs.iter().map(|log| lock(log)).collect();
        let (mut overtaken, mut wrong) = (Vec::new(), Vec::new());
        for log in &logs {
            let mut of_reign = Vec::new();
            for (at, queue, named) in &log.overtaken {
                let holders = holders(&all, *queue, *at);
                // Once a barrier was forced, a later kernel's completion may pass for an earlier one's,
                // and the dispatch that is named is a guess; after the kill switch nobody holds.
                let exact = !log.was_forced(*at) && log.killed.is_none_or(|killed| killed > *at);
                if exact && !holders.is_empty() && !holders.contains(named) {
                    wrong.push(format!(
                        "{queue}: {named} was named, not {holders:?}: {log:?}"
                    ));
                }
                of_reign.extend(holders.into_iter().map(|holder| (*at, *queue, holder)));
            }
            overtaken.push(of_reign);
        }
        let judge = Judge {
            records: &all,
            logs,
            overtaken,
        };
        let unexplained = violations.iter().filter(|v| !judge.explains(v));
        wrong.extend(unexplained.map(|v| judge.describe(v)));
        wrong
    }
}

/// The serialized dispatch that a queue was at: they come one after the other. Two, where the completion of
/// the first was just being reported.
fn holders(records: &HashMap<u32, Record>, queue: QueueId, at: u64) -> Vec<u64> {
    let first = |end: fn(&Record) -> Option<u64>| {
        let in_flight = |r: &&Record| r.at <= at && end(r).is_none_or(|end| end > at);
        let counted = records.values().filter(in_flight);
        let serialized = counted
            .filter_map(|r| r.counted)
            .filter(|c| c.epoch % 2 == 1);
        let of_queue = serialized.filter(|c| c.queue == queue);
        of_queue.map(|c| c.dispatch).min()
    };
    let both = [first(|r| r.reported), first(|r| r.completed)];
    both.into_iter().flatten().collect()
}

struct Judge<'a> {
    records: &'a HashMap<u32, Record>,
    logs: Vec<std::sync::MutexGuard<'a, Log>>,
    /// By reign: what was overtaken, and when.
    overtaken: Vec<Vec<(u64, QueueId, u64)>>,
}

/// A kernel with what both sides know of it.
#[derive(Clone, Copy)]
struct Seen<'a> {
    view: &'a KernelView,
    record: &'a Record,
}

impl Judge<'_> {
    fn seen<'a>(&'a self, view: &'a KernelView) -> Seen<'a> {
        let record = &self.records[&view.id];
        Seen { view, record }
    }

    fn explains(&self, violation: &Violation) -> bool {
        match violation {
            Violation::Overlap {
                running, started, ..
            }
            | Violation::ModeOverlap {
                running, started, ..
            } => {
                // The witness may be told later than the clock was read.
                let at = running.started.max(started.started);
                self.may_run_beside(self.seen(running), self.seen(started), at)
            }
            Violation::OldAfterNew { started, .. } => self.may_be_late(self.seen(started)),
            _ => false,
        }
    }

    fn may_run_beside(&self, a: Seen, b: Seen, at: u64) -> bool {
        match (a.record.counted, b.record.counted) {
            (Some(x), Some(y)) if x.reign == y.reign => {
                let log = &self.logs[x.reign as usize];
                let overtaken = |c: Counted| {
                    let same = |o: &(u64, QueueId, u64)| (o.1, o.2) == (c.queue, c.dispatch);
                    let all = &self.overtaken[c.reign as usize];
                    all.iter().any(|o| o.0 <= at && same(o))
                };
                // Who was let through by force is of the forced barrier's epoch or a later one.
                let older = x.epoch.min(y.epoch);
                let forced = |f: &(u64, u32)| f.0 <= at && older < f.1 && x.epoch != y.epoch;
                log.killed.is_some_and(|killed| killed <= at)
                    || overtaken(x)
                    || overtaken(y)
                    || log.forced.iter().any(forced)
            }
            (Some(x), Some(y)) if x.reign < y.reign => self.may_run_beside_unknown(a, b, y, at),
            (Some(x), Some(_)) => self.may_run_beside_unknown(b, a, x, at),
            (None, Some(y)) => self.may_run_beside_unknown(a, b, y, at),
            (Some(x), None) => self.may_run_beside_unknown(b, a, x, at),
            (None, None) => true,
        }
    }

    /// Whether a kernel may run beside one that its serializer does not know: it may not once the
    /// unknown one's queue was attached, and a transition has counted the marker.
    fn may_run_beside_unknown(&self, unknown: Seen, known: Seen, of: Counted, at: u64) -> bool {
        let log = &self.logs[of.reign as usize];
        let attached = log.attached.get(&unknown.view.queue);
        let covered = attached
            .filter(|attached| unknown.record.at < attached.at)
            .and_then(|attached| attached.covered)
            .is_some_and(|covered| covered < known.record.begun);
        !covered || log.killed.is_some_and(|killed| killed <= at) || log.was_forced(at)
    }

    /// Whether a kernel of an older mode may start after one of a newer mode had run.
    fn may_be_late(&self, kernel: Seen) -> bool {
        // As above; but it was told before the kernel ended.
        let at = kernel.record.completed.unwrap_or(u64::MAX);
        let Some(counted) = kernel.record.counted else {
            return true;
        };
        let log = &self.logs[counted.reign as usize];
        // What is passed on waits for nobody.
        let passed_on = [log.ends, log.leaked];
        let forced = |f: &(u64, u32)| f.0 <= at && counted.epoch < f.1;
        passed_on.into_iter().flatten().any(|since| since <= at) || log.forced.iter().any(forced)
    }

    fn describe(&self, violation: &Violation) -> String {
        let mut text = violation.to_string();
        if let Violation::OldAfterNew { started, .. } = violation {
            let record = &self.records[&started.id];
            text += &format!("\n  {record:?}");
        }
        if let Violation::Overlap {
            running, started, ..
        }
        | Violation::ModeOverlap {
            running, started, ..
        } = violation
        {
            for view in [running, started] {
                let record = &self.records[&view.id];
                text += &format!("\n  {record:?}");
                if let Some(counted) = record.counted {
                    text += &format!("\n    {:?}", *self.logs[counted.reign as usize]);
                }
            }
        }
        text
    }
}
