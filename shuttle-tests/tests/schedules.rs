//! The scenarios. `r1` and `r2` are the two races of the locked original.
#![cfg(hsa_serializer_shuttle)]

use hsa_serializer::Step;
use shuttle_tests::{Process, Scenario};

/// R1: a transition counts a dispatch in flight, which is then made to wait for that transition.
#[test]
fn r1_dispatch_against_transition() {
    Scenario {
        name: "r1_dispatch_against_transition",
        share: 20,
        process: Process {
            applications: 2,
            before: 0,
            dispatches: 3,
            toggles: 3,
            stalls: 0,
            shuts_down: false,
            enabled: false,
            destroys: false,
        },
        subjects: &[
            ("transitions that counted", |s| s.transitions_that_counted),
            ("tags", |s| s.tags),
            ("retired after drain", |s| s.retired_after_drain),
        ],
        controls: &[
            (Step::OneWord, &["a transition packet waits for ever"]),
            (
                Step::PushBeforeStamp,
                &["a kernel of a new mode overlaps one of the old"],
            ),
            (
                Step::ClosedCheck,
                &[
                    "reported: the retired barrier",
                    "a signal was destroyed under",
                ],
            ),
            (
                Step::CloseIfUntagged,
                &[
                    "reported: the retired barrier",
                    "a signal was destroyed under",
                ],
            ),
        ],
    }
    .check();
}

/// R2: a transition counts a kernel whose completion has been reported already, and waits for ever.
#[test]
fn r2_completion_against_transition() {
    Scenario {
        name: "r2_completion_against_transition",
        share: 20,
        process: Process {
            applications: 2,
            before: 2,
            dispatches: 1,
            toggles: 4,
            stalls: 0,
            shuts_down: false,
            enabled: false,
            destroys: false,
        },
        subjects: &[
            ("transitions that counted", |s| s.transitions_that_counted),
            ("superseded", |s| s.superseded),
        ],
        controls: &[
            (
                Step::PublisherRereads,
                &["a transition packet waits for ever", "a barrier never goes"],
            ),
            (
                Step::CompleterReadsDue,
                &["a transition packet waits for ever", "a barrier never goes"],
            ),
            (
                Step::DueTakenFirst,
                &["a transition packet waits for ever", "a barrier never goes"],
            ),
            (
                Step::SupersedeOnlyUnused,
                &[
                    "a transition packet waits for ever",
                    "a kernel of a new mode",
                ],
            ),
        ],
    }
    .check();
}

/// Every ready queue is granted, whoever completes at the same time.
#[test]
fn the_token_goes_round() {
    Scenario {
        name: "the_token_goes_round",
        share: 20,
        process: Process {
            applications: 3,
            before: 1,
            dispatches: 1,
            toggles: 1,
            stalls: 0,
            shuts_down: false,
            enabled: true,
            destroys: false,
        },
        subjects: &[("contended grants", |s| s.grants_contended)],
        controls: &[
            (Step::PushBeforeAdd, &["a granter found no ready queue"]),
            (
                Step::IdleBeforeReady,
                &[
                    "reported: misuse: ready fired",
                    "a ready queue is never granted",
                ],
            ),
        ],
    }
    .check();
}

/// A queue goes at any moment, and another one comes.
#[test]
fn queues_come_and_go() {
    Scenario {
        name: "queues_come_and_go",
        share: 20,
        process: Process {
            applications: 2,
            before: 1,
            dispatches: 2,
            toggles: 2,
            stalls: 0,
            shuts_down: false,
            enabled: true,
            destroys: true,
        },
        subjects: &[
            ("contended grants", |s| s.grants_contended),
            ("tags", |s| s.tags),
            ("queues gone", |s| s.queues_gone),
        ],
        controls: &[(
            Step::ReleaseOnlyIfGranted,
            &[
                "two serialized kernels overlap",
                "a ready queue is never granted",
                "a granter found no ready queue",
            ],
        )],
    }
    .check();
}

/// Stalls are released, or all is, and the serializer is shut down, at any moment.
#[test]
fn it_ends_at_any_moment() {
    Scenario {
        name: "it_ends_at_any_moment",
        share: 20,
        process: Process {
            applications: 2,
            before: 1,
            dispatches: 2,
            toggles: 2,
            stalls: 2,
            shuts_down: true,
            enabled: true,
            destroys: true,
        },
        subjects: &[
            ("overtaken", |s| s.overtaken),
            ("forced", |s| s.forced),
            ("queues gone", |s| s.queues_gone),
        ],
        controls: &[
            (
                Step::EscapeOpens,
                &[
                    "a ready queue is never granted",
                    "a transition packet waits for ever",
                ],
            ),
            (
                Step::StageBeforeEscape,
                &["reported: misuse: a serialized kernel"],
            ),
            (Step::ReleasedIsNotReady, &["reported: misuse: ready fired"]),
            (Step::RemovedIsSeen, &["the shutdown never finishes"]),
            (
                Step::OverrunReleasesNothing,
                &[
                    "a ready queue is never granted",
                    "a granter found no ready queue",
                ],
            ),
            // Or what is stored goes to the signal that has its handle by then.
            (
                Step::DeferSignals,
                &[
                    "a destroyed signal was used",
                    "a ready queue is never granted",
                ],
            ),
            (
                Step::ClosedIsRead,
                &["queue", "a destroyed signal was used"],
            ),
        ],
    }
    .check();
}
