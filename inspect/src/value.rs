//! A snapshot as JSON.

use hsa_serializer::{
    BarrierState, EndState, Mode, Party, QueueActivity, QueueId, QueueWait, Snapshot,
};
use serde_json::{Value, json};
use std::time::Duration;

/// A snapshot as JSON, for tools. Times are in nanoseconds and dispatches are counted from 0. A queue is
/// named by its text, which is unique in a snapshot, and an HSA handle is a string of hexadecimal digits:
/// numbers of 64 bits do not survive every reader.
#[must_use]
pub fn json(snapshot: &Snapshot) -> Value {
    let s = &snapshot.statistics;
    json!({
        "serializer": snapshot.serializer,
        "agent": snapshot.agent.map(hex),
        "taken_ns": nanos(snapshot.taken),
        "mode": mode(snapshot.mode),
        "mode_for_ns": nanos(snapshot.mode_for),
        "epoch": snapshot.epoch,
        "end": match snapshot.end {
            EndState::Open => "open",
            EndState::ShuttingDown => "shutting down",
            EndState::LetThrough => "let through",
            EndState::Finished => "finished",
            EndState::Left => "left",
            _ => "unknown",
        },
        "requests": snapshot.requests,
        "requests_of_all": snapshot.requests_of_all,
        "in_transition": snapshot.in_transition,
        "queues": snapshot.queues.iter().map(|queue| json!({
            "queue": name(queue.queue),
            "dispatched": queue.dispatched,
            "completed": queue.completed,
            "activity": activity(queue.activity),
            "lasts_ns": queue.lasts.map(nanos),
            "tags": queue.tags.iter().map(|(epoch, dispatch)| json!({
                "barrier": epoch,
                "dispatch": dispatch,
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "barriers": snapshot.barriers.iter().map(|barrier| json!({
            "epoch": barrier.epoch,
            "signal": hex(barrier.signal.handle),
            "state": match barrier.state {
                BarrierState::Armed => "armed",
                BarrierState::Cleared => "cleared",
                BarrierState::Forced => "forced",
                BarrierState::Superseded => "superseded",
                _ => "unknown",
            },
            "age_ns": nanos(barrier.age),
            "tags": barrier.tags,
            "waits_for": barrier.waits_for.iter().map(wait).collect::<Vec<_>>(),
            "holds_back": barrier.holds_back.iter().map(|(queue, dispatch)| json!({
                "queue": name(*queue),
                "dispatch": dispatch,
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "waits": snapshot.waits().iter().map(|wait| json!({
            "who": party(wait.who),
            "whom": party(wait.whom),
        })).collect::<Vec<_>>(),
        "roots": snapshot.roots().into_iter().map(|(root, behind)| json!({
            "who": party(root),
            "holds_up": behind.into_iter().map(party).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "statistics": {
            "dispatches": s.dispatches,
            "completions": s.completions,
            "queues": s.queues,
            "queues_added": s.queues_added,
            "queues_gone": s.queues_gone,
            "transitions": s.transitions,
            "transitions_that_counted": s.transitions_that_counted,
            "barriers": s.barriers,
            "barriers_live": s.barriers_live,
            "barriers_live_most": s.barriers_live_most,
            "cleared": s.cleared,
            "superseded": s.superseded,
            "forced": s.forced,
            "tags": s.tags,
            "retired": s.retired,
            "retired_after_drain": s.retired_after_drain,
            "reclaimed": s.reclaimed,
            "grants": s.grants,
            "grants_contended": s.grants_contended,
            "overtaken": s.overtaken,
            "misuse": s.misuse,
            "serialized_ns": s.serialized,
            "barriers_armed_ns": s.barriers_armed,
            "barriers_armed_most_ns": s.barriers_armed_most,
            "token_waited_ns": s.token_waited,
            "token_waited_most_ns": s.token_waited_most,
        },
        "recent": snapshot.recent.iter().map(|record| json!({
            "at_ns": nanos(record.at),
            "event": record.event.to_string(),
        })).collect::<Vec<_>>(),
        "records_lost": snapshot.records_lost,
    })
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Disabled => "disabled",
        Mode::Enabled => "enabled",
    }
}

fn activity(activity: QueueActivity) -> Value {
    match activity {
        QueueActivity::Running => json!("running"),
        QueueActivity::WaitsForToken => json!("waits for token"),
        QueueActivity::HoldsToken => json!("holds token"),
        QueueActivity::Overtaken => json!("overtaken"),
        QueueActivity::WaitsForBarrier(epoch) => json!({ "waits for barrier": epoch }),
        _ => json!("unknown"),
    }
}

fn wait(wait: &QueueWait) -> Value {
    json!({
        "queue": name(wait.queue),
        "completed": wait.completed,
        "until": wait.until,
        "activity": activity(wait.activity),
    })
}

fn party(party: Party) -> Value {
    match party {
        Party::Queue(queue) => json!({ "queue": name(queue) }),
        Party::Barrier(epoch) => json!({ "barrier": epoch }),
        _ => Value::Null,
    }
}

fn name(queue: QueueId) -> String {
    queue.to_string()
}

fn hex(handle: u64) -> String {
    format!("{handle:#x}")
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
