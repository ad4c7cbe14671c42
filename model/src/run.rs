//! One serializer's part of a case, carried out.

use crate::cuts::Made;
use crate::fault::Fault;
use crate::operation::{Kind, Operation, Setup};
use crate::requests::Wish;
use crate::runtime::Shared;
use crate::stalls::Watcher;
use crate::subject::Subject;
use crate::violation::Checked;
use crate::world::World;
use hsa_serializer::{
    BarrierHandle, Domain, OnMisuse, Outcome, Queue, QueueId, Request, Serializer,
};
use std::sync::{Arc, MutexGuard, OnceLock};

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
    pub(crate) cuts: Vec<Made>,
    /// The guards that live.
    pub(crate) requests: Vec<Request<Shared>>,
    pub(crate) watchers: Vec<Watcher>,
    /// The time that who looks for stalls goes by.
    pub(crate) clock: u64,
}

impl Run {
    pub(crate) fn new(setup: Setup, fault: Option<Fault>) -> Self {
        let serializes = setup.kind == Kind::Serializer;
        let shared = Shared::new(World::new(serializes, setup.start.0 & !1, fault));
        let on_misuse = if setup.releases {
            OnMisuse::Release
        } else {
            OnMisuse::GoOn
        };
        let builder = Serializer::<Shared>::builder()
            .domain(Domain::new())
            .on_misuse(on_misuse)
            .starting_at(setup.start.0, setup.start.1);
        let subject = Subject::new(setup.kind, builder, shared.clone());
        Self {
            setup,
            fault,
            watchers: subject.watchers(),
            subject,
            shared,
            hosts: Vec::new(),
            tickets: Vec::new(),
            lost: Vec::new(),
            unsaid: Vec::new(),
            barriers: Vec::new(),
            foreign: None,
            on_gone: 0,
            misuse: 0,
            cuts: Vec::new(),
            requests: Vec::new(),
            clock: 0,
        }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world()
    }

    /// Carries an operation out and checks everything.
    pub(crate) fn step(&mut self, operation: Operation) -> Checked {
        self.apply(operation)?;
        self.check()?;
        self.world().tally.steps += 1;
        Ok(())
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
            Operation::Enable(failure) => self.change(Wish::Switch(true), failure),
            Operation::Disable(failure) => self.change(Wish::Switch(false), failure),
            Operation::Request { failure, by_hand } => self.request(failure, by_hand),
            Operation::EndRequest { choice, drops } => self.end_request(choice, drops),
            Operation::Release => self.release(),
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
            Operation::Unseen { queue, overlaps } => {
                self.unseen(queue, overlaps);
                Ok(())
            }
            Operation::Gap {
                queue,
                kernels,
                failure,
            } => self.gap(queue, kernels, failure),
            Operation::Cut { failure, drain } => self.cut(failure, drain),
            Operation::Stalls { advance, release } => {
                self.check_stalls(advance.into(), release).map(drop)
            }
            Operation::Shutdown => {
                self.begin_shutdown();
                Ok(())
            }
            Operation::Finish { steps, seed } => {
                self.finish_shutdown(steps % 64, &mut Dice(seed.into()))
            }
            Operation::Leave => {
                self.leave();
                Ok(())
            }
            Operation::ReleaseAll => {
                self.release_all();
                Ok(())
            }
            // Of several serializers, not of one.
            Operation::Fresh | Operation::Switch { .. } => Ok(()),
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
