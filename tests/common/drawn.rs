//! What any trace has to be that Perfetto opens, and any page.

use serde_json::Value;
use std::collections::BTreeMap;

/// A slice: its track, its kind, its name, and when, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) track: (u64, u64),
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// A trace that was read.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) slices: Vec<Slice>,
    /// By name, the slices that each arrow leads from and to.
    pub(crate) flows: Vec<(String, Slice, Slice)>,
    pub(crate) instants: Vec<String>,
    /// The processes' names.
    pub(crate) processes: BTreeMap<u64, String>,
}

fn nanos(micros: &Value) -> u64 {
    let micros = micros.as_f64().expect("a time");
    assert!(micros >= 0.0, "{micros}");
    (micros * 1e3).round() as u64
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

impl Trace {
    /// Reads it, and checks what holds of each.
    pub(crate) fn read(json: &str) -> Self {
        let json: Value = serde_json::from_str(json).expect("it is JSON");
        let events = json["traceEvents"].as_array().expect("a list of events");
        let mut trace = Self {
            slices: Vec::new(),
            flows: Vec::new(),
            instants: Vec::new(),
            processes: BTreeMap::new(),
        };
        let mut tracks = BTreeMap::new();
        let mut ends: BTreeMap<u64, [Vec<&Value>; 2]> = BTreeMap::new();
        let track = |event: &Value| {
            let number = |key| event[key].as_u64().expect("a number");
            (number("pid"), number("tid"))
        };
        for event in events {
            match event["ph"].as_str().expect("a phase") {
                "M" if event["name"] == "process_name" => {
                    let name = text(&event["args"]["name"]);
                    let pid = event["pid"].as_u64().expect("a process");
                    assert_eq!(trace.processes.insert(pid, name), None);
                }
                "M" if event["name"] == "thread_name" => {
                    let name = text(&event["args"]["name"]);
                    assert_eq!(tracks.insert(track(event), name), None);
                }
                "M" => {}
                "X" => trace.slices.push(Slice {
                    track: track(event),
                    kind: text(&event["cat"]),
                    name: text(&event["name"]),
                    begin: nanos(&event["ts"]),
                    end: nanos(&event["ts"]) + nanos(&event["dur"]),
                }),
                "i" => trace.instants.push(text(&event["name"])),
                "s" => ends.entry(id(event)).or_default()[0].push(event),
                "f" => {
                    assert_eq!(event["bp"], "e", "it is to bind to what encloses it");
                    ends.entry(id(event)).or_default()[1].push(event);
                }
                other => panic!("{other}: {event}"),
            }
        }
        for slice in &trace.slices {
            assert!(tracks.contains_key(&slice.track), "a track without a name");
        }
        trace.check_lanes();
        for (id, [from, to]) in ends {
            assert_eq!((from.len(), to.len()), (1, 1), "the ends of arrow {id}");
            let at = |event: &Value| trace.at(track(event), nanos(&event["ts"]));
            assert!(
                nanos(&from[0]["ts"]) <= nanos(&to[0]["ts"]),
                "{from:?} {to:?}"
            );
            let flow = (text(&from[0]["name"]), at(from[0]), at(to[0]));
            trace.flows.push(flow);
        }
        trace
    }

    /// The slice that an arrow binds to: of two that meet there, the one that begins.
    fn at(&self, track: (u64, u64), at: u64) -> Slice {
        let mut slices = self.slices.iter().rev();
        let around = |s: &&Slice| s.track == track && s.begin <= at && at <= s.end;
        let slice = slices.find(around);
        slice
            .unwrap_or_else(|| panic!("no slice of {track:?} at {at}"))
            .clone()
    }

    /// Slices of a track that overlap would have to nest.
    fn check_lanes(&self) {
        let mut by_track: BTreeMap<_, Vec<&Slice>> = BTreeMap::new();
        for slice in &self.slices {
            by_track.entry(slice.track).or_default().push(slice);
        }
        for slices in by_track.values_mut() {
            slices.sort_by_key(|slice| (slice.begin, slice.end));
            for pair in slices.windows(2) {
                assert!(pair[0].end <= pair[1].begin, "{pair:?} overlap");
            }
        }
    }

    pub(crate) fn of(&self, process: u64, kind: &str) -> Vec<&Slice> {
        let slices = self.slices.iter();
        let of = slices.filter(|s| s.track.0 == process && s.kind == kind);
        of.collect()
    }

    pub(crate) fn flows_named(&self, name: &str) -> usize {
        self.flows.iter().filter(|flow| flow.0 == name).count()
    }
}

fn id(event: &Value) -> u64 {
    event["id"].as_u64().expect("an id")
}

/// How many things of each class are on a page. A legend's are not counted.
pub(crate) fn classes(page: &str) -> BTreeMap<String, usize> {
    let page = roxmltree::Document::parse(page).expect("it is XML");
    let root = page.root_element();
    assert_eq!(root.tag_name().name(), "svg");
    let mut classes = BTreeMap::new();
    for node in root
        .descendants()
        .filter(|n| n.attribute("data-legend").is_none())
    {
        for key in ["x", "y", "width", "height"] {
            if let Some(number) = node.attribute(key) {
                let number: f64 = number.parse().expect("a number");
                assert!((0.0..20_000.0).contains(&number), "{key} {number}");
            }
        }
        if let Some(class) = node.attribute("class") {
            *classes.entry(class.to_owned()).or_default() += 1;
        }
    }
    classes
}
