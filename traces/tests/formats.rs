//! What the two formats allow.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use traces::{Format, Options, Reason, Trace, parse};

fn spans(trace: &Trace) -> Vec<(&str, u32, u32, u64, u64)> {
    let kernels = trace.kernels.iter();
    kernels
        .map(|k| (&*k.name, k.agent, k.queue, k.start_ns, k.end_ns))
        .collect()
}

fn queues(trace: &Trace) -> Vec<(&str, &str)> {
    let queues = trace.queues.iter();
    queues
        .map(|q| (&*trace.agents[q.agent as usize], &*q.name))
        .collect()
}

const CSV: &str = "\
End_Timestamp,\"Start_Timestamp\",Kernel_Name,Queue_Id,Extra,Agent_Id,Kind
160,140,\"say \"\"a, b\"\"\",2,,Agent 10,KERNEL_DISPATCH
9,9,x,1,,Agent 10,MEMORY_COPY
130,100,c,2,,Agent 4,KERNEL_DISPATCH
120,100,b,10,,Agent 4,KERNEL_DISPATCH
";

#[test]
fn csv_in_any_order() {
    let trace = parse("t.csv", CSV.as_bytes()).unwrap();
    assert_eq!((trace.format, trace.origin_ns), (Format::RocprofCsv, 100));
    assert_eq!(trace.agents, ["Agent 4", "Agent 10"]);
    assert_eq!(
        queues(&trace),
        [("Agent 4", "2"), ("Agent 4", "10"), ("Agent 10", "2")]
    );
    assert_eq!(
        spans(&trace),
        [
            ("b", 0, 1, 0, 20),
            ("c", 0, 0, 0, 30),
            ("say \"a, b\"", 1, 2, 40, 60)
        ]
    );
    let places: Vec<_> = trace.kernels.iter().map(|k| (k.index, k.line)).collect();
    assert_eq!(places, [(3, 5), (2, 4), (0, 2)]);
    assert_eq!(trace.skipped.count(&Reason::Kind("MEMORY_COPY".into())), 1);
    assert_eq!(trace.skipped.total(), 1);
}

#[test]
fn envelopes_do_not_matter() {
    let plain = parse("t", CSV.as_bytes()).unwrap();
    let crlf = format!("\u{feff}{}", CSV.replace('\n', "\r\n"));
    assert_eq!(parse("t", crlf.as_bytes()).unwrap(), plain);

    let mut members = Vec::new();
    for part in [&crlf.as_bytes()[..40], &crlf.as_bytes()[40..]] {
        let mut encoder = GzEncoder::new(members, Compression::default());
        encoder.write_all(part).unwrap();
        members = encoder.finish().unwrap();
    }
    assert_eq!(parse("t", &members).unwrap(), plain);
}

const EVENTS: &str = r#"[
 {"ph":"M","name":"process_name","pid":0,"args":{"name":"python"}},
 {"ph":"X","cat":"kernel","name":"late","pid":0,"tid":7,"ts":1763650000123456.789,"dur":2,"args":{"device":1,"stream":7}},
 {"ph":"X","cat":"cpu_op","name":"aten::add","pid":5,"tid":5,"ts":"odd","args":"odd"},
 {"ph":"X","cat":"gpu_memcpy","name":"copy","pid":0,"tid":7,"ts":1763650000123455.5,"dur":0.5,"args":{"device":0,"stream":7}},
 {"args":{"stream":7,"device":0,"other":[{}]},"dur":"0.001","ts":"1763650000123456.788","name":"\"a\" \u00e4","cat":"Kernel","ph":"X"},
 {"ph":"X","cat":"gpu_op","name":"bare","pid":"gpu","tid":"stream 7","ts":1763650000123457,"dur":0},
 {"ph":"s","cat":"ac2g","id":3}
]"#;

#[test]
fn chrome_object_or_list() {
    let list = parse("t.json", EVENTS.as_bytes()).unwrap();
    assert_eq!(
        (list.format, list.origin_ns),
        (Format::ChromeTrace, 1_763_650_000_123_456_788)
    );
    assert_eq!(list.agents, ["0", "1", "gpu"]);
    assert_eq!(queues(&list), [("0", "7"), ("1", "7"), ("gpu", "stream 7")]);
    assert_eq!(
        spans(&list),
        [
            ("\"a\" ä", 0, 0, 0, 1),
            ("late", 1, 1, 1, 2001),
            ("bare", 2, 2, 212, 212)
        ]
    );
    let places: Vec<_> = list.kernels.iter().map(|k| (k.index, k.line)).collect();
    assert_eq!(places, [(4, 6), (1, 3), (5, 7)]);
    assert_eq!(
        list.skipped.to_string(),
        "1 of category \"cpu_op\", 1 of category \"gpu_memcpy\", 1 of phase \"M\", 1 of phase \"s\""
    );

    let object = format!(
        "{{\"displayTimeUnit\":\"ns\",\"deviceProperties\":[{{\"id\":0}}],\"traceEvents\":{EVENTS},\"x\":1}}"
    );
    assert_eq!(parse("t.json", object.as_bytes()).unwrap(), list);
}

#[test]
fn copies_on_request() {
    let trace = Options::new()
        .copies(true)
        .parse("t.json", EVENTS.as_bytes())
        .unwrap();
    assert_eq!(trace.origin_ns, 1_763_650_000_123_455_500);
    assert_eq!(spans(&trace)[0], ("copy", 0, 0, 0, 500));
    assert_eq!(trace.skipped.total(), 3);
}

#[test]
fn rounding_keeps_neighbours_apart() {
    // Back to back in fractions of a nanosecond; each rounded alone, they would overlap.
    let event = |ts: &str| {
        format!(r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":0,"ts":{ts},"dur":0.0006}}"#)
    };
    let text = format!("[{},{}]", event("1.0006"), event("1.0012"));
    let trace = parse("t.json", text.as_bytes()).unwrap();
    assert_eq!(trace.kernels[0].end_ns, trace.kernels[1].start_ns);
}
