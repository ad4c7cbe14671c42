//! What every function answers, and the border that no panic crosses.

use hsa_serializer::hsa::HsaRuntimeError;
use hsa_serializer::{
    AddQueueError, AgentError, CompleteErrorReason, DispatchError, DrainError, GapError,
    ReleaseError, ShutdownError, SignalError, TransitionError,
};
use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call came to.
///
/// Everything but `HSA_SERIALIZER_SUCCESS` means that nothing was changed and no output was written, but
/// where the function says something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum hsa_serializer_status_t {
    /// Done.
    HSA_SERIALIZER_SUCCESS = 0,
    /// A pointer is null that may not be.
    HSA_SERIALIZER_NULL_POINTER = 1,
    /// The handle is null (0).
    HSA_SERIALIZER_NULL_HANDLE = 2,
    /// The handle was never given out, or names something of another kind.
    HSA_SERIALIZER_FOREIGN_HANDLE = 3,
    /// What the handle named was removed, ended or destroyed before.
    HSA_SERIALIZER_STALE_HANDLE = 4,
    /// Another call with this handle is under way, and calls with it have to come one at a time.
    HSA_SERIALIZER_BUSY = 5,
    /// A structure's `size` is none that any version of this library had.
    HSA_SERIALIZER_BAD_SIZE = 6,
    /// A number is none of the values that the parameter or field has.
    HSA_SERIALIZER_BAD_VALUE = 7,
    /// The array has too few elements.
    HSA_SERIALIZER_TOO_SMALL = 8,
    /// The runtime did not give a signal; hsa_serializer_last_runtime_status() has its answer.
    HSA_SERIALIZER_NO_SIGNAL = 9,
    /// The runtime answered success with a null signal.
    HSA_SERIALIZER_NULL_SIGNAL = 10,
    /// The runtime refused the handler on a ready signal; hsa_serializer_last_runtime_status() has its
    /// answer.
    HSA_SERIALIZER_HANDLER_REFUSED = 11,
    /// No slot is left for another queue, or no number for another serializer or set.
    HSA_SERIALIZER_FULL = 12,
    /// As many dispatches are in flight as the limit allows.
    HSA_SERIALIZER_LIMIT = 13,
    /// The queue was destroyed.
    HSA_SERIALIZER_QUEUE_GONE = 14,
    /// The serializer is shutting down, or has ended: pass kernels on as they are.
    HSA_SERIALIZER_SHUT_DOWN = 15,
    /// The serializer was left: nothing is known any more.
    HSA_SERIALIZER_LEFT = 16,
    /// Released more often than acquired.
    HSA_SERIALIZER_UNBALANCED = 17,
    /// The ticket is another serializer's, or nobody's.
    HSA_SERIALIZER_FOREIGN_TICKET = 18,
    /// The ticket was used before: every dispatch of its queue has been completed.
    HSA_SERIALIZER_USED_TICKET = 19,
    /// The queue has had no such dispatch.
    HSA_SERIALIZER_NEVER_DISPATCHED = 20,
    /// It would wait on a thread that calls the runtime's handlers, and so for itself.
    HSA_SERIALIZER_ON_HANDLER_THREAD = 21,
    /// The time is over.
    HSA_SERIALIZER_TIMED_OUT = 22,
    /// Something is left that has to end first.
    HSA_SERIALIZER_NOT_FINISHED = 23,
    /// The agent is not a GPU.
    HSA_SERIALIZER_NOT_A_GPU = 24,
    /// The runtime did not say what the agent is; hsa_serializer_last_runtime_status() has its answer.
    HSA_SERIALIZER_BAD_AGENT = 25,
    /// The table is not of a known form, or lacks a function.
    HSA_SERIALIZER_BAD_TABLE = 26,
    /// A fault of this library: it may have been half done.
    HSA_SERIALIZER_PANIC = 27,
    /// The agent was not touched yet.
    HSA_SERIALIZER_UNTOUCHED = 28,
}

/// Each status with its text.
const TEXTS: &[(hsa_serializer_status_t, &CStr)] = &[
    (HSA_SERIALIZER_SUCCESS, c"success"),
    (
        HSA_SERIALIZER_NULL_POINTER,
        c"a pointer is null that may not be",
    ),
    (HSA_SERIALIZER_NULL_HANDLE, c"the handle is null"),
    (
        HSA_SERIALIZER_FOREIGN_HANDLE,
        c"the handle was never given out, or names something of another kind",
    ),
    (
        HSA_SERIALIZER_STALE_HANDLE,
        c"what the handle named is gone: removed, ended or destroyed before",
    ),
    (
        HSA_SERIALIZER_BUSY,
        c"another call with this handle is under way, and they have to come one at a time",
    ),
    (
        HSA_SERIALIZER_BAD_SIZE,
        c"a structure's size is none that any version of this library had",
    ),
    (
        HSA_SERIALIZER_BAD_VALUE,
        c"a number is none of the values that the parameter has",
    ),
    (HSA_SERIALIZER_TOO_SMALL, c"the array has too few elements"),
    (
        HSA_SERIALIZER_NO_SIGNAL,
        c"the runtime did not give a signal",
    ),
    (
        HSA_SERIALIZER_NULL_SIGNAL,
        c"the runtime answered success with a null signal",
    ),
    (
        HSA_SERIALIZER_HANDLER_REFUSED,
        c"the runtime refused the handler on a queue's ready signal",
    ),
    (HSA_SERIALIZER_FULL, c"no slot is left for another queue"),
    (
        HSA_SERIALIZER_LIMIT,
        c"as many dispatches are in flight as the limit allows",
    ),
    (HSA_SERIALIZER_QUEUE_GONE, c"the queue was destroyed"),
    (
        HSA_SERIALIZER_SHUT_DOWN,
        c"the serializer has ended: it was shut down, released or left",
    ),
    (HSA_SERIALIZER_LEFT, c"the serializer was left"),
    (
        HSA_SERIALIZER_UNBALANCED,
        c"released more often than acquired",
    ),
    (
        HSA_SERIALIZER_FOREIGN_TICKET,
        c"the ticket is another serializer's, or nobody's",
    ),
    (HSA_SERIALIZER_USED_TICKET, c"the ticket was used before"),
    (
        HSA_SERIALIZER_NEVER_DISPATCHED,
        c"the queue has had no such dispatch",
    ),
    (
        HSA_SERIALIZER_ON_HANDLER_THREAD,
        c"called on a thread that calls the runtime's handlers, it would wait for itself",
    ),
    (HSA_SERIALIZER_TIMED_OUT, c"the time is over"),
    (
        HSA_SERIALIZER_NOT_FINISHED,
        c"something is left that has to end first",
    ),
    (HSA_SERIALIZER_NOT_A_GPU, c"the agent is not a GPU"),
    (
        HSA_SERIALIZER_BAD_AGENT,
        c"the runtime did not say what the agent is",
    ),
    (
        HSA_SERIALIZER_BAD_TABLE,
        c"the runtime's table is not of a known form, or lacks a function",
    ),
    (HSA_SERIALIZER_PANIC, c"a fault of this library"),
    (HSA_SERIALIZER_UNTOUCHED, c"the agent was not touched yet"),
];

use hsa_serializer_status_t as Status;
pub(crate) use hsa_serializer_status_t::*;

/// What a function's body comes to.
pub(crate) type Outcome<T = ()> = Result<T, Status>;

/// Runs a function's body: what it returns as an error, or a panic, becomes the status.
#[inline(always)]
pub(crate) fn status(body: impl FnOnce() -> Outcome) -> Status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => HSA_SERIALIZER_SUCCESS,
        Ok(Err(status)) => status,
        Err(_) => HSA_SERIALIZER_PANIC,
    }
}

/// The text of a status, which lives as long as the library; of any other number, one that says so. Never
/// null. From any thread, at any time, in signal handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_status_string(status: u32) -> *const c_char {
    let known = TEXTS.iter().find(|(known, _)| *known as u32 == status);
    known
        .map_or(c"no status of hsa_serializer", |(_, text)| text)
        .as_ptr()
}

std::thread_local! {
    static LAST_RUNTIME_STATUS: Cell<u32> = const { Cell::new(0) };
}

/// The `hsa_status_t` with which the runtime refused something in this thread's last call that came to
/// `HSA_SERIALIZER_NO_SIGNAL`, `HSA_SERIALIZER_HANDLER_REFUSED` or `HSA_SERIALIZER_BAD_AGENT`; 0 if there
/// was none. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_last_runtime_status() -> u32 {
    // A thread whose locals are gone has none.
    LAST_RUNTIME_STATUS.try_with(Cell::get).unwrap_or(0)
}

/// What the runtime has said, for who asks; 0 where it is not known.
pub(crate) fn runtime_said(status: u32) {
    let _ = LAST_RUNTIME_STATUS.try_with(|last| last.set(status));
}

impl From<SignalError> for Status {
    fn from(error: SignalError) -> Self {
        match error {
            SignalError::Status(status) => {
                runtime_said(status.0);
                HSA_SERIALIZER_NO_SIGNAL
            }
            SignalError::NullHandle => HSA_SERIALIZER_NULL_SIGNAL,
            SignalError::Left => HSA_SERIALIZER_LEFT,
            _ => {
                runtime_said(0);
                HSA_SERIALIZER_NO_SIGNAL
            }
        }
    }
}

impl From<TransitionError> for Status {
    fn from(error: TransitionError) -> Self {
        match error {
            TransitionError::Signal(error) => error.into(),
            _ => HSA_SERIALIZER_SHUT_DOWN,
        }
    }
}

impl From<AgentError> for Status {
    fn from(error: AgentError) -> Self {
        error.reason.into()
    }
}

impl From<AddQueueError> for Status {
    fn from(error: AddQueueError) -> Self {
        match error {
            AddQueueError::Escape(error)
            | AddQueueError::Ready(error)
            | AddQueueError::Block(error) => error.into(),
            AddQueueError::Watch(status) => {
                runtime_said(status.0);
                HSA_SERIALIZER_HANDLER_REFUSED
            }
            AddQueueError::Full => HSA_SERIALIZER_FULL,
            _ => HSA_SERIALIZER_SHUT_DOWN,
        }
    }
}

impl From<DispatchError> for Status {
    fn from(error: DispatchError) -> Self {
        match error {
            DispatchError::TooFewPackets { .. } => HSA_SERIALIZER_TOO_SMALL,
            DispatchError::QueueGone(_) => HSA_SERIALIZER_QUEUE_GONE,
            DispatchError::Full { .. } => HSA_SERIALIZER_LIMIT,
            _ => HSA_SERIALIZER_SHUT_DOWN,
        }
    }
}

impl From<GapError> for Status {
    fn from(error: GapError) -> Self {
        match error {
            GapError::Dispatch(error) => error.into(),
            GapError::Signal(error) => error.into(),
            _ => HSA_SERIALIZER_SHUT_DOWN,
        }
    }
}

impl From<CompleteErrorReason> for Status {
    fn from(reason: CompleteErrorReason) -> Self {
        match reason {
            CompleteErrorReason::Ahead => HSA_SERIALIZER_USED_TICKET,
            CompleteErrorReason::NeverDispatched => HSA_SERIALIZER_NEVER_DISPATCHED,
            _ => HSA_SERIALIZER_FOREIGN_TICKET,
        }
    }
}

impl From<ReleaseError> for Status {
    fn from(_: ReleaseError) -> Self {
        HSA_SERIALIZER_UNBALANCED
    }
}

impl From<&DrainError> for Status {
    fn from(error: &DrainError) -> Self {
        match error {
            DrainError::Signal(error) => (*error).into(),
            DrainError::OnHandlerThread => HSA_SERIALIZER_ON_HANDLER_THREAD,
            DrainError::TimedOut(_) => HSA_SERIALIZER_TIMED_OUT,
            _ => HSA_SERIALIZER_LEFT,
        }
    }
}

impl From<&ShutdownError> for Status {
    fn from(error: &ShutdownError) -> Self {
        match error {
            ShutdownError::OnHandlerThread => HSA_SERIALIZER_ON_HANDLER_THREAD,
            _ => HSA_SERIALIZER_TIMED_OUT,
        }
    }
}

impl From<HsaRuntimeError> for Status {
    fn from(error: HsaRuntimeError) -> Self {
        match error {
            HsaRuntimeError::NotAGpu(_) => HSA_SERIALIZER_NOT_A_GPU,
            HsaRuntimeError::Agent { status, .. } => {
                runtime_said(status.0);
                HSA_SERIALIZER_BAD_AGENT
            }
            _ => {
                runtime_said(0);
                HSA_SERIALIZER_BAD_AGENT
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        let body = || -> Outcome { panic!("planted") };
        assert_eq!(status(body), HSA_SERIALIZER_PANIC);
        // Whatever it is raised with.
        let body = || -> Outcome { std::panic::panic_any(7_u8) };
        assert_eq!(status(body), HSA_SERIALIZER_PANIC);
        assert_eq!(status(|| Ok(())), HSA_SERIALIZER_SUCCESS);
    }
}
