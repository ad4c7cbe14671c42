//! Queues: what the application sees, and what AMD's runtime and the packet processor share
//! (`hsa.h`, `hsa_ext_amd.h`, `amd_hsa_queue.h`).

use crate::constants::constants;
use crate::handle::hsa_signal_t;
use std::ffi::c_void;

constants! {
    /// Who may submit to a queue (`hsa_queue_type_t`).
    value hsa_queue_type32_t: u32 {
        /// Several threads at once.
        HSA_QUEUE_TYPE_MULTI = 0;
        /// One thread: nobody else may write into it, a profiler's thread included.
        HSA_QUEUE_TYPE_SINGLE = 1;
        /// Several threads; its kernels may synchronize across work-groups.
        HSA_QUEUE_TYPE_COOPERATIVE = 2;
    }

    /// Bits of [`hsa_queue_t::features`].
    value hsa_queue_feature_t: u32 {
        /// Kernels.
        HSA_QUEUE_FEATURE_KERNEL_DISPATCH = 1;
        /// Agent dispatches (functions).
        HSA_QUEUE_FEATURE_AGENT_DISPATCH = 2;
    }

    /// Before whom a queue comes
    /// ([`hsa_amd_queue_set_priority`](crate::functions::hsa_amd_queue_set_priority)).
    value hsa_amd_queue_priority_t: u32 {
        /// Below other compute and all graphics.
        HSA_AMD_QUEUE_PRIORITY_LOW = 0;
        /// Between the two; every new queue's.
        HSA_AMD_QUEUE_PRIORITY_NORMAL = 1;
        /// Above other compute and all graphics.
        HSA_AMD_QUEUE_PRIORITY_HIGH = 2;
    }

    /// Bits of [`amd_queue_t::queue_properties`].
    value amd_queue_properties32_t: u32 {
        /// A trap handler is called.
        AMD_QUEUE_PROPERTIES_ENABLE_TRAP_HANDLER = 1;
        /// Pointers have 64 bits.
        AMD_QUEUE_PROPERTIES_IS_PTR64 = 1 << 1;
        /// The trap handler gets registers for the debugger.
        AMD_QUEUE_PROPERTIES_ENABLE_TRAP_HANDLER_DEBUG_SGPRS = 1 << 2;
        /// Start and end are written to completion signals (what
        /// `hsa_amd_profiling_set_profiler_enabled` switches).
        AMD_QUEUE_PROPERTIES_ENABLE_PROFILING = 1 << 3;
        /// Scratch memory is given back after one use.
        AMD_QUEUE_PROPERTIES_USE_SCRATCH_ONCE = 1 << 4;
    }
}

/// A queue, as the application sees it (`hsa_queue_t`, 40 bytes). Made by the runtime; read only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hsa_queue_t {
    /// Who may submit.
    pub type_: hsa_queue_type32_t,
    /// What may be submitted ([`hsa_queue_feature_t`]'s bits).
    pub features: u32,
    /// The ring: [`size`](Self::size) packets of 64 bytes.
    pub base_address: *mut c_void,
    /// Takes a packet's index once the packet is in the ring.
    pub doorbell_signal: hsa_signal_t,
    /// Packets in the ring: a power of 2.
    pub size: u32,
    /// Must be 0.
    pub reserved1: u32,
    /// The queue's number, never used again in this process, unlike its address.
    pub id: u64,
}

/// What AMD's runtime and the packet processor share about a queue (`amd_queue_t`, 256 bytes); a
/// `hsa_queue_t*` of a hardware queue points to one.
///
/// For emulations and debuggers: a program has no business in it.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct amd_queue_t {
    /// The part that the application sees.
    pub hsa_queue: hsa_queue_t,
    /// Must be 0.
    pub reserved1: [u32; 4],
    /// The index of the next packet to be written.
    pub write_dispatch_id: u64,
    /// Where group memory appears in the flat address space (upper 32 bits).
    pub group_segment_aperture_base_hi: u32,
    /// Where private memory appears in the flat address space (upper 32 bits).
    pub private_segment_aperture_base_hi: u32,
    /// The highest compute unit's number.
    pub max_cu_id: u32,
    /// The highest wavefront slot's number.
    pub max_wave_id: u32,
    /// For doorbells of GPUs before gfx9.
    pub max_legacy_doorbell_dispatch_id_plus_1: u64,
    /// For doorbells of GPUs before gfx9.
    pub legacy_doorbell_lock: u32,
    /// Must be 0.
    pub reserved2: [u32; 9],
    /// The index of the next packet to be read: how far the packet processor is.
    pub read_dispatch_id: u64,
    /// Offset of [`read_dispatch_id`](Self::read_dispatch_id) in this structure: from the address
    /// of that field one finds the structure.
    pub read_dispatch_id_field_base_byte_offset: u32,
    /// Scratch memory's ring.
    pub compute_tmpring_size: u32,
    /// Scratch memory's descriptor.
    pub scratch_resource_descriptor: [u32; 4],
    /// Scratch memory's address.
    pub scratch_backing_memory_location: u64,
    /// Scratch memory's size (bytes).
    pub scratch_backing_memory_byte_size: u64,
    /// Scratch memory of a lane (bytes).
    pub scratch_wave64_lane_byte_size: u32,
    /// What is switched on.
    pub queue_properties: amd_queue_properties32_t,
    /// Must be 0.
    pub reserved3: [u32; 2],
    /// Where the packet processor tells of an error.
    pub queue_inactive_signal: hsa_signal_t,
    /// Must be 0.
    pub reserved4: [u32; 14],
}
