//! What the host does, on the GPU and on its shadow.

use super::mutant::Mutant;
use super::operation::{Case, Operation};
use super::packet::{SIGNALS, Signal};
use super::queue::Shadow;
use super::signals::{Listener, Signals};
use super::tally::Tally;
use super::violation::{Checked, Rule, Violation, ensure};
use hsa_sys::{AqlPacket, SignalCondition, hsa_signal_t, hsa_status_t};
use softgpu::{Config, QueueConfig, QueueId, QueueState, SignalKind, VirtualGpu};
use std::sync::{Arc, Mutex, PoisonError};

/// So many queues of a case, those that are gone included.
const QUEUES: usize = 12;
/// So many interrupt signals at a time.
const INTERRUPTS: u64 = 8;

/// Carries a case out, checks every step, and tells what was exercised.
///
/// # Errors
/// The first rule that the GPU broke. A panic of the emulator's goes through.
pub fn run(case: &Case) -> Result<Tally, Violation> {
    run_with(case, None)
}

/// The same on a GPU with a planted fault.
///
/// # Errors
/// The first rule that it broke.
pub fn run_with(case: &Case, mutant: Option<Mutant>) -> Result<Tally, Violation> {
    let mut machine = Machine::new(case, mutant);
    machine.start(case)?;
    for (i, &operation) in case.operations.iter().enumerate() {
        let done = machine.apply(operation).and_then(|()| machine.agree(false));
        done.map_err(|violation| Violation {
            operation: Some((i, operation)),
            ..violation
        })?;
    }
    machine.finish()?;
    Ok(machine.tally)
}

/// What a callback was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Handler { id: u64, value: i64, kept: bool },
    Error(QueueId, hsa_status_t),
}

pub(crate) type Log = Arc<Mutex<Vec<Heard>>>;

/// The GPU and its shadow.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) gpu: VirtualGpu,
    pub(crate) signals: Signals,
    /// In the order of their creation.
    pub(crate) queues: Vec<Shadow>,
    pub(crate) log: Log,
    pub(crate) mutant: Option<Mutant>,
    pub(crate) tally: Tally,
    /// Handlers may have been called late, twice, or not at all.
    pub(crate) faulty: bool,
    pub(crate) handlers_dead: bool,
    /// So many kernels were launched.
    pub(crate) started: u64,
    next_kernel: u32,
    next_listener: u64,
    on: bool,
}

impl Machine {
    fn new(case: &Case, mutant: Option<Mutant>) -> Self {
        Self {
            gpu: VirtualGpu::new(Config {
                seed: case.seed.into(),
                signals: SIGNALS,
                interrupt_signals: INTERRUPTS,
                punctual: case.punctual,
                ..Config::default()
            }),
            signals: Signals::default(),
            queues: Vec::new(),
            log: Log::default(),
            mutant,
            tally: Tally::default(),
            faulty: false,
            handlers_dead: false,
            started: 0,
            next_kernel: 0,
            next_listener: 0,
            on: false,
        }
    }

    /// Two queues and some signals, so that the first operations have something to do.
    fn start(&mut self, case: &Case) -> Checked {
        for slots in case.slots {
            self.create_queue(slots, 0, false)?;
        }
        for value in [1, 0, 2, 1] {
            self.create_signal(value, true)?;
        }
        Ok(())
    }

    pub(crate) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    fn signal(&self, signal: Signal) -> hsa_signal_t {
        signal.resolve(&self.signals.given)
    }

    /// A queue: mostly one that is alive, now and then one of all.
    pub(crate) fn choose(&self, choice: u8) -> Option<usize> {
        let any = choice >= 240;
        let is = |place: &usize| any || self.queues[*place].state != QueueState::Destroyed;
        let of = || (0..self.queues.len()).filter(is);
        of().nth(usize::from(choice) % of().count().max(1))
    }

    pub(crate) fn queue(&mut self, choice: u8) -> Option<&mut Shadow> {
        self.choose(choice).map(|place| &mut self.queues[place])
    }

    pub(crate) fn apply(&mut self, operation: Operation) -> Checked {
        match operation {
            Operation::Put(queue, blueprint) => {
                let packet = self.draw(|given, id| blueprint.packet(given, id));
                self.put(queue, packet)
            }
            Operation::Submit(queue, blueprint, n) => {
                let mut batch = Vec::new();
                for _ in 0..n {
                    batch.push(self.draw(|given, id| blueprint.packet(given, id)));
                }
                self.submit(queue, &batch)
            }
            Operation::Reserve(queue, n) => self.reserve(queue, n).map(drop),
            Operation::Write(queue, at, blueprint) => {
                let packet = self.draw(|given, id| blueprint.packet(given, id));
                self.write(queue, at, &packet);
                Ok(())
            }
            Operation::Publish(queue, at, header) => {
                self.publish(queue, at, header);
                Ok(())
            }
            Operation::Ring(queue, at) => {
                self.ring(queue, at);
                Ok(())
            }
            Operation::Poke(queue, at, word, value) => {
                self.poke(queue, at, word, value);
                Ok(())
            }
            Operation::Steps(n) => self.steps(n.into()),
            Operation::For(ns) => self.steps_for(ns),
            Operation::Settle => self.settle(),
            Operation::Store(signal, value) => {
                let signal = self.signal(signal);
                self.gpu.signals().store(signal, value);
                self.signals.set(signal, value);
                Ok(())
            }
            Operation::Subtract(signal, n) => {
                let signal = self.signal(signal);
                self.gpu.signals().subtract(signal, n);
                self.signals.subtract(signal, n);
                Ok(())
            }
            Operation::Exchange(signal, expected, desired) => {
                self.exchange(signal, expected, desired)
            }
            Operation::CreateSignal(value, interrupt) => self.create_signal(value, interrupt),
            Operation::DestroySignal(signal) => self.destroy_signal(signal),
            Operation::Listen(signal, condition, compare, again) => {
                self.listen(signal, condition, compare, again)
            }
            Operation::CreateQueue {
                slots,
                most_running,
                intercepted,
            } => self.create_queue(slots, most_running, intercepted),
            Operation::DestroyQueue(queue) => self.destroy_queue(queue),
            Operation::InactivateQueue(queue) => self.inactivate_queue(queue),
            Operation::Faults(bits, late_by) => {
                self.inject(bits, late_by);
                Ok(())
            }
            Operation::Toggle => {
                self.toggle();
                Ok(())
            }
        }
    }

    fn draw(&mut self, packet: impl Fn(&[hsa_signal_t], u32) -> AqlPacket) -> AqlPacket {
        self.next_kernel += 1;
        packet(&self.signals.given, self.next_kernel)
    }

    fn exchange(&mut self, signal: Signal, expected: i64, desired: i64) -> Checked {
        let signal = self.signal(signal);
        let before = self
            .gpu
            .signals()
            .compare_exchange(signal, expected, desired);
        let should = self.signals.value(signal);
        if should == expected {
            self.signals.set(signal, desired);
        }
        ensure(before == should, Rule::Signals, || {
            format!("exchange saw {before}, not {should}")
        })
    }

    fn create_signal(&mut self, value: i64, interrupt: bool) -> Checked {
        let kind = if interrupt {
            SignalKind::Interrupt
        } else {
            SignalKind::GpuOnly
        };
        let room = self.signals.live() < SIGNALS
            && (!interrupt || (self.signals.live_interrupt() as u64) < INTERRUPTS);
        match self.gpu.signals().create(value, kind) {
            Ok(signal) if room => self.signals.created(signal, value, interrupt),
            Err(hsa_status_t::ERROR_OUT_OF_RESOURCES) if !room => {
                self.tally.no_signal += 1;
                Ok(())
            }
            other => ensure(false, Rule::Answer, || {
                format!("a signal was created as {other:?}; there was room: {room}")
            }),
        }
    }

    fn destroy_signal(&mut self, signal: Signal) -> Checked {
        let signal = self.signal(signal);
        let answer = self.gpu.signals().destroy(signal).is_ok();
        let should = self.signals.destroyed(signal);
        ensure(answer == should, Rule::Answer, || {
            format!("destroying a signal succeeded: {answer}")
        })
    }

    fn listen(&mut self, signal: Signal, condition: u8, compare: i64, again: u8) -> Checked {
        let signal = self.signal(signal);
        let condition = match condition % 4 {
            0 => SignalCondition::Eq,
            1 => SignalCondition::Ne,
            2 => SignalCondition::Lt,
            _ => SignalCondition::Gte,
        };
        self.next_listener += 1;
        let (id, log) = (self.next_listener, self.log.clone());
        let mut again = again;
        let call = move |value| {
            let kept = again > 0;
            again = again.saturating_sub(1);
            heard(&log, Heard::Handler { id, value, kept });
            kept
        };
        let (of, than) = if self.is(Mutant::CallsTooSoon) {
            (SignalCondition::Gte, i64::MIN)
        } else {
            (condition, compare)
        };
        let signals = self.gpu.signals();
        let answer = signals.on_signal(signal, of, than, Box::new(call)).is_ok();
        let should = self.signals.alive(signal);
        if should {
            self.signals.listeners.push(Listener {
                id,
                signal,
                condition,
                compare,
            });
        }
        ensure(answer == should, Rule::Answer, || {
            format!("registering a handler succeeded: {answer}")
        })
    }

    fn create_queue(&mut self, slots: usize, most_running: usize, intercepted: bool) -> Checked {
        if self.queues.len() == QUEUES {
            return Ok(());
        }
        let log = self.log.clone();
        let hides = self.is(Mutant::HidesFault);
        let right = slots == 0 || slots.is_power_of_two() && slots <= softgpu::MOST_SLOTS;
        let given = if right || !self.is(Mutant::TakesAnySize) {
            slots
        } else {
            1
        };
        let config = QueueConfig {
            slots: given,
            most_running: if self.is(Mutant::RunsTooMany) {
                usize::MAX
            } else {
                most_running
            },
            on_error: (!hides).then(|| -> Box<dyn FnMut(QueueId, hsa_status_t) + Send> {
                Box::new(move |queue, status| heard(&log, Heard::Error(queue, status)))
            }),
            interceptor: intercepted.then(|| -> softgpu::Interceptor {
                Box::new(|packets, out| out.extend_from_slice(packets))
            }),
            ..Default::default()
        };
        match self.gpu.create_queue(self.gpu.agent(0), config) {
            Ok(queue) if right => self.queues.push(Shadow::new(queue, slots, most_running)),
            Err(hsa_status_t::ERROR_INVALID_QUEUE_CREATION) if !right => self.tally.bad_sizes += 1,
            other => {
                return ensure(false, Rule::Answer, || {
                    format!("a queue of {slots} slots was created as {other:?}")
                });
            }
        }
        Ok(())
    }

    fn destroy_queue(&mut self, queue: u8) -> Checked {
        let gpu = self.gpu.gpu().clone();
        let Some(shadow) = self.queue(queue) else {
            return Ok(());
        };
        let answer = gpu.destroy_queue(&shadow.real).is_ok();
        let should = shadow.state != QueueState::Destroyed;
        if should {
            let (ran, dropped) = (shadow.running.len() as u64, shadow.dropped);
            shadow.stop(QueueState::Destroyed);
            let dropped = shadow.dropped - dropped;
            self.tally.abandoned += ran;
            self.tally.dropped += dropped;
        }
        ensure(answer == should, Rule::Answer, || {
            format!("destroying a queue succeeded: {answer}")
        })
    }

    fn inject(&mut self, bits: u8, late_by: u64) {
        let half = |bit: u8| f64::from(bits >> bit & 1) / 2.0;
        self.faulty = true;
        self.handlers_dead = bits & 0b1000_1000 == 0b1000_1000;
        self.gpu.faults().change(|plan| {
            plan.handler_twice = half(0);
            plan.handler_late = half(1);
            plan.handler_after_destroy = half(2);
            plan.late_by = late_by;
            plan.handlers_dead = bits & 0b1000_1000 == 0b1000_1000;
        });
    }

    fn toggle(&mut self) {
        self.on = !self.on;
        let (witness, agent) = (self.gpu.witness(), self.gpu.agent(0));
        if self.on {
            witness.enable_begin(agent);
            witness.enable_end(agent);
        } else {
            witness.disable_begin(agent);
            witness.disable_end(agent);
        }
    }

    /// Everything runs to its end, handlers that were held up included; then all queues go.
    fn finish(&mut self) -> Checked {
        self.handlers_dead = false;
        self.gpu.faults().change(|plan| *plan = Default::default());
        self.settle()?;
        for shadow in &mut self.queues {
            let alive = shadow.state != QueueState::Destroyed;
            let answer = self.gpu.gpu().destroy_queue(&shadow.real).is_ok();
            ensure(answer == alive, Rule::Answer, || {
                format!("destroying a queue at the end succeeded: {answer}")
            })?;
            if alive {
                shadow.stop(QueueState::Destroyed);
            }
        }
        self.settle()?;
        ensure(self.gpu.is_idle(), Rule::Standstill, || {
            "busy without a queue".into()
        })
    }

    /// The GPU is as its shadow says.
    pub(crate) fn agree(&self, all: bool) -> Checked {
        self.signals.agree(self.gpu.signals(), all)?;
        self.queues.iter().try_for_each(Shadow::agree)?;
        let stats = self.gpu.witness().kernels(self.gpu.agent(0));
        let running: usize = self.queues.iter().map(|queue| queue.running.len()).sum();
        let sum = stats.ended + stats.abandoned + running as u64;
        let right = stats.started == self.started && stats.started == sum;
        ensure(right, Rule::Counts, || {
            format!("{stats:?}, where {running} of {} run", self.started)
        })
    }
}

fn heard(log: &Log, what: Heard) {
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    log.push(what);
}
