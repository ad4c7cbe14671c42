//! What a serializer's events tell: spans with a begin and an end.

use super::{AgentTimeline, nanos};
use hsa_serializer::{Event, Mode, QueueId};
use std::collections::HashMap;

/// A transition barrier, from being armed to letting go.
#[derive(Debug)]
pub(super) struct BarrierSpan {
    pub(super) epoch: u32,
    pub(super) begin: u64,
    pub(super) end: u64,
    /// How it ended; `None` if it had not.
    pub(super) ended: Option<Event>,
    /// How many queues it waited for.
    pub(super) waits_for: u32,
    /// When its packet was taken along, and by which dispatch.
    pub(super) tags: Vec<(u64, QueueId, u64)>,
}

/// A queue's turn, from the grant to being given back or taken away.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) queue: QueueId,
    /// How long the queue had waited for it.
    pub(super) waited: u64,
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) overtaken: bool,
}

/// What happened on one GPU.
#[derive(Debug, Default)]
pub(super) struct Story {
    pub(super) barriers: Vec<BarrierSpan>,
    pub(super) turns: Vec<Turn>,
    /// How kernels ran, since when, and until when.
    pub(super) modes: Vec<(Mode, u64, u64)>,
    /// What stands for itself.
    pub(super) moments: Vec<(u64, Event)>,
}

impl Story {
    /// What is still open at the end ends with the last thing that happened.
    pub(super) fn of(agent: &AgentTimeline) -> Self {
        let ends = agent.kernels.iter().map(|kernel| kernel.nanos().1);
        let happened = agent.events.iter().map(|(at, _)| nanos(*at));
        let last = ends.chain(happened).max().unwrap_or(0);
        let mut story = Self::default();
        let mut armed: HashMap<u32, usize> = HashMap::new();
        let mut granted: HashMap<QueueId, usize> = HashMap::new();
        for (at, event) in &agent.events {
            let at = nanos(*at);
            match *event {
                Event::Transition { mode, .. } => {
                    if let Some((_, _, until)) = story.modes.last_mut() {
                        *until = at;
                    }
                    story.modes.push((mode, at, last));
                }
                Event::Made { epoch, .. } => {
                    armed.insert(epoch, story.barriers.len());
                    story.barriers.push(BarrierSpan {
                        epoch,
                        begin: at,
                        end: last,
                        ended: None,
                        waits_for: 0,
                        tags: Vec::new(),
                    });
                }
                Event::Armed { epoch, waits_for } => {
                    if let Some(barrier) = armed.get(&epoch) {
                        story.barriers[*barrier].waits_for = waits_for;
                    }
                }
                Event::Tagged {
                    epoch,
                    queue,
                    dispatch,
                } => {
                    if let Some(barrier) = armed.get(&epoch) {
                        let tags = &mut story.barriers[*barrier].tags;
                        tags.push((at, queue, dispatch));
                    }
                }
                Event::Cleared { epoch }
                | Event::Superseded { epoch }
                | Event::Forced { epoch } => {
                    if let Some(barrier) = armed.get(&epoch) {
                        let barrier = &mut story.barriers[*barrier];
                        barrier.end = at;
                        barrier.ended = Some(*event);
                    }
                }
                Event::Granted { queue, waited } => {
                    granted.insert(queue, story.turns.len());
                    story.turns.push(Turn {
                        queue,
                        waited: nanos(waited),
                        begin: at,
                        end: last,
                        overtaken: false,
                    });
                }
                Event::Released(queue) | Event::Overtaken(queue) => {
                    if let Some(turn) = granted.remove(&queue) {
                        let turn = &mut story.turns[turn];
                        turn.end = at;
                        turn.overtaken = matches!(event, Event::Overtaken(_));
                    }
                }
                Event::QueueAdded(_) | Event::QueueGone(_) | Event::LetThrough => {
                    story.moments.push((at, *event));
                }
                _ => {}
            }
        }
        story
    }
}
