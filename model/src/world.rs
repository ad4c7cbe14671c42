//! Signals, GPU and model together, and what the serializer does to them.

use crate::fault::Fault;
use crate::gpu::{Event, Gpu, Step};
use crate::operation::Failure;
use crate::oracle::{Model, Stage};
use crate::signals::{Signal, Signals};
use crate::tally::Tally;
use crate::violation::{Checked, Rule, Violation, ensure};
use hsa_serializer::{QueueId, Report, SignalKind};
use hsa_sys::{hsa_signal_t, hsa_signal_value_t, hsa_status_t};

/// A registered `ready` handler.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) queue: QueueId,
    pub(crate) signal: Signal,
    /// It runs, and may destroy its own signal.
    pub(crate) is_called: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) signals: Signals,
    pub(crate) gpu: Gpu,
    pub(crate) model: Model,
    pub(crate) handlers: Vec<Watch>,
    /// Dispatches whose completion the host has heard of and not reported.
    pub(crate) notices: Vec<usize>,
    /// The runtime call that is to fail.
    pub(crate) plan: Option<Failure>,
    /// Whether it did.
    pub(crate) failed: bool,
    /// Signals that were asked for.
    pub(crate) creations: u64,
    pub(crate) latest: [Option<Signal>; 2],
    pub(crate) escape_made: bool,
    pub(crate) reports: Vec<Report>,
    pub(crate) tally: Tally,
    pub(crate) fault: Option<Fault>,
    /// Everything is being dropped: packets and handlers are nobody's any more.
    pub(crate) ending: bool,
    /// The runtime may not be called any more.
    pub(crate) sealed: bool,
    /// A store that a planted fault holds back.
    held: Option<hsa_signal_t>,
    through: u64,
    found: Option<Violation>,
}

impl World {
    pub(crate) fn new(serializes: bool, epoch: u32, fault: Option<Fault>) -> Self {
        Self {
            signals: Signals::default(),
            gpu: Gpu::default(),
            model: Model::new(serializes, epoch),
            handlers: Vec::new(),
            notices: Vec::new(),
            plan: None,
            failed: false,
            creations: 0,
            latest: [None; 2],
            escape_made: false,
            reports: Vec::new(),
            tally: Tally::default(),
            fault,
            ending: false,
            sealed: false,
            held: None,
            through: 0,
            found: None,
        }
    }

    /// Keeps the first violation that a call of the serializer's led to.
    fn keep(&mut self, checked: Checked) {
        if let Err(violation) = checked {
            self.found.get_or_insert(violation);
        }
    }

    fn find(&mut self, rule: Rule, text: String) {
        self.keep(Err(Violation::new(rule, text)));
    }

    /// What was found since the last time.
    pub(crate) fn found(&mut self) -> Checked {
        self.found.take().map_or(Ok(()), Err)
    }

    /// The serializer calls the runtime.
    fn called(&mut self, what: &str) {
        if self.sealed {
            self.find(Rule::CalledAfterEnd, what.into());
        }
    }

    fn fails_now(&mut self) -> bool {
        let Some(plan) = &mut self.plan else {
            return false;
        };
        if plan.after > 0 {
            plan.after -= 1;
            return false;
        }
        self.plan = None;
        self.failed = true;
        true
    }

    pub(crate) fn create(
        &mut self,
        kind: SignalKind,
        initial: hsa_signal_value_t,
    ) -> Result<hsa_signal_t, hsa_status_t> {
        self.called("create_signal");
        self.creations += 1;
        let null = self.plan.is_some_and(|plan| plan.null);
        if self.fails_now() {
            if self.fault == Some(Fault::FailureLeaks) {
                self.signals.create(kind, initial);
            }
            return if null {
                Ok(hsa_signal_t::NULL)
            } else {
                Err(hsa_status_t::ERROR_OUT_OF_RESOURCES)
            };
        }
        let initial = match (kind, self.fault) {
            (SignalKind::Barrier, Some(Fault::BarrierBornClear))
            | (SignalKind::Block, Some(Fault::BlockBornOpen))
            | (SignalKind::Escape, Some(Fault::EscapeBornOpen)) => 0,
            _ => initial,
        };
        let handle = self.signals.create(kind, initial);
        let signal = self.signals.now(handle).map(|(signal, _)| signal);
        match kind {
            SignalKind::Ready => self.latest[0] = signal,
            SignalKind::Block => self.latest[1] = signal,
            SignalKind::Escape => self.escape_made = true,
            _ => {}
        }
        Ok(handle)
    }

    pub(crate) fn destroy(&mut self, handle: hsa_signal_t) -> Result<(), hsa_status_t> {
        self.called("destroy_signal");
        let Some((signal, kind)) = self.signals.now(handle) else {
            let text = format!("signal {:#x} does not exist", handle.handle);
            self.find(Rule::DestroyedTwice, text);
            return Err(hsa_status_t::ERROR_INVALID_SIGNAL);
        };
        if !self.ending {
            let user = self.user_of(signal);
            if let Some(user) = user {
                let text = format!("the {kind:?} signal {signal:?} was destroyed under {user}");
                self.find(Rule::DestroyedUnderUse, text);
            }
        }
        let watched = self.handlers.iter().any(|w| w.signal == signal);
        match (kind, self.fault) {
            (SignalKind::Barrier, Some(Fault::BarrierKept))
            | (SignalKind::Escape, Some(Fault::EscapeKept)) => return Ok(()),
            (SignalKind::Ready, Some(Fault::ReadyKept)) if watched => return Ok(()),
            (SignalKind::Barrier, Some(Fault::DestroyRefused)) => {
                return Err(hsa_status_t::ERROR_RESOURCE_FREE);
            }
            (_, Some(Fault::DestroyedTwice)) => {
                self.signals.destroy(handle);
                self.fault = None;
                return self.destroy(handle);
            }
            _ => {}
        }
        self.signals.destroy(handle);
        Ok(())
    }

    fn user_of(&self, signal: Signal) -> Option<String> {
        if let Some(queue) = self.gpu.who_refers_to(signal) {
            return Some(format!("an unexecuted packet of queue {queue}"));
        }
        let watches = |w: &&Watch| w.signal == signal && !w.is_called;
        if let Some(watch) = self.handlers.iter().find(watches) {
            return Some(format!("the handler of {}", watch.queue));
        }
        let owns = |q: &crate::oracle::Queue| {
            !q.removed && (q.ready == Some(signal) || q.block == Some(signal))
        };
        let owner = self.model.queues.iter().position(owns)?;
        Some(format!("the live queue {owner}"))
    }

    pub(crate) fn store(&mut self, handle: hsa_signal_t, value: hsa_signal_value_t) {
        self.called("store");
        let Some((signal, kind)) = self.signals.now(handle) else {
            let text = format!("{value} was stored to {:#x}, which is gone", handle.handle);
            return self.find(Rule::DestroyedUnderUse, text);
        };
        let before = self.signals.value(handle);
        match (kind, self.fault) {
            (SignalKind::Barrier, Some(Fault::ClearLost))
            | (SignalKind::Block, Some(Fault::GrantLost))
            | (SignalKind::Escape, Some(Fault::EscapeLost)) => return,
            (SignalKind::Barrier, Some(Fault::ForcedNewestFirst)) if self.comes_too_early() => {
                self.held = Some(handle);
                return;
            }
            _ => self.signals.set(handle, value),
        }
        if kind == SignalKind::Escape {
            let right = value == 0 && self.model.stage == Stage::Released;
            let checked = ensure(right, Rule::Forces, || {
                let stage = self.model.stage;
                format!("{value} was stored to the escape signal; {stage:?}")
            });
            self.keep(checked);
        }
        if kind == SignalKind::Barrier {
            let checked = self.model.barrier_stored(signal, before, value);
            self.keep(checked);
            if self.fault == Some(Fault::ClearedTwice) {
                let checked = self.model.barrier_stored(signal, value, value);
                self.keep(checked);
            }
            if self.fault == Some(Fault::DestroyedWhenCleared) {
                // A violation is kept; what the serializer is told does not matter any more.
                let _ = self.destroy(handle);
            }
            if let Some(held) = self.held.take() {
                self.fault = None;
                self.store(held, value);
            }
        }
        if kind == SignalKind::Block && value == 0 {
            let of = |q: &crate::oracle::Queue| q.block == Some(signal);
            let queue = self.model.queues.iter().position(of);
            if self.model.stage == Stage::Released {
                queue
                    .into_iter()
                    .for_each(|queue| self.model.token.passed_on(queue));
            } else if let Some(queue) = queue {
                let checked = self.model.token.granted(queue);
                self.keep(checked);
                if self.fault == Some(Fault::GrantedTwice) {
                    let checked = self.model.token.granted(queue);
                    self.keep(checked);
                }
            }
        }
    }

    /// Whether this store is the first of several that one call forces.
    fn comes_too_early(&self) -> bool {
        self.held.is_none() && self.model.latest_forced == 0 && self.model.forcing > 1
    }

    pub(crate) fn compare_exchange(
        &mut self,
        handle: hsa_signal_t,
        expected: hsa_signal_value_t,
        desired: hsa_signal_value_t,
    ) -> hsa_signal_value_t {
        self.called("compare_exchange");
        let Some((signal, _)) = self.signals.now(handle) else {
            let text = format!("signal {:#x}, which is gone, was exchanged", handle.handle);
            self.find(Rule::DestroyedUnderUse, text);
            return hsa_signal_value_t::MIN;
        };
        let seen = self.signals.value(handle);
        if seen == expected {
            self.signals.set(handle, desired);
            if self.fault == Some(Fault::GrantedToAll) && expected == -1 {
                let of = |q: &&crate::oracle::Queue| q.ready == Some(signal);
                if let Some(block) = self.model.queues.iter().find(of).and_then(|q| q.block) {
                    let handle = hsa_signal_t {
                        handle: block.handle,
                    };
                    self.signals.set(handle, 0);
                }
            }
        }
        seen
    }

    pub(crate) fn watch(
        &mut self,
        ready: hsa_signal_t,
        queue: QueueId,
    ) -> Result<(), hsa_status_t> {
        self.called("watch_ready");
        if self.fails_now() {
            return Err(hsa_status_t::ERROR_OUT_OF_RESOURCES);
        }
        match self.signals.now(ready) {
            Some((signal, _)) => self.handlers.push(Watch {
                queue,
                signal,
                is_called: false,
            }),
            None => self.find(Rule::DestroyedUnderUse, format!("{queue}: no such signal")),
        }
        Ok(())
    }

    pub(crate) fn report(&mut self, report: Report) {
        self.called("report");
        self.reports.push(report);
    }

    /// A packet processor makes a step.
    pub(crate) fn make(&mut self, step: Step) -> Checked {
        for event in self.gpu.make(step, &mut self.signals)? {
            match event {
                Event::Passed(d) => self.model.passed(d)?,
                Event::Started(d) => {
                    let beside = self.model.started(d)?;
                    self.tally.kernels += 1;
                    self.tally.kernels_overlapping += u64::from(beside.another);
                    self.tally.beside_overtaken += u64::from(beside.overtaken);
                    self.tally.beside_forced += u64::from(beside.older);
                    self.tally.kernels_serialized += u64::from(self.model.dispatches[d].serialized);
                    if self.fault == Some(Fault::ReportedAtStart) {
                        self.notices.push(d);
                    }
                }
                Event::Ended(d) => self.model.ended(d),
                Event::UnseenEnded(u) => self.model.unseen[u].over = true,
                Event::Marked(d) => {
                    let early = self.model.dispatches[d].reported || self.notices.contains(&d);
                    self.notices.extend((!early).then_some(d));
                }
                Event::Through(d) => {
                    self.through += 1;
                    let swallowed =
                        self.fault == Some(Fault::CompletionSwallowed) && self.through % 4 == 0;
                    if self.fault != Some(Fault::ReportedAtStart) && !swallowed {
                        self.notices.push(d);
                    }
                }
            }
        }
        Ok(())
    }

    /// The queues whose `ready` handler is due.
    pub(crate) fn handlers_due(&self) -> Vec<QueueId> {
        if self.fault == Some(Fault::HandlersDeaf) {
            return Vec::new();
        }
        let due = |w: &&Watch| self.signals.value_of(w.signal) == Some(-1);
        self.handlers.iter().filter(due).map(|w| w.queue).collect()
    }
}
