//! Virtual time: one thread, one step at a time, every choice drawn from the seed.
//!
//! At each step everything that could happen next is listed: a queue's next packet is launched, a
//! kernel whose time is over ends, a handler that is due is called, packets move on from an
//! overflow, or time goes on to the next moment at which something more becomes possible. One is
//! drawn. A kernel may so end well after its time, and a handler come long after its signal: no
//! order that the real machine allows is ruled out. Where times are to be measured instead,
//! [`Config::punctual`] lets time go on only when nothing else can happen.

use crate::clock::Clock;
use crate::gpu::{Config, Gpu};
use crate::handler::Called;
use crate::report::Stuck;
use crate::violation::QueueId;
use hsa_sys::hsa_signal_t;
use std::ops::Deref;

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// A packet was launched; one that is no kernel is complete as well.
    Launched {
        /// Its queue.
        queue: QueueId,
        /// Its index.
        packet: u64,
    },
    /// A kernel ended, by a fault perhaps.
    Ended {
        /// Its queue.
        queue: QueueId,
        /// Its index.
        packet: u64,
    },
    /// A handler was called.
    Called {
        /// Its signal.
        signal: hsa_signal_t,
        /// Whether it answered true.
        kept: bool,
    },
    /// A queue's error callback was called.
    ErrorTold {
        /// The queue.
        queue: QueueId,
    },
    /// Packets moved from the overflow into the ring.
    Refilled {
        /// The queue.
        queue: QueueId,
        /// How many.
        packets: usize,
    },
    /// Time went on.
    Advanced {
        /// To when.
        to: u64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Choice {
    Launch(usize),
    End(usize, usize),
    Refill(usize),
    Advance(u64),
}

/// So many calls of handlers in a row, all of which ask to be called again, are no progress.
const SPINNING: u64 = 10_000;

/// A machine that is run step by step by whoever owns it.
///
/// Dropping it destroys all queues and forgets all handlers.
#[derive(Debug)]
pub struct VirtualGpu {
    gpu: Gpu,
    punctual: bool,
    choices: Vec<Choice>,
    steps: u64,
    trace: u64,
    kept: u64,
}

impl Deref for VirtualGpu {
    type Target = Gpu;

    fn deref(&self) -> &Gpu {
        &self.gpu
    }
}

impl VirtualGpu {
    /// A machine at time 0.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            gpu: Gpu::new(&config, Clock::new_virtual()),
            punctual: config.punctual,
            choices: Vec::new(),
            steps: 0,
            // The offset basis of FNV-1a.
            trace: 0xcbf2_9ce4_8422_2325,
            kept: 0,
        }
    }

    /// The machine's handle, to be cloned.
    #[must_use]
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Steps taken.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// A hash of all that happened and when: equal for equal runs.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.trace
    }

    /// A number below `n` from the machine's seed, for choices of the host's own.
    ///
    /// # Panics
    /// If `n` is 0.
    #[must_use]
    pub fn draw(&self, n: u64) -> u64 {
        self.shared().dice.below(n)
    }

    /// Lets one thing happen; `None` if nothing can.
    pub fn step(&mut self) -> Option<Step> {
        self.step_within(None)
    }

    /// Lets one thing happen, with time going no further than `limit`. `None` if nothing can happen
    /// any more by then; it is `limit` then, or later if it was before, and the host can do
    /// something at that moment.
    pub fn step_until(&mut self, limit: u64) -> Option<Step> {
        self.step_within(Some(limit))
    }

    fn step_within(&mut self, limit: Option<u64>) -> Option<Step> {
        loop {
            let handlers = self.list_choices(limit);
            let all = self.choices.len() + handlers;
            if all == 0 {
                return None;
            }
            let drawn = self.draw(all as u64) as usize;
            let step = match self.choices.get(drawn) {
                Some(choice) => Some(self.take(*choice)),
                None => self.call(),
            };
            if let Some(step) = step {
                self.record(&step);
                return Some(step);
            }
        }
    }

    /// Steps until nothing can happen any more; how many steps that took.
    ///
    /// # Errors
    /// Who waits for whom, if something is pending that can't go on (kernels that never end
    /// included), or if handlers do nothing but ask to be called again.
    pub fn run_until_idle(&mut self) -> Result<u64, Stuck> {
        let before = self.steps;
        self.kept = 0;
        while self.step().is_some() {
            if self.kept >= SPINNING {
                return Err(self.describe());
            }
        }
        if self.is_idle() {
            Ok(self.steps - before)
        } else {
            Err(self.describe())
        }
    }

    /// Steps until `done` says so; how many steps that took.
    ///
    /// # Errors
    /// Who waits for whom, if nothing can happen any more before that.
    pub fn run_until(&mut self, mut done: impl FnMut() -> bool) -> Result<u64, Stuck> {
        let before = self.steps;
        self.kept = 0;
        while !done() {
            if self.step().is_none() || self.kept >= SPINNING {
                return Err(self.describe());
            }
        }
        Ok(self.steps - before)
    }

    /// Lists what can happen beside calls of handlers, and says how many of those there are.
    fn list_choices(&mut self, limit: Option<u64>) -> usize {
        self.choices.clear();
        let shared = self.gpu.shared().clone();
        let now = shared.clock.now();
        let mut next = shared.signals.handlers.next_late().filter(|due| *due > now);
        for (n, queue) in self.gpu.list().iter().enumerate() {
            let processor = queue.processor.lock();
            if queue.blocked(&processor).is_none() {
                self.choices.push(Choice::Launch(n));
            }
            let ends = (0..processor.running().len())
                .filter(|place| processor.may_end(&**queue, *place, now))
                .map(|place| Choice::End(n, place));
            self.choices.extend(ends);
            if queue.can_refill() {
                self.choices.push(Choice::Refill(n));
            }
            next = next.into_iter().chain(processor.next_deadline(now)).min();
        }
        if let Some(limit) = limit {
            let by_then = next.map_or(limit, |next| next.min(limit));
            next = (by_then > now).then_some(by_then);
        }
        let handlers = shared.signals.handlers.ready();
        if !self.punctual || self.choices.is_empty() && handlers == 0 {
            self.choices.extend(next.map(Choice::Advance));
        }
        handlers
    }

    fn take(&mut self, choice: Choice) -> Step {
        let shared = self.gpu.shared();
        let list = self.gpu.list();
        match choice {
            Choice::Launch(n) => {
                let queue = &list[n];
                let packet = queue.ring.read_index();
                queue.processor.lock().launch(&**queue, packet);
                shared.progressed();
                Step::Launched {
                    queue: queue.id,
                    packet,
                }
            }
            Choice::End(n, place) => {
                let queue = &list[n];
                let mut processor = queue.processor.lock();
                let packet = processor.running()[place].packet;
                queue.end(&mut processor, place);
                Step::Ended {
                    queue: queue.id,
                    packet,
                }
            }
            Choice::Refill(n) => Step::Refilled {
                queue: list[n].id,
                packets: list[n].refill(),
            },
            Choice::Advance(to) => {
                shared.clock.advance_to(to);
                Step::Advanced { to }
            }
        }
    }

    fn call(&mut self) -> Option<Step> {
        let signals = self.gpu.signals();
        Some(match signals.handlers.call_one(signals)? {
            Called::Handler { signal, kept } => Step::Called { signal, kept },
            Called::Error(queue) => Step::ErrorTold { queue },
        })
    }

    fn record(&mut self, step: &Step) {
        self.steps += 1;
        match step {
            Step::Called { kept: true, .. } => self.kept += 1,
            // Time alone helps nobody who spins.
            Step::Advanced { .. } => {}
            _ => self.kept = 0,
        }
        let (kind, a, b) = match *step {
            Step::Launched { queue, packet } => (1, queue.0, packet),
            Step::Ended { queue, packet } => (2, queue.0, packet),
            Step::Called { signal, kept } => (3, signal.handle, u64::from(kept)),
            Step::ErrorTold { queue } => (4, queue.0, 0),
            Step::Refilled { queue, packets } => (5, queue.0, packets as u64),
            Step::Advanced { to } => (6, to, 0),
        };
        for word in [kind, a, b, self.gpu.now()] {
            for byte in word.to_le_bytes() {
                self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
    }
}

impl Drop for VirtualGpu {
    fn drop(&mut self) {
        self.gpu.shut_down();
    }
}
