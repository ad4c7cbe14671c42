//! Measures the targets, prints them beside what was measured, and says whether they are met: what
//! `cargo xtask bench-check` runs.

use anyhow::{Result, ensure};
use clap::Parser;
use measure::allocations::Counting;
use measure::compare::Effort;
use measure::documents;
use measure::report::{self, Judged};
use measure::table::TARGETS;
use measure::verdict::{self, Verdict};
use std::path::PathBuf;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Parser)]
struct Arguments {
    /// Only the targets in whose line this occurs.
    #[arg(long)]
    only: Option<String>,
    /// Measures everything else too, and writes the tables and pictures of the workspace there.
    #[arg(long, value_name = "WORKSPACE", conflicts_with = "only")]
    write: Option<PathBuf>,
}

fn check(only: Option<&str>) -> Vec<Judged> {
    println!("{}", report::line(None));
    let wanted = |what: &str| only.is_none_or(|part| what.contains(part));
    TARGETS
        .into_iter()
        .filter(|t| wanted(t.what) || wanted(t.against))
        .map(|target| {
            let (figure, verdict) =
                verdict::judge(target.at_most, || target.measure(Effort::CHECK));
            let judged = Judged {
                target,
                figure,
                verdict,
            };
            println!("{}", report::line(Some(&judged)));
            judged
        })
        .collect()
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let judged = check(arguments.only.as_deref());
    ensure!(!judged.is_empty(), "no target has that in its line");
    if let Some(workspace) = &arguments.write {
        documents::write(workspace, &judged)?;
    }
    println!("{}", report::summary(&judged));
    let verdicts: Vec<Verdict> = judged.iter().map(|j| j.verdict).collect();
    Ok(verdict::exit(&verdicts))
}
