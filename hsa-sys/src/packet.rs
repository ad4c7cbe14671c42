//! The AQL packets (`hsa.h`; System Architecture specification 2.9).
//!
//! Every packet is 64 bytes and starts with a 16-bit header: type in bits 0 to 7, the barrier bit
//! 8, the acquire fence in bits 9 and 10, the release fence in bits 11 and 12.

use crate::handle::hsa_signal_t;

/// A queue's ring consists of slots of this many bytes.
pub const AQL_PACKET_SIZE: usize = 64;

/// Bit offset of the packet's type in its header.
pub const HSA_PACKET_HEADER_TYPE: u32 = 0;
/// Bit offset of the barrier bit: wait until all earlier packets of the queue have completed.
pub const HSA_PACKET_HEADER_BARRIER: u32 = 8;
/// Bit offset of the acquire fence's scope.
pub const HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE: u32 = 9;
/// Bit offset of the release fence's scope.
pub const HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE: u32 = 11;
/// Bits of the type field.
pub const HSA_PACKET_HEADER_WIDTH_TYPE: u32 = 8;

/// What a packet is (`hsa_packet_type_t`).
#[repr(u16)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketType {
    /// A packet whose format its vendor defines. A zeroed slot reads as this one.
    VendorSpecific = 0,
    /// A slot that is not filled yet: the packet processor stops in front of it.
    Invalid = 1,
    /// A kernel.
    KernelDispatch = 2,
    /// Waits until every dependency is 0; a null one counts as met.
    BarrierAnd = 3,
    /// A function call by the agent (not used on GPUs' queues).
    AgentDispatch = 4,
    /// Waits until some dependency is 0; a null one counts as not met.
    BarrierOr = 5,
}

impl PacketType {
    /// The type that a header's low byte names, if it is one.
    #[must_use]
    pub const fn from_header(header: u16) -> Option<Self> {
        Some(match header & 0xff {
            0 => Self::VendorSpecific,
            1 => Self::Invalid,
            2 => Self::KernelDispatch,
            3 => Self::BarrierAnd,
            4 => Self::AgentDispatch,
            5 => Self::BarrierOr,
            _ => return None,
        })
    }
}

/// The scope of a packet's memory fence (`hsa_fence_scope_t`).
#[repr(u16)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FenceScope {
    /// No fence.
    None = 0,
    /// Within the agent.
    Agent = 1,
    /// With the host and other agents.
    System = 2,
}

/// A header of the given parts.
///
/// ```
/// use hsa_sys::{header, FenceScope, PacketType};
/// let h = header(PacketType::BarrierAnd, true, FenceScope::System, FenceScope::System);
/// assert_eq!(h, 0x1503);
/// ```
#[must_use]
pub const fn header(
    kind: PacketType,
    barrier: bool,
    acquire: FenceScope,
    release: FenceScope,
) -> u16 {
    (kind as u16) << HSA_PACKET_HEADER_TYPE
        | (barrier as u16) << HSA_PACKET_HEADER_BARRIER
        | (acquire as u16) << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE
        | (release as u16) << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE
}

/// A kernel dispatch (`hsa_kernel_dispatch_packet_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct hsa_kernel_dispatch_packet_t {
    /// Type, barrier bit and fences.
    pub header: u16,
    /// Number of dimensions in bits 0 and 1.
    pub setup: u16,
    /// Work-group size in x.
    pub workgroup_size_x: u16,
    /// Work-group size in y.
    pub workgroup_size_y: u16,
    /// Work-group size in z.
    pub workgroup_size_z: u16,
    /// Must be 0.
    pub reserved0: u16,
    /// Grid size in x, in work-items.
    pub grid_size_x: u32,
    /// Grid size in y, in work-items.
    pub grid_size_y: u32,
    /// Grid size in z, in work-items.
    pub grid_size_z: u32,
    /// Bytes of private memory for each work-item.
    pub private_segment_size: u32,
    /// Bytes of group memory for each work-group.
    pub group_segment_size: u32,
    /// Address of the kernel's code object.
    pub kernel_object: u64,
    /// Address of the kernel's arguments.
    pub kernarg_address: u64,
    /// Must be 0.
    pub reserved2: u64,
    /// Decremented by one when the kernel has ended; may be null.
    pub completion_signal: hsa_signal_t,
}

macro_rules! barrier_packets {
    ($($(#[$doc:meta])* $name:ident = $kind:expr;)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            /// Type, barrier bit and fences.
            pub header: u16,
            /// Must be 0.
            pub reserved0: u16,
            /// Must be 0.
            pub reserved1: u32,
            /// The signals that it waits for; unused ones are null.
            pub dep_signal: [hsa_signal_t; 5],
            /// Must be 0.
            pub reserved2: u64,
            /// Decremented by one when the packet has executed; may be null.
            pub completion_signal: hsa_signal_t,
        }

        impl Default for $name {
            /// Waits for nothing, tells nobody, no barrier bit, no fences.
            fn default() -> Self {
                Self {
                    header: header($kind, false, FenceScope::None, FenceScope::None),
                    reserved0: 0,
                    reserved1: 0,
                    dep_signal: [hsa_signal_t::NULL; 5],
                    reserved2: 0,
                    completion_signal: hsa_signal_t::NULL,
                }
            }
        }
    )*};
}

barrier_packets! {
    /// Waits until all of its dependencies are 0 (`hsa_barrier_and_packet_t`).
    hsa_barrier_and_packet_t = PacketType::BarrierAnd;
    /// Waits until one of its dependencies is 0 (`hsa_barrier_or_packet_t`).
    hsa_barrier_or_packet_t = PacketType::BarrierOr;
}

impl Default for hsa_kernel_dispatch_packet_t {
    /// A grid of one work-item, no code object, no barrier bit, no fences.
    fn default() -> Self {
        Self {
            header: header(
                PacketType::KernelDispatch,
                false,
                FenceScope::None,
                FenceScope::None,
            ),
            setup: 1,
            workgroup_size_x: 1,
            workgroup_size_y: 1,
            workgroup_size_z: 1,
            reserved0: 0,
            grid_size_x: 1,
            grid_size_y: 1,
            grid_size_z: 1,
            private_segment_size: 0,
            group_segment_size: 0,
            kernel_object: 0,
            kernarg_address: 0,
            reserved2: 0,
            completion_signal: hsa_signal_t::NULL,
        }
    }
}

/// Any packet: 64 bytes whose meaning the header's type says.
///
/// It converts from and, where the type fits, to the packets with fields.
#[repr(C, align(64))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AqlPacket {
    words: [u64; 8],
}

impl AqlPacket {
    /// A slot that is not filled yet.
    pub const INVALID: Self = Self::from_words([PacketType::Invalid as u64, 0, 0, 0, 0, 0, 0, 0]);

    /// The packet of these eight little-endian words, whatever they are.
    #[must_use]
    pub const fn from_words(words: [u64; 8]) -> Self {
        Self { words }
    }

    /// The eight words of this packet.
    #[must_use]
    pub const fn words(&self) -> [u64; 8] {
        self.words
    }

    /// The header: the low 16 bits.
    #[inline]
    #[must_use]
    pub const fn header(&self) -> u16 {
        self.words[0] as u16
    }

    /// This packet with another header.
    #[must_use]
    pub const fn with_header(mut self, header: u16) -> Self {
        self.words[0] = self.words[0] & !0xffff | header as u64;
        self
    }

    /// The type, or `None` where the header names none that HSA knows.
    #[must_use]
    pub const fn packet_type(&self) -> Option<PacketType> {
        PacketType::from_header(self.header())
    }

    /// Whether the barrier bit is set.
    #[must_use]
    pub const fn barrier_bit(&self) -> bool {
        self.header() >> HSA_PACKET_HEADER_BARRIER & 1 == 1
    }

    /// This packet with its barrier bit set.
    #[must_use]
    pub const fn with_barrier_bit(self) -> Self {
        let header = self.header() | 1 << HSA_PACKET_HEADER_BARRIER;
        self.with_header(header)
    }

    /// The completion signal, which has the same place in every kind of packet.
    #[must_use]
    pub const fn completion_signal(&self) -> hsa_signal_t {
        hsa_signal_t {
            handle: self.words[7],
        }
    }

    /// This packet with another completion signal.
    #[must_use]
    pub const fn with_completion_signal(mut self, signal: hsa_signal_t) -> Self {
        self.words[7] = signal.handle;
        self
    }

    /// The five dependencies of a barrier-AND or barrier-OR packet; `None` for any other.
    #[must_use]
    pub fn dependencies(&self) -> Option<[hsa_signal_t; 5]> {
        match self.packet_type()? {
            PacketType::BarrierAnd | PacketType::BarrierOr => {
                Some(std::array::from_fn(|i| hsa_signal_t {
                    handle: self.words[i + 1],
                }))
            }
            _ => None,
        }
    }

    /// This packet's fields as a kernel dispatch, if it is one.
    #[must_use]
    pub fn as_kernel_dispatch(&self) -> Option<hsa_kernel_dispatch_packet_t> {
        (self.packet_type() == Some(PacketType::KernelDispatch)).then(|| {
            // SAFETY: both are 64 bytes (asserted below) of plain integers, of which every bit
            // pattern is valid.
            unsafe { std::mem::transmute_copy(self) }
        })
    }
}

impl Default for AqlPacket {
    fn default() -> Self {
        Self::INVALID
    }
}

impl std::fmt::Debug for AqlPacket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("AqlPacket");
        match self.packet_type() {
            Some(kind) => out.field("type", &kind),
            None => out.field("type", &(self.header() & 0xff)),
        };
        out.field("barrier", &self.barrier_bit());
        if let Some(deps) = self.dependencies() {
            out.field("dep_signal", &deps.map(|s| s.handle));
        }
        out.field("completion_signal", &self.completion_signal().handle)
            .finish()
    }
}

macro_rules! as_packet {
    ($($name:ident)*) => {$(
        const _: () = assert!(size_of::<$name>() == AQL_PACKET_SIZE);

        impl From<$name> for AqlPacket {
            #[inline]
            fn from(packet: $name) -> Self {
                // SAFETY: both are 64 bytes (asserted above); the source has no padding, and any
                // eight words make an `AqlPacket`.
                Self { words: unsafe { std::mem::transmute::<$name, [u64; 8]>(packet) } }
            }
        }
    )*};
}

as_packet! { hsa_kernel_dispatch_packet_t hsa_barrier_and_packet_t hsa_barrier_or_packet_t }
const _: () = assert!(size_of::<AqlPacket>() == AQL_PACKET_SIZE);

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn layouts_are_those_of_hsa_h() {
        assert_eq!(offset_of!(hsa_kernel_dispatch_packet_t, grid_size_x), 12);
        assert_eq!(offset_of!(hsa_kernel_dispatch_packet_t, kernel_object), 32);
        assert_eq!(
            offset_of!(hsa_kernel_dispatch_packet_t, completion_signal),
            56
        );
        assert_eq!(offset_of!(hsa_barrier_and_packet_t, dep_signal), 8);
        assert_eq!(offset_of!(hsa_barrier_and_packet_t, completion_signal), 56);
        assert_eq!(offset_of!(hsa_barrier_or_packet_t, dep_signal), 8);
    }

    #[test]
    fn a_packet_keeps_its_fields_through_the_untyped_form() {
        let signal = hsa_signal_t { handle: 0x1234 };
        let barrier = hsa_barrier_and_packet_t {
            dep_signal: [
                signal,
                hsa_signal_t::NULL,
                hsa_signal_t::NULL,
                hsa_signal_t::NULL,
                signal,
            ],
            completion_signal: hsa_signal_t { handle: 0x5678 },
            ..Default::default()
        };
        let packet = AqlPacket::from(barrier).with_barrier_bit();
        assert!(packet.barrier_bit());
        assert_eq!(packet.dependencies(), Some(barrier.dep_signal));
        assert_eq!(packet.completion_signal(), barrier.completion_signal);

        let kernel = hsa_kernel_dispatch_packet_t {
            grid_size_z: 7,
            kernel_object: 99,
            ..Default::default()
        };
        assert_eq!(AqlPacket::from(kernel).as_kernel_dispatch(), Some(kernel));
        assert_eq!(AqlPacket::from(kernel).dependencies(), None);
        assert_eq!(packet.as_kernel_dispatch(), None);
    }

    #[test]
    fn an_unknown_type_is_none_and_a_zeroed_slot_is_vendor_specific() {
        assert_eq!(
            AqlPacket::from_words([0; 8]).packet_type(),
            Some(PacketType::VendorSpecific)
        );
        assert_eq!(
            AqlPacket::from_words([6, 0, 0, 0, 0, 0, 0, 0]).packet_type(),
            None
        );
        assert_eq!(AqlPacket::INVALID.packet_type(), Some(PacketType::Invalid));
    }
}
