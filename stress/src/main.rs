//! Everything that can happen to serializers, at random, on threads, for as long as is asked for.
//!
//! ```text
//! cargo run --release -p stress -- --seconds 600
//! ```

use clap::Parser;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;
use stress::{Options, Progress, Report};

/// Does everything to serializers that can happen to them, at random, on threads.
#[derive(Parser)]
#[command(
    version,
    after_help = "Exit codes: 0 all is well; 1 something happened that must not happen, something is \
    left, memory grows, or something that it is to try never happened; 2 bad arguments"
)]
struct Arguments {
    /// For how long.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Seeds what the threads choose; when they do it is nobody's to repeat.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads that submit kernels, beside one for each other thing.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// Does not fork.
    #[arg(long)]
    no_forks: bool,
    /// Does not judge what the process occupies: under a sanitizer, which keeps what is freed.
    #[arg(long)]
    no_memory: bool,
}

/// Between two lines of progress, where there is no terminal.
const LINES: Duration = Duration::from_secs(10);

/// Says how far it has come.
struct Teller {
    bar: Option<ProgressBar>,
    told: Duration,
}

impl Teller {
    fn new(seconds: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} s, {msg}");
            ProgressBar::new(seconds).with_style(style.expect("the template is right"))
        });
        Self {
            bar,
            told: Duration::ZERO,
        }
    }

    fn tell(&mut self, progress: Progress) {
        let Progress {
            elapsed,
            rounds,
            kernels,
        } = progress;
        let text = format!("{rounds} rounds, {kernels} kernels");
        if let Some(bar) = &self.bar {
            bar.set_message(text);
            bar.set_position(elapsed.as_secs());
        } else if elapsed >= self.told + LINES {
            self.told = elapsed;
            // Whoever closed it does not want it.
            let _ = writeln!(std::io::stderr(), "{} s: {text}", elapsed.as_secs());
        }
    }
}

fn table(report: &Report) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY);
    table.set_header(["what was done", "times"]);
    table.add_row(["rounds".to_owned(), report.rounds.to_string()]);
    for (what, n) in &report.counters {
        table.add_row([(*what).to_owned(), n.to_string()]);
    }
    let (first, last) = report.resident;
    for (when, bytes) in [("first", first), ("last", last)] {
        let what = format!("KiB resident at most, {when} third");
        table.add_row([what, (bytes >> 10).to_string()]);
    }
    if let Some(times) = table.column_mut(1) {
        times.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let options = Options {
        seconds: arguments.seconds,
        seed: arguments.seed,
        threads: arguments.threads.into(),
        forks: !arguments.no_forks,
        memory: !arguments.no_memory,
    };
    let mut teller = Teller::new(options.seconds);
    let report = stress::run(&options, |progress| teller.tell(progress));
    if let Some(bar) = teller.bar {
        bar.finish_and_clear();
    }
    let _ = writeln!(std::io::stdout(), "{}", table(&report));
    for failure in &report.failures {
        let _ = writeln!(std::io::stderr(), "FAILED: {failure}");
    }
    if report.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
