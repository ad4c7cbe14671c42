//! The arguments, and which runs follow from them.

use crate::output::Output;
use crate::program::Case;
use crate::run::{End, PATIENCE, Run, Who, run as run_one};
use crate::text;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use harness::BoxError;
use hsa_serializer::{Party, Snapshot, StallPolicy};
use hsa_serializer_inspect::{Stalled, stall_svg};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Runs programs that can't be serialized: under a serializer they hang, are named, or are released.
///
/// With neither --serializer nor --policy each program runs by itself, under the design with locks, and
/// under this crate with both policies, and what is to come of each run is checked.
#[derive(Debug, Parser)]
#[command(
    name = "stall",
    version,
    after_help = "Exit codes: 0 it came to its end (or, of all runs one after the other, each went \
    as told); 1 something happened that must not happen; 2 bad arguments; 3 it hangs"
)]
struct Arguments {
    /// Which program; all of them by default.
    #[arg(long, value_enum)]
    case: Option<Case>,
    /// Who serializes it.
    #[arg(long, value_enum)]
    serializer: Option<Serializer>,
    /// What this crate does about a stall: report by default.
    #[arg(long, value_enum)]
    policy: Option<Policy>,
    /// What makes no progress for so many milliseconds is a stall, to this crate.
    #[arg(long, value_name = "MS", default_value_t = 200)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=60_000))]
    after: u64,
    /// A run under locks that has not ended after so many milliseconds, and the time for a stall, hangs. The
    /// others come to an end or are named, and have 20 s for it at least.
    #[arg(long, value_name = "MS", default_value_t = 500)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=60_000))]
    limit: u64,
    /// Draw who waits for whom where this crate names a stall.
    #[arg(long, value_name = "OUT.svg")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Serializer {
    /// A serializer under locks, as profilers have had it.
    Locked,
    /// This crate.
    Crate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// Name it.
    Report,
    /// Name it and let it go, at the price of exclusiveness.
    Release,
}

impl Arguments {
    /// How long a run is waited for.
    fn limit(&self, who: Who) -> Duration {
        let limit = Duration::from_millis(self.limit);
        let limit = match who {
            Who::Locked => limit,
            Who::Nobody | Who::Crate(..) => limit.max(PATIENCE),
        };
        self.after() + limit
    }

    fn after(&self) -> Duration {
        Duration::from_millis(self.after)
    }

    fn crate_with(&self, policy: Policy) -> Who {
        let policy = match policy {
            Policy::Report => StallPolicy::Report,
            Policy::Release => StallPolicy::Release,
        };
        Who::Crate(policy, self.after())
    }

    /// Who serializes each program, one after the other.
    fn who(&self) -> Result<Vec<Who>, clap::Error> {
        let who = self.asked()?;
        let names = |who: &Who| matches!(who, Who::Crate(StallPolicy::Report, _));
        if self.svg.is_some() && !who.iter().any(names) {
            return Err(Self::command().error(
                ErrorKind::ArgumentConflict,
                "--svg draws what is named: by this crate, with '--policy report'",
            ));
        }
        Ok(who)
    }

    fn asked(&self) -> Result<Vec<Who>, clap::Error> {
        match (self.serializer, self.policy) {
            (None, None) => Ok(vec![
                Who::Nobody,
                Who::Locked,
                self.crate_with(Policy::Report),
                self.crate_with(Policy::Release),
            ]),
            (Some(Serializer::Locked), None) => Ok(vec![Who::Locked]),
            (Some(Serializer::Locked), Some(_)) => Err(Self::command().error(
                ErrorKind::ArgumentConflict,
                "--policy is this crate's: '--serializer locked' has none",
            )),
            (_, policy) => Ok(vec![self.crate_with(policy.unwrap_or(Policy::Report))]),
        }
    }

    fn shows_all(&self) -> bool {
        self.serializer.is_none() && self.policy.is_none()
    }
}

/// Runs the program; what it exits with.
pub(crate) fn run(
    args: impl IntoIterator<Item = OsString>,
    out: &mut impl Write,
    err: &mut impl Write,
) -> u8 {
    let parsed = Arguments::try_parse_from(args);
    let (arguments, who) = match parsed.and_then(|a| a.who().map(|who| (a, who))) {
        Ok(parsed) => parsed,
        // Nobody is left to be told what could not be written, here and below.
        Err(e) if !e.use_stderr() => {
            let _ = write!(out, "{e}");
            return 0;
        }
        Err(e) => {
            let _ = write!(err, "{e}");
            return 2;
        }
    };
    match run_all(&arguments, &who, out) {
        Ok((_, wrong)) if !wrong.is_empty() => {
            for wrong in wrong {
                let _ = writeln!(err, "not as told: {wrong}");
            }
            1
        }
        Ok((true, _)) if !arguments.shows_all() => 3,
        Ok(_) => {
            let _ = writeln!(out, "All of it as it is to be: what hangs here has to.");
            0
        }
        Err(e) => {
            let _ = writeln!(err, "error: {e}");
            1
        }
    }
}

/// Whether anything hangs, and what was not as it is to be.
fn run_all(
    arguments: &Arguments,
    who: &[Who],
    out: &mut impl Write,
) -> Result<(bool, Vec<String>), BoxError> {
    let svg = arguments.svg.as_deref();
    let file = svg.map(|path| Output::open("--svg", path)).transpose()?;
    let mut named = Vec::new();
    let cases = match arguments.case {
        Some(case) => vec![case],
        None => Case::ALL.to_vec(),
    };
    let (mut hangs, mut wrong) = (false, Vec::new());
    for case in cases {
        let _ = writeln!(out, "{}: {}.", case.name(), case.story());
        for who in who {
            let run = run_one(case, *who, arguments.limit(*who))?;
            let _ = writeln!(out, "{}", text::of(&run));
            hangs |= !matches!(run.end, End::Finished);
            let told = check(&run, arguments.after()).into_iter();
            wrong
                .extend(told.map(|wrong| format!("{}, {}: {wrong}", case.name(), text::who(*who))));
            if let End::Named(_, then) = run.end {
                named.push((case, then));
            }
        }
    }
    if let Some(file) = file {
        let picture = draw(&named);
        file.write(|out| writeln!(out, "{picture}"))?;
    }
    Ok((hangs, wrong))
}

/// Who waits for whom, and what the kernel that all wait for waits for: the programs know that, the
/// serializer does not.
fn draw(named: &[(Case, Box<Snapshot>)]) -> String {
    let of = |(case, snapshot): &(Case, Box<Snapshot>)| {
        let title = format!("{}: {}", case.name(), case.in_short());
        let root = snapshot.roots().first().map(|(root, _)| *root);
        let queues = snapshot.queues.iter().map(|q| Party::Queue(q.queue));
        let other = queues.into_iter().find(|queue| Some(*queue) != root);
        let also = root
            .zip(other)
            .map(|(root, other)| (root, other, case.needs()));
        (title, also)
    };
    let told: Vec<_> = named.iter().map(of).collect();
    let stalls = told
        .iter()
        .zip(named)
        .map(|((title, also), (_, snapshot))| Stalled {
            title,
            snapshot,
            also: also.as_slice(),
        });
    stall_svg(&stalls.collect::<Vec<_>>())
}

/// What is not as it is to be.
fn check(run: &Run, after: Duration) -> Vec<String> {
    let mut wrong = run.problems.clone();
    let lost = run.cost.all() > 0 && run.overlaps > 0;
    let expected = match (run.who, &run.end) {
        (Who::Nobody, End::Finished) | (Who::Locked, End::Hangs(_)) => !lost,
        (Who::Crate(StallPolicy::Report, _), End::Named(..)) => !lost && run.took >= after,
        (Who::Crate(StallPolicy::Release, _), End::Finished) => lost,
        _ => false,
    };
    if !expected {
        wrong.push("that is not what is to come of it".into());
    }
    wrong
}
