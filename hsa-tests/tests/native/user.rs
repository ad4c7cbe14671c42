//! What the tool that users load says of itself, and what else there is to see: its trace, as `traces` reads
//! it, and what the emulated GPU has counted by itself.

use super::{Stalls, Summary, Witness};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use traces::{ErrorKind, Trace};
use xtask::build;
use xtask::softgpu::Outcome;

/// The tool's library.
pub(crate) fn tool() -> &'static Path {
    static TOOL: OnceLock<PathBuf> = OnceLock::new();
    TOOL.get_or_init(|| build::build_bin("hsa-serializer-tool", "hsa_serializer_tool"))
}

/// What a run leaves.
pub(crate) struct Files {
    pub(crate) trace: PathBuf,
    pub(crate) report: PathBuf,
}

impl Files {
    /// Of a run of this name; there are none yet.
    pub(crate) fn new(name: &Path) -> Self {
        let files = Self {
            trace: name.with_extension("csv"),
            report: name.with_extension("report"),
        };
        let _ = fs::remove_file(&files.trace);
        let _ = fs::remove_file(&files.report);
        files
    }

    pub(crate) fn add_to(&self, command: &mut Command) {
        command
            .env("HSA_TOOLS_LIB", tool())
            .env("HSA_SERIALIZER_OUTPUT", &self.trace)
            .env("SOFTGPU_REPORT", &self.report);
    }

    /// Reads all of it. Panics where it does not agree with itself.
    pub(crate) fn summary(&self, outcome: &Outcome) -> Summary {
        let said: String = outcome
            .stderr
            .lines()
            .filter_map(|line| line.strip_prefix("hsa-serializer: "))
            .fold(String::new(), |all, line| all + line + "\n");
        let number = |before: &str, after: &str| number(&said, before, after);
        let kernels = number("kernels: ", ",").unwrap_or_else(|| panic!("no summary: {outcome}"));
        let but = |what: &str| number("; ", what).unwrap_or(0);
        let gone = but(" went with their queues");
        let rows = kernels
            - gone
            - but(" were passed on as they were")
            - but(" have no times, and are not in the trace");
        let trace = self.trace();
        let in_trace = trace.as_ref().map_or(0, |trace| trace.kernels.len() as u64);
        // What has not ended when that is said may do so before the process is gone.
        let expected = rows.saturating_sub(but(" had not ended"))..=rows;
        let as_said = expected.contains(&in_trace);
        assert!(as_said, "{in_trace} of {expected:?} rows: {outcome}");
        let faults = said.lines().filter(|line| line.contains("FAULT"));
        let text = fs::read_to_string(&self.report).unwrap_or_default();
        Summary {
            kernels,
            serialized: number(", ", " of them serialized").unwrap_or(0),
            transitions: number("transitions: ", "; one held").unwrap_or(0),
            stalls: Stalls {
                looks: 0,
                barriers: number("released: ", " transitions").unwrap_or(0),
                holders: number(" transitions, ", " turns").unwrap_or(0),
            },
            forced: number("released: ", " transitions").unwrap_or(0),
            overtaken: number(" transitions, ", " turns").unwrap_or(0),
            reports: faults.map(|line| line.into()).collect(),
            overlaps: number("overlaps: ", " (").unwrap_or(u64::MAX),
            rows: in_trace,
            side_by_side: trace.as_ref().map_or(0, side_by_side),
            witness: witness(&text),
        }
    }

    /// The trace; `None` if it has no kernels.
    pub(crate) fn trace(&self) -> Option<Trace> {
        match traces::read(&self.trace) {
            Ok(trace) => Some(trace),
            Err(e) if matches!(e.kind(), ErrorKind::NoKernels(_)) => None,
            Err(e) => panic!("{e}"),
        }
    }
}

/// The number that stands between two texts.
fn number(text: &str, before: &str, after: &str) -> Option<u64> {
    text.match_indices(after).find_map(|(end, _)| {
        let start = text[..end].rfind(before)? + before.len();
        text[start..end].parse().ok()
    })
}

/// Kernels that began before another one of their agent had ended, by the trace.
fn side_by_side(trace: &Trace) -> u64 {
    let mut ended = vec![0; trace.agents.len()];
    let mut found = 0;
    // They come in the order in which they began.
    for kernel in &trace.kernels {
        let ended = &mut ended[kernel.agent as usize];
        found += u64::from(kernel.start_ns < *ended);
        *ended = kernel.end_ns.max(*ended);
    }
    found
}

/// The emulated GPU's report has a line for each count.
fn witness(report: &str) -> Witness {
    let count = |name: &str| number(report, &format!(" {name}: "), ",\n").unwrap_or(0);
    Witness {
        kernels_started: count("kernels_started"),
        gated: count("gated"),
        overlaps: count("overlaps"),
        beside: count("beside"),
        stale_packets: count("stale_packets"),
    }
}
