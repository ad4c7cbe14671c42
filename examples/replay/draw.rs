//! The replays as timelines.

use crate::machine::{Mode, Replay};
use crate::plan::Plan;
use crate::report;
use hsa_serializer_inspect::timeline::{AgentTimeline, KernelSpan, Timeline};
use std::time::Duration;
use traces::Trace;

/// The replays, with those of their kernels that are chosen by their numbers.
pub(crate) fn timelines(
    trace: &Trace,
    plan: &Plan,
    replays: &[(Mode, Replay)],
    chosen: &dyn Fn(u64) -> bool,
) -> Vec<Timeline> {
    let timeline = |(mode, replay): &(Mode, Replay)| Timeline {
        name: report::name(*mode),
        agents: agents(trace, plan, replay, chosen),
    };
    replays.iter().map(timeline).collect()
}

fn agents(
    trace: &Trace,
    plan: &Plan,
    replay: &Replay,
    chosen: &dyn Fn(u64) -> bool,
) -> Vec<AgentTimeline> {
    let names = trace.agents.iter().zip(&replay.events);
    let mut agents: Vec<_> = names
        .map(|(name, events)| AgentTimeline {
            name: format!("GPU {name}"),
            events: events.clone(),
            ..AgentTimeline::default()
        })
        .collect();
    for ((agent, queue), id) in plan.agent_of.iter().zip(&trace.queues).zip(&replay.queues) {
        let queues = &mut agents[*agent].queues;
        queues.push((*id, format!("queue {}", queue.name)));
    }
    // A queue's kernels are submitted, and so dispatched, in the plan's order.
    let mut dispatched = vec![0; replay.queues.len()];
    let kernels = plan.kernels.iter().zip(&replay.ran).zip(&trace.kernels);
    for (number, ((planned, ran), kernel)) in kernels.enumerate() {
        let dispatch = dispatched[planned.queue];
        dispatched[planned.queue] += 1;
        if chosen(number as u64) {
            agents[plan.agent_of(planned)].kernels.push(KernelSpan {
                queue: replay.queues[planned.queue],
                dispatch,
                name: kernel.name.clone(),
                begin: Duration::from_nanos(ran.start),
                end: Duration::from_nanos(ran.end),
            });
        }
    }
    agents
}
