//! The arguments, and what goes wrong.

use crate::draw;
use crate::drawings::Outputs;
use crate::machine::{Mode, replay};
use crate::plan::Plan;
use crate::report;
use clap::Parser;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Replays a kernel trace on an emulated GPU, as it was and serialized.
#[derive(Debug, Parser)]
#[command(name = "replay")]
struct Args {
    /// rocprofv3's kernel-trace CSV, or a Chrome trace as PyTorch's profiler writes it; plain or
    /// gzipped.
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// Replay it once more, turning serialization on or off every so many milliseconds.
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    pause_every: Option<Duration>,
    /// From which the order is drawn of what happens at one moment.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    outputs: Outputs,
}

/// More toggles than this are a slip of the pen.
const MOST_TOGGLES: u64 = 1_000_000;

fn milliseconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|e| format!("{e}"))?;
    match Duration::try_from_secs_f64(number / 1e3) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        Ok(_) => Err("less than a nanosecond".into()),
        Err(e) => Err(e.to_string()),
    }
}

/// Runs the program; what it exits with.
pub(crate) fn run(
    args: impl IntoIterator<Item = OsString>,
    out: &mut impl Write,
    err: &mut impl Write,
) -> u8 {
    let failed = match Args::try_parse_from(args) {
        Ok(args) => match replays(&args, out) {
            Ok(problems) if problems.is_empty() => return 0,
            Ok(problems) => problems.join("\nerror: "),
            Err(e) => e.to_string(),
        },
        Err(e) if !e.use_stderr() => {
            // The help or the version; nobody is left to be told that it could not be written.
            let _ = write!(out, "{e}");
            return 0;
        }
        Err(e) => {
            let _ = write!(err, "{e}");
            return 2;
        }
    };
    let _ = writeln!(err, "error: {failed}");
    1
}

/// Reads, replays and prints; what was found that must not happen.
fn replays(args: &Args, out: &mut impl Write) -> Result<Vec<String>, harness::BoxError> {
    let files = args.outputs.open()?;
    let trace = traces::read(&args.file)?;
    let name = args.file.display();
    let plan = Plan::new(&trace).map_err(|e| format!("{name}: {e}"))?;
    let mut modes = vec![Mode::AsItWas, Mode::Serialized];
    if let Some(every) = args.pause_every {
        let every = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
        let toggles = plan.ends / every;
        if toggles > MOST_TOGGLES {
            return Err(format!(
                "--pause-every: {toggles} times in this trace is more than {MOST_TOGGLES}"
            )
            .into());
        }
        modes.push(Mode::Toggled(every));
    }
    let replays = modes
        .into_iter()
        .map(|mode| Ok((mode, replay(&plan, mode, args.seed)?)))
        .collect::<Result<Vec<_>, harness::BoxError>>()?;
    if args.outputs.any() {
        let timelines =
            |shows: &dyn Fn(u64) -> bool| draw::timelines(&trace, &plan, &replays, shows);
        let shown = timelines(&|number| args.outputs.shows(number));
        let title = args.outputs.title(plan.kernels.len() as u64);
        let file = Path::new(args.file.file_name().unwrap_or_default());
        let title = format!("{}: {title}", file.display());
        files.write(&title, &timelines(&|_| true), &shown)?;
    }
    write!(out, "{}", report::text(&name, &trace, &plan, &replays))?;
    let problems = replays.into_iter().flat_map(|(mode, replay)| {
        let problems = replay.problems.into_iter();
        problems.map(move |problem| format!("{}: {problem}", report::name(mode)))
    });
    Ok(problems.collect())
}
