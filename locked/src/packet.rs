//! The packets that it injects.

use hsa_sys::{AqlPacket, FenceScope, PacketType, header, hsa_barrier_and_packet_t, hsa_signal_t};

/// Waits for a barrier's signal.
pub(crate) fn transition(signal: hsa_signal_t) -> AqlPacket {
    barrier_and(false, signal, hsa_signal_t::NULL)
}

/// Waits for its own signal to be 0 and leaves -1 behind.
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
