//! Carrying a case out.

use crate::fault::Fault;
use crate::operation::{Case, Kind, Operation, Setup};
use crate::runtime::Shared;
use crate::subject::Subject;
use crate::tally::Tally;
use crate::violation::{Checked, Violation};
use crate::world::World;
use hsa_serializer::{BarrierHandle, Domain, Outcome, Queue, QueueId, Serializer};
use std::sync::{Arc, MutexGuard, OnceLock};

/// Carries a case out, checks everything after every step, and tells what was exercised.
///
/// # Errors
/// The first violation. A panic of the serializer's goes through.
pub fn run(case: &Case) -> Result<Tally, Violation> {
    run_with(case, None)
}

/// The same with a planted fault.
///
/// # Errors
/// The first violation.
pub fn run_with(case: &Case, fault: Option<Fault>) -> Result<Tally, Violation> {
    let mut run = Run::new(case.setup, fault);
    for (i, &operation) in case.operations.iter().enumerate() {
        run.apply(operation)
            .and_then(|()| run.check())
            .map_err(|violation| Violation {
                step: Some((i, operation)),
                ..violation
            })?;
        run.shared.world().tally.steps += 1;
    }
    run.finish()
}

/// A queue's host side.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) id: QueueId,
    pub(crate) half: Option<Queue<Shared>>,
}

/// A barrier that was armed by itself.
#[derive(Debug)]
pub(crate) struct Armed {
    pub(crate) period: usize,
    pub(crate) handle: BarrierHandle<Shared>,
    pub(crate) outcome: Arc<OnceLock<Outcome>>,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) setup: Setup,
    pub(crate) fault: Option<Fault>,
    pub(crate) shared: Shared,
    pub(crate) subject: Subject,
    pub(crate) hosts: Vec<Host>,
    /// Each dispatch's ticket.
    pub(crate) tickets: Vec<[u64; 2]>,
    /// Dispatches whose completion the host has lost.
    pub(crate) lost: Vec<usize>,
    /// Queues that are destroyed, of which the serializer has not been told.
    pub(crate) unsaid: Vec<usize>,
    pub(crate) barriers: Vec<Armed>,
    /// Another serializer, with a runtime of its own.
    pub(crate) foreign: Option<(Serializer<Shared>, Queue<Shared>)>,
    /// Dispatches that were made on queues that were gone, which may or may not show in statistics.
    pub(crate) on_gone: u64,
    pub(crate) misuse: u64,
}

impl Run {
    fn new(setup: Setup, fault: Option<Fault>) -> Self {
        let serializes = setup.kind == Kind::Serializer;
        let shared = Shared::new(World::new(serializes, fault));
        let builder = Serializer::<Shared>::builder()
            .domain(Domain::new())
            .starting_at(setup.start.0, setup.start.1);
        Self {
            setup,
            fault,
            subject: Subject::new(setup.kind, builder, shared.clone()),
            shared,
            hosts: Vec::new(),
            tickets: Vec::new(),
            lost: Vec::new(),
            unsaid: Vec::new(),
            barriers: Vec::new(),
            foreign: None,
            on_gone: 0,
            misuse: 0,
        }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world()
    }

    fn apply(&mut self, operation: Operation) -> Checked {
        match operation {
            Operation::Collect => {
                self.subject.collect();
                Ok(())
            }
            Operation::AddQueue(failure) => self.add_queue(failure),
            Operation::Dispatch { queue, shape } => self.dispatch(queue, shape),
            Operation::ShortArray { queue, given } => self.short_array(queue, given),
            Operation::Wait { queue, on } => {
                self.wait(queue, on);
                Ok(())
            }
            Operation::GpuStep { queue, choice } => self.gpu_step(queue, choice),
            Operation::Gpu { steps, seed } => self.gpu(steps, seed),
            Operation::Ready { choice } => {
                let due = self.world().handlers_due();
                pick(&due, choice).map_or(Ok(()), |id| self.ready(id))
            }
            Operation::ReadyAgain { queue } => {
                let ids: Vec<_> = self.hosts.iter().map(|h| h.id).collect();
                self.world().tally.ready_again += u64::from(!ids.is_empty());
                pick(&ids, queue).map_or(Ok(()), |id| self.ready(id))
            }
            Operation::Complete { choice } => self.complete_some(choice),
            Operation::Lose { choice } => {
                self.lose(choice);
                Ok(())
            }
            Operation::Repeat { choice } => self.repeat(choice),
            Operation::Foreign { choice } => self.complete_foreign(choice),
            Operation::Enable(failure) => self.change(true, failure),
            Operation::Disable(failure) => self.change(false, failure),
            Operation::Destroy { queue, say } => self.destroy(queue, say),
            Operation::Say { choice } => {
                pick(&self.unsaid, choice).map_or(Ok(()), |queue| self.say(queue))
            }
            Operation::SayAgain { queue } => self.say_again(queue),
            Operation::DropHalf { queue } => {
                let halves = self.halves();
                if let Some(queue) = pick(&halves, queue) {
                    self.hosts[queue].half = None;
                }
                Ok(())
            }
            Operation::Drain { barrier, queue } => self.drain(barrier, queue),
            Operation::Shutdown => {
                if let Subject::Serializer(serializer) = &self.subject {
                    serializer.begin_shutdown();
                    self.world().model.shut_down = true;
                    self.world().tally.shutdowns += 1;
                }
                Ok(())
            }
        }
    }

    /// Queues whose dispatching half is there.
    pub(crate) fn halves(&self) -> Vec<usize> {
        let has_half = |&q: &usize| self.hosts[q].half.is_some();
        (0..self.hosts.len()).filter(has_half).collect()
    }

    /// Queues that the GPU has.
    pub(crate) fn live(&self) -> Vec<usize> {
        let world = self.world();
        let is_live = |&q: &usize| !world.gpu.is_gone(q);
        (0..self.hosts.len()).filter(is_live).collect()
    }

    pub(crate) fn queue_of(&self, id: QueueId) -> Option<usize> {
        self.hosts.iter().position(|h| h.id == id)
    }
}

/// One of them, if there are any.
pub(crate) fn pick<T: Clone>(of: &[T], choice: u8) -> Option<T> {
    let index = usize::from(choice).checked_rem(of.len())?;
    of.get(index).cloned()
}

/// A small generator for orders (splitmix).
#[derive(Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % n.max(1) as u64) as usize
    }
}
