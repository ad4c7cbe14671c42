//! The packets that the serializer injects.
//!
//! All carry system-scope acquire and release fences: a kernel behind one reads what the host and
//! other agents wrote before they stored to the signal that it waited for (System Architecture
//! specification 2.9.1; missing fences have been blamed for stale reads).
//!
//! Those that wait are barrier-OR packets of two signals: their own, and the serializer's escape
//! signal, by which everything can be let through at once. A null one of the two counts as not met
//! (specification 2.9.5), which is what a set of barriers without an escape signal wants.

use hsa_sys::{
    AqlPacket, FenceScope, PacketType, header, hsa_barrier_and_packet_t, hsa_barrier_or_packet_t,
    hsa_signal_t,
};

/// The most packets that one dispatch can inject. The caller's array must have at least this many
/// elements.
///
/// Today a dispatch injects three at the most (transition, ready, block); the fourth is reserved.
pub const MAX_PACKETS: usize = 4;

/// Waits for a barrier's signal, once in front of a queue's first dispatch after a transition.
///
/// Its barrier bit is clear: HSA launches nothing behind a barrier packet until it has completed,
/// and what is in front of it need not end first on its account.
#[inline]
pub(crate) fn transition(signal: hsa_signal_t, escape: hsa_signal_t) -> AqlPacket {
    barrier_or(false, [signal, escape], hsa_signal_t::NULL)
}

/// Waits for its own signal to be 0 and leaves -1 behind. The barrier bit makes it wait for all
/// earlier packets of its queue.
#[inline]
pub(crate) fn gate(signal: hsa_signal_t, escape: hsa_signal_t) -> AqlPacket {
    barrier_or(true, [signal, escape], signal)
}

/// Waits for all earlier packets of its queue and for nothing else; the host gives it a completion
/// signal.
pub(crate) fn marker() -> AqlPacket {
    hsa_barrier_and_packet_t {
        header: system_fences(PacketType::BarrierAnd, true),
        ..Default::default()
    }
    .into()
}

fn barrier_or(barrier_bit: bool, wait: [hsa_signal_t; 2], completion: hsa_signal_t) -> AqlPacket {
    let mut dep_signal = [hsa_signal_t::NULL; 5];
    dep_signal[..2].copy_from_slice(&wait);
    hsa_barrier_or_packet_t {
        header: system_fences(PacketType::BarrierOr, barrier_bit),
        dep_signal,
        completion_signal: completion,
        ..Default::default()
    }
    .into()
}

fn system_fences(kind: PacketType, barrier_bit: bool) -> u16 {
    header(kind, barrier_bit, FenceScope::System, FenceScope::System)
}

#[cfg(test)]
mod tests {
    use super::*;

    // SCENARIOS 56, 57.
    #[test]
    fn s56_every_injected_packet_has_system_fences() {
        let signal = hsa_signal_t { handle: 7 };
        let escape = hsa_signal_t { handle: 8 };
        let (transition, gate) = (transition(signal, escape), gate(signal, escape));
        for packet in [transition, gate, marker()] {
            assert_eq!(packet.header() >> 9 & 3, FenceScope::System as u16);
            assert_eq!(packet.header() >> 11 & 3, FenceScope::System as u16);
        }
        for packet in [transition, gate] {
            assert_eq!(packet.packet_type(), Some(PacketType::BarrierOr));
            let null = hsa_signal_t::NULL;
            assert_eq!(
                packet.dependencies(),
                Some([signal, escape, null, null, null])
            );
        }
        assert!(!transition.barrier_bit());
        assert!(transition.completion_signal().is_null());
        assert!(gate.barrier_bit());
        assert_eq!(gate.completion_signal(), signal);
        assert!(marker().barrier_bit());
    }
}
