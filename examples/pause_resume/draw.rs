//! The runs as timelines.

use harness::{Failed, Run};
use hsa_serializer::Event;
use hsa_serializer_inspect::timeline::{AgentTimeline, KernelSpan, Timeline};
use std::time::Duration;

/// What came of a run, and the events of its serializer.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) name: &'static str,
    pub(crate) outcome: Result<Run, Failed>,
    pub(crate) events: Vec<(Duration, Event)>,
}

/// The runs, with those of their kernels that are chosen by their numbers.
pub(crate) fn timelines(runs: &[&Seen], chosen: impl Fn(u64) -> bool) -> Vec<Timeline> {
    runs.iter()
        .filter_map(|seen| timeline(seen, &chosen))
        .collect()
}

/// `None` where a call failed.
fn timeline(seen: &Seen, chosen: impl Fn(u64) -> bool) -> Option<Timeline> {
    let run = match &seen.outcome {
        Ok(run) => run,
        Err(Failed::Stuck(stuck)) => &stuck.1,
        Err(Failed::Error(_)) => return None,
    };
    let kernels = run.ran.iter().filter(|k| chosen(k.number.into()));
    let kernels = kernels.filter_map(|kernel| {
        Some(KernelSpan {
            queue: kernel.queue,
            dispatch: kernel.dispatch,
            name: kernel.number.to_string().into(),
            begin: kernel.started,
            // One that never ended has no length.
            end: kernel.ended?,
        })
    });
    let queues = run.queues.iter().enumerate();
    Some(Timeline {
        name: seen.name.to_owned(),
        agents: vec![AgentTimeline {
            name: "GPU".into(),
            queues: queues
                .map(|(n, queue)| (*queue, format!("queue {n}")))
                .collect(),
            kernels: kernels.collect(),
            events: seen.events.clone(),
        }],
    })
}
