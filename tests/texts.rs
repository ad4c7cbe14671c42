//! What errors and reports say, and what they come from. Their words may change; what they name may not.

use hsa_serializer::{
    AddQueueError, AgentError, CompleteError, CompleteErrorReason, DispatchError, DrainError,
    GapError, Misuse, Party, QueueId, ReleaseError, Remaining, Report, ShutdownError, SignalError,
    Ticket, TransitionError, UnknownQueue, hsa_signal_t, hsa_status_t,
};
use std::error::Error;
use std::fmt::Display;

const REFUSED: hsa_status_t = hsa_status_t::ERROR_OUT_OF_RESOURCES;
const NO_SIGNAL: SignalError = SignalError::Status(REFUSED);
const SIGNAL: hsa_signal_t = hsa_signal_t { handle: 0xabc0 };

fn queue() -> QueueId {
    QueueId::from_raw(0x1_0000_0002)
}

/// Every one of these words is in the text.
#[track_caller]
fn says(what: impl Display, words: &[&dyn Display]) {
    let text = what.to_string();
    for word in words {
        let word = word.to_string();
        assert!(
            !word.is_empty() && text.contains(&word),
            "no {word:?} in {text:?}"
        );
    }
}

#[track_caller]
fn comes_from(error: &dyn Error, source: &dyn Display) {
    let found = error.source().expect("a source").to_string();
    assert_eq!(found, source.to_string());
    says(error, &[source]);
}

#[test]
fn what_a_signal_was_wanted_for_and_why_there_is_none() {
    says(NO_SIGNAL, &[&REFUSED]);
    says(SignalError::NullHandle, &[&"handle 0"]);
    says(SignalError::Left, &[&"left"]);
    says(TransitionError::Signal(NO_SIGNAL), &[&"transition"]);
    says(AddQueueError::Escape(NO_SIGNAL), &[&"escape"]);
    says(AddQueueError::Ready(NO_SIGNAL), &[&"ready"]);
    says(AddQueueError::Block(NO_SIGNAL), &[&"block"]);
    says(AddQueueError::Watch(REFUSED), &[&"handler"]);
    says(DrainError::Signal(NO_SIGNAL), &[&"cut"]);
    says(GapError::Signal(NO_SIGNAL), &[&"transition"]);
    let of_a_signal: [&dyn Error; 6] = [
        &TransitionError::Signal(NO_SIGNAL),
        &AddQueueError::Escape(NO_SIGNAL),
        &AddQueueError::Ready(NO_SIGNAL),
        &AddQueueError::Block(NO_SIGNAL),
        &DrainError::Signal(NO_SIGNAL),
        &GapError::Signal(NO_SIGNAL),
    ];
    for error in of_a_signal {
        comes_from(error, &NO_SIGNAL);
    }
    comes_from(&AddQueueError::Watch(REFUSED), &REFUSED);
}

#[test]
fn what_comes_after_the_end() {
    says(TransitionError::ShutDown, &[&"ended"]);
    says(AddQueueError::ShutDown, &[&"ended"]);
    says(DispatchError::ShutDown, &[&"ended"]);
    says(DrainError::Left, &[&"left"]);
    let ends: [&dyn Error; 4] = [
        &TransitionError::ShutDown,
        &AddQueueError::ShutDown,
        &DispatchError::ShutDown,
        &DrainError::Left,
    ];
    assert!(ends.iter().all(|error| error.source().is_none()));
}

#[test]
fn which_queue_and_how_many() {
    says(AddQueueError::Full, &[&"slot"]);
    says(
        DispatchError::TooFewPackets { given: 2 },
        &[&"2", &hsa_serializer::MAX_PACKETS],
    );
    says(DispatchError::QueueGone(queue()), &[&queue()]);
    says(UnknownQueue(queue()), &[&queue()]);
    let gone = GapError::Dispatch(DispatchError::QueueGone(queue()));
    comes_from(&gone, &DispatchError::QueueGone(queue()));
    let refused = |reason| {
        let error = CompleteError {
            ticket: Ticket::from_raw([queue().to_raw(), 0]),
            reason,
        };
        says(&error, &[&queue()]);
        let text = error.to_string();
        error.ticket.abandon();
        text
    };
    let texts = [
        CompleteErrorReason::Foreign,
        CompleteErrorReason::Ahead,
        CompleteErrorReason::NeverDispatched,
    ]
    .map(refused);
    assert!(texts[0] != texts[1] && texts[1] != texts[2] && texts[2] != texts[0]);
}

#[test]
fn which_agent_and_who_holds_up() {
    let reason = TransitionError::Signal(NO_SIGNAL);
    let agent = 0xa001;
    let error = AgentError { agent, reason };
    says(error, &[&"0xa001"]);
    comes_from(&error, &reason);
    says(ReleaseError::Unbalanced, &[&"released"]);
    says(Party::Queue(queue()), &[&queue()]);
    says(Party::Barrier(77), &[&77]);
}

#[test]
fn who_is_waited_for_at_the_end_and_nobody_else() {
    let other = QueueId::from_raw(0x1_0000_0003);
    assert_eq!(
        DrainError::TimedOut(vec![(queue(), 3), (other, 1)]).to_string(),
        format!("still in flight: 3 of {}, 1 of {other}", queue())
    );
    let mut remaining = Remaining::default();
    assert_eq!(remaining.to_string(), "");
    remaining.barriers = 2;
    assert_eq!(remaining.to_string(), "barriers: 2");
    remaining.queues = vec![(queue(), 3), (other, 0)];
    remaining.handlers = 1;
    remaining.calls = 4;
    let text = format!(
        "{} (3 in flight), {other} (0 in flight), handlers: 1, barriers: 2, calls: 4",
        queue()
    );
    assert_eq!(remaining.to_string(), text);
    says(ShutdownError::TimedOut(remaining), &[&text]);
    for text in [
        ShutdownError::OnHandlerThread.to_string(),
        DrainError::OnHandlerThread.to_string(),
    ] {
        says(text, &[&"handler thread"]);
    }
}

#[test]
fn what_reports_name() {
    let (epoch, signal) = (77, SIGNAL);
    let tags = 5;
    says(
        Report::TaggedAtDestruction {
            epoch,
            signal,
            tags,
        },
        &[&epoch, &"0xabc0", &tags],
    );
    says(
        Report::UnsafeReclaim { epoch, signal },
        &[&epoch, &"0xabc0"],
    );
    says(
        Report::DestroyFailed {
            signal,
            status: REFUSED,
        },
        &[&"0xabc0", &REFUSED],
    );
    says(Report::Dropped(9), &[&9]);
    says(Report::Released, &[&"let through"]);
    let of_a_queue = [
        Misuse::CompletionAhead,
        Misuse::CompletionBehindBarrier,
        Misuse::CompletionNotGranted,
        Misuse::ReadyNotIdle,
        Misuse::ForeignTicket,
    ];
    for misuse in of_a_queue {
        says(
            Report::Misuse(misuse(queue())),
            &[&queue(), &misuse(queue())],
        );
    }
}
