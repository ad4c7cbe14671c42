//! C programs that know nothing of the serializer, on AMD's runtime over the emulated GPU: bare, and
//! with everything serialized under them. What each does stands in `c/`.

mod native;

use native::{Run, Scenario, Tool};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const ALL: &[Tool] = &[Tool::Bare, Tool::Save, Tool::Serialize, Tool::Toggle(300)];

fn client() -> Option<&'static Path> {
    static CLIENT: OnceLock<Option<PathBuf>> = OnceLock::new();
    CLIENT.get_or_init(|| native::C.client("c", "c")).as_deref()
}

/// Without the one that switches.
const STEADY: &[Tool] = ALL.split_at(3).0;

fn check(name: &str, gpus: u32) -> Vec<Run> {
    check_beside(ALL, name, gpus)
}

fn check_beside(tools: &[Tool], name: &str, gpus: u32) -> Vec<Run> {
    let Some(client) = client() else {
        return Vec::new();
    };
    let runs = Scenario {
        client,
        name,
        gpus,
        tools,
        kernel_ns: None,
        own: 0,
        environment: &[],
    }
    .check();
    // The tool was at work at all.
    for run in &runs {
        let Run { summary, tool, .. } = run;
        match tool {
            Tool::Serialize => {
                assert!(summary.serialized == summary.kernels, "{summary:?}");
            }
            Tool::Toggle(_) => assert!(
                summary.transitions > 0 || summary.kernels == 0,
                "{summary:?}"
            ),
            _ => {}
        }
    }
    runs
}

#[test]
fn full_rate_on_several_queues_agents_and_threads() {
    let tools = [ALL, &[Tool::Toggle(20)]].concat();
    for run in check_beside(&tools, "rate", 2) {
        if run.tool == Tool::Serialize {
            assert_eq!(run.summary.serialized, 2 * 6 * 250);
        }
    }
}

#[test]
fn kernels_run_together_or_one_at_a_time() {
    for run in check("together", 1) {
        let running = run.number("running");
        match run.tool {
            Tool::Bare | Tool::Save => assert!(running > 4, "{running}"),
            Tool::Serialize => assert_eq!(running, 1),
            _ => {}
        }
    }
}

#[test]
fn batches_of_nearly_the_ring_and_loads_beyond_it() {
    check("batches", 1);
}

/// Whose handler is the first that the handlers' thread runs.
#[test]
fn a_program_that_submits_in_its_own_handler() {
    check("first-handler", 1);
}

#[test]
fn a_slot_that_is_rung_for_before_the_one_before_it() {
    check("unpublished", 1);
}

#[test]
fn barriers_across_queues_of_one_gpu() {
    check("barriers", 1);
}

#[test]
fn barriers_across_gpus() {
    check("barriers", 2);
}

/// Serializing that is on all the time; no profiler can switch it there.
#[test]
fn barriers_for_kernels_that_are_dispatched_later() {
    check_beside(STEADY, "barriers-ahead", 1);
}

#[test]
fn queues_destroyed_with_work_pending() {
    check("destroy-pending", 1);
}

#[test]
fn queues_destroyed_right_at_completion() {
    check("destroy-at-completion", 1);
}

#[test]
fn queues_destroyed_on_a_handlers_word() {
    check("destroy-from-handler", 1);
}

#[test]
fn shut_down_with_work_pending() {
    check("shutdown-pending", 1);
}

/// The same, and then with a tool that does nothing at the end, which has no summary: the GPU says
/// whether it was at work.
fn check_to_the_end(name: &str, silent: &[Tool]) {
    check(name, 1);
    for run in check_beside(silent, name, 1) {
        let gated = run.number("gated");
        // Where it toggles, all may have run unserialized.
        assert!(gated > 0 || run.tool != Tool::Silent(0), "{gated}");
    }
}

const SILENT: &[Tool] = &[Tool::Silent(0), Tool::Silent(300), Tool::Silent(20)];

#[test]
fn exit_with_work_pending() {
    check_to_the_end("exit-pending", SILENT);
}

#[test]
fn s72_exit_by_another_thread_with_work_pending() {
    check_to_the_end("exit-thread", SILENT);
}

/// Nothing of a tool that does not know of it may call the runtime afterwards, so it can't toggle.
#[test]
fn s72_exit_after_a_shut_down_with_work_pending() {
    check_to_the_end("exit-shut-down", &[Tool::Silent(0)]);
}

#[test]
fn children_end_and_their_parent_goes_on() {
    check_to_the_end("forks", &[Tool::Silent(0)]);
}

#[test]
fn many_rounds_of_init_and_shut_down() {
    check("rounds", 2);
}

#[test]
fn init_is_counted() {
    check("refcount", 1);
}

#[test]
fn handles_come_back() {
    for run in check("recycled", 1) {
        // Otherwise nothing here is about recycled handles.
        if run.tool == Tool::Bare {
            assert!(run.number("same") > 100, "{:?}", run.numbers);
        }
    }
}

#[test]
fn a_fault_stops_its_queue_alone() {
    check("fault", 2);
}

#[test]
fn a_kernel_that_ends_badly() {
    check("failed", 1);
}

#[test]
fn waits_of_several_threads_timeouts_and_interruptions() {
    check("waits", 1);
}

#[test]
fn a_handler_that_stays() {
    check("handlers", 1);
}

#[test]
fn timestamps() {
    check("profiling", 1);
}

#[test]
fn copies_between_pools() {
    check("copies", 2);
}

#[test]
fn copies_and_kernels_that_wait_for_each_other() {
    check("copies-and-kernels", 2);
}
