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
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 20] = [
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
        }
    }
}
