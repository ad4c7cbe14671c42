//! The scenarios of `client`, each as a process of its own on each version of AMD's runtime, over the
//! emulated GPU; and programs that know of no profiler, under the test tool.
//!
//! Beside the scenarios stand their negative controls: the serializer that profilers had until now,
//! and mistakes that the profiler makes on purpose, each of which a check has to find.
//!
//! `HSA_TESTS_SOAK_SECONDS=600` makes the soak long.

mod ran;

use ran::{LATE_EVENTS, Ran, each, serialized, soak_seconds};
use serde_json::Value;

// ---- the fault that the crate exists to end

#[test]
fn a_recycled_handle_blocks_a_queue_for_ever_where_barriers_are_retired_eagerly() {
    each(|runtime| {
        let ran = Ran::new(runtime, "--policy eager seed", &[]).stuck();
        let (first, recycled) = (&ran.line["first_handle"], &ran.line["recycled_handle"]);
        ran.expect(recycled.is_string(), "no handle was recycled");
        ran.expect(first == recycled, "another handle was recycled");
        // The emulated GPU, which knows nothing of serializers, says the same.
        let said = format!(
            "{} was destroyed and its handle given out again",
            recycled.as_str().unwrap_or_default()
        );
        ran.expect(
            ran.outcome.stderr.contains(&said),
            "the GPU does not see it",
        );
    });
}

#[test]
fn the_crate_passes_through_thousands_of_such_transitions() {
    each(|runtime| {
        for environment in [&[][..], &[LATE_EVENTS]] {
            let ran = Ran::new(runtime, "seed --toggles 2000", environment).passed(&[
                "/recycled",
                "/retired_after_drain",
                "/witness/gated",
            ]);
            ran.expect(ran.line["transitions"] == 2_000, "transitions");
            ran.expect(
                ran.line["recycled_under_a_packet"] == 0,
                "recycled too early",
            );
        }
    });
}

#[test]
fn so_does_the_yardstick_with_its_fix() {
    each(|runtime| {
        Ran::new(runtime, "--policy drained seed --toggles 400", &[]).passed(&["/recycled"]);
    });
}

// ---- load

const LOADED: &[&str] = &[
    "/recycled",
    "/retired_after_drain",
    "/kernels/serialized",
    "/witness/gated",
];

#[test]
fn full_rate_while_another_thread_toggles() {
    each(|runtime| {
        let ran = Ran::new(runtime, "load --seconds 2", &[]).passed(LOADED);
        let running = ran.line.pointer("/witness/most_running");
        ran.expect(
            running.and_then(Value::as_u64) > Some(1),
            "never two at once",
        );
        Ran::new(runtime, "load --seconds 1", &[LATE_EVENTS]).passed(LOADED);
        Ran::new(runtime, "--tail load --seconds 1 --toggle-us 100", &[]).passed(LOADED);
        // Signals without kernel events: the runtime's thread polls.
        let polling = [("HSA_ENABLE_INTERRUPT", "0")];
        Ran::new(runtime, "load --seconds 1", &polling).passed(LOADED);
    });
}

#[test]
fn several_agents_each_with_its_serializer() {
    each(|runtime| {
        let gpus = [("SOFTGPU_GPUS", "3")];
        let load = "load --agents 3 --queues 2 --threads 1 --seconds 1.5";
        Ran::new(runtime, load, &gpus).passed(LOADED);
        let across = Ran::new(runtime, "across", &[("SOFTGPU_GPUS", "8")]);
        let across = across.passed(&["/witness/gated"]);
        across.expect(across.line["agents"] == 8, "agents");
    });
}

#[test]
fn the_locked_serializer_hangs_under_the_same_load() {
    each(|runtime| {
        let load = "--policy eager --patience 2 load --seconds 2";
        Ran::new(runtime, load, &[]).stuck();
    });
}

#[test]
fn memory_and_signals_stay_flat() {
    each(|runtime| {
        let soak = format!("soak --seconds {}", soak_seconds());
        let ran = Ran::new(runtime, &soak, &[]).passed(&["/flat/recycled", "/transitions"]);
        // For who reads the log: live signals and memory in the first and the second half, and the
        // handles that came back recycled.
        let (flat, kernels) = (&ran.line["flat"], &ran.line["kernels"]["kernels"]);
        let (name, transitions) = (runtime.name(), &ran.line["transitions"]);
        println!("{name}: {kernels} kernels, {transitions} transitions, {flat}");
    });
}

// ---- queues

#[test]
fn queues_are_destroyed_at_every_awkward_moment() {
    each(|runtime| {
        let ran = Ran::new(runtime, "churn --queues 280", &[]);
        ran.passed(&["/kernels/abandoned", "/destroyed_with_work"]);
        Ran::new(runtime, "churn --queues 70", &[LATE_EVENTS]).passed(&["/kernels/abandoned"]);
    });
}

#[test]
fn batches_as_long_as_the_ring() {
    each(|runtime| {
        Ran::new(runtime, "batches --rounds 2", &[]).passed(&["/kernels/waited_for_room"]);
        Ran::new(runtime, "--tail batches --rounds 2", &[]).passed(&["/witness/gated"]);
    });
}

#[test]
fn kernels_that_end_badly_and_queues_that_stop() {
    each(|runtime| {
        Ran::new(runtime, "faults", &[]).passed(&["/kernels/abandoned", "/witness/kernels_lost"]);
    });
}

// ---- the runtime

#[test]
fn the_runtime_is_initialized_and_shut_down_again_and_again() {
    each(|runtime| {
        Ran::new(runtime, "rounds", &[]).passed(&["/kernels", "/transitions"]);
    });
}

#[test]
fn the_runtime_is_shut_down_under_live_queues() {
    each(|runtime| {
        Ran::new(runtime, "shutdown-live", &[]).passed(&["/under_way"]);
    });
}

#[test]
fn handlers_that_are_late_repeated_or_of_destroyed_signals() {
    each(|runtime| {
        let counts = ["/called_again", "/spurious_kept", "/chained", "/dropped"];
        Ran::new(runtime, "handlers", &[]).passed(&counts);
        Ran::new(runtime, "handlers --spurious 5000", &[LATE_EVENTS]).passed(&counts);
    });
}

#[test]
fn signals_stay_few_and_a_transition_without_one_does_not_happen() {
    each(|runtime| {
        let ran = Ran::new(runtime, "events --toggles 100000", &[]);
        let ran = ran.passed(&["/recycled", "/failed_transitions", "/interrupt_signals"]);
        let transitions = ran.line["transitions"].as_u64();
        ran.expect(transitions >= Some(100_000), "transitions");
    });
}

// ---- programs that know of no profiler

#[test]
fn the_tool_serializes_a_program_that_knows_nothing_of_it() {
    each(|runtime| {
        let (ran, summary) = serialized(runtime, "plain", "0");
        let ran = ran.passed(&["/kernels"]);
        ran.expect(summary["kernels"] == 1_200, "the summary's kernels");
        ran.expect(summary["serialized"] == 1_200, "they were not serialized");
        ran.expect(summary["completed"] == 1_200, "they have not completed");
        ran.expect(ran.line["witness"]["most_running"] == 1, "two ran at once");
        ran.expect(
            ran.line["witness"]["gated"] == 1_200,
            "the GPU saw no gates",
        );
        ran.expect(ran.line["witness"]["events_live"] == 0, "signals are left");

        let (ran, summary) = serialized(runtime, "plain --inits 3", "300");
        let ran = ran.passed(&["/witness/gated"]);
        ran.expect(ran.line["witness"]["overlaps"] == 0, "overlaps");
        ran.expect(ran.line["witness"]["stale_packets"] == 0, "stale packets");
        ran.expect(
            summary["transitions"].as_u64() > Some(2),
            "it was not toggled",
        );
        ran.expect(
            summary["reports"] == Value::Array(vec![]),
            "there are reports",
        );
        ran.expect(summary["lost_tickets"] == 0, "tickets are lost");

        // The control: without it, kernels run beside each other.
        let ran = Ran::new(runtime, "plain", &[]).passed(&["/kernels"]);
        ran.expect(
            ran.line["witness"]["gated"] == 0,
            "gated without a profiler",
        );
        let running = ran.line["witness"]["most_running"].as_u64();
        ran.expect(running > Some(1), "never two at once");
    });
}

#[test]
fn the_tool_survives_a_program_that_leaves_its_queues_or_just_ends() {
    each(|runtime| {
        for (arguments, toggle_us) in [
            ("plain --leave-queues --inits 2", "0"),
            ("plain --leave-queues", "200"),
            ("plain --no-shutdown", "0"),
            ("plain --no-shutdown", "200"),
        ] {
            let (ran, summary) = serialized(runtime, arguments, toggle_us);
            let ran = ran.passed(&["/witness/gated"]);
            let kernels = summary["kernels"].as_u64();
            ran.expect(kernels >= Some(1_200), &format!("the summary: {summary}"));
            ran.expect(
                summary["reports"] == Value::Array(vec![]),
                "there are reports",
            );
        }
    });
}

// ---- mistakes that the checks have to find

/// What the checks say of an application that is told too early, or too often.
const TOO_EARLY: &str = "the application knows of all kernels before the serializer does";
const TOO_MANY: &str = "more have completed than were submitted";

#[test]
fn a_completion_that_is_not_reported_is_found() {
    each(|runtime| {
        let load = "--fault skip-complete --patience 2 load --seconds 2";
        Ran::new(runtime, load, &[]).stuck();
    });
}

#[test]
fn telling_the_application_first_or_twice_is_found() {
    each(|runtime| {
        // It is looked at once a round, and that may come too late to see it.
        Ran::new(runtime, "--fault forward-first rounds", &[]).found(&[TOO_EARLY]);
        let twice = Ran::new(runtime, "--fault forward-twice load --seconds 1", &[]);
        // It believes that all have completed when not all have.
        twice.found(&[TOO_EARLY, TOO_MANY]);
    });
}

#[test]
fn kernels_that_go_past_the_serializer_are_found() {
    each(|runtime| {
        let load = "--fault unseen load --seconds 1";
        Ran::new(runtime, load, &[]).found(&["serialized kernels overlap"]);
    });
}

#[test]
fn a_profiler_that_does_not_let_go_of_a_runtime_that_is_shut_down_is_found() {
    each(|runtime| {
        let live = Ran::new(runtime, "--fault hold-on shutdown-live", &[]);
        live.found(&["the runtime was called after it had been shut down"]);
    });
}

#[test]
fn signals_that_are_never_destroyed_are_found() {
    each(|runtime| {
        let soak = "--fault leak soak --seconds 3 --toggle-us 1000";
        Ran::new(runtime, soak, &[]).found(&["live signals grow"]);
        let load = "--fault leak load --seconds 0.5";
        Ran::new(runtime, load, &[]).found(&["signals outlive their serializers"]);
    });
}

#[test]
fn a_queue_whose_end_nobody_tells_of_takes_the_token_along() {
    each(|runtime| {
        let churn = "--fault skip-remove --patience 2 churn --queues 140";
        Ran::new(runtime, churn, &[]).stuck();
    });
}

#[test]
fn a_queue_that_is_declared_gone_too_early_is_found() {
    each(|runtime| {
        let churn = "--fault remove-early --patience 5 churn --queues 140";
        let ran = Ran::new(runtime, churn, &[]);
        // What comes of it is anybody's guess: packets of the queue change whatever signals have got the
        // handles of those that they name, and its kernels run beside those of who has the token now.
        ran.expect(!ran.outcome.succeeded(), "it passed");
        let said = &ran.outcome.stderr;
        let seen = said.contains("was destroyed") || said.contains("softgpu: overlap");
        ran.expect(seen, "the GPU does not see it");
    });
}
