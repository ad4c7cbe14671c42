//! What the GPU did: whether it was allowed, and what follows from it.

use super::host::{Heard, Machine};
use super::mutant::Mutant;
use super::packet::{self, End, Meaning};
use super::queue::{Running, Why};
use super::signals::Signals;
use super::tally::Tally;
use super::violation::{Checked, Rule, ensure};
use hsa_sys::{hsa_signal_t, hsa_status_t};
use softgpu::{QueueId, QueueState, Step};
use std::sync::PoisonError;

impl Machine {
    /// So many things happen, or all that can.
    pub(crate) fn steps(&mut self, n: u64) -> Checked {
        for _ in 0..n {
            if !self.step(None)? {
                break;
            }
        }
        Ok(())
    }

    /// Things happen for so many nanoseconds.
    pub(crate) fn steps_for(&mut self, ns: u64) -> Checked {
        let limit = self.gpu.now().saturating_add(ns);
        let mut left = self.budget();
        while self.step(Some(limit))? {
            left = left.saturating_sub(1);
            ensure(left > 0, Rule::Standstill, || {
                format!("no end until {limit} ns")
            })?;
        }
        let now = self.gpu.now();
        ensure(now == limit, Rule::Time, || {
            format!("it is {now} ns, not {limit}")
        })
    }

    /// One thing happens, if anything can; whether it did.
    pub(crate) fn step(&mut self, limit: Option<u64>) -> Checked<bool> {
        let before = self.gpu.now();
        let ahead = u64::from(self.is(Mutant::RunsAhead));
        let step = match limit {
            None => self.gpu.step(),
            Some(limit) => self.gpu.step_until(limit.saturating_add(ahead)),
        };
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = std::mem::take(&mut *log);
        drop(log);
        let Some(step) = step else {
            return Ok(false);
        };
        let calls = matches!(step, Step::Called { .. } | Step::ErrorTold { .. });
        ensure(heard.len() == usize::from(calls), Rule::Handlers, || {
            format!("{step:?} called {heard:?}")
        })?;
        match step {
            Step::Launched { queue, packet } => {
                let skips = u64::from(self.is(Mutant::SkipsPacket));
                self.launched(queue, packet + skips)?;
            }
            Step::Ended { queue, packet } => self.ended(queue, packet)?,
            Step::Called { signal, kept } => self.called(signal, kept, heard[0])?,
            Step::ErrorTold { queue } => self.error_told(queue, heard[0])?,
            Step::Refilled { queue, packets } => {
                let place = self.place(queue)?;
                let should = self.queues[place].fill();
                ensure(packets == should && packets > 0, Rule::Counts, || {
                    format!("{queue} took {packets} packets, not {should}")
                })?;
                self.tally.refills += 1;
            }
            Step::Advanced { to } => {
                let right = to > before && limit.is_none_or(|limit| to <= limit);
                ensure(right, Rule::Time, || {
                    format!("from {before} ns to {to}, where {limit:?} is the limit")
                })?;
            }
            other => ensure(false, Rule::Order, || format!("{other:?}"))?,
        }
        self.agree(false)?;
        Ok(true)
    }

    fn place(&self, queue: QueueId) -> Checked<usize> {
        let place = self.queues.iter().position(|q| q.real.id() == queue);
        ensure(place.is_some(), Rule::Order, || {
            format!("{queue} does not exist")
        })?;
        Ok(place.unwrap_or_default())
    }

    fn launched(&mut self, id: QueueId, index: u64) -> Checked {
        let place = self.place(id)?;
        let now = self.gpu.now();
        let (queue, signals) = (&mut self.queues[place], &mut self.signals);
        ensure(queue.read == index, Rule::Order, || {
            format!("{id} launched packet {index}, not {}", queue.read)
        })?;
        let packet = queue.packet(index);
        if let Some(why) = queue.why(signals) {
            let rule = match why {
                Why::Stopped | Why::Empty | Why::Unpublished => Rule::Unrung,
                Why::Earlier => Rule::BarrierBit,
                Why::Full => Rule::Full,
                Why::All | Why::Any => Rule::Dependencies,
            };
            ensure(false, rule, || {
                format!("{id} launched packet {index}, {packet:?}: {why:?}")
            })?;
        }
        let tally = &mut self.tally;
        tally.rounds += u64::from(index >= queue.size());
        tally.past_write += u64::from(index >= queue.write);
        tally.barrier_bits += u64::from(packet::barrier_bit(&packet) && queue.ran);
        queue.consume();
        let completion = packet::completion(&packet);
        match packet::read(&packet) {
            Meaning::Kernel {
                length,
                end,
                writes,
            } => {
                queue.ran = true;
                queue.running.push(Running {
                    index,
                    length,
                    end,
                    writes,
                    completion,
                    started: now,
                });
                self.started += 1;
                tally.kernels += 1;
                return Ok(());
            }
            Meaning::And(named) => tally.ands += u64::from(named.iter().any(|s| !s.is_null())),
            Meaning::Or(named) => {
                let open = |s: &&hsa_signal_t| !s.is_null() && signals.value(**s) != 0;
                tally.ors += u64::from(named.iter().any(|s| open(&s)));
            }
            Meaning::Foreign => {
                queue.foreign += 1;
                tally.foreign += 1;
            }
            Meaning::Invalid => {}
        }
        complete(signals, tally, completion);
        if self.mutant == Some(Mutant::CompletesTwice) {
            self.gpu.signals().subtract(completion, 1);
        }
        Ok(())
    }

    fn ended(&mut self, id: QueueId, index: u64) -> Checked {
        let place = self.place(id)?;
        let now = self.gpu.now();
        let (queue, signals) = (&mut self.queues[place], &mut self.signals);
        let found = queue.running.iter().position(|k| k.index == index);
        ensure(found.is_some(), Rule::Ends, || {
            format!("{id}: the kernel of packet {index} ended, which does not run")
        })?;
        let kernel = queue.running.swap_remove(found.unwrap_or_default());
        ensure(kernel.may_end(signals, now), Rule::Ends, || {
            format!("{id}: {kernel:?} ended at {now} ns")
        })?;
        if kernel.end == End::Fault {
            self.tally.faults += 1;
            self.tally.abandoned += queue.running.len() as u64;
            queue.running.clear();
            queue.state = QueueState::Faulted;
            queue.untold = true;
            return Ok(());
        }
        let (written, value) = kernel.writes;
        if !written.is_null() {
            self.tally.writes += 1;
            signals.set(written, value);
        }
        match kernel.end {
            End::Badly(value) => {
                self.tally.ended_badly += 1;
                signals.set(kernel.completion, value);
            }
            End::Well | End::Fault => {
                self.tally.ended += 1;
                complete(signals, &mut self.tally, kernel.completion);
            }
        }
        Ok(())
    }

    fn called(&mut self, signal: hsa_signal_t, kept: bool, heard: Heard) -> Checked {
        self.tally.handlers += 1;
        let Heard::Handler { id, value, kept: k } = heard else {
            return ensure(false, Rule::Handlers, || format!("{heard:?}"));
        };
        let found = self.signals.listeners.iter().position(|l| l.id == id);
        let right = found.is_some_and(|place| {
            let listener = &self.signals.listeners[place];
            let now = value == self.signals.value(signal);
            listener.signal == signal && listener.condition.holds(value, listener.compare) && now
        });
        // With faults injected it may come late, twice, or after its signal has gone.
        ensure((right || self.faulty) && k == kept, Rule::Handlers, || {
            format!(
                "the handler of {:#x} was called with {value}",
                signal.handle
            )
        })?;
        if let Some(place) = found.filter(|_| !kept) {
            self.signals.listeners.swap_remove(place);
        }
        Ok(())
    }

    fn error_told(&mut self, id: QueueId, heard: Heard) -> Checked {
        self.tally.errors_told += 1;
        let place = self.place(id)?;
        let untold = std::mem::take(&mut self.queues[place].untold);
        let right = heard == Heard::Error(id, hsa_status_t::ERROR_EXCEPTION);
        ensure(untold && right, Rule::Errors, || {
            format!("{id} was told {heard:?}; there was a fault: {untold}")
        })
    }

    /// A queue is inactivated. Of the kernels that run the GPU chooses which complete: what their
    /// signals may have become is all that can be said.
    pub(crate) fn inactivate_queue(&mut self, choice: u8) -> Checked {
        let gpu = self.gpu.gpu().clone();
        let Some(place) = self.choose(choice) else {
            return Ok(());
        };
        let answer = gpu.inactivate_queue(&self.queues[place].real).is_ok();
        let queue = &mut self.queues[place];
        let should = queue.state != QueueState::Destroyed;
        ensure(answer == should, Rule::Answer, || {
            format!("inactivating a queue succeeded: {answer}")
        })?;
        if !should {
            return Ok(());
        }
        let (ran, dropped) = (queue.running.clone(), queue.dropped);
        queue.stop(QueueState::Inactive);
        self.tally.abandoned += ran.len() as u64;
        self.tally.dropped += queue.dropped - dropped;
        for signal in self.signals.given.clone() {
            let stores = ran.iter().any(|k| {
                k.writes.0 == signal || k.completion == signal && matches!(k.end, End::Badly(_))
            });
            let counts = ran.iter().filter(|k| k.completion == signal).count();
            let before = self.signals.value(signal);
            if stores || counts > 0 {
                self.signals.resync(signal, gpu.signals());
            }
            let fell = before.wrapping_sub(self.signals.value(signal));
            let right = stores || (0..=counts as i64).contains(&fell);
            ensure(right, Rule::Signals, || {
                format!("{counts} kernels took {fell} from {:#x}", signal.handle)
            })?;
        }
        Ok(())
    }
}

/// A packet has completed.
fn complete(signals: &mut Signals, tally: &mut Tally, completion: hsa_signal_t) {
    if completion.is_null() {
        return;
    }
    tally.completions += 1;
    tally.stale_completions += u64::from(!signals.alive(completion));
    signals.subtract(completion, 1);
}
