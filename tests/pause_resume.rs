//! The example `pause_resume` draws its runs, in virtual time and in real time, and what hangs.

#[path = "../examples/pause_resume/cli.rs"]
mod cli;
#[path = "../examples/pause_resume/draw.rs"]
mod draw;
#[path = "../examples/common/drawings.rs"]
mod drawings;
#[path = "common/drawn.rs"]
mod drawn;
#[path = "../examples/common/output.rs"]
mod output;

use drawn::{Trace, classes};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Runs it with these options: what it exits with, what Perfetto gets, and the page.
fn draw_it(name: &str, options: &str) -> (u8, Trace, String) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let json = directory.join(format!("pause_resume_{name}.json"));
    let svg = directory.join(format!("pause_resume_{name}.svg"));
    let mut args: Vec<OsString> = vec!["pause_resume".into()];
    args.extend(options.split_whitespace().map(OsString::from));
    args.extend(["--trace".into(), json.clone().into()]);
    args.extend(["--svg".into(), svg.clone().into()]);
    let code = cli::run(args);
    let trace = Trace::read(&fs::read_to_string(json).unwrap());
    (code, trace, fs::read_to_string(svg).unwrap())
}

/// The kernels' numbers, each of which is there once.
fn numbers(trace: &Trace, process: u64) -> BTreeSet<u32> {
    let kernels = trace.of(process, "kernel");
    let numbers: BTreeSet<_> = kernels.iter().map(|k| k.name.parse().unwrap()).collect();
    assert_eq!(numbers.len(), kernels.len());
    numbers
}

fn check(trace: &Trace, page: &str, kernels: u32) {
    let processes: Vec<_> = trace.processes.values().collect();
    assert_eq!(processes, ["unserialized, GPU", "resume, pause, GPU"]);
    for process in [1, 2] {
        assert!(numbers(trace, process).into_iter().eq(0..kernels));
    }
    // Of the serialized kernels none runs beside another one, and each has its turn.
    let turns = trace.of(2, "turn").len();
    assert!(turns > 0 && trace.of(1, "turn").is_empty());
    assert_eq!(trace.flows_named("has its turn"), turns);
    let barriers = trace.of(2, "barrier").len();
    assert!(barriers > 0, "nobody has toggled");
    let held = trace.flows_named("lets go");
    let tags = trace
        .instants
        .iter()
        .filter(|i| i.contains("waits for it with"));
    assert!(held > 0 && held == tags.count());
    for (name, from, to) in &trace.flows {
        assert_eq!(to.kind, "kernel");
        // Nothing starts behind a barrier before that lets go.
        assert!(name != "lets go" || from.end <= to.begin, "{from:?} {to:?}");
        assert!(
            name != "has its turn" || to.end <= from.end,
            "{from:?} {to:?}"
        );
    }
    let classes = classes(page);
    assert_eq!((classes["queue"], classes["panel"]), (3, 2));
    assert_eq!(classes["kernel"], 2 * 60);
}

#[test]
fn in_virtual_time() {
    let options = "--virtual --queues 3 --kernels 2000 --toggles 100 --seed 7";
    let (code, trace, page) = draw_it("virtual", options);
    assert_eq!(code, 0);
    assert_eq!(trace.of(2, "barrier").len(), 100);
    check(&trace, &page, 2_000);
}

#[test]
fn in_real_time() {
    let options = "--queues 3 --kernels 2000 --toggles 100";
    let (code, trace, page) = draw_it("real", options);
    // On a busy machine what it is to try may not happen.
    assert!(code == 0 || code == 4, "{code}");
    check(&trace, &page, 2_000);
}

/// A serializer under locks tells nothing, and comes to a stop: what ran until then is drawn.
#[test]
fn what_hangs_is_drawn_as_far_as_it_came() {
    let options = "--virtual --retire eager --kernels 20000 --toggles 2000";
    let (code, trace, page) = draw_it("eager", options);
    assert_eq!(code, 3);
    let ran = numbers(&trace, 1).len();
    assert!(ran > 0 && ran < 20_000, "{ran}");
    assert_eq!(classes(&page)["panel"], 1);
}

#[test]
fn a_path_that_cannot_be_written_is_an_error_before_anything_runs() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_such_directory");
    let out = directory.join("out").into_os_string();
    // So many kernels would take hours.
    let args = [
        "pause_resume",
        "--virtual",
        "--kernels",
        "4000000000",
        "--svg",
    ];
    let args = args.map(OsString::from).into_iter().chain([out]);
    assert_eq!(cli::run(args), 1);
    let help = ["pause_resume", "--help"].map(OsString::from);
    assert_eq!(cli::run(help), 0);
}
