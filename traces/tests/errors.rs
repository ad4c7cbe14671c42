//! Every way in which a file can be wrong, and what the message says about it.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use traces::{ErrorKind, Options, TraceError, parse};

const HEADER: &str = "Kind,Agent_Id,Queue_Id,Kernel_Name,Start_Timestamp,End_Timestamp";
const UNDERSTOOD: &str = "expected rocprofv3's kernel-trace CSV or a Chrome trace as PyTorch's \
                          profiler writes it (JSON), either one plain or gzipped";

fn error(name: &str, bytes: impl AsRef<[u8]>) -> TraceError {
    let error = parse(name, bytes.as_ref()).expect_err("must be refused");
    assert_eq!(error.file(), name);
    error
}

/// The message about a CSV whose rows these are.
fn csv(rows: &str) -> String {
    error("t.csv", format!("{HEADER}\n{rows}")).to_string()
}

/// The message about a list whose second event, on line 3, is this one.
fn json(event: &str) -> String {
    let first = r#"{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":0,"ts":1,"dur":1}"#;
    error("t.json", format!("[\n{first},\n{event}\n]")).to_string()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn unreadable() {
    let path = std::path::Path::new("/nonexistent/t.csv");
    let error = traces::read(path).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io(_)));
    let text = error.to_string();
    assert!(
        text.starts_with("/nonexistent/t.csv: cannot be read: No such file"),
        "{text}"
    );
    assert!(traces::read(std::path::Path::new("/")).is_err());
}

#[test]
fn empty() {
    for bytes in ["", " \r\n\t", "\u{feff}"] {
        assert_eq!(error("t", bytes).to_string(), "t: empty");
    }
    assert_eq!(error("t.gz", gzip(b"")).to_string(), "t.gz: empty");
}

#[test]
fn foreign() {
    let png = error("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    assert!(matches!(png.kind(), ErrorKind::Foreign { .. }));
    assert_eq!(
        png.to_string(),
        format!(r#"a.png: {UNDERSTOOD}; found a file that starts with "\x89PNG""#)
    );
    assert_eq!(
        error("nvprof.csv", "\"Start\",\"Duration\",\"Name\"\nms,us,\n").to_string(),
        format!(
            r#"nvprof.csv: {UNDERSTOOD}; found a file that starts with "\"Start\",\"Duration\",\"Name\"""#
        )
    );
    assert_eq!(
        error("t.json", r#"{"rocprofiler-sdk-tool":[]}"#).to_string(),
        format!("t.json: {UNDERSTOOD}; found a JSON object without `traceEvents`")
    );
    // Compressed twice.
    let twice = error("t.gz", gzip(&gzip(b"[]"))).to_string();
    assert!(
        twice.contains(r#"found a file that starts with "\x1f\x8b"#),
        "{twice}"
    );
}

#[test]
fn broken_gzip() {
    let whole = gzip(format!("{HEADER}\n").repeat(100).as_bytes());
    let cut = error("t.gz", &whole[..whole.len() - 9]);
    assert!(matches!(cut.kind(), ErrorKind::Gzip { .. }));
    let text = cut.to_string();
    assert!(text.starts_with("t.gz: broken gzip after "), "{text}");
    for len in 2..whole.len() {
        assert!(
            matches!(error("t.gz", &whole[..len]).kind(), ErrorKind::Gzip { .. }),
            "{len}"
        );
    }
    let mut wrong_sum = whole.clone();
    let at = wrong_sum.len() - 5;
    wrong_sum[at] ^= 1;
    assert!(matches!(
        error("t.gz", wrong_sum).kind(),
        ErrorKind::Gzip { .. }
    ));
}

#[test]
fn too_large() {
    let bomb = gzip(&vec![b' '; 1 << 20]);
    assert!(bomb.len() < 5000);
    let options = Options::new().max_bytes(5000);
    let error = options.parse("bomb.gz", &bomb).unwrap_err();
    let expected = "bomb.gz: larger, or unpacks to more, than the limit of 5000 bytes";
    assert_eq!(error.to_string(), expected);

    let plain = options.parse("t", &[b' '; 5001]).unwrap_err();
    assert!(matches!(plain.kind(), ErrorKind::TooLarge { limit: 5000 }));
    let fits = options.parse("t", &[b' '; 5000]).unwrap_err();
    assert!(matches!(fits.kind(), ErrorKind::Empty));

    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let file = Options::new().max_bytes(10).read(&path).unwrap_err();
    assert!(matches!(file.kind(), ErrorKind::TooLarge { limit: 10 }));
}

#[test]
fn not_utf8() {
    let mut bytes = format!("{HEADER}\nKERNEL_DISPATCH,1,1,").into_bytes();
    bytes.extend(b"\xff,1,2\n");
    let csv = error("t.csv", bytes);
    assert_eq!(
        csv.to_string(),
        "t.csv: line 2: expected UTF-8, found other bytes"
    );
    assert_eq!(csv.line(), Some(2));
    let json = error("t.json", b"[\n\n\"\xff\"]");
    assert_eq!(
        json.to_string(),
        "t.json: line 3: expected UTF-8, found other bytes"
    );
}

#[test]
fn csv_header() {
    let hip = error(
        "hip.csv",
        "\n\"Kind\",\"Function\",\"Start_Timestamp\",\"End_Timestamp\"\n",
    );
    assert_eq!(
        hip.to_string(),
        "hip.csv: line 2: the header lacks the columns `Agent_Id`, `Queue_Id`, `Kernel_Name`"
    );
    assert_eq!((hip.line(), hip.field()), (Some(2), Some("Agent_Id")));
    for column in HEADER.split(',') {
        let header = HEADER.replace(column, "Other");
        assert_eq!(
            error("t.csv", header).to_string(),
            format!("t.csv: line 1: the header lacks the column `{column}`")
        );
    }
    for column in ["Queue_Id", "Other"] {
        let twice = error("t.csv", format!("{column},Other,{HEADER}\n"));
        let text = format!("t.csv: line 1: the header has the column `{column}` twice");
        assert_eq!((twice.to_string(), twice.field()), (text, Some(column)));
    }
}

#[test]
fn csv_rows() {
    assert_eq!(
        csv("KERNEL_DISPATCH,1,1,k,5\n"),
        "t.csv: line 2: expected 6 fields as in the header, found 5"
    );
    // An open quote takes the rest of the file.
    assert_eq!(
        csv("KERNEL_DISPATCH,1,1,\"k,5,6\nKERNEL_DISPATCH,1,1,k,5,6\n"),
        "t.csv: line 2: expected 6 fields as in the header, found 4"
    );
    let nanos = "expected whole nanoseconds from 0 to 18446744073709551615";
    for bad in ["", "-5", "NaN", "5.0", "1e3", "18446744073709551616"] {
        assert_eq!(
            csv(&format!(
                "KERNEL_DISPATCH,1,1,k,5,6\n\nKERNEL_DISPATCH,1,1,k,{bad},6\n"
            )),
            format!("t.csv: line 4, field `Start_Timestamp`: {nanos}, found \"{bad}\"")
        );
        assert_eq!(
            csv(&format!("KERNEL_DISPATCH,1,1,k,5,{bad}\n")),
            format!("t.csv: line 2, field `End_Timestamp`: {nanos}, found \"{bad}\"")
        );
    }
    assert_eq!(
        csv("KERNEL_DISPATCH,1,1,k,5,4\n"),
        "t.csv: line 2, field `End_Timestamp`: expected no less than Start_Timestamp, 5, found \"4\""
    );
    assert_eq!(
        csv("KERNEL_DISPATCH,,1,k,5,6\n"),
        "t.csv: line 2, field `Agent_Id`: expected a number or a name, found \"\""
    );
    assert_eq!(
        csv("KERNEL_DISPATCH,1,,k,5,6\n"),
        "t.csv: line 2, field `Queue_Id`: expected a number or a name, found \"\""
    );
}

#[test]
fn csv_lines_are_those_of_an_editor() {
    for end in ["\n", "\r\n"] {
        let text = [
            "",
            HEADER,
            "",
            "KERNEL_DISPATCH,1,1,\"two",
            "lines\",1,2",
            "",
            "",
            "KERNEL_DISPATCH,1,1,k,1,x",
            "",
        ]
        .join(end);
        assert_eq!(
            error("t.csv", format!("\u{feff}{text}")).line(),
            Some(8),
            "{end:?}"
        );
        let good = text.replace(",x", ",3");
        let lines: Vec<u64> = parse("t.csv", good.as_bytes())
            .unwrap()
            .kernels
            .iter()
            .map(|k| k.line)
            .collect();
        assert_eq!(lines, [4, 8], "{end:?}");
    }
}

#[test]
fn no_kernels() {
    assert_eq!(csv(""), "t.csv: no kernels in it; skipped: none");
    assert_eq!(
        csv("MEMORY_COPY,1,1,,x,y\nMEMORY_COPY,1,1,,,\n"),
        "t.csv: no kernels in it; skipped: 2 of kind \"MEMORY_COPY\""
    );
    assert_eq!(
        error("t.json", "[]").to_string(),
        "t.json: no kernels in it; skipped: none"
    );
    let events = r#"{"traceEvents":[
        {"ph":"X","cat":"gpu_memcpy"},
        {"ph":"M","name":"process_name"},
        {"ph":"X"},
        {"ph":"B","cat":"kernel"}, {"ph":"E","cat":"kernel"},
        {}
    ]}"#;
    assert_eq!(
        error("t.json", events).to_string(),
        "t.json: no kernels in it; skipped: 1 of category \"gpu_memcpy\", 1 without a category, \
         1 of phase \"M\", 2 kernels as begin/end pairs, 1 without a phase"
    );
}

#[test]
fn json_syntax() {
    let cut = error("t.json", "{\"traceEvents\":[\n{\"ph\":");
    assert!(matches!(cut.kind(), ErrorKind::Syntax { .. }));
    assert_eq!(
        cut.to_string(),
        "t.json: line 2, column 6: EOF while parsing a value"
    );
    for (text, expected) in [
        ("[\n1,]", "event 0: expected an object, found \"1\""),
        ("[{},\n]", "line 2, column 1: trailing comma"),
        ("[\n{\"a\":NaN}]", "line 2, column 6: expected value"),
        ("[]\n[]", "line 2, column 1: trailing characters"),
        (
            "{\"traceEvents\":\n5}",
            "invalid type: integer `5`, expected a list of events in `traceEvents`",
        ),
        (
            "{\"traceEvents\":[],\"traceEvents\":[]}",
            "duplicate field `traceEvents`",
        ),
    ] {
        let message = error("t.json", text).to_string();
        assert!(
            message.starts_with("t.json: line ") && message.ends_with(expected),
            "{message}"
        );
    }
}

#[test]
fn json_events() {
    for (event, expected) in [
        ("7", "line 3, event 1: expected an object, found \"7\""),
        (
            r#"["X","kernel"]"#,
            "line 3, event 1: expected an object, found \"[\\\"X\\\",\\\"kernel\\\"]\"",
        ),
        (
            r#"{"ph":"X","ph":"X"}"#,
            "line 3, event 1: duplicate field `ph`",
        ),
        (
            r#"{"ph":1}"#,
            "line 3, event 1, field `ph`: expected a string, found \"1\"",
        ),
        (
            r#"{"ph":"X","cat":[]}"#,
            "line 3, event 1, field `cat`: expected a string, found \"[]\"",
        ),
        (
            r#"{"cat":"kernel"}"#,
            "line 3, event 1, field `ph`: expected a string, found nothing",
        ),
    ] {
        assert_eq!(json(event), format!("t.json: {expected}"));
    }
}

#[test]
fn json_kernels() {
    let micros = "expected microseconds from 0 to 18446744073709551.615";
    let id = "expected a whole number or a name";
    for (fields, expected) in [
        (
            r#""name":"k","dur":1"#,
            format!("field `ts`: {micros}, found nothing"),
        ),
        (
            r#""name":"k","ts":1"#,
            format!("field `dur`: {micros}, found nothing"),
        ),
        (
            r#""name":"k","ts":null,"dur":1"#,
            format!("field `ts`: {micros}, found nothing"),
        ),
        (
            r#""name":"k","ts":-1.5,"dur":1"#,
            format!("field `ts`: {micros}, found \"-1.5\""),
        ),
        (
            r#""name":"k","ts":"NaN","dur":1"#,
            format!("field `ts`: {micros}, found \"NaN\""),
        ),
        (
            r#""name":"k","ts":[],"dur":1"#,
            format!("field `ts`: {micros}, found \"[]\""),
        ),
        (
            r#""name":"k","ts":1,"dur":-1"#,
            format!("field `dur`: {micros}, found \"-1\""),
        ),
        (
            r#""name":"k","ts":1e300,"dur":1"#,
            format!("field `ts`: {micros}, found \"1e300\""),
        ),
        (
            r#""name":"k","ts":18446744073709551,"dur":1"#,
            "field `dur`: expected an end (`ts` + `dur`) of at most 18446744073709551.615 \
             microseconds, found \"1\""
                .to_owned(),
        ),
        (
            r#""ts":1,"dur":1"#,
            "field `name`: expected a string, found nothing".to_owned(),
        ),
        (
            r#""name":3,"ts":1,"dur":1"#,
            "field `name`: expected a string, found \"3\"".to_owned(),
        ),
        (
            r#""name":"k","ts":1,"dur":1"#,
            format!("field `args.device`: {id}, found nothing"),
        ),
        (
            r#""name":"k","ts":1,"dur":1,"pid":1.5"#,
            format!("field `pid`: {id}, found \"1.5\""),
        ),
        (
            r#""name":"k","ts":1,"dur":1,"pid":1"#,
            format!("field `args.stream`: {id}, found nothing"),
        ),
        (
            r#""name":"k","ts":1,"dur":1,"pid":1,"tid":"""#,
            format!("field `tid`: {id}, found \"\""),
        ),
        (
            r#""name":"k","ts":1,"dur":1,"args":{"device":{},"stream":0}"#,
            format!("field `args.device`: {id}, found \"{{}}\""),
        ),
        (
            r#""name":"k","ts":1,"dur":1,"args":{"device":0,"stream":true}"#,
            format!("field `args.stream`: {id}, found \"true\""),
        ),
    ] {
        let event = format!(r#"{{"ph":"X","cat":"kernel",{fields}}}"#);
        assert_eq!(json(&event), format!("t.json: line 3, event 1, {expected}"));
    }
    assert_eq!(
        json(r#"{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":[0,0]}"#),
        "t.json: line 3, event 1: expected an object, found \"[0,0]\""
    );
}

#[test]
fn json_fields_have_their_own_line() {
    let text =
        "{\"ph\": \"X\",\n \"cat\": \"kernel\", \"name\": \"k\",\n \"dur\": 1,\n \"ts\": -1}";
    let error = error("t.json", format!("[\n{{}},\n{text}]"));
    assert_eq!(
        (error.line(), error.event(), error.field()),
        (Some(6), Some(1), Some("ts"))
    );
}

#[test]
fn deep_nesting_is_no_danger() {
    let deep = "[".repeat(1 << 20);
    assert!(matches!(
        error("t.json", &deep).kind(),
        ErrorKind::Syntax { .. }
    ));
    let closed = format!("[{{\"ph\":\"M\",\"args\":{deep}{}}}]", "]".repeat(1 << 20));
    assert!(matches!(
        error("t.json", closed).kind(),
        ErrorKind::NoKernels(_)
    ));
}
