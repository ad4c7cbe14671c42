//! The example `replay` draws what it replays: every kernel once, in its row, with what it waited for.

#[path = "../examples/replay/cli.rs"]
mod cli;
#[path = "../examples/replay/draw.rs"]
mod draw;
#[path = "../examples/common/drawings.rs"]
mod drawings;
#[path = "common/drawn.rs"]
mod drawn;
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

use drawn::{Trace, classes};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/replay/three_queues.csv")
}

/// What it exits with, and complains of.
fn run(trace: &Path, options: &[&str]) -> (u8, String) {
    let args = [OsString::from("replay"), trace.into()];
    let args = args.into_iter().chain(options.iter().map(OsString::from));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = cli::run(args, &mut out, &mut err);
    (code, String::from_utf8(err).unwrap())
}

/// The example's trace with these options: what Perfetto gets, and the page.
fn draw_it(name: &str, options: &[&str]) -> (Trace, String) {
    let json = temporary(&format!("{name}.json"));
    let svg = temporary(&format!("{name}.svg"));
    let paths = [&json, &svg].map(|path| path.to_str().unwrap().to_owned());
    let mut all = vec!["--trace", &paths[0], "--svg", &paths[1]];
    all.extend(options);
    assert_eq!(run(&example(), &all), (0, String::new()));
    let trace = Trace::read(&fs::read_to_string(json).unwrap());
    (trace, fs::read_to_string(svg).unwrap())
}

/// Begin, end and name of the kernels in the file, whose first one begins at 0.
fn recorded() -> Vec<(u64, u64, String)> {
    let text = fs::read_to_string(example()).unwrap();
    let rows = text.lines().skip(1).map(|row| {
        let cells: Vec<_> = row.split(',').collect();
        let time = |n: usize| cells[n].parse::<u64>().unwrap() - 1_000;
        (time(4), time(5), cells[3].to_owned())
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    rows
}

#[test]
fn every_kernel_is_in_the_trace_once_when_it_ran() {
    let (trace, _) = draw_it("every_kernel", &[]);
    let processes: Vec<_> = trace.processes.values().collect();
    assert_eq!(
        processes,
        ["as it was, GPU Agent 1", "serialized, GPU Agent 1"]
    );
    let of = |process| {
        let kernels = trace.of(process, "kernel");
        let mut kernels: Vec<_> = kernels
            .iter()
            .map(|k| (k.begin, k.end, k.name.clone()))
            .collect();
        kernels.sort_unstable();
        kernels
    };
    assert_eq!(of(1), recorded());
    let lengths = |kernels: Vec<(u64, u64, String)>| {
        let mut lengths: Vec<_> = kernels
            .into_iter()
            .map(|(b, e, name)| (name, e - b))
            .collect();
        lengths.sort_unstable();
        lengths
    };
    let serialized = of(2);
    assert!(serialized.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    assert_eq!(lengths(serialized), lengths(recorded()));
}

#[test]
fn each_turn_leads_to_the_kernel_that_ran_in_it() {
    let (trace, _) = draw_it("turns", &[]);
    assert!(trace.of(1, "turn").is_empty());
    assert_eq!(trace.of(2, "turn").len(), 10);
    assert_eq!(trace.flows_named("has its turn"), 10);
    let mut reached: Vec<_> = Vec::new();
    for (_, turn, kernel) in trace.flows.iter().filter(|flow| flow.0 == "has its turn") {
        assert_eq!((&*turn.kind, &*kernel.kind), ("turn", "kernel"));
        assert_eq!((turn.begin, turn.end), (kernel.begin, kernel.end));
        assert!(!reached.contains(&kernel), "{kernel:?} twice");
        reached.push(kernel);
    }
}

// On at 50 us, when the second `gemm` and `softmax` run: they hold back the third `scale`, submitted at 51,
// and the second `reduce`, at 69, until 84. Off at 100: the fourth `scale` does not run any more, but was
// dispatched before; nobody is held back.
#[test]
fn a_barrier_leads_to_the_kernels_that_it_held_back() {
    let (trace, _) = draw_it("barriers", &["--pause-every", "0.05"]);
    let barriers = trace.of(3, "barrier");
    let spans: Vec<_> = barriers
        .iter()
        .map(|b| (&*b.name, b.begin, b.end))
        .collect();
    assert_eq!(spans[0], ("barrier 1", 50_000, 84_000));
    assert_eq!(spans.len(), 3, "{spans:?}");
    let held = trace.flows.iter().filter(|flow| flow.0 == "lets go");
    let held: Vec<_> = held
        .map(|(_, b, k)| (&*b.name, &*k.name, k.begin))
        .collect();
    assert_eq!(
        held,
        [
            ("barrier 1", "scale", 84_000),
            ("barrier 1", "reduce", 102_000)
        ]
    );
    let modes = trace.of(3, "mode");
    let modes: Vec<_> = modes.iter().map(|m| (&*m.name, m.begin)).collect();
    assert_eq!(modes[0], ("on: one kernel at a time", 50_000));
    assert_eq!(modes[1], ("off", 100_000));
}

#[test]
fn the_page_has_a_row_a_queue_and_a_rectangle_a_kernel() {
    let (_, page) = draw_it("page", &["--pause-every", "0.05"]);
    let classes = classes(&page);
    assert_eq!((classes["queue"], classes["panel"]), (3, 3));
    assert_eq!(classes["lane"], 3 * 3);
    assert_eq!(classes["kernel"], 3 * 10);
    assert_eq!(classes["legend"], 5);
    assert_eq!((classes["held"], classes["barrier"]), (2, 4));
    assert!(classes["waits"] > 0 && classes["mode"] > 0, "{classes:?}");
}

#[test]
fn the_page_shows_the_kernels_that_are_chosen() {
    let (trace, page) = draw_it("chosen", &["--svg-kernels", "3..6"]);
    assert_eq!(classes(&page)["kernel"], 2 * 3);
    assert!(page.contains("Kernels 3 to 5 of 10"), "{page}");
    assert_eq!(trace.of(1, "kernel").len(), 10, "the trace has all of them");
    let (_, empty) = draw_it("none_chosen", &["--svg-kernels", "10..20"]);
    assert_eq!(classes(&empty).get("kernel"), None);
    for wrong in ["3", "3..3", "4..3", "a..b", "0..100000", ""] {
        let option = format!("--svg-kernels={wrong}");
        let (code, err) = run(&example(), &[&option]);
        assert!(code == 2 && err.contains("--svg-kernels"), "{wrong}: {err}");
    }
}

#[test]
fn a_path_that_cannot_be_written_is_an_error_before_anything_runs() {
    // Neither can be read: the first one that is noticed is named.
    let no_trace = temporary("no_such_trace.csv");
    for option in ["--trace", "--svg"] {
        let path = temporary("no_such_directory").join("out");
        let (code, err) = run(&no_trace, &[option, path.to_str().unwrap()]);
        let named = format!("error: {option} {}: cannot be written: ", path.display());
        assert!(code == 1 && err.starts_with(&named), "{err}");
    }
    let same = temporary("same");
    let same = same.to_str().unwrap();
    let (code, err) = run(&example(), &["--trace", same, "--svg", same]);
    assert!(code == 1 && err.contains("the same file"), "{err}");
}

#[test]
fn what_a_file_held_stays_if_nothing_comes_of_the_run() {
    let kept = temporary("kept.json");
    fs::write(&kept, "older, and longer than what comes: ".repeat(10_000)).unwrap();
    let options = ["--trace", kept.to_str().unwrap()];
    assert_eq!(run(&temporary("no_such_trace.csv"), &options).0, 1);
    assert!(fs::read_to_string(&kept).unwrap().starts_with("older"));
    assert_eq!(run(&example(), &options).0, 0);
    Trace::read(&fs::read_to_string(&kept).unwrap());
}
