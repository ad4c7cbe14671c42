//! Timelines by hand: what is unusual in a run is still drawn right.

#[path = "../../tests/common/drawn.rs"]
mod drawn;

use drawn::{Trace, classes};
use hsa_serializer::{Event, Mode, Observer, QueueId, hsa_signal_t};
use hsa_serializer_inspect::timeline::{AgentTimeline, KernelSpan, Log, Timeline, perfetto, svg};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

fn at(nanoseconds: u64) -> Duration {
    Duration::from_nanos(nanoseconds)
}

fn queue(number: u64) -> QueueId {
    QueueId::from_raw(number)
}

fn kernel(of: u64, dispatch: u64, name: &str, begin: u64, end: u64) -> KernelSpan {
    KernelSpan {
        queue: queue(of),
        dispatch,
        name: name.into(),
        begin: at(begin),
        end: at(end),
    }
}

fn timeline(kernels: Vec<KernelSpan>, events: &[(u64, Event)]) -> Timeline {
    Timeline {
        name: "run".into(),
        agents: vec![AgentTimeline {
            name: "GPU".into(),
            queues: vec![(queue(0), "a".into()), (queue(1), "b".into())],
            kernels,
            events: events
                .iter()
                .map(|(time, event)| (at(*time), *event))
                .collect(),
        }],
    }
}

fn trace(timelines: &[Timeline]) -> Trace {
    let mut out = Vec::new();
    perfetto(&mut out, timelines).unwrap();
    Trace::read(&String::from_utf8(out).unwrap())
}

fn made(epoch: u32) -> Event {
    let signal = hsa_signal_t { handle: 1 };
    Event::Made { epoch, signal }
}

fn granted(of: u64, waited: u64) -> Event {
    Event::Granted {
        queue: queue(of),
        waited: at(waited),
    }
}

fn tagged(epoch: u32, of: u64, dispatch: u64) -> Event {
    Event::Tagged {
        epoch,
        queue: queue(of),
        dispatch,
    }
}

#[test]
fn names_stand_as_they_are() {
    let name = r#"k<1>&"x"\é"#;
    let run = timeline(vec![kernel(0, 0, name, 0, 1_000)], &[]);
    assert_eq!(
        trace(std::slice::from_ref(&run)).of(1, "kernel")[0].name,
        name
    );
    let page = svg("a < b & c", &[run]);
    classes(&page);
    let page = roxmltree::Document::parse(&page).unwrap();
    let texts: Vec<_> = page
        .descendants()
        .filter_map(|n| n.text())
        .map(str::trim)
        .collect();
    assert!(
        texts.contains(&name) && texts.contains(&"a < b & c"),
        "{texts:?}"
    );
}

#[test]
fn characters_that_xml_does_not_allow_are_replaced_on_a_page() {
    let name = "a\0b\u{1}c\u{1b}[1m\u{fffe}d\u{ffff}e\tf\u{7f}g\u{10000}\u{10ffff}";
    let shown = "a\u{fffd}b\u{fffd}c\u{fffd}[1m\u{fffd}d\u{fffd}e\tf\u{7f}g\u{10000}\u{10ffff}";
    let mut run = timeline(vec![kernel(0, 0, name, 0, 1_000)], &[]);
    run.name = name.into();
    run.agents[0].name = name.into();
    run.agents[0].queues[0].1 = name.into();
    // JSON has a way to write them.
    let kernels = trace(std::slice::from_ref(&run));
    assert_eq!(kernels.of(1, "kernel")[0].name, name);
    let page = svg(name, &[run]);
    let page = roxmltree::Document::parse(&page).unwrap();
    let texts = page.descendants().filter(|n| n.is_text());
    let texts = texts.filter_map(|n| n.text()).map(str::trim);
    // The title, the run's, the GPU's, the queue's and the kernel's name, and what is said of the kernel.
    assert_eq!(texts.filter(|text| text.starts_with(shown)).count(), 6);
}

#[test]
fn a_run_may_last_as_long_as_there_are_nanoseconds() {
    for end in [18_000_000_000_000_000_000, u64::MAX - 1, u64::MAX] {
        let events = [
            (0, made(1)),
            (end, Event::Cleared { epoch: 1 }),
            (end, granted(0, end)),
        ];
        let run = timeline(vec![kernel(0, 0, "x", 0, end)], &events);
        assert_eq!(trace(std::slice::from_ref(&run)).of(1, "kernel").len(), 1);
        let page = svg("", &[run]);
        let drawn = classes(&page);
        assert_eq!((drawn["kernel"], drawn["barrier"]), (1, 1));
        assert!((3..20).contains(&drawn["tick"]), "{drawn:?}");
    }
}

#[test]
fn kernels_of_one_queue_that_overlap_are_beside_each_other() {
    let kernels = vec![
        kernel(0, 0, "x", 0, 60),
        kernel(0, 1, "y", 10, 70),
        kernel(0, 2, "z", 60, 80),
        // Whose queue is not among those that are drawn.
        kernel(9, 0, "stranger", 0, 80),
    ];
    let run = timeline(kernels, &[]);
    let trace = trace(std::slice::from_ref(&run));
    let tracks: Vec<_> = trace.of(1, "kernel").iter().map(|k| k.track.1).collect();
    assert!(
        tracks.len() == 3 && tracks[0] != tracks[1] && tracks[0] == tracks[2],
        "{tracks:?}"
    );
    assert_eq!(classes(&svg("", &[run]))["kernel"], 3);
}

#[test]
fn kernels_that_take_no_time_have_their_turns() {
    let kernels = vec![kernel(0, 0, "x", 5, 5), kernel(0, 1, "y", 5, 5)];
    let events = [
        (5, granted(0, 0)),
        (5, Event::Released(queue(0))),
        (5, granted(0, 0)),
        (5, Event::Released(queue(0))),
    ];
    let run = timeline(kernels, &events);
    let mut json = Vec::new();
    perfetto(&mut json, std::slice::from_ref(&run)).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let arrows = json["traceEvents"].as_array().unwrap().iter();
    assert_eq!(arrows.filter(|event| event["ph"] == "f").count(), 2);
    // A page of no time at all.
    classes(&svg("", &[run]));
}

#[test]
fn what_is_let_go_before_its_time_is_said() {
    let kernels = vec![kernel(0, 0, "x", 10, 100), kernel(1, 0, "y", 40, 60)];
    let events = [
        (
            0,
            Event::Transition {
                epoch: 1,
                mode: Mode::Enabled,
            },
        ),
        (0, made(1)),
        (5, granted(0, 5)),
        (30, Event::Overtaken(queue(0))),
        (30, granted(1, 20)),
        (35, Event::Forced { epoch: 1 }),
        // Told late by the thread that dispatched it.
        (37, tagged(1, 1, 0)),
        (60, Event::Released(queue(1))),
        (70, Event::LetThrough),
    ];
    let trace = trace(&[timeline(kernels, &events)]);
    let turns = trace.of(1, "turn");
    let turns: Vec<_> = turns.iter().map(|t| (&*t.name, t.begin, t.end)).collect();
    assert_eq!(turns, [("a", 5, 30), ("b", 30, 60)]);
    let barrier = trace.of(1, "barrier")[0];
    assert_eq!((barrier.begin, barrier.end), (0, 35));
    for said in [
        "a lost its turn",
        "barrier 1 cleared by force",
        "everything let through",
    ] {
        let told = trace.instants.iter().any(|instant| instant.contains(said));
        assert!(told, "{said}: {:?}", trace.instants);
    }
    assert_eq!(
        (
            trace.flows_named("lets go"),
            trace.flows_named("has its turn")
        ),
        (1, 2)
    );
}

/// A turn and a barrier that are not over, a tag and a turn of kernels that never ran.
#[test]
fn what_has_no_end_ends_with_the_run_and_no_arrow_hangs_in_the_air() {
    let events = [
        // Given back before its kernel has begun: one that begins later has another turn.
        (5, granted(0, 5)),
        (6, Event::Released(queue(0))),
        (10, made(1)),
        (20, tagged(1, 1, 7)),
        (30, granted(1, 5)),
        (90, Event::QueueGone(queue(1))),
    ];
    let run = timeline(vec![kernel(0, 0, "x", 25, 50)], &events);
    let trace = trace(std::slice::from_ref(&run));
    assert!(trace.flows.is_empty());
    let [barrier, turn] = ["barrier", "turn"].map(|kind| *trace.of(1, kind).last().unwrap());
    assert_eq!((barrier.end, turn.end), (90, 90));
    assert!(
        trace
            .instants
            .iter()
            .any(|i| i == "b waits for it with kernel 7")
    );
    classes(&svg("", &[run]));
}

#[test]
fn a_kernel_that_ends_before_it_begins_takes_no_time() {
    let run = timeline(vec![kernel(0, 0, "x", 70, 50)], &[]);
    let trace = trace(std::slice::from_ref(&run));
    let kernel = trace.of(1, "kernel")[0];
    assert_eq!((kernel.begin, kernel.end), (70, 70));
    assert_eq!(classes(&svg("", &[run]))["kernel"], 1);
}

/// Ten thousand barriers of a nanosecond each, a microsecond apart.
#[test]
fn what_lies_upon_each_other_is_drawn_once() {
    let events: Vec<_> = (0..10_000_u32)
        .flat_map(|epoch| {
            let begin = u64::from(epoch) * 1_000;
            [(begin, made(epoch)), (begin + 1, Event::Cleared { epoch })]
        })
        .collect();
    let run = timeline(vec![kernel(0, 0, "x", 0, 10_000_000)], &events);
    let barriers = classes(&svg("", &[run]))["barrier"];
    assert!((500..2_000).contains(&barriers), "{barriers}");
}

#[test]
fn two_gpus_are_two_processes_and_two_groups_of_rows() {
    let mut run = timeline(vec![kernel(0, 0, "x", 0, 50)], &[]);
    let mut other = run.agents[0].clone();
    other.name = "GPU 2".into();
    run.agents.push(other);
    let trace = trace(std::slice::from_ref(&run));
    assert_eq!(trace.processes.len(), 2);
    let classes = classes(&svg("", &[run]));
    assert_eq!(
        (classes["agent"], classes["queue"], classes["kernel"]),
        (2, 4, 2)
    );
}

#[test]
fn nothing_at_all_is_drawn_too() {
    assert!(trace(&[]).slices.is_empty());
    classes(&svg("", &[]));
    classes(&svg("", &[Timeline::default()]));
}

#[test]
fn a_log_keeps_what_it_is_told_with_its_time_once() {
    let now = Arc::new(AtomicU64::new(5));
    let clock = now.clone();
    let log = Log::new(move || at(clock.load(SeqCst)));
    log.event(Event::LetThrough);
    // Of two threads the one that looked at the clock first may tell later.
    now.store(3, SeqCst);
    log.event(Event::QueueGone(queue(1)));
    let kept = log.take();
    assert_eq!(
        kept,
        [
            (at(3), Event::QueueGone(queue(1))),
            (at(5), Event::LetThrough)
        ]
    );
    assert!(log.take().is_empty());
}
