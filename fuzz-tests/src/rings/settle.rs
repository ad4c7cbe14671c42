//! When nothing can go on: whether that is so, and whether the report says why.

use super::host::Machine;
use super::mutant::Mutant;
use super::packet::{self, Length, Meaning};
use super::queue::{Shadow, Why};
use super::violation::{Checked, Rule, ensure};
use hsa_sys::PacketType;
use softgpu::{QueueState, Wait, Waits};

impl Machine {
    /// More steps than all that is pending can take: packets are launched and end, handlers are
    /// called a few times each, and time goes on from one of these to the next.
    pub(crate) fn budget(&self) -> u64 {
        let packets = |q: &Shadow| q.size() + q.overflow.len() as u64 + q.running.len() as u64;
        let packets: u64 = self.queues.iter().map(packets).sum();
        let handlers = self.signals.listeners.len() as u64 + self.gpu.handlers().registered;
        100 + 8 * packets + 64 * handlers
    }

    /// Everything happens that can; what is left waits, and is reported.
    pub(crate) fn settle(&mut self) -> Checked {
        let mut left = self.budget();
        while self.step(None)? {
            left = left.saturating_sub(1);
            ensure(left > 0, Rule::Standstill, || "there is no end".into())?;
        }
        self.agree(true)?;
        let now = self.gpu.now();
        for queue in &self.queues {
            let id = queue.real.id();
            let why = queue.why(&self.signals);
            ensure(why.is_some(), Rule::Standstill, || {
                format!("{id} could launch packet {}", queue.read)
            })?;
            for kernel in &queue.running {
                let lasts = matches!(kernel.length, Length::For(_));
                let goes_on = lasts || kernel.may_end(&self.signals, now);
                ensure(!goes_on, Rule::Standstill, || {
                    format!("{id}: {kernel:?} could end")
                })?;
            }
            ensure(!queue.can_refill(), Rule::Standstill, || {
                format!("{id} has room for what waits")
            })?;
            let told = !queue.untold || self.handlers_dead;
            ensure(told, Rule::Errors, || {
                format!("nobody was told that {id} faulted")
            })?;
        }
        for listener in &self.signals.listeners {
            let value = self.signals.value(listener.signal);
            let due = listener.condition.holds(value, listener.compare);
            ensure(!due || self.faulty, Rule::Handlers, || {
                format!("{listener:?} was not called, at {value}")
            })?;
        }
        self.reported()
    }

    /// The report names each queue's next packet and each kernel, and what they wait for.
    fn reported(&mut self) -> Checked {
        let swapped = self.mutant.is_some_and(Mutant::swaps_barriers);
        let mut stuck = self.gpu.describe();
        if self.is(Mutant::ReportsLess) {
            stuck.waits.pop();
        }
        // Printing is part of it.
        ensure(stuck.to_string().ends_with('\n'), Rule::Report, || {
            format!("{stuck}")
        })?;
        let mut expected = 0;
        for queue in &self.queues {
            if queue.state == QueueState::Destroyed {
                continue;
            }
            let named = |packet: u64, what: &dyn Fn(&Wait) -> bool| {
                let mut waits = stuck.waits.iter();
                waits.any(|w| w.queue == queue.real.id() && w.packet == packet && what(w))
            };
            for kernel in &queue.running {
                let what = |wait: &Wait| match (&wait.waits, kernel.length) {
                    (Waits::KernelForever, Length::Forever) => true,
                    (Waits::KernelUntil(view), Length::Until(signal)) => view.signal == signal,
                    _ => false,
                };
                ensure(named(kernel.index, &what), Rule::Report, || {
                    format!("{kernel:?} is not in\n{stuck}")
                })?;
                expected += 1;
            }
            if queue.pending() == 0 {
                continue;
            }
            let why = queue.why(&self.signals);
            let tally = &mut self.tally;
            match why {
                Some(Why::Unpublished) => tally.waited_unpublished += 1,
                Some(Why::Earlier) => tally.waited_earlier += 1,
                Some(Why::Full) => tally.waited_full += 1,
                Some(Why::All | Why::Any) => tally.waited_signals += 1,
                _ => {}
            }
            let packet = queue.packet(queue.read);
            if let Meaning::And(named) | Meaning::Or(named) = packet::read(&packet) {
                let gone =
                    |s: &hsa_sys::hsa_signal_t| self.signals.known(*s) && !self.signals.alive(*s);
                tally.stale_waits += u64::from(named.iter().any(gone));
            }
            let behind = queue.pending() - 1 + queue.overflow.len() as u64;
            let what = |wait: &Wait| {
                let right = match (why, &wait.waits) {
                    (Some(Why::Stopped), Waits::Stopped)
                    | (Some(Why::Unpublished), Waits::Unpublished) => true,
                    (Some(Why::Earlier), Waits::Earlier(n)) | (Some(Why::Full), Waits::Full(n)) => {
                        *n == queue.running.len()
                    }
                    (Some(Why::All), Waits::Barrier(PacketType::BarrierAnd, _))
                    | (Some(Why::Any), Waits::Barrier(PacketType::BarrierOr, _)) => true,
                    (Some(Why::All | Why::Any), Waits::Barrier(..)) => swapped,
                    _ => false,
                };
                right && wait.behind == behind
            };
            ensure(named(queue.read, &what), Rule::Report, || {
                format!("packet {} ({why:?}) is not in\n{stuck}", queue.read)
            })?;
            expected += 1;
        }
        ensure(stuck.waits.len() == expected, Rule::Report, || {
            format!("{expected} wait, not as in\n{stuck}")
        })?;
        self.is_idle()
    }

    /// Whether anybody waits, by the GPU's own word.
    fn is_idle(&mut self) -> Checked {
        let busy = |q: &Shadow| {
            q.state == QueueState::Active
                && (q.pending() > 0 || !q.running.is_empty() || !q.overflow.is_empty())
        };
        let should = !self.queues.iter().any(busy);
        let found = self.gpu.is_idle();
        ensure(found == should, Rule::Standstill, || {
            format!("idle: {found}, which should be {should}")
        })?;
        ensure(self.gpu.stands_still(), Rule::Standstill, || {
            "nothing happens, and it does not stand still".into()
        })?;
        if should {
            self.tally.idle += 1;
        } else {
            self.tally.stuck += 1;
        }
        Ok(())
    }
}
