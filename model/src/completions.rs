//! Completions: reported, lost, reported twice, reported to the wrong serializer.

use crate::calls::wrong;
use crate::oracle::Stage;
use crate::run::{Run, pick};
use crate::runtime::Shared;
use crate::violation::{Checked, Rule, ensure};
use crate::world::World;
use hsa_serializer::{
    AqlPacket, CompleteErrorReason, Completion, Domain, MAX_PACKETS, Misuse, Report, Serializer,
    Ticket,
};

impl Run {
    pub(crate) fn complete_some(&mut self, choice: u8) -> Checked {
        let notice = {
            let mut world = self.world();
            let count = world.notices.len();
            usize::from(choice)
                .checked_rem(count)
                .map(|i| world.notices.swap_remove(i))
        };
        notice.map_or(Ok(()), |dispatch| self.complete(dispatch))
    }

    pub(crate) fn complete(&mut self, dispatch: usize) -> Checked {
        let counted = {
            let mut world = self.world();
            let queue = world.model.dispatches[dispatch].queue;
            let overtaken = world.model.dispatches[dispatch].overtaken;
            let forced = world
                .model
                .periods
                .iter()
                .filter(|p| p.was_let_through(dispatch));
            let forced = forced.count() > 0;
            let earlier = world.model.dispatches[..dispatch]
                .iter()
                .any(|d| d.queue == queue && !d.reported);
            let counted = world.model.report(dispatch);
            world.tally.overtaking_completions += u64::from(earlier && counted);
            world.tally.late_completions += u64::from(!counted);
            world.tally.overtaken_completions += u64::from(overtaken && counted);
            world.tally.forced_completions += u64::from(forced && counted);
            counted
        };
        let right = if counted {
            Completion::Counted
        } else {
            Completion::QueueGone
        };
        match self
            .subject
            .complete(Ticket::from_raw(self.tickets[dispatch]))
        {
            Ok(answer) if answer == right => {}
            other => return wrong("complete", other),
        }
        if counted {
            self.check_reset(dispatch)
        } else {
            Ok(())
        }
    }

    /// A serialized kernel's completion sets its queue's signals back.
    fn check_reset(&self, dispatch: usize) -> Checked {
        let world = self.world();
        if world.model.stage >= Stage::Released {
            // Nobody waits for them any more.
            return Ok(());
        }
        let dispatch = world.model.dispatches[dispatch];
        let q = &world.model.queues[dispatch.queue];
        let values = [q.ready, q.block].map(|s| s.and_then(|s| world.signals.value_of(s)));
        ensure(
            !dispatch.serialized || values == [Some(0), Some(1)],
            Rule::TokenLost,
            || format!("ready and block of queue {} are {values:?}", dispatch.queue),
        )
    }

    pub(crate) fn lose(&mut self, choice: u8) {
        let notices = self.world().notices.clone();
        if let Some(dispatch) = pick(&notices, choice) {
            let mut world = self.world();
            world.notices.retain(|&d| d != dispatch);
            world.tally.completions_lost += 1;
            drop(world);
            self.lost.push(dispatch);
        }
    }

    pub(crate) fn repeat(&mut self, choice: u8) -> Checked {
        let (dispatch, queue, removed) = {
            let world = self.world();
            let model = &world.model;
            if model.stage == Stage::Left {
                // What is passed on as it is then may be counted, so that it can't be told.
                return Ok(());
            }
            let can_be_told = |&d: &usize| {
                let q = model.dispatches[d].queue;
                model.dispatches[d].reported && (model.queues[q].removed || model.in_flight(q) == 0)
            };
            let used: Vec<_> = (0..model.dispatches.len()).filter(can_be_told).collect();
            let Some(dispatch) = pick(&used, choice) else {
                return Ok(());
            };
            let queue = model.dispatches[dispatch].queue;
            (dispatch, queue, model.queues[queue].removed)
        };
        let raw = self.tickets[dispatch];
        let releases = !removed && self.is_to_release();
        match self.subject.complete(Ticket::from_raw(raw)) {
            Ok(Completion::QueueGone) if removed => Ok(()),
            Err(error) if !removed && error.reason == CompleteErrorReason::Ahead => {
                let back = error.ticket.into_raw();
                ensure(back == raw, Rule::Answer, || {
                    "another ticket came back".into()
                })?;
                self.world().tally.completions_ahead += 1;
                self.told(Misuse::CompletionAhead(self.hosts[queue].id), releases)
            }
            other => wrong("complete", other),
        }
    }

    /// Misuse is about to be committed; whether it lets everything through.
    fn is_to_release(&self) -> bool {
        if !self.setup.releases || self.world().model.stage >= Stage::Released {
            return false;
        }
        self.releases();
        self.world().tally.released_for_misuse += 1;
        true
    }

    /// The misuse that was just committed has been reported, and what was done about it. After the
    /// end it is told to nobody, and where everything was left it is not even counted.
    fn told(&mut self, misuse: Misuse, released: bool) -> Checked {
        let stage = {
            let mut world = self.world();
            world.model.forcing = 0;
            world.model.stage
        };
        self.misuse += u64::from(stage != Stage::Left);
        let mut told = vec![Report::Misuse(misuse)];
        told.extend(released.then_some(Report::Released));
        told.retain(|_| stage < Stage::Finished);
        let reports = std::mem::take(&mut self.world().reports);
        ensure(reports == told, Rule::Reports, || {
            format!("{told:?} was due; {reports:?}")
        })
    }

    pub(crate) fn complete_foreign(&mut self, choice: u8) -> Checked {
        let ticket = if choice & 1 == 0 {
            Ticket::from_raw([u64::from(choice), u64::from(choice) << 32])
        } else {
            if self.foreign.is_none() {
                let runtime = Shared::new(World::new(true, 0, None));
                let serializer = Serializer::<Shared>::builder()
                    .domain(Domain::new())
                    .build(runtime);
                match serializer.add_queue() {
                    Ok(queue) => self.foreign = Some((serializer, queue)),
                    Err(error) => return wrong("add_queue", error),
                }
            }
            let Some((_, queue)) = &mut self.foreign else {
                return Ok(());
            };
            match queue.dispatch(&mut [AqlPacket::INVALID; MAX_PACKETS]) {
                Ok(got) => got.ticket,
                Err(error) => return wrong("dispatch", error),
            }
        };
        self.world().tally.completions_foreign += 1;
        let queue = ticket.queue();
        let releases = self.is_to_release();
        let refused = match self.subject.complete(ticket) {
            Err(error) if error.reason == CompleteErrorReason::Foreign => error.ticket,
            other => return wrong("complete", other),
        };
        self.told(Misuse::ForeignTicket(queue), releases)?;
        match &self.foreign {
            Some((serializer, queue)) if refused.queue() == queue.id() => {
                match serializer.complete(refused) {
                    Ok(Completion::Counted) => Ok(()),
                    other => wrong("complete", other),
                }
            }
            _ => {
                let _ = refused.into_raw();
                Ok(())
            }
        }
    }
}
