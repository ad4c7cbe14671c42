//! The packets of one kernel, in order.

use hsa_sys::{AqlPacket, hsa_signal_t};

/// The profiler's own packets around a kernel: start and read its counters, say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// In front of the kernel.
    pub before: Vec<AqlPacket>,
    /// Behind it.
    pub after: Vec<AqlPacket>,
}

/// Pushes the kernel with what is around it.
///
/// The last packet completes `signal`, so that what is heard of is the end of the whole. The
/// application's own completion signal, which this takes off the kernel, is completed by the
/// profiler then. A packet that stands behind the kernel must not run beside it, so the last one
/// has the barrier bit; a kernel that is the last one itself has it if it is serialized, or if the
/// application set it.
pub(crate) fn push(
    out: &mut Vec<AqlPacket>,
    kernel: &AqlPacket,
    around: &Around,
    serialized: bool,
    signal: hsa_signal_t,
) {
    out.extend_from_slice(&around.before);
    let kernel = kernel.with_completion_signal(hsa_signal_t::NULL);
    out.push(if serialized {
        kernel.with_barrier_bit()
    } else {
        kernel
    });
    out.extend_from_slice(&around.after);
    if let Some(last) = out.last_mut() {
        if !around.after.is_empty() {
            *last = last.with_barrier_bit();
        }
        *last = last.with_completion_signal(signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hsa_sys::{FenceScope, PacketType, header};
    use softgpu::Kernel;

    const OURS: hsa_signal_t = hsa_signal_t { handle: 0x77 };
    const THEIRS: hsa_signal_t = hsa_signal_t { handle: 0x88 };

    fn vendor(n: u64) -> AqlPacket {
        let none = FenceScope::None;
        AqlPacket::from_words([0, n, 0, 0, 0, 0, 0, 0]).with_header(header(
            PacketType::VendorSpecific,
            false,
            none,
            none,
        ))
    }

    #[test]
    fn an_unserialized_kernel_changes_its_completion_signal_only() {
        let kernel = Kernel::lasting(5).id(3).completion(THEIRS).packet();
        let mut out = Vec::new();
        push(&mut out, &kernel, &Around::default(), false, OURS);
        assert_eq!(out, [kernel.with_completion_signal(OURS)]);
    }

    #[test]
    fn a_serialized_kernel_has_the_barrier_bit() {
        let kernel = Kernel::lasting(5).packet();
        let mut out = vec![vendor(0)];
        push(&mut out, &kernel, &Around::default(), true, OURS);
        let expected = kernel.with_completion_signal(OURS).with_barrier_bit();
        assert_eq!(out, [vendor(0), expected]);
    }

    // SCENARIOS 34.
    #[test]
    fn s34_the_callers_packets_keep_their_order_and_the_last_one_completes() {
        let kernel = Kernel::lasting(5).completion(THEIRS).packet();
        let around = Around {
            before: vec![vendor(1), vendor(2)],
            after: vec![vendor(3), vendor(4)],
        };
        let mut out = Vec::new();
        push(&mut out, &kernel, &around, true, OURS);
        let null = hsa_signal_t::NULL;
        assert_eq!(
            out,
            [
                vendor(1),
                vendor(2),
                kernel.with_completion_signal(null).with_barrier_bit(),
                vendor(3),
                vendor(4).with_barrier_bit().with_completion_signal(OURS),
            ]
        );
    }
}
