//! Tables, on the terminal and in the documents.

use crate::catalogue::Group;
use crate::compare::Figure;
use crate::latency::{Latencies, PARTS};
use crate::table::{How, Target};
use crate::verdict::Verdict;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// A target, what was measured, and what that says.
#[derive(Debug)]
pub struct Judged {
    /// The target.
    pub target: Target,
    /// What was measured.
    pub figure: Figure,
    /// What that says.
    pub verdict: Verdict,
}

/// Three digits are as many as there are.
fn digits(number: f64) -> String {
    let decimals = match number.abs() {
        100.0.. => 0,
        10.0.. => 1,
        0.2.. => 2,
        0.0 => 0,
        _ => 3,
    };
    format!("{number:.decimals$}")
}

impl Judged {
    /// What is said of it, in columns.
    fn columns(&self) -> [String; 6] {
        let Self {
            target,
            figure,
            verdict,
        } = self;
        let noise = if target.is_timed() {
            format!("{:.1} %", 100.0 * figure.noise)
        } else {
            String::new()
        };
        let (own, base) = figure.nanoseconds;
        let times = match (target.how, base) {
            (How::Ratio(..) | How::Over(..), Some(base)) => {
                format!("{} / {}", digits(own), digits(base))
            }
            _ => String::new(),
        };
        [
            target.what.to_owned(),
            format!("{} {}", digits(target.at_most), target.against),
            digits(figure.value),
            times,
            noise,
            verdict.to_string(),
        ]
    }
}

const HEADS: [&str; 6] = ["what", "at most", "measured", "ns", "noise", ""];

/// A line of the check's table: for the terminal.
#[must_use]
pub fn line(judged: Option<&Judged>) -> String {
    let [what, most, value, times, noise, verdict] =
        judged.map_or(HEADS.map(str::to_owned), Judged::columns);
    format!("{what:<64} {most:<34} {value:>8} {times:>15} {noise:>7}  {verdict}")
}

/// The check's table, for documents.
#[must_use]
pub fn table(judged: &[Judged]) -> String {
    let mut out = markdown_heads(&HEADS);
    for one in judged {
        markdown_row(&mut out, &one.columns());
    }
    out
}

/// The check's table without what only those want to know who measure, for the README.
#[must_use]
pub fn short(judged: &[Judged]) -> String {
    let mut out = markdown_heads(&["what", "at most", "measured"]);
    for one in judged {
        let [what, most, value, _, _, verdict] = one.columns();
        let met = one.verdict == Verdict::Met;
        let value = if met {
            value
        } else {
            format!("{value} ({verdict})")
        };
        markdown_row(&mut out, &[what, most, value]);
    }
    out
}

/// What the check ends with.
#[must_use]
pub fn summary(judged: &[Judged]) -> String {
    let count = |verdict| judged.iter().filter(|j| j.verdict == verdict).count();
    let missed = |known| {
        judged
            .iter()
            .filter(|j| j.verdict == Verdict::Missed && j.target.known == known)
            .count()
    };
    format!(
        "{} met, {} too noisy, {} missed: {} of which BENCHMARKS.md says why, {} new",
        count(Verdict::Met),
        count(Verdict::TooNoisy),
        count(Verdict::Missed),
        missed(true),
        missed(false),
    )
}

/// Everything that was timed, for documents.
#[must_use]
pub fn figures(groups: &[(&Group, Vec<Figure>)]) -> String {
    let mut out = String::new();
    for (group, figures) in groups {
        let _ = writeln!(out, "**{}**\n", group.name);
        out += &markdown_heads(&["", "ns", "noise"]);
        for (bench, figure) in group.benches.iter().zip(figures) {
            let columns = [
                bench.name.clone(),
                digits(figure.value),
                format!("{:.0} %", 100.0 * figure.noise),
            ];
            markdown_row(&mut out, &columns);
        }
        out.push('\n');
    }
    out
}

/// Latencies, for documents and the terminal.
#[must_use]
pub fn latencies(latencies: &Latencies) -> String {
    let mut heads = vec!["ns"];
    heads.extend(PARTS.map(|(name, _)| name));
    heads.push("calls");
    let mut out = markdown_heads(&heads);
    for (name, histogram) in [
        ("dispatch", &latencies.dispatch),
        ("completion", &latencies.complete),
    ] {
        let mut columns = vec![name.to_owned()];
        columns.extend(PARTS.map(|(_, part)| histogram.value_at_quantile(part).to_string()));
        columns.push(histogram.len().to_string());
        markdown_row(&mut out, &columns);
    }
    out
}

fn markdown_heads(heads: &[&str]) -> String {
    let mut out = String::new();
    markdown_row(&mut out, heads);
    markdown_row(&mut out, &vec!["---"; heads.len()]);
    out
}

fn markdown_row(out: &mut String, columns: &[impl AsRef<str>]) {
    let columns: Vec<_> = columns.iter().map(AsRef::as_ref).collect();
    let _ = writeln!(out, "| {} |", columns.join(" | "));
}

/// Replaces what stands in a document between the comments `<!-- NAME -->` and `<!-- end of NAME -->`.
///
/// # Errors
/// Where the document can't be read or written, or has no such place.
pub fn replace(document: &Path, name: &str, text: &str) -> Result<()> {
    let whole = fs::read_to_string(document).with_context(|| document.display().to_string())?;
    let new = replaced(&whole, name, text)
        .with_context(|| format!("{} has no place for {name}", document.display()))?;
    fs::write(document, new).with_context(|| document.display().to_string())
}

fn replaced(whole: &str, name: &str, text: &str) -> Option<String> {
    let (start, end) = (
        format!("<!-- {name} -->\n"),
        format!("<!-- end of {name} -->"),
    );
    let (before, rest) = whole.split_once(&start)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{start}{}\n{end}{after}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_comments_is_replaced() {
        let whole = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n";
        assert_eq!(
            replaced(whole, "x", "new\n").as_deref(),
            Some("a\n<!-- x -->\nnew\n<!-- end of x -->\nb\n")
        );
        assert_eq!(replaced(whole, "y", "new"), None);
    }

    #[test]
    fn numbers_have_the_digits_that_mean_something() {
        let all = [1234.5, 12.34, 1.234, 0.0344, 0.0, -0.31];
        assert_eq!(
            all.map(digits),
            ["1234", "12.3", "1.23", "0.034", "0", "-0.31"]
        );
    }
}
