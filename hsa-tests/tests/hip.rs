//! A HIP program that knows nothing of the serializer, on Debian's HIP and AMD's runtime over the
//! emulated GPU: bare, and with everything serialized under it. What it does stands in `hip/`.

mod native;

use native::{Run, Scenario, Tool, Witness};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

fn client() -> Option<&'static Path> {
    static CLIENT: OnceLock<Option<PathBuf>> = OnceLock::new();
    CLIENT
        .get_or_init(|| native::HIP.client("hip", "cpp"))
        .as_deref()
}

/// How long HIP's kernels last: long enough for those of several streams to run together.
const KERNEL_NS: u32 = 40_000;

fn check(name: &str, gpus: u32) {
    let tools = &[Tool::Bare, Tool::Serialize, Tool::Toggle(300)];
    check_beside(name, gpus, tools, &[]);
}

fn check_beside(name: &str, gpus: u32, tools: &[Tool], environment: &[(&str, &str)]) -> Vec<Run> {
    let Some(client) = client() else {
        return Vec::new();
    };
    let runs = Scenario {
        client,
        name,
        gpus,
        tools,
        kernel_ns: Some(KERNEL_NS),
        // One, when HIP starts.
        own: 1,
        environment,
    }
    .check();
    for run in &runs {
        let (kernels, running) = (run.number("kernels"), run.number("running"));
        let Run { summary, tool, .. } = run;
        assert!(kernels > 20, "{kernels}");
        match tool {
            // Without the serializer several would run at once, where there are several streams.
            Tool::Bare => assert!(running > 1 || name == "memsets", "{name}: {running}"),
            // HIP's queues are intercepted, and all of their kernels serialized.
            Tool::Serialize => {
                let Witness { gated, .. } = summary.witness;
                assert_eq!((summary.serialized, running), (gated, 1), "{summary:?}");
            }
            _ => assert!(summary.transitions > 2, "{summary:?}"),
        }
    }
    runs
}

#[test]
fn copies() {
    check("copies", 1);
}

#[test]
fn streams() {
    check("streams", 1);
}

#[test]
fn threads() {
    check_beside("threads", 2, &[Tool::Bare, Tool::Serialize], &[]);
}

/// On shared queues this program is of those that a transition can deadlock, whoever makes it
/// (docs/integrating.md says how): it stood still in one run of three. With somebody who looks for stalls
/// it always finishes.
#[test]
fn threads_on_shared_queues_with_a_look_for_stalls() {
    let looks = [("HSA_TEST_STALLS_MS", "500")];
    for run in check_beside("threads", 2, &[Tool::Toggle(300)], &looks) {
        // For who reads the log.
        let (runtime, summary) = (run.runtime.name(), &run.summary);
        println!("{runtime}: {:?}", summary.stalls);
    }
}

/// Each stream has an HSA queue of its own.
#[test]
fn threads_with_queues_of_their_own() {
    let own = [("GPU_MAX_HW_QUEUES", "16")];
    check_beside("threads", 2, &[Tool::Bare, Tool::Toggle(300)], &own);
}

#[test]
fn events() {
    check("events", 1);
}

#[test]
fn chains_of_streams() {
    check("chains", 1);
}

#[test]
fn memsets() {
    check("memsets", 1);
}
