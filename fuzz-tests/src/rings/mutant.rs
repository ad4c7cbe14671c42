//! Planted faults: what makes the GPU, as the shadow sees it, one that is wrong.
//!
//! The emulator needs no switch for them: one that ignores the barrier bit is one that is given
//! packets without it, while the shadow knows what the host wrote.

use super::Rule;
use hsa_sys::{AqlPacket, hsa_signal_t};

/// A fault of the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// It ignores the barrier bit.
    IgnoresBarrierBit,
    /// A barrier-OR waits for all of its signals.
    OrIsAnd,
    /// A barrier-AND waits for one.
    AndIsOr,
    /// It looks at a barrier's first four signals only.
    MissesFifth,
    /// It does not count a packet's completion.
    ForgetsCompletion,
    /// It counts the completion of a packet that is no kernel twice.
    CompletesTwice,
    /// It does not wait for the doorbell.
    RunsUnrung,
    /// It misses the doorbell.
    MissesDoorbell,
    /// It skips a packet.
    SkipsPacket,
    /// It runs more kernels at a time than it should.
    RunsTooMany,
    /// It ends kernels too early.
    EndsEarly,
    /// It tells nobody of a fault.
    HidesFault,
    /// It calls handlers whose condition does not hold.
    CallsTooSoon,
    /// Its report leaves somebody out.
    ReportsLess,
    /// It lets time go on further than was asked.
    RunsAhead,
    /// It gives a slot that it has not.
    LosesSlot,
    /// It makes rings of any size.
    TakesAnySize,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::IgnoresBarrierBit,
        Self::OrIsAnd,
        Self::AndIsOr,
        Self::MissesFifth,
        Self::ForgetsCompletion,
        Self::CompletesTwice,
        Self::RunsUnrung,
        Self::MissesDoorbell,
        Self::SkipsPacket,
        Self::RunsTooMany,
        Self::EndsEarly,
        Self::HidesFault,
        Self::CallsTooSoon,
        Self::ReportsLess,
        Self::RunsAhead,
        Self::LosesSlot,
        Self::TakesAnySize,
    ];

    /// The rules that may be the first to notice it.
    #[must_use]
    pub fn noticed_by(self) -> &'static [Rule] {
        match self {
            Self::IgnoresBarrierBit => &[Rule::BarrierBit],
            Self::OrIsAnd => &[Rule::Standstill],
            Self::AndIsOr | Self::MissesFifth => &[Rule::Dependencies],
            Self::ForgetsCompletion | Self::CompletesTwice => &[Rule::Signals],
            Self::RunsUnrung => &[Rule::Unrung],
            Self::MissesDoorbell => &[Rule::Standstill, Rule::Report],
            Self::SkipsPacket => &[Rule::Order],
            Self::RunsTooMany => &[Rule::Full],
            Self::EndsEarly => &[Rule::Ends],
            Self::HidesFault => &[Rule::Errors],
            Self::CallsTooSoon => &[Rule::Handlers],
            Self::ReportsLess => &[Rule::Report],
            Self::RunsAhead => &[Rule::Time],
            Self::LosesSlot => &[Rule::Counts],
            Self::TakesAnySize => &[Rule::Answer],
        }
    }

    /// Whether the GPU takes one kind of barrier for the other, and says so in its reports: the rule
    /// that is to notice it is another one.
    pub(crate) fn swaps_barriers(self) -> bool {
        matches!(self, Self::OrIsAnd | Self::AndIsOr)
    }

    /// The header that the GPU gets in place of this one.
    pub(crate) fn header(self, header: u16) -> u16 {
        match (self, header & 0xff) {
            (Self::IgnoresBarrierBit, _) => header & !(1 << 8),
            (Self::AndIsOr, 3) => header & !0xff | 5,
            _ => header,
        }
    }

    /// The packet that the GPU gets in place of this one.
    pub(crate) fn packet(self, packet: &AqlPacket) -> AqlPacket {
        let packet = packet.with_header(self.header(packet.header()));
        let mut words = packet.words();
        match (self, words[0] & 0xff) {
            (Self::OrIsAnd, 5) if words[1..6] != [0; 5] => words[0] ^= 5 ^ 3,
            (Self::MissesFifth, 3) => words[5] = 0,
            (Self::EndsEarly, 2) if words[4] & 0xff == 0 => words[5] /= 2,
            (Self::ForgetsCompletion, _) => {
                return packet.with_completion_signal(hsa_signal_t::NULL);
            }
            _ => {}
        }
        AqlPacket::from_words(words)
    }
}
