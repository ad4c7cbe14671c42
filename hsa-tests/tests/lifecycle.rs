//! Beginning, end, and what goes wrong between, on each version of AMD's runtime: scenarios of `client`,
//! with their negative controls.

mod ran;

use ran::{LATE_EVENTS, Ran, STUCK, each};
use xtask::softgpu::Runtime;

// ---- the kill switch

#[test]
fn the_kill_switch_lets_through_what_waits_in_any_state_without_the_host() {
    each(|runtime| {
        let ran = Ran::new(runtime, "release --rounds 12", &[]);
        let ran = ran.passed(&["/serialized", "/passed_on", "/alone"]);
        // Four kernels in each of five queues; and four more that are passed on.
        ran.expect(ran.line["kernels"] == 12 * 40, "kernels");
        Ran::new(runtime, "release", &[LATE_EVENTS]).passed(&["/serialized"]);
    });
}

// ---- the shutdown

/// SCENARIOS 37, 42, 47, 70, 71: under load, with queues that go at their completion; from a handler;
/// with a kernel that does not end; with handlers that hang; with a runtime that is gone.
#[test]
fn s37_s42_s70_s71_both_phases_of_the_shutdown() {
    each(|runtime| {
        let counts = ["/dispatched", "/passed_on", "/vanished"];
        for environment in [&[][..], &[LATE_EVENTS]] {
            Ran::new(runtime, "shutdown --kind load", environment).passed(&counts);
            for kind in ["late", "hung", "gone"] {
                let shutdown = format!("shutdown --kind {kind}");
                Ran::new(runtime, &shutdown, environment).passed(&["/rounds"]);
            }
        }
    });
}

#[test]
fn serializers_that_were_not_told_to_leave_are_found() {
    each(|runtime| {
        let live = Ran::new(runtime, "--fault skip-leave shutdown-live", &[]);
        live.found(&["the runtime was called after it had been shut down"]);
    });
}

// ---- the process

fn ends(runtime: Runtime, arguments: &str) {
    // Everything waits, and everything flows.
    for seed in 1..=2 {
        let arguments = format!("--seed {seed} {arguments}");
        Ran::new(runtime, &arguments, &[]).passed(&["/serialized"]);
    }
}

#[test]
fn s72_s80_the_process_ends_with_queued_work_and_nobody_says_anything() {
    each(|runtime| {
        ends(runtime, "exit");
        ends(runtime, "exit --by thread");
        ends(runtime, "exit --shut-down");
        ends(runtime, "exit --by thread --shut-down");
    });
}

#[test]
fn s80_threads_that_end_when_the_runtime_is_gone_do_not_call_it() {
    each(|runtime| {
        Ran::new(runtime, "late", &[]).passed(&["/put_off"]);
    });
}

#[test]
fn children_of_a_fork_end_and_the_parents_work_goes_on() {
    each(|runtime| {
        let ran = Ran::new(runtime, "fork", &[]);
        ran.passed(&["/retired_after_drain", "/witness/gated"]);
    });
}

// ---- queues

/// With toggling all the time, by thousands: each version has its part.
#[test]
fn s40_s41_queues_are_destroyed_in_every_state() {
    each(|runtime| {
        let churn = "churn --queues 1000 --toggle-us 200 --pace-us 50";
        Ran::new(runtime, churn, &[]).passed(&["/kernels/abandoned", "/recycled"]);
    });
}

#[test]
fn s55_unknown_work_is_waited_for_by_a_marker() {
    each(|runtime| {
        for environment in [&[][..], &[LATE_EVENTS]] {
            let ran = Ran::new(runtime, "gap", environment);
            ran.passed(&["/kernels/markers", "/kernels/unseen", "/witness/gated"]);
        }
    });
}

#[test]
fn unknown_work_that_nobody_waits_for_is_found() {
    each(|runtime| {
        let ran = Ran::new(runtime, "--fault skip-gap gap", &[]);
        ran.found(&["serialized kernels overlap"]);
    });
}

// ---- stalls

#[test]
fn programs_that_serializing_deadlocks_finish_where_stalls_are_released() {
    each(|runtime| {
        for kind in ["copy", "holder", "transition"] {
            let circle = format!("circle --kind {kind}");
            Ran::new(runtime, &circle, &[]).passed(&["/stalls/looks"]);
        }
    });
}

#[test]
fn they_stand_still_where_stalls_are_only_named() {
    each(|runtime| {
        for kind in ["copy", "holder", "transition"] {
            let circle = format!("--patience 1 circle --report --kind {kind}");
            let ran = Ran::new(runtime, &circle, &[]);
            ran.expect(ran.outcome.status.code() == Some(STUCK), "it has finished");
            let named = ran.line["stalls"]["texts"][0].as_str().unwrap_or_default();
            let both = named.contains("queue 0") && named.contains("queue 1");
            ran.expect(both, "both queues are not named");
        }
    });
}
