//! Events and reports as C structures.

use hsa_serializer::{Event, Misuse, Mode, QueueId, Report};
use std::ffi::{CString, c_char};

/// What an event is about. The order of events is that of the Rust crate's `Event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum hsa_serializer_event_kind_t {
    /// A transition to `epoch` begins, whose mode is `mode`. Cuts, drains and gaps are transitions, too.
    HSA_SERIALIZER_EVENT_TRANSITION = 1,
    /// The barrier of `epoch` was made, with `signal`.
    HSA_SERIALIZER_EVENT_MADE = 2,
    /// It clears once `waits_for` queues have completed what was in flight.
    HSA_SERIALIZER_EVENT_ARMED = 3,
    /// Dispatch number `dispatch` of `queue_id` took its packet along.
    HSA_SERIALIZER_EVENT_TAGGED = 4,
    /// The packet of `queue_id` is known to have executed, or never to execute.
    HSA_SERIALIZER_EVENT_DRAINED = 5,
    /// It has cleared.
    HSA_SERIALIZER_EVENT_CLEARED = 6,
    /// It gave way to the next one before anybody waited for it.
    HSA_SERIALIZER_EVENT_SUPERSEDED = 7,
    /// It was cleared by force: kernels may run side by side that should not.
    HSA_SERIALIZER_EVENT_FORCED = 8,
    /// Nobody can wait for it any more.
    HSA_SERIALIZER_EVENT_RETIRED = 9,
    /// Its `signal` was destroyed.
    HSA_SERIALIZER_EVENT_RECLAIMED = 10,
    /// The queue was added.
    HSA_SERIALIZER_EVENT_QUEUE_ADDED = 11,
    /// The queue is gone.
    HSA_SERIALIZER_EVENT_QUEUE_GONE = 12,
    /// The queue has got to its next serialized kernel.
    HSA_SERIALIZER_EVENT_READY = 13,
    /// The queue's kernel has its turn, having waited `waited_ns`.
    HSA_SERIALIZER_EVENT_GRANTED = 14,
    /// The queue has given its turn back.
    HSA_SERIALIZER_EVENT_RELEASED = 15,
    /// The queue's turn was taken away, while its kernel may still run.
    HSA_SERIALIZER_EVENT_OVERTAKEN = 16,
    /// Everything was let through.
    HSA_SERIALIZER_EVENT_LET_THROUGH = 17,
}
use hsa_serializer_event_kind_t::*;

/// Something that has happened, or is about to. What the kind does not speak of is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_event_t {
    /// One of hsa_serializer_event_kind_t; later versions may have more.
    pub kind: u32,
    /// The transition epoch of the barrier or transition.
    pub epoch: u32,
    /// The queue.
    pub queue_id: u64,
    /// The signal's handle.
    pub signal: u64,
    /// The dispatch's number.
    pub dispatch: u64,
    /// Nanoseconds.
    pub waited_ns: u64,
    /// Queues.
    pub waits_for: u32,
    /// One of hsa_serializer_mode_t.
    pub mode: u32,
}

impl hsa_serializer_event_t {
    /// `None` for one that this interface has no name for.
    pub(crate) fn of(event: Event) -> Option<Self> {
        let kind = |kind: hsa_serializer_event_kind_t| Self {
            kind: kind as u32,
            epoch: 0,
            queue_id: 0,
            signal: 0,
            dispatch: 0,
            waited_ns: 0,
            waits_for: 0,
            mode: 0,
        };
        let of_epoch = |k, epoch| Self { epoch, ..kind(k) };
        let of_queue = |k, queue: QueueId| Self {
            queue_id: queue.to_raw(),
            ..kind(k)
        };
        Some(match event {
            Event::Transition { epoch, mode } => Self {
                mode: mode_number(mode),
                ..of_epoch(HSA_SERIALIZER_EVENT_TRANSITION, epoch)
            },
            Event::Made { epoch, signal } => Self {
                signal: signal.handle,
                ..of_epoch(HSA_SERIALIZER_EVENT_MADE, epoch)
            },
            Event::Armed { epoch, waits_for } => Self {
                waits_for,
                ..of_epoch(HSA_SERIALIZER_EVENT_ARMED, epoch)
            },
            Event::Tagged {
                epoch,
                queue,
                dispatch,
            } => Self {
                queue_id: queue.to_raw(),
                dispatch,
                ..of_epoch(HSA_SERIALIZER_EVENT_TAGGED, epoch)
            },
            Event::Drained { epoch, queue } => Self {
                queue_id: queue.to_raw(),
                ..of_epoch(HSA_SERIALIZER_EVENT_DRAINED, epoch)
            },
            Event::Cleared { epoch } => of_epoch(HSA_SERIALIZER_EVENT_CLEARED, epoch),
            Event::Superseded { epoch } => of_epoch(HSA_SERIALIZER_EVENT_SUPERSEDED, epoch),
            Event::Forced { epoch } => of_epoch(HSA_SERIALIZER_EVENT_FORCED, epoch),
            Event::Retired { epoch } => of_epoch(HSA_SERIALIZER_EVENT_RETIRED, epoch),
            Event::Reclaimed { epoch, signal } => Self {
                signal: signal.handle,
                ..of_epoch(HSA_SERIALIZER_EVENT_RECLAIMED, epoch)
            },
            Event::QueueAdded(queue) => of_queue(HSA_SERIALIZER_EVENT_QUEUE_ADDED, queue),
            Event::QueueGone(queue) => of_queue(HSA_SERIALIZER_EVENT_QUEUE_GONE, queue),
            Event::Ready(queue) => of_queue(HSA_SERIALIZER_EVENT_READY, queue),
            Event::Granted { queue, waited } => Self {
                waited_ns: nanoseconds(waited),
                ..of_queue(HSA_SERIALIZER_EVENT_GRANTED, queue)
            },
            Event::Released(queue) => of_queue(HSA_SERIALIZER_EVENT_RELEASED, queue),
            Event::Overtaken(queue) => of_queue(HSA_SERIALIZER_EVENT_OVERTAKEN, queue),
            Event::LetThrough => kind(HSA_SERIALIZER_EVENT_LET_THROUGH),
            _ => return None,
        })
    }
}

pub(crate) fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// How kernels run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum hsa_serializer_mode_t {
    /// As the application wrote them.
    HSA_SERIALIZER_DISABLED = 0,
    /// One at a time on the agent.
    HSA_SERIALIZER_ENABLED = 1,
}

pub(crate) fn mode_number(mode: Mode) -> u32 {
    (match mode {
        Mode::Disabled => hsa_serializer_mode_t::HSA_SERIALIZER_DISABLED,
        Mode::Enabled => hsa_serializer_mode_t::HSA_SERIALIZER_ENABLED,
    }) as u32
}

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum hsa_serializer_report_kind_t {
    /// One that this version has no number for; `text` says it.
    HSA_SERIALIZER_REPORT_OTHER = 0,
    /// The barrier of `epoch`, with `signal`, was destroyed with `count` tags outstanding.
    HSA_SERIALIZER_REPORT_TAGGED_AT_DESTRUCTION = 1,
    /// The retired barrier of `epoch`, with `signal`, was not safe to destroy, and is left alone.
    HSA_SERIALIZER_REPORT_UNSAFE_RECLAIM = 2,
    /// The runtime refused to destroy `signal`, with `runtime_status`.
    HSA_SERIALIZER_REPORT_DESTROY_FAILED = 3,
    /// `count` reports were lost.
    HSA_SERIALIZER_REPORT_DROPPED = 4,
    /// Everything was let through, because of misuse.
    HSA_SERIALIZER_REPORT_RELEASED = 5,
    /// Misuse: a completion of `queue_id` with no dispatch left to complete.
    HSA_SERIALIZER_REPORT_COMPLETION_AHEAD = 6,
    /// Misuse: a kernel of `queue_id` behind an armed barrier was reported complete.
    HSA_SERIALIZER_REPORT_COMPLETION_BEHIND_BARRIER = 7,
    /// Misuse: a serialized kernel of `queue_id` was reported complete without having been granted.
    HSA_SERIALIZER_REPORT_COMPLETION_NOT_GRANTED = 8,
    /// Misuse: ready fired for `queue_id`, which was not idle.
    HSA_SERIALIZER_REPORT_READY_NOT_IDLE = 9,
}
use hsa_serializer_report_kind_t::*;

/// Something that should not have happened. What the kind does not speak of is 0.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub struct hsa_serializer_report_t {
    /// One of hsa_serializer_report_kind_t; later versions may have more.
    pub kind: u32,
    /// The barrier's transition epoch.
    pub epoch: u32,
    /// The signal's handle.
    pub signal: u64,
    /// The queue.
    pub queue_id: u64,
    /// How many.
    pub count: u64,
    /// An `hsa_status_t`.
    pub runtime_status: u32,
    /// The same as text.
    pub text: *const c_char,
}

impl hsa_serializer_report_t {
    /// Calls `tell` with the report and its text.
    pub(crate) fn with(report: Report, tell: impl FnOnce(*const Self)) {
        // Of numbers and fixed words: there is no zero in it.
        let text = CString::new(report.to_string()).unwrap_or_default();
        let mut told = Self {
            kind: HSA_SERIALIZER_REPORT_OTHER as u32,
            epoch: 0,
            signal: 0,
            queue_id: 0,
            count: 0,
            runtime_status: 0,
            text: text.as_ptr(),
        };
        told.kind = match report {
            Report::TaggedAtDestruction {
                epoch,
                signal,
                tags,
            } => {
                (told.epoch, told.signal, told.count) = (epoch, signal.handle, tags.into());
                HSA_SERIALIZER_REPORT_TAGGED_AT_DESTRUCTION
            }
            Report::UnsafeReclaim { epoch, signal } => {
                (told.epoch, told.signal) = (epoch, signal.handle);
                HSA_SERIALIZER_REPORT_UNSAFE_RECLAIM
            }
            Report::DestroyFailed { signal, status } => {
                (told.signal, told.runtime_status) = (signal.handle, status.0);
                HSA_SERIALIZER_REPORT_DESTROY_FAILED
            }
            Report::Dropped(count) => {
                told.count = count;
                HSA_SERIALIZER_REPORT_DROPPED
            }
            Report::Released => HSA_SERIALIZER_REPORT_RELEASED,
            Report::Misuse(misuse) => {
                let (kind, queue) = match misuse {
                    Misuse::CompletionAhead(q) => (HSA_SERIALIZER_REPORT_COMPLETION_AHEAD, Some(q)),
                    Misuse::CompletionBehindBarrier(q) => {
                        (HSA_SERIALIZER_REPORT_COMPLETION_BEHIND_BARRIER, Some(q))
                    }
                    Misuse::CompletionNotGranted(q) => {
                        (HSA_SERIALIZER_REPORT_COMPLETION_NOT_GRANTED, Some(q))
                    }
                    Misuse::ReadyNotIdle(q) => (HSA_SERIALIZER_REPORT_READY_NOT_IDLE, Some(q)),
                    _ => (HSA_SERIALIZER_REPORT_OTHER, None),
                };
                told.queue_id = queue.map_or(0, QueueId::to_raw);
                kind
            }
            _ => HSA_SERIALIZER_REPORT_OTHER,
        } as u32;
        tell(&raw const told);
    }
}
