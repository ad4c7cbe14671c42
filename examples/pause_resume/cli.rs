//! The arguments, the runs, and what is printed of them.

use crate::draw::{self, Seen};
use crate::drawings::Outputs;
use clap::{Parser, ValueEnum};
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use harness::{Failed, Load, Run, Serializing, SoftRuntime};
use hsa_serializer_inspect::timeline::Log;
use indicatif::{ProgressBar, ProgressStyle};
use softgpu::{SignalView, Stuck, Violation, Waits};
use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// Prints a line to standard error. Whoever closed that does not want it.
macro_rules! complain {
    ($($text:tt)*) => {
        let _ = writeln!(std::io::stderr(), $($text)*);
    };
}

/// Resumes and pauses a profiler while kernels are in flight.
#[derive(Parser)]
#[command(
    name = "pause_resume",
    version,
    after_help = "Exit codes: 0 all is well; 1 something happened that must not \
    happen; 2 bad arguments; 3 it hangs; 4 it went well, but something that it is to try never \
    happened"
)]
struct Arguments {
    /// Queues of the application.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=128))]
    queues: u16,
    /// Kernels in all.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    kernels: u32,
    /// Resumes and pauses in all.
    #[arg(long, default_value_t = 10_000)]
    toggles: u32,
    /// Threads of the application.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// Seeds all choices; with --virtual the whole run repeats exactly.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Virtual time on one thread instead of real time on many.
    #[arg(long = "virtual")]
    in_virtual_time: bool,
    /// Who serializes, and when it lets go of a barrier's signal.
    #[arg(long, value_enum, default_value_t = Retire::Crate)]
    retire: Retire,
    #[command(flatten)]
    outputs: Outputs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Retire {
    /// This crate.
    Crate,
    /// A serializer under locks, before its fix: once the barrier is complete.
    Eager,
    /// The same with its fix: once it is complete and drained. It has other faults.
    Drained,
}

impl Retire {
    fn run(self, arguments: &Arguments, load: &Load, name: &'static str) -> Seen {
        match self {
            Self::Crate => run_load(arguments, load, name, harness::crate_serializer),
            Self::Eager => run_load(arguments, load, name, harness::eager_serializer),
            Self::Drained => run_load(arguments, load, name, harness::drained_serializer),
        }
    }
}

fn run_load<S: Serializing>(
    arguments: &Arguments,
    load: &Load,
    name: &'static str,
    make: impl FnOnce(SoftRuntime) -> S,
) -> Seen {
    let style = ProgressStyle::with_template("{msg:>14} {wide_bar} {pos}/{len} kernels {eta}");
    let bar = ProgressBar::new(load.kernels)
        .with_style(style.expect("the template is right"))
        .with_message(name.to_owned());
    let progress = |submitted| bar.set_position(submitted);
    let mut log = None;
    let make = |runtime: SoftRuntime| {
        if !load.keep_kernels {
            return make(runtime);
        }
        let kept = Arc::new(Log::new(runtime.clock()));
        log = Some(kept.clone());
        make(runtime.observed_by(kept))
    };
    let outcome = if arguments.in_virtual_time {
        harness::run_virtual(load, make, &progress)
    } else {
        harness::run_threaded(load, make, &progress)
    };
    bar.finish_and_clear();
    Seen {
        name,
        outcome,
        events: log.map(|log| log.take()).unwrap_or_default(),
    }
}

/// Runs the program; what it exits with.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = match Arguments::try_parse_from(args) {
        Ok(arguments) => arguments,
        Err(e) => {
            // Nobody is left to be told that it could not be written.
            let _ = e.print();
            return if e.use_stderr() { 2 } else { 0 };
        }
    };
    let outputs = &arguments.outputs;
    let files = match outputs.open() {
        Ok(files) => files,
        Err(e) => return wrong(e),
    };
    let load = Load {
        queues: arguments.queues.into(),
        threads: arguments.threads.into(),
        kernels: arguments.kernels.into(),
        toggles: arguments.toggles.into(),
        seed: arguments.seed,
        keep_kernels: outputs.any(),
        ..Load::default()
    };
    let never = Load {
        toggles: 0,
        ..load.clone()
    };
    println!(
        "{} kernels on {} queues, turned on and off {} times, and the same without; what hangs is named.",
        load.kernels, load.queues, load.toggles
    );
    let toggled = arguments.retire.run(&arguments, &load, "resume, pause");
    // What hangs is drawn as far as it came.
    let free = match &toggled.outcome {
        Ok(_) => Some(arguments.retire.run(&arguments, &never, "unserialized")),
        Err(_) => None,
    };
    if outputs.any() {
        let runs: Vec<_> = free.iter().chain([&toggled]).collect();
        let all = draw::timelines(&runs, |_| true);
        let shown = draw::timelines(&runs, |number| outputs.shows(number));
        if let Err(e) = files.write(&outputs.title(load.kernels), &all, &shown) {
            return wrong(e);
        }
    }
    let toggled = match toggled.outcome {
        Ok(run) => run,
        Err(failed) => return explain(failed),
    };
    let free = match free.map(|free| free.outcome) {
        Some(Ok(run)) => run,
        Some(Err(failed)) => return explain(failed),
        None => unreachable!("it runs where the other one came to its end"),
    };
    print_table(&toggled, &free);
    judge(&toggled, &free, arguments.retire != Retire::Eager)
}

fn wrong(e: impl Display) -> u8 {
    say("error", e);
    1
}

fn print_table(run: &Run, free: &Run) {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY);
    let c = &run.counters;
    let v = &run.violations;
    let overlaps = v.overlaps + v.mode_overlaps + v.old_after_new;
    let rows: [(&str, String); 18] = [
        ("kernels", run.kernels.ended.to_string()),
        ("of them serialized", run.serialized.kernels.to_string()),
        ("transitions", c.transitions.to_string()),
        (
            "  that counted somebody",
            c.transitions_that_counted.to_string(),
        ),
        ("tags handed out", c.tags.to_string()),
        ("barriers created", c.barriers.to_string()),
        ("  live at most", c.barriers_live_most.to_string()),
        (
            "  retired after their drain",
            c.retired_after_drain.to_string(),
        ),
        ("handles recycled", run.signals.recycled.to_string()),
        (
            "grants that waited for the token",
            c.grants_contended.to_string(),
        ),
        ("time serialized", milliseconds(c.serialized)),
        (
            "  queues waited for their turn, all together / worst",
            format!(
                "{} / {}",
                milliseconds(c.token_waited),
                milliseconds(c.token_waited_most)
            ),
        ),
        (
            "  kernels waited for a transition",
            milliseconds(c.barriers_armed),
        ),
        ("overlaps", overlaps.to_string()),
        ("stale packets", v.stale_packets.to_string()),
        (
            "wait of a serialized kernel*, mean / worst",
            waits(&run.serialized),
        ),
        (
            "wait of the others*, mean / worst",
            waits(&run.unserialized),
        ),
        (
            "the same load unserialized: most at a time",
            free.kernels.most_running.to_string(),
        ),
    ];
    for (name, value) in rows {
        table.add_row([name.to_owned(), value]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let clock = if run.trace.is_some() {
        "virtual time"
    } else {
        "took"
    };
    let mut text = format!(
        "{table}\n\
         * from being submitted to its end being reported, less the time it runs by itself\n\
         {clock}: {}, unserialized {}\n",
        seconds(run.took),
        seconds(free.took)
    );
    if let Some(trace) = run.trace {
        text += &format!("hash of all that happened: {trace:016x}\n");
    }
    // Whoever closed the output does not want it.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn waits(times: &harness::WaitTimes) -> String {
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    format!(
        "{:.1} us / {:.1} us",
        micros(times.mean),
        micros(times.worst)
    )
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// The exit code of a run that came to its end.
fn judge(run: &Run, free: &Run, drains: bool) -> u8 {
    let mut bad = false;
    for run in [run, free] {
        for violation in run.examples.iter().take(20) {
            say("violation", violation);
        }
        for report in &run.reports {
            say("reported", report);
        }
        bad |= run.violations.total() > 0 || !run.reports.is_empty();
    }
    if bad {
        return 1;
    }
    if let Some(counter) = run.untested(drains) {
        say(
            "it went well, but this run has not tried everything",
            format!("{counter}: 0"),
        );
        return 4;
    }
    if free.kernels.most_running < 2 {
        say(
            "it went well, but this run has not tried everything",
            "the same load unserialized did not overlap",
        );
        return 4;
    }
    0
}

fn say(what: &str, text: impl Display) {
    complain!("{what}: {text}");
}

fn explain(failed: Failed) -> u8 {
    match failed {
        Failed::Error(e) => {
            say("error", e);
            1
        }
        Failed::Stuck(stuck) => {
            let (mut waits, run) = *stuck;
            say(
                "it hangs",
                format!(
                    "after {} transitions and {} kernels",
                    run.counters.transitions, run.kernels.ended
                ),
            );
            name_the_fault(&waits, &run);
            // They wait for kernels that will never run, and say nothing more.
            waits.handlers.clear();
            waits.more_handlers = 0;
            complain!("\nWho waits for whom, {waits}");
            3
        }
    }
}

/// Says which packets wait for a barrier's signal, why that is not going to be 0, and what became
/// of its handle; those first whose handle was recycled, since the others wait for them.
fn name_the_fault(stuck: &Stuck, run: &Run) {
    let mut told = Vec::new();
    for recycled in [true, false] {
        let any = !told.is_empty();
        for wait in &stuck.waits {
            let Waits::Barrier(_, signals) = &wait.waits else {
                continue;
            };
            let of_barrier =
                |view: &&SignalView| recycled || view.label.starts_with("transition barrier");
            let Some(view) = signals.iter().find(of_barrier) else {
                continue;
            };
            let now = view.history.last().map_or(0, |event| event.generation);
            let lives = written_for(run, wait).map(|written| (written, now));
            if lives.is_some() != recycled {
                continue;
            }
            complain!(
                "\n{} packet {} waits for signal {:#x}, which belongs to {}.",
                wait.queue,
                wait.packet,
                view.signal.handle,
                view.label
            );
            complain!("{}", why(lives, any));
            if !told.contains(&view.signal) {
                told.push(view.signal);
                complain!("The lives of the handle:");
                for event in &view.history {
                    complain!("  {event}");
                }
            }
        }
    }
}

/// Why a packet's signal is not going to be 0.
fn why(lives: Option<(u64, u64)>, others_recycled: bool) -> String {
    match lives {
        Some((written, now)) => format!(
            "When the packet was written, the handle was in its life number {written}; that signal \
             was destroyed, and its\nhandle is in its life number {now} now, armed for somebody \
             else."
        ),
        None if others_recycled => {
            "That barrier waits for kernels behind the packets named above.".to_owned()
        }
        None => {
            "It was written for that very barrier, which waits for a kernel that stands behind \
                 such a packet,\nor for one whose end had been reported before it was counted."
                .to_owned()
        }
    }
}

/// The life that a packet's handle was in when the packet was written; `None` if it is the same.
fn written_for(run: &Run, wait: &softgpu::Wait) -> Option<u64> {
    run.examples.iter().find_map(|violation| match violation {
        Violation::StalePacket {
            queue,
            packet,
            written,
            ..
        } if (*queue, *packet) == (wait.queue, wait.packet) => Some(*written),
        _ => None,
    })
}
