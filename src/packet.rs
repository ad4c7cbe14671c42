//! The packets that the serializer injects.
//!
//! All carry system-scope acquire and release fences: a kernel behind one reads what the host and
//! other agents wrote before they stored to the signal that it waited for (System Architecture
//! specification 2.9.1; missing fences have been blamed for stale reads).

use hsa_sys::{AqlPacket, FenceScope, PacketType, header, hsa_barrier_and_packet_t, hsa_signal_t};

/// The most packets that one dispatch can inject. The caller's array must have at least this many
/// elements.
///
/// Today a dispatch injects three at the most (transition, ready, block); the fourth is reserved.
pub const MAX_PACKETS: usize = 4;

/// Waits for a barrier's signal, once in front of a queue's first dispatch after a transition.
///
/// Its barrier bit is clear: HSA launches nothing behind a barrier-AND until it has completed, and
/// what is in front of it need not end first on its account.
pub(crate) fn transition(signal: hsa_signal_t) -> AqlPacket {
    barrier_and(false, signal, hsa_signal_t::NULL)
}

/// Waits for its own signal to be 0 and leaves -1 behind. The barrier bit makes it wait for all
/// earlier packets of its queue.
pub(crate) fn gate(signal: hsa_signal_t) -> AqlPacket {
    barrier_and(true, signal, signal)
}

fn barrier_and(barrier_bit: bool, wait: hsa_signal_t, completion: hsa_signal_t) -> AqlPacket {
    let mut dep_signal = [hsa_signal_t::NULL; 5];
    dep_signal[0] = wait;
    hsa_barrier_and_packet_t {
        header: header(
            PacketType::BarrierAnd,
            barrier_bit,
            FenceScope::System,
            FenceScope::System,
        ),
        dep_signal,
        completion_signal: completion,
        ..Default::default()
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    // SCENARIOS 56, 57.
    #[test]
    fn s56_every_injected_packet_has_system_fences() {
        let signal = hsa_signal_t { handle: 7 };
        for packet in [transition(signal), gate(signal)] {
            assert_eq!(packet.packet_type(), Some(PacketType::BarrierAnd));
            assert_eq!(packet.header() >> 9 & 3, FenceScope::System as u16);
            assert_eq!(packet.header() >> 11 & 3, FenceScope::System as u16);
            assert_eq!(packet.dependencies().unwrap()[0], signal);
            assert!(
                packet.dependencies().unwrap()[1..]
                    .iter()
                    .all(|s| s.is_null())
            );
        }
        assert!(!transition(signal).barrier_bit());
        assert!(transition(signal).completion_signal().is_null());
        assert!(gate(signal).barrier_bit());
        assert_eq!(gate(signal).completion_signal(), signal);
    }
}
