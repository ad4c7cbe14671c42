//! The example `replay`: on traces whose numbers follow by hand, on the real ones, on broken ones.

#[path = "../examples/replay/cli.rs"]
mod cli;
#[path = "../examples/replay/draw.rs"]
mod draw;
#[path = "../examples/common/drawings.rs"]
mod drawings;
#[path = "../examples/replay/machine.rs"]
mod machine;
#[path = "../examples/common/output.rs"]
mod output;
#[path = "../examples/replay/plan.rs"]
mod plan;
#[path = "../examples/replay/report.rs"]
mod report;
#[path = "../examples/replay/times.rs"]
mod times;
#[path = "../examples/replay/waits.rs"]
mod waits;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What it exits with, prints, and complains of.
fn run(file: &Path, options: &[&str]) -> (u8, String, String) {
    let args = [OsString::from("replay"), file.into()];
    let args = args.into_iter().chain(options.iter().map(OsString::from));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = cli::run(args, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (code, text(out), text(err))
}

fn replay(file: &Path, options: &[&str]) -> String {
    let (code, out, err) = run(file, options);
    assert_eq!((code, err.as_str()), (0, ""), "{options:?}\n{out}");
    out
}

fn file(name: &str, contents: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, contents).unwrap();
    path
}

const HEADER: &str = "Kind,Agent_Id,Queue_Id,Kernel_Name,Start_Timestamp,End_Timestamp\n";

fn csv(name: &str, rows: &[(&str, u32, u64, u64)]) -> PathBuf {
    let row = |(agent, queue, start, end): &(&str, u32, u64, u64)| {
        format!("KERNEL_DISPATCH,Agent {agent},{queue},k{start},{start},{end}\n")
    };
    let rows: String = rows.iter().map(row).collect();
    file(name, &format!("{HEADER}{rows}"))
}

/// The cells of the rows that begin with this cell, in the order in which they are printed.
fn rows<'a>(out: &'a str, first: &str) -> Vec<Vec<&'a str>> {
    let cells = |line: &'a str| -> Vec<&'a str> {
        let line = line.trim().trim_matches('|');
        line.split('|').map(str::trim).collect()
    };
    let rows = out.lines().filter(|line| line.starts_with('|')).map(cells);
    rows.filter(|cells| cells[0] == first).collect()
}

/// Two queues that overlap from 50 to 100.
fn two_queues(name: &str) -> PathBuf {
    let rows = [
        ("4", 1, 1_000, 1_100),
        ("4", 2, 1_050, 1_120),
        ("4", 1, 1_150, 1_250),
    ];
    csv(name, &rows)
}

#[test]
fn as_it_was_and_serialized() {
    for seed in 0..50 {
        let out = replay(
            &two_queues("serialized.csv"),
            &["--seed", &seed.to_string()],
        );
        assert!(
            out.contains("starts and ends within 0ns of the file's times"),
            "{out}"
        );
        assert!(out.contains("As it was, 0 kernels waited."), "{out}");
        let recorded = ["3", "270ns", "220ns", "50ns", "2", "250ns"];
        assert_eq!(rows(&out, "in the file")[0][1..7], recorded);
        assert_eq!(rows(&out, "as it was")[0][1..7], recorded);
        // From 0 to 100, from 100 to 170, and from 170, though submitted at 150, to 270.
        assert_eq!(
            rows(&out, "serialized")[0][1..],
            ["3", "270ns", "270ns", "0ns", "1", "270ns", "1.080 x"]
        );
        assert_eq!(
            rows(&out, "1")[0][1..],
            [
                "2",
                "1",
                "20ns",
                "10ns",
                "20ns",
                "0ns",
                "0ns",
                "20ns",
                "queue 2 20ns"
            ]
        );
        assert_eq!(
            rows(&out, "2")[0][1..],
            [
                "1",
                "1",
                "50ns",
                "50ns",
                "50ns",
                "0ns",
                "0ns",
                "50ns",
                "queue 1 50ns"
            ]
        );
        assert!(out.contains("The longest waited 50ns: \"k1050\" of queue 2 (line 3)."));
        assert!(out.contains("3 grants of the token, 2 contended."), "{out}");
    }
}

// On at 40, while the first kernel runs: the second one, submitted at 50, waits for its end at 100
// in its transition packet and runs until 170. Off at 80, on at 120: the third, submitted at 150,
// waits for the second. Off at 160, on at 200, off at 240, and the third ends at 270. In the epochs
// from 80, 160 and 200 nobody dispatches, so each next transition supersedes their barriers.
#[test]
fn on_and_off_all_through() {
    for seed in 0..50 {
        let options = ["--pause-every", "0.00004", "--seed", &seed.to_string()];
        let out = replay(&two_queues("toggled.csv"), &options);
        assert_eq!(
            rows(&out, "on and off every 40ns")[0][1..],
            ["3", "270ns", "270ns", "0ns", "1", "270ns", "1.080 x"]
        );
        let toggled = out.split("Waits, on and off").nth(1).unwrap();
        assert_eq!(
            rows(toggled, "1")[0][1..],
            ["2", "1", "20ns", "10ns", "20ns", "0ns", "20ns", "0ns", ""]
        );
        assert_eq!(
            rows(toggled, "2")[0][1..],
            ["1", "1", "50ns", "50ns", "50ns", "0ns", "50ns", "0ns", ""]
        );
        assert!(
            toggled.contains(
                "6 transitions, 6 while a kernel was in flight; 6 barriers, 3 superseded"
            ),
            "{out}"
        );
        assert!(
            toggled.contains(
                "2 dispatches tagged with a transition packet, 2 retired after the drain"
            ),
            "{out}"
        );
    }
}

#[test]
fn agents_run_beside_each_other_and_a_queue_may_overlap_itself() {
    let rows_of_two = [
        ("4", 1, 1_000, 1_100),
        ("5", 1, 1_050, 1_060),
        ("5", 1, 1_055, 1_070),
    ];
    let out = replay(&csv("two_agents.csv", &rows_of_two), &[]);
    assert!(
        out.contains("3 kernels on 2 queues of 2 agents; skipped: none"),
        "{out}"
    );
    assert!(
        out.contains("overlapped an earlier one of their own queue: 1\n"),
        "{out}"
    );
    let serialized = rows(&out, "serialized");
    assert_eq!(
        serialized[0][1..],
        ["1", "100ns", "100ns", "0ns", "1", "100ns", "1.000 x"]
    );
    assert_eq!(
        serialized[1][1..],
        ["2", "25ns", "25ns", "0ns", "1", "25ns", "1.250 x"]
    );
    assert_eq!(
        rows(&out, "as it was")[1][3..7],
        ["20ns", "5ns", "2", "20ns"]
    );
    // It waits for its own queue, not for the other agent.
    assert_eq!(
        rows(&out, "1")[1][1..],
        ["2", "1", "5ns", "2ns", "5ns", "5ns", "0ns", "0ns", ""]
    );
}

#[test]
fn kernels_that_take_no_time() {
    let nothing = [("4", 1, 7, 7), ("4", 1, 7, 7), ("4", 2, 7, 7)];
    let out = replay(&csv("no_time.csv", &nothing), &["--pause-every", "0.1"]);
    for run in ["in the file", "as it was", "serialized"] {
        assert_eq!(
            rows(&out, run)[0][1..7],
            ["3", "0ns", "0ns", "0ns", "0", "0ns"]
        );
    }
}

/// A real trace; `None` if it is not there, which in CI must not be.
fn real(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/traces")
        .join(name);
    if path.exists() {
        return Some(path);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "{} is missing",
        path.display()
    );
    eprintln!("SKIPPED: NOTHING WAS TESTED, {} is missing", path.display());
    None
}

/// The sum of the kernels' times, their overlap and the slowdown.
fn check_real(name: &str, sum: &str, overlap: &str, slowdown: &str) {
    let Some(path) = real(name) else {
        return;
    };
    let out = replay(&path, &["--pause-every", "0.5"]);
    assert!(
        out.contains("starts and ends within 0ns of the file's times"),
        "{out}"
    );
    assert!(out.contains("As it was, 0 kernels waited."), "{out}");
    let recorded = &rows(&out, "in the file")[0];
    assert_eq!((recorded[2], recorded[4]), (sum, overlap));
    assert_eq!(rows(&out, "as it was")[0][1..7], recorded[1..7]);
    let serialized = &rows(&out, "serialized")[0];
    assert_eq!(
        (serialized[3], serialized[4], serialized[5], serialized[7]),
        (sum, "0ns", "1", slowdown)
    );
    assert!(
        !out.contains("nobody"),
        "a wait that nobody is the cause of:\n{out}"
    );
    // Without toggling it is the same, less the toggled run.
    let plain = replay(&path, &[]);
    assert_eq!(
        rows(&plain, "serialized"),
        rows(&out, "serialized").as_slice()
    );
    assert!(rows(&plain, "on and off every 500.000µs").is_empty());
}

#[test]
fn real_rocprofv3() {
    check_real("rocprofv3_kernel_trace.csv", "96.160µs", "0ns", "1.000 x");
}

#[test]
fn real_resnet_of_two_streams() {
    let name = "mi300-resnet-training-2streams.json.gz";
    check_real(name, "97.256ms", "15.891ms", "1.157 x");
}

#[test]
fn real_inference() {
    check_real("mi210-inference.json.gz", "5.343ms", "0ns", "1.000 x");
}

#[test]
fn real_decode() {
    check_real(
        "sglang-qwen3-8b-decode.json.gz",
        "9.765ms",
        "5.688µs",
        "1.000 x",
    );
}

/// It ends with this code, prints nothing, and says all of this.
fn check_error(path: &Path, options: &[&str], code: u8, said: &[&str]) {
    let (found, out, err) = run(path, options);
    assert_eq!((found, out.as_str()), (code, ""), "{err}");
    assert!(err.starts_with("error: "), "{err}");
    for part in said {
        assert!(err.contains(part), "{part} is not in: {err}");
    }
}

#[test]
fn errors_name_file_line_and_field() {
    let backwards = csv("backwards.csv", &[("4", 1, 5, 9), ("4", 1, 9, 8)]);
    check_error(
        &backwards,
        &[],
        1,
        &["backwards.csv: line 3, field `End_Timestamp`"],
    );
    let event = r#"[{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":"long"}]"#;
    let event = file("event.json", event);
    check_error(
        &event,
        &[],
        1,
        &["event.json: line 1, event 0, field `dur`"],
    );
    let cut = file("cut.csv", &format!("{HEADER}KERNEL_DISPATCH,Agent 4,1,k,5"));
    check_error(&cut, &[], 1, &["cut.csv: line 2: expected 6 fields"]);
}

#[test]
fn files_that_are_no_traces() {
    let foreign = file("foreign.txt", "Dear all,\nplease find enclosed\n");
    check_error(
        &foreign,
        &[],
        1,
        &["foreign.txt", "expected rocprofv3's kernel-trace CSV"],
    );
    let missing = Path::new(env!("CARGO_TARGET_TMPDIR")).join("missing.csv");
    check_error(&missing, &[], 1, &["missing.csv: cannot be read"]);
    check_error(
        &file("empty.csv", HEADER),
        &[],
        1,
        &["empty.csv: no kernels in it"],
    );
}

#[test]
fn a_trace_that_no_clock_can_hold() {
    let rows = [("4", 1, 0, u64::MAX), ("4", 2, 0, 1)];
    check_error(
        &csv("eternal.csv", &rows),
        &[],
        1,
        &["eternal.csv: the trace is too long"],
    );
}

#[test]
fn arguments() {
    let path = two_queues("arguments.csv");
    for wrong in ["0", "-1", "x", "NaN", "inf", "1e300", ""] {
        let option = format!("--pause-every={wrong}");
        check_error(&path, &[&option], 2, &["--pause-every"]);
    }
    check_error(&path, &["--seed", "x"], 2, &["--seed"]);
    let long = csv("long.csv", &[("4", 1, 0, 2_000_000)]);
    check_error(
        &long,
        &["--pause-every", "0.000001"],
        1,
        &["--pause-every: 2000000 times"],
    );
    let (code, out, _) = run(&path, &["--help"]);
    assert!(code == 0 && out.contains("--pause-every <MS>"), "{out}");
}
