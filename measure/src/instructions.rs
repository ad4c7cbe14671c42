//! Instructions of the hot operations, counted by valgrind's callgrind: they do not depend on who else
//! uses the machine.
//!
//! The program that counts runs itself again under callgrind, once for each operation, which collects
//! only within `measure_counted`. Compilers differ by an instruction here and there, so a count may grow by
//! [`TOLERANCE`] (or by [`FEW`], for the smallest) before that is a failure: a lock, an allocation, a
//! pin or a call that is not inlined any more is more than that.

use crate::yardstick::{self, Load};
use crate::{Shape, bare, hot, rare, serialized};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// By how much a count may grow.
pub const TOLERANCE: f64 = 0.08;
/// By how many instructions at least.
pub const FEW: f64 = 3.0;

/// How often each operation is done: what is around it vanishes.
const TIMES: u64 = 1024;

/// An operation whose instructions are counted.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// What it is called in the record.
    pub name: &'static str,
    make: fn() -> Shape,
}

const fn operation(name: &'static str, make: fn() -> Shape) -> Operation {
    Operation { name, make }
}

fn toggle(queues: usize) -> Shape {
    yardstick::toggle(yardstick::of_the_crate, queues, Load::Idle)
}

/// All of them.
///
/// Callgrind counts what a shape prepares between two operations as well. Most of these prepare nothing;
/// of the others, `-and-around`, the sum is recorded: of a first dispatch with its share of a transition
/// and its completion, of a draining completion with all that led to it, of a serialized kernel that waits
/// for its grant.
pub const OPERATIONS: [Operation; 16] = [
    operation("limit", bare::limit),
    operation("dispatch-complete", hot::no_barrier),
    operation("dispatch-complete-backlog", || hot::behind_barriers(0)),
    operation("dispatch-complete-armed", || hot::behind_barriers(1)),
    operation("dispatch-complete-512-armed", || hot::behind_barriers(512)),
    operation("dispatch-armed", hot::armed_dispatch),
    operation("dispatch-complete-cleared-held", hot::cleared_barrier_held),
    operation("dispatch-enabled", serialized::dispatch_alone),
    operation("kernel-enabled", serialized::uncontended),
    operation("enable-disable-1-idle", || toggle(1)),
    operation("enable-disable-64-idle", || toggle(64)),
    operation("first-dispatch-and-around", || {
        rare::first_dispatch(rare::Barrier::Armed)
    }),
    operation("drain-and-around", || rare::draining(8)),
    operation("grant-and-around", serialized::granting_completion),
    operation("empty-call", bare::empty_call),
    operation("drain-queue-armed", rare::drain_armed),
];

/// What callgrind collects in.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C-unwind" fn measure_counted(shape: &mut Shape, times: u64) {
    shape.run(times);
}

/// Does one operation, so that it can be counted: what the program does under callgrind.
///
/// # Errors
/// Where no operation is called that.
pub fn perform(name: &str) -> Result<()> {
    let operation = OPERATIONS.iter().find(|o| o.name == name);
    let mut shape = (operation.context("no operation is called that")?.make)();
    // What happens once, the first time.
    shape.run(TIMES);
    measure_counted(&mut shape, TIMES);
    Ok(())
}

/// Whether valgrind is there.
#[must_use]
pub fn valgrind_is_there() -> bool {
    let mut command = Command::new("valgrind");
    command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Instructions of each operation. `program` called with `--perform NAME` has to
/// [`perform`] it.
///
/// # Errors
/// Where callgrind can't be started or says nothing.
pub fn count(program: &Path) -> Result<BTreeMap<String, f64>> {
    OPERATIONS
        .iter()
        .map(|operation| {
            let output = Command::new("valgrind")
                .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
                .args(["--collect-atstart=no", "--toggle-collect=measure_counted"])
                .arg(program)
                .args(["--perform", operation.name])
                .output()
                .context("valgrind can't be started")?;
            let told = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{}: {told}", operation.name);
            let collected = collected(&told)
                .with_context(|| format!("{}: no count in\n{told}", operation.name))?;
            Ok((operation.name.to_owned(), collected as f64 / TIMES as f64))
        })
        .collect()
}

/// The instructions that callgrind says it has collected.
fn collected(told: &str) -> Option<u64> {
    let line = told
        .lines()
        .find_map(|line| line.split_once("Collected :"))?;
    line.1.trim().parse().ok()
}

/// A record, as text: a line for each operation.
#[must_use]
pub fn record(counts: &BTreeMap<String, f64>) -> String {
    let mut out = String::new();
    for (name, count) in counts {
        let _ = writeln!(out, "{name} {count:.1}");
    }
    out
}

/// What a record holds.
///
/// # Errors
/// Where it is no record.
pub fn recorded(text: &str) -> Result<BTreeMap<String, f64>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (name, count) = line.split_once(' ').context("a line of two words")?;
            Ok((name.to_owned(), count.parse().context("a count")?))
        })
        .collect()
}

/// A table of what was counted beside what was recorded, and whether nothing has grown.
///
/// # Errors
/// Where the two are not of the same operations.
pub fn compare(
    counts: &BTreeMap<String, f64>,
    recorded: &BTreeMap<String, f64>,
) -> Result<(String, bool)> {
    let mut out = String::new();
    let mut fine = true;
    for (name, count) in counts {
        let Some(before) = recorded.get(name) else {
            bail!("{name} was never recorded");
        };
        let grown = *count > before + (before * TOLERANCE).max(FEW);
        fine &= !grown;
        let grown = if grown { "GROWN" } else { "" };
        let _ = writeln!(out, "{name:<34} {count:>8.1} {before:>8.1}  {grown}");
    }
    for name in recorded.keys() {
        ensure!(
            counts.contains_key(name),
            "{name} was recorded and is not counted"
        );
    }
    Ok((out, fine))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(all: &[(&str, f64)]) -> BTreeMap<String, f64> {
        all.iter().map(|(n, c)| ((*n).to_owned(), *c)).collect()
    }

    #[test]
    fn growth_beyond_the_tolerance_fails() {
        let before = counts(&[("a", 100.0), ("b", 10.0)]);
        let fine = |a, b| compare(&counts(&[("a", a), ("b", b)]), &before).unwrap().1;
        assert!(fine(100.0, 10.0) && fine(108.0, 13.0) && fine(1.0, 1.0));
        assert!(!fine(108.1, 10.0));
        assert!(!fine(100.0, 13.1));
    }

    #[test]
    fn an_operation_without_a_record_fails_and_a_record_without_an_operation() {
        let (one, two) = (counts(&[("a", 1.0)]), counts(&[("a", 1.0), ("b", 1.0)]));
        assert!(compare(&two, &one).is_err());
        assert!(compare(&one, &two).is_err());
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let all = counts(&[("a", 12.5), ("b", 3.0)]);
        let text = format!("# what it is\n{}", record(&all));
        assert_eq!(recorded(&text).unwrap(), all);
        assert!(recorded("a b c").is_err());
    }

    #[test]
    fn callgrind_says_it_like_this() {
        let told = "==1== Events    : Ir\n==1== Collected : 18372\n==1==";
        assert_eq!(collected(told), Some(18372));
        assert_eq!(collected("nothing"), None);
    }
}
