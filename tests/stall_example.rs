//! The example `stall`: every program under every serializer, with what is said of it.

#[path = "../examples/stall/cli.rs"]
mod cli;
#[path = "../examples/common/output.rs"]
mod output;
#[path = "../examples/stall/program.rs"]
mod program;
#[path = "../examples/stall/run.rs"]
mod run;
#[path = "../examples/stall/text.rs"]
mod text;

use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Many times what all runs of one program take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What it exits with, prints, and complains of.
fn run(options: &str) -> (u8, String, String) {
    let args = format!("stall {options}");
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let args = args.split_whitespace().map(OsString::from);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = cli::run(args, &mut out, &mut err);
        // Nobody listens any more where it came too late.
        let _ = tell.send((code, out, err));
    });
    let (code, out, err) = told
        .recv_timeout(PATIENCE)
        .unwrap_or_else(|e| panic!("stall {options}: {e}"));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (code, text(out), text(err))
}

/// Runs it with so much time for a stall that kernels of a busy machine are not taken for one, and finds all of
/// these lines in what it prints, in this order.
fn expect(code: u8, options: &str, lines: &[&str]) {
    let (got, out, err) = run(&format!("{options} --after 500"));
    assert_eq!((got, err.as_str()), (code, ""), "{options}\n{out}");
    let mut rest = out.as_str();
    for line in lines {
        match rest.split_once(line) {
            Some((_, after)) => rest = after,
            None => panic!("{options}: {line:?} is missing in\n{out}"),
        }
    }
}

const CASES: [&str; 3] = ["token", "transition", "copies"];

#[test]
fn under_locks_it_hangs() {
    for case in CASES {
        let line = "under locks          hangs: not at its end after ";
        let options = format!("--case {case} --serializer locked");
        expect(3, &options, &[line, "q0 packet ", "q1 packet "]);
    }
}

#[test]
fn the_crate_names_the_agent_the_queues_the_dispatch_and_who_waits_for_whom() {
    expect(
        3,
        "--case token --policy report",
        &[
            "hangs, and was named after ",
            "agent 0xa001: queue ",
            " holds the token with dispatch 0",
            "and queue ",
            " waits for it",
            "Its snapshot then:",
            " holds up the others: its kernel 0 was let go ",
            "kernel 0 is ready, and has waited for its turn for ",
            "What has to happen: kernel 0 of queue ",
            "then this is a deadlock",
            "Done about it: nothing, so far",
        ],
    );
    for case in ["transition", "copies"] {
        expect(
            3,
            &format!("--case {case} --serializer crate"),
            &[
                "hangs, and was named after ",
                "agent 0xa001: the barrier of epoch 1 waits",
                "for queue 0 (0 of 1 dispatches completed)",
                "and holds back queue 1 from dispatch 0 on",
                "queue 0 holds up others: 1 kernel of it, dispatched before the change ",
                "queue 1: kernel 0 waits until barrier 1 lets it through",
                "What has to happen: what is left of queue 0 from before ends",
                "then this is a deadlock",
            ],
        );
    }
}

#[test]
fn the_crate_releases_it_and_says_what_that_cost() {
    for case in CASES {
        let counted = match case {
            "token" => "0 forced, 1 overtaken",
            _ => "1 forced, 0 overtaken",
        };
        expect(
            0,
            &format!("--case {case} --serializer crate --policy release"),
            &[
                "at its end after ",
                ": released, kernels may run side by side",
                "kernels side by side: 2 at most, of which 1 started beside another's turn, the price of going on",
                counted,
            ],
        );
    }
}

#[test]
fn without_arguments_all_of_it_goes_as_told() {
    let runs = [
        "unserialized         at its end",
        "under locks          hangs",
        "this crate, report   hangs, and was named",
        "this crate, release  at its end",
    ];
    let lines: Vec<_> = CASES.iter().flat_map(|_| runs).collect();
    expect(0, "", &lines);
}

#[test]
fn arguments_that_are_wrong_and_the_help() {
    for options in [
        "--case none",
        "--after 0",
        "--serializer locked --policy release",
    ] {
        let (code, out, err) = run(options);
        assert_eq!((code, out.as_str()), (2, ""), "{options}");
        assert!(err.starts_with("error: "), "{options}: {err}");
    }
    let (code, out, err) = run("--help");
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("Exit codes: 0 "), "{out}");
}

/// Each program has a ring of arrows: who waits, by the serializer, and by the program itself.
#[test]
fn the_picture_shows_each_stall_as_a_ring() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stalls.svg");
    let options = format!("--policy report --svg {}", file.display());
    let lines: Vec<_> = CASES.iter().map(|_| "hangs, and was named").collect();
    expect(3, &options, &lines);
    let page = std::fs::read_to_string(file).unwrap();
    let page = roxmltree::Document::parse(&page).unwrap();
    let count = |class| {
        page.descendants()
            .filter(|n| n.attribute("class") == Some(class))
            .count()
    };
    assert_eq!(
        (count("root"), count("party"), count("waits"), count("also")),
        (3, 5, 5, 3)
    );
}

#[test]
fn a_picture_that_cannot_be_is_an_error_before_anything_runs() {
    let nowhere = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_such_directory/out.svg");
    let (code, out, err) = run(&format!("--svg {}", nowhere.display()));
    let named = format!("error: --svg {}: cannot be written: ", nowhere.display());
    assert!(
        (code, out.as_str()) == (1, "") && err.starts_with(&named),
        "{out}{err}"
    );
    for nothing_named in ["--serializer locked", "--policy release"] {
        let (code, out, err) = run(&format!("{nothing_named} --svg out.svg"));
        assert!(
            (code, out.as_str()) == (2, "") && err.contains("--svg draws what is named"),
            "{err}"
        );
    }
}
