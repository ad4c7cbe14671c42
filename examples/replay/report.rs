//! The tables.

use crate::machine::{Mode, Replay};
use crate::plan::Plan;
use crate::times::Times;
use crate::waits::{QueueWaits, by_queue};
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Row, Table};
use std::fmt::{Display, Write};
use std::time::Duration;
use traces::{Format, Trace};

const NOTES: &str = "\
How far to trust this: kernels run here for as long as the trace says. Those that overlapped were
measured while they shared the GPU; alone they would be shorter, and so would the serialized run.
The injected packets and the host's handlers take no time here, which they do in reality. Every
kernel is submitted when it started in the trace, also where its host, or a kernel of another queue
that it depends on, is late by then.
";

/// What a replay is called.
pub(crate) fn name(mode: Mode) -> String {
    match mode {
        Mode::AsItWas => "as it was".into(),
        Mode::Serialized => "serialized".into(),
        Mode::Toggled(every) => format!("on and off every {}", time(every)),
    }
}

/// All that is said about these replays.
pub(crate) fn text(
    file: &impl Display,
    trace: &Trace,
    plan: &Plan,
    replays: &[(Mode, Replay)],
) -> String {
    let mut text = String::new();
    let (kernels, queues) = (plan.kernels.len(), plan.agent_of.len());
    line(&mut text, format_args!("{file}: {}", trace.format));
    line(
        &mut text,
        format_args!(
            "{} on {} of {}; skipped: {}",
            count(kernels, "kernel"),
            count(queues, "queue"),
            count(plan.agents, "agent"),
            trace.skipped
        ),
    );
    line(
        &mut text,
        format_args!(
            "kernels that overlapped an earlier one of their own queue: {}",
            plan.overlapping_their_queue()
        ),
    );
    for (mode, replay) in replays {
        if *mode == Mode::AsItWas {
            let off = furthest_off(trace, replay);
            line(
                &mut text,
                format_args!(
                    "as it was: every kernel starts and ends within {} of the file's times",
                    time(off)
                ),
            );
        }
    }
    let waits: Vec<_> = replays
        .iter()
        .map(|(_, replay)| by_queue(plan, &replay.ran))
        .collect();
    for (agent, name) in trace.agents.iter().enumerate() {
        line(&mut text, format_args!("\nAgent {name:?}\n"));
        line(&mut text, runs(trace, plan, replays, agent));
        for ((mode, replay), waits) in replays.iter().zip(&waits) {
            line(&mut text, format_args!(""));
            if *mode == Mode::AsItWas {
                let waited: u64 = of_agent(plan, agent).map(|q| waits[q].waited).sum();
                line(
                    &mut text,
                    format_args!("As it was, {} waited.", count(waited, "kernel")),
                );
                continue;
            }
            line(
                &mut text,
                format_args!(
                    "Waits, {} (added up over kernels that wait at the same time):\n",
                    self::name(*mode)
                ),
            );
            line(&mut text, waiting(trace, plan, waits, agent));
            worst(&mut text, trace, plan, waits, agent);
            serializer(&mut text, replay, agent);
        }
    }
    line(&mut text, format_args!("\n{}", NOTES.trim_end()));
    text
}

fn line(text: &mut String, what: impl Display) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{what}");
}

fn of_agent(plan: &Plan, agent: usize) -> impl Iterator<Item = usize> {
    let queues = plan.agent_of.iter().enumerate();
    queues.filter_map(move |(queue, of)| (*of == agent).then_some(queue))
}

/// How far a kernel's start or end is from the file's, at most.
fn furthest_off(trace: &Trace, replay: &Replay) -> u64 {
    let kernels = trace.kernels.iter().zip(&replay.ran);
    let off = kernels.map(|(kernel, ran)| {
        let start = kernel.start_ns.abs_diff(ran.start);
        start.max(kernel.end_ns.abs_diff(ran.end))
    });
    off.max().unwrap_or(0)
}

/// The file and each replay, side by side.
fn runs(trace: &Trace, plan: &Plan, replays: &[(Mode, Replay)], agent: usize) -> Table {
    let mut table = table(&[
        "run",
        "kernels",
        "their time",
        "busy",
        "overlap",
        "most at once",
        "makespan",
        "slowdown",
    ]);
    let mine: Vec<usize> = (0..plan.kernels.len())
        .filter(|n| plan.agent_of(&plan.kernels[*n]) == agent)
        .collect();
    let first = mine.first().map_or(0, |n| plan.kernels[*n].at);
    let recorded = mine.iter().map(|n| &trace.kernels[*n]);
    let recorded = Times::of(first, recorded.map(|k| (k.start_ns, k.end_ns)));
    let mut row = |name: String, times: Times, slowdown: String| {
        table.add_row([
            name,
            mine.len().to_string(),
            time(times.sum),
            time(times.busy),
            time(times.overlap),
            times.most.to_string(),
            time(times.makespan),
            slowdown,
        ]);
    };
    row("in the file".into(), recorded, String::new());
    let mut as_it_was = recorded;
    for (mode, replay) in replays {
        let ran = mine.iter().map(|n| &replay.ran[*n]);
        let times = Times::of(first, ran.map(|ran| (ran.start, ran.end)));
        if *mode == Mode::AsItWas {
            as_it_was = times;
        }
        row(
            name(*mode),
            times,
            ratio(times.makespan, as_it_was.makespan),
        );
    }
    table
}

/// What was waited for, by queue.
fn waiting(trace: &Trace, plan: &Plan, waits: &[QueueWaits], agent: usize) -> Table {
    let mut table = table(&[
        "queue",
        "kernels",
        "waited",
        "in all",
        "mean",
        "worst",
        "own queue",
        "transition",
        "token",
        "held meanwhile by",
    ]);
    for queue in of_agent(plan, agent) {
        let waits = &waits[queue];
        table.add_row([
            trace.queues[queue].name.clone(),
            waits.kernels.to_string(),
            waits.waited.to_string(),
            time(waits.total),
            time(waits.mean()),
            time(waits.worst.0),
            time(waits.in_queue),
            time(waits.transition),
            time(waits.token),
            holders(trace, waits),
        ]);
    }
    if let Some(last) = table.column_mut(9) {
        last.set_cell_alignment(CellAlignment::Left);
    }
    table
}

/// Who held the token, the longest first.
fn holders(trace: &Trace, waits: &QueueWaits) -> String {
    const NAMED: usize = 4;
    let mut holders: Vec<_> = waits.held_by.iter().collect();
    holders.sort_by_key(|(_, held)| std::cmp::Reverse(**held));
    let named = holders.iter().take(NAMED);
    let mut parts: Vec<_> = named
        .map(|(queue, held)| format!("queue {} {}", trace.queues[**queue].name, time(**held)))
        .collect();
    if holders.len() > NAMED {
        let rest = holders[NAMED..]
            .iter()
            .map(|(_, held)| **held)
            .sum::<u128>();
        parts.push(format!("{} others {}", holders.len() - NAMED, time(rest)));
    }
    if waits.held_by_nobody() > 0 {
        parts.push(format!("nobody {}", time(waits.held_by_nobody())));
    }
    parts.join(", ")
}

/// The kernel that waited longest.
fn worst(text: &mut String, trace: &Trace, plan: &Plan, waits: &[QueueWaits], agent: usize) {
    const SHOWN: usize = 60;
    let worst = of_agent(plan, agent).map(|queue| waits[queue].worst).max();
    if let Some((waited, number)) = worst.filter(|(waited, _)| *waited > 0) {
        let kernel = &trace.kernels[number];
        let mut name: String = kernel.name.chars().take(SHOWN).collect();
        if name.len() < kernel.name.len() {
            name.push_str("...");
        }
        let queue = &trace.queues[kernel.queue as usize].name;
        let place = match trace.format {
            Format::RocprofCsv => format!("line {}", kernel.line),
            // Such a file is often a single line.
            _ => format!("event {}", kernel.index),
        };
        let waited = time(waited);
        line(
            text,
            format_args!("\nThe longest waited {waited}: {name:?} of queue {queue} ({place})."),
        );
    }
}

/// What the serializer did.
fn serializer(text: &mut String, replay: &Replay, agent: usize) {
    let s = &replay.statistics[agent];
    line(
        text,
        format_args!(
            "{}, {} while a kernel was in flight; {}, {} superseded, {} alive at once at most;\n\
             {} tagged with a transition packet, {} retired after the drain; {} of the token, {} \
             contended.",
            count(s.transitions, "transition"),
            s.transitions_that_counted,
            count(s.barriers, "barrier"),
            s.superseded,
            s.barriers_live_most,
            count(s.tags, "dispatch"),
            s.retired_after_drain,
            count(s.grants, "grant"),
            s.grants_contended,
        ),
    );
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(ASCII_MARKDOWN)
        .set_header(Row::from(header));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn count(n: impl TryInto<u64>, what: &str) -> String {
    match n.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {what}"),
        n if what.ends_with("ch") => format!("{n} {what}es"),
        n => format!("{n} {what}s"),
    }
}

/// Nanoseconds, as people read them.
fn time(nanoseconds: impl Into<u128>) -> String {
    const SECOND: u128 = 1_000_000_000;
    let ns = nanoseconds.into();
    if ns < 1_000 {
        return format!("{ns}ns");
    }
    // Fewer than 2^64 kernels of less than 2^64 ns: the seconds fit.
    let duration = Duration::new((ns / SECOND) as u64, (ns % SECOND) as u32);
    format!("{duration:.3?}")
}

fn ratio(a: u64, b: u64) -> String {
    if b == 0 {
        return "-".into();
    }
    format!("{:.3} x", a as f64 / b as f64)
}
