//! What is written can be read again.

use std::io::ErrorKind;

use proptest::prelude::*;
use traces::{Row, Trace, parse, write_csv};

fn written(rows: &[Row<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    write_csv(rows, &mut out).unwrap();
    out
}

fn again(trace: &Trace) -> Trace {
    let rows: Vec<_> = trace.rows().collect();
    parse("again.csv", &written(&rows)).unwrap()
}

const ROW: Row<'static> = Row {
    agent: "Agent 4",
    queue: "1",
    name: "add, f32",
    start_ns: 10,
    end_ns: 12,
};

#[test]
fn writes_as_rocprofv3_does() {
    let text = String::from_utf8(written(&[ROW, Row { name: "mul", ..ROW }, ROW])).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with(r#""Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","#));
    assert_eq!(
        lines[1..],
        [
            r#""KERNEL_DISPATCH","Agent 4",1,0,0,1,1,"add, f32",1,10,12,0,0,0,0,0,0,0,0,0,0,0"#,
            r#""KERNEL_DISPATCH","Agent 4",1,0,0,2,2,"mul",2,10,12,0,0,0,0,0,0,0,0,0,0,0"#,
            r#""KERNEL_DISPATCH","Agent 4",1,0,0,3,1,"add, f32",3,10,12,0,0,0,0,0,0,0,0,0,0,0"#,
        ]
    );
}

#[test]
fn writes_no_row_that_cannot_be_read() {
    for row in [
        Row { end_ns: 9, ..ROW },
        Row { agent: "", ..ROW },
        Row { queue: "", ..ROW },
    ] {
        let error = write_csv(&[row], std::io::sink()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}

proptest! {
    #[test]
    fn reads_back_equal(
        rows in proptest::collection::vec(
            ("(Agent [0-9]{1,2}|.+)", "([0-9]{1,3}|.+)", any::<String>(), any::<[u64; 2]>()),
            1..20,
        ),
    ) {
        let rows: Vec<_> = rows
            .iter()
            .map(|(agent, queue, name, [a, b])| Row {
                agent, queue, name, start_ns: *a.min(b), end_ns: *a.max(b),
            })
            .collect();
        let trace = parse("t.csv", &written(&rows)).unwrap();

        let mut expected: Vec<_> = rows.iter().map(|r| (r.start_ns, r.end_ns, r.name, r.agent, r.queue)).collect();
        let mut found: Vec<_> = trace.rows().map(|r| (r.start_ns, r.end_ns, r.name, r.agent, r.queue)).collect();
        expected.sort_unstable();
        found.sort_unstable();
        prop_assert_eq!(found, expected);

        // A trace written in its order is the same trace, but for where its rows stand.
        let once = again(&trace);
        prop_assert_eq!(&once.agents, &trace.agents);
        prop_assert_eq!(&once.queues, &trace.queues);
        prop_assert_eq!(&again(&once), &once);
    }
}
