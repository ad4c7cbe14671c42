//! The real traces, which are not part of the project: they lie beside it, in `shared/traces`.

use std::path::PathBuf;

use traces::{Format, Reason, Trace, read};

/// The trace, or `None` if it is not there, which in CI must not be.
fn real(name: &str) -> Option<Trace> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/traces")
        .join(name);
    if path.exists() {
        return Some(read(&path).unwrap());
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "{} is missing",
        path.display()
    );
    eprintln!("SKIPPED: NOTHING WAS TESTED, {} is missing", path.display());
    None
}

fn queues(trace: &Trace) -> Vec<(&str, &str)> {
    let queues = trace.queues.iter();
    queues
        .map(|q| (&*trace.agents[q.agent as usize], &*q.name))
        .collect()
}

/// The median and the sum of the durations.
fn durations_ns(trace: &Trace) -> (u64, u64) {
    let mut durations: Vec<u64> = trace
        .kernels
        .iter()
        .map(|k| k.end_ns - k.start_ns)
        .collect();
    durations.sort_unstable();
    (durations[durations.len() / 2], durations.iter().sum())
}

fn category(trace: &Trace, name: &str) -> u64 {
    trace.skipped.count(&Reason::Category(name.into()))
}

#[test]
fn rocprofv3() {
    let Some(trace) = real("rocprofv3_kernel_trace.csv") else {
        return;
    };
    assert_eq!((trace.format, trace.kernels.len()), (Format::RocprofCsv, 9));
    let agent = "Agent 4";
    assert_eq!(
        queues(&trace),
        [(agent, "1"), (agent, "2"), (agent, "3"), (agent, "4")]
    );
    assert_eq!(trace.origin_ns, 1_550_151_853_029_637);
    let first = &trace.kernels[0];
    assert_eq!((first.start_ns, first.end_ns, first.line), (0, 12_800, 2));
    assert!(first.name.starts_with("void addition_kernel<float>("));
    assert_eq!(trace.skipped.total(), 0);
}

#[test]
fn resnet() {
    let Some(trace) = real("mi300-resnet-training-2streams.json.gz") else {
        return;
    };
    assert_eq!(
        (trace.format, trace.kernels.len()),
        (Format::ChromeTrace, 2995)
    );
    assert_eq!(queues(&trace), [("2", "0"), ("2", "4")]);
    assert_eq!(
        (
            category(&trace, "gpu_memcpy"),
            category(&trace, "gpu_memset")
        ),
        (550, 108)
    );
    assert_eq!(trace.skipped.total(), 658);
    assert_eq!(durations_ns(&trace), (5_039, 97_255_826));
}

#[test]
fn mi210() {
    let Some(trace) = real("mi210-inference.json.gz") else {
        return;
    };
    assert_eq!(trace.kernels.len(), 562);
    assert_eq!(queues(&trace), [("1", "0")]);
    assert_eq!(durations_ns(&trace), (4_319, 5_343_422));
    let first = &trace.kernels[0];
    assert_eq!(
        (trace.origin_ns, first.end_ns),
        (6_869_181_218_039_954, 6_239)
    );
}

#[test]
fn sglang() {
    let Some(trace) = real("sglang-qwen3-8b-decode.json.gz") else {
        return;
    };
    assert_eq!(trace.kernels.len(), 555);
    assert_eq!(queues(&trace), [("9", "2"), ("9", "3")]);
    assert_eq!(durations_ns(&trace), (5_167, 9_765_437));
    assert_eq!(category(&trace, "gpu_memcpy"), 3);
}
