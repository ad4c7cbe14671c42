//! Planted faults: each breaks one thing in the runtime or the host, so that a check is seen to
//! fire. The serializer itself stays whole.

use crate::violation::Rule;

/// A fault to plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A barrier's signal is created with the value 0.
    BarrierBornClear,
    /// A queue's `block` signal is created with the value 0.
    BlockBornOpen,
    /// The host does not write the transition packet.
    TransitionPacketLost,
    /// A dispatch says that it needs no transition packet although it does.
    TransitionPacketNotGiven,
    /// The store of 0 that clears a barrier is not carried out.
    ClearLost,
    /// It is carried out twice.
    ClearedTwice,
    /// A barrier's signal is destroyed as soon as it is cleared.
    DestroyedWhenCleared,
    /// Destroying is done twice.
    DestroyedTwice,
    /// A barrier's signal is not destroyed.
    BarrierKept,
    /// A `ready` signal is not destroyed.
    ReadyKept,
    /// The store that grants is not carried out.
    GrantLost,
    /// A queue that becomes ready is let go at once.
    GrantedToAll,
    /// Kernels are reported when they start.
    ReportedAtStart,
    /// Every fourth completion is never reported.
    CompletionSwallowed,
    /// `ready` handlers are not called.
    HandlersDeaf,
    /// A creation that fails takes a signal all the same.
    FailureLeaks,
    /// A barrier's signal is not destroyed, and the runtime says so.
    DestroyRefused,
    /// The removal of a queue is not said.
    RemovalUnsaid,
    /// It is said twice.
    RemovalSaidTwice,
    /// The store that grants is carried out twice.
    GrantedTwice,
    /// The escape signal is created with the value 0.
    EscapeBornOpen,
    /// The store of 0 to the escape signal is not carried out.
    EscapeLost,
    /// The escape signal is not destroyed.
    EscapeKept,
    /// Of two barriers that one call clears by force the older one comes last.
    ForcedNewestFirst,
    /// Who looks for stalls has a clock that goes twice as fast.
    ClockAhead,
    /// The last of several stalls is not told.
    StallUnnamed,
    /// That a stall was released is not told.
    ReleaseUnsaid,
    /// Shutting down is not said.
    ShutdownUnsaid,
    /// A shutdown that was refused is taken for a finished one.
    FinishedEarly,
    /// Leaving is not said.
    LeaveUnsaid,
    /// A cut's last queue is not told.
    CutForgetful,
    /// A marker is written without its barrier bit.
    MarkerOvertakes,
    /// A marker is reported when it is written.
    MarkerReportedAtOnce,
    /// A guard's end is not said.
    RequestKept,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 34] = [
        Self::BarrierBornClear,
        Self::BlockBornOpen,
        Self::TransitionPacketLost,
        Self::TransitionPacketNotGiven,
        Self::ClearLost,
        Self::ClearedTwice,
        Self::DestroyedWhenCleared,
        Self::DestroyedTwice,
        Self::BarrierKept,
        Self::ReadyKept,
        Self::GrantLost,
        Self::GrantedToAll,
        Self::ReportedAtStart,
        Self::CompletionSwallowed,
        Self::HandlersDeaf,
        Self::FailureLeaks,
        Self::DestroyRefused,
        Self::RemovalUnsaid,
        Self::RemovalSaidTwice,
        Self::GrantedTwice,
        Self::EscapeBornOpen,
        Self::EscapeLost,
        Self::EscapeKept,
        Self::ForcedNewestFirst,
        Self::ClockAhead,
        Self::StallUnnamed,
        Self::ReleaseUnsaid,
        Self::ShutdownUnsaid,
        Self::FinishedEarly,
        Self::LeaveUnsaid,
        Self::CutForgetful,
        Self::MarkerOvertakes,
        Self::MarkerReportedAtOnce,
        Self::RequestKept,
    ];

    /// The rules of which at least one notices it. Which of several depends on the case.
    #[must_use]
    pub fn noticed_by(self) -> &'static [Rule] {
        match self {
            Self::BarrierBornClear => &[Rule::Clears],
            Self::BlockBornOpen | Self::GrantedToAll => &[Rule::KernelsOverlap],
            Self::TransitionPacketLost => &[Rule::ModesOverlap],
            Self::TransitionPacketNotGiven => &[Rule::Packets],
            Self::ClearLost | Self::ClearedTwice => &[Rule::Clears],
            Self::DestroyedWhenCleared => &[Rule::DestroyedUnderUse],
            Self::DestroyedTwice => &[Rule::DestroyedTwice],
            Self::BarrierKept => &[Rule::TooManyBarriers],
            Self::ReadyKept => &[Rule::Leak],
            Self::GrantLost => &[Rule::TokenLost],
            Self::ReportedAtStart => &[Rule::ModesOverlap, Rule::KernelsOverlap],
            Self::CompletionSwallowed | Self::HandlersDeaf => &[Rule::Stuck],
            Self::FailureLeaks => &[Rule::ErrorChangedState],
            Self::DestroyRefused => &[Rule::Reports],
            Self::RemovalSaidTwice => &[Rule::Answer],
            Self::GrantedTwice => &[Rule::TokenDoubled],
            Self::RemovalUnsaid => &[Rule::Statistics, Rule::Clears, Rule::TokenLost],
            Self::EscapeBornOpen => &[Rule::KernelsOverlap, Rule::ModesOverlap],
            Self::EscapeLost => &[Rule::Stuck],
            Self::EscapeKept => &[Rule::Leak],
            Self::ForcedNewestFirst => &[Rule::Forces],
            Self::ClockAhead | Self::StallUnnamed | Self::ReleaseUnsaid => &[Rule::Stalls],
            Self::ShutdownUnsaid | Self::RequestKept => &[Rule::Answer],
            Self::FinishedEarly => &[Rule::Leak],
            Self::LeaveUnsaid => &[Rule::CalledAfterEnd],
            Self::CutForgetful => &[Rule::Cut],
            Self::MarkerOvertakes => &[Rule::ModesOverlap],
            // It may be told from what stands in front of the marker, or from a barrier that counts it.
            Self::MarkerReportedAtOnce => &[Rule::ModesOverlap, Rule::Reports, Rule::Clears],
        }
    }
}
