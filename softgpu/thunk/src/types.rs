//! The thunk's structures, as `hsakmttypes.h` has them (packed to 4 bytes; the same in 5.2.3 and
//! 6.1.2, where the last reserved words of the node's properties have got names).

use std::ffi::c_void;

/// `HSAKMT_STATUS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Status {
    Success = 0,
    Error = 1,
    InvalidParameter = 3,
    InvalidHandle = 4,
    NoMemory = 6,
    NotSupported = 11,
    OutOfResources = 13,
    WaitTimeout = 31,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HsaVersionInfo {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HsaSystemProperties {
    pub(crate) num_nodes: u32,
    pub(crate) platform_oem: u32,
    pub(crate) platform_id: u32,
    pub(crate) platform_rev: u32,
}

#[repr(C, packed(4))]
#[derive(Clone, Copy)]
pub(crate) struct HsaNodeProperties {
    pub(crate) num_cpu_cores: u32,
    pub(crate) num_f_compute_cores: u32,
    pub(crate) num_memory_banks: u32,
    pub(crate) num_caches: u32,
    pub(crate) num_io_links: u32,
    pub(crate) c_compute_id_lo: u32,
    pub(crate) f_compute_id_lo: u32,
    pub(crate) capability: u32,
    pub(crate) max_waves_per_simd: u32,
    pub(crate) lds_size_in_kb: u32,
    pub(crate) gds_size_in_kb: u32,
    pub(crate) wave_front_size: u32,
    pub(crate) num_shader_banks: u32,
    pub(crate) num_arrays: u32,
    pub(crate) num_cu_per_array: u32,
    pub(crate) num_simd_per_cu: u32,
    pub(crate) max_slots_scratch_cu: u32,
    pub(crate) engine_id: u32,
    pub(crate) vendor_id: u16,
    pub(crate) device_id: u16,
    pub(crate) location_id: u32,
    pub(crate) local_mem_size: u64,
    pub(crate) max_engine_clock_mhz_f_compute: u32,
    pub(crate) max_engine_clock_mhz_c_compute: u32,
    pub(crate) drm_render_minor: i32,
    pub(crate) marketing_name: [u16; 64],
    pub(crate) amd_name: [u8; 64],
    pub(crate) u_code_engine_versions: u32,
    pub(crate) debug_properties: u64,
    pub(crate) hive_id: u64,
    pub(crate) num_sdma_engines: u32,
    pub(crate) num_sdma_xgmi_engines: u32,
    pub(crate) num_sdma_queues_per_engine: u8,
    pub(crate) num_cp_queues: u8,
    pub(crate) num_gws: u8,
    pub(crate) reserved2: u8,
    pub(crate) domain: u32,
    pub(crate) unique_id: u64,
    pub(crate) vgpr_size_per_cu: u32,
    pub(crate) sgpr_size_per_cu: u32,
    /// Reserved before 6.0.
    pub(crate) num_xcc: u32,
    /// Reserved before 6.0.
    pub(crate) kfd_gpu_id: u32,
    /// Reserved before 6.0.
    pub(crate) family_id: u32,
}

#[repr(C, packed(4))]
#[derive(Clone, Copy)]
pub(crate) struct HsaMemoryProperties {
    pub(crate) heap_type: u32,
    pub(crate) size_in_bytes: u64,
    pub(crate) flags: u32,
    pub(crate) width: u32,
    pub(crate) memory_clock_max: u32,
    pub(crate) virtual_base_address: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HsaCacheProperties {
    pub(crate) processor_id_low: u32,
    pub(crate) cache_level: u32,
    pub(crate) cache_size: u32,
    pub(crate) cache_line_size: u32,
    pub(crate) cache_lines_per_tag: u32,
    pub(crate) cache_associativity: u32,
    pub(crate) cache_latency: u32,
    pub(crate) cache_type: u32,
    pub(crate) sibling_map: [u32; 256],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HsaIoLinkProperties {
    pub(crate) io_link_type: u32,
    pub(crate) version_major: u32,
    pub(crate) version_minor: u32,
    pub(crate) node_from: u32,
    pub(crate) node_to: u32,
    pub(crate) weight: u32,
    pub(crate) minimum_latency: u32,
    pub(crate) maximum_latency: u32,
    pub(crate) minimum_bandwidth: u32,
    pub(crate) maximum_bandwidth: u32,
    pub(crate) rec_transfer_size: u32,
    pub(crate) flags: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HsaClockCounters {
    pub(crate) gpu: u64,
    pub(crate) cpu: u64,
    pub(crate) system: u64,
    pub(crate) system_frequency: u64,
}

#[repr(C, packed(4))]
#[derive(Clone, Copy)]
pub(crate) struct HsaEventDescriptor {
    pub(crate) event_type: u32,
    pub(crate) node_id: u32,
    pub(crate) sync_var: [u64; 2],
}

/// An event as its owner sees it. `HWData2` is the mailbox's address.
#[repr(C, packed(4))]
#[derive(Clone, Copy)]
pub(crate) struct HsaEvent {
    pub(crate) event_id: u32,
    pub(crate) event_type: u32,
    pub(crate) event_data: [u32; 5],
    pub(crate) hw_data1: u64,
    pub(crate) hw_data2: u64,
    pub(crate) hw_data3: u32,
}

#[repr(C, packed(4))]
#[derive(Clone, Copy)]
pub(crate) struct HsaQueueResource {
    pub(crate) queue_id: u64,
    pub(crate) doorbell: u64,
    pub(crate) write_ptr: u64,
    pub(crate) read_ptr: u64,
    pub(crate) error_reason: u64,
}

#[repr(C, packed(4))]
#[derive(Clone, Copy)]
pub(crate) struct HsaPointerInfo {
    pub(crate) kind: u32,
    pub(crate) node: u32,
    pub(crate) mem_flags: u32,
    pub(crate) cpu_address: u64,
    pub(crate) gpu_address: u64,
    pub(crate) size_in_bytes: u64,
    pub(crate) n_registered_nodes: u32,
    pub(crate) n_mapped_nodes: u32,
    pub(crate) registered_nodes: u64,
    pub(crate) mapped_nodes: u64,
    pub(crate) user_data: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HsaGpuTileConfig {
    pub(crate) tile_config: *mut u32,
    pub(crate) macro_tile_config: *mut u32,
    pub(crate) num_tile_configs: u32,
    pub(crate) num_macro_tile_configs: u32,
    pub(crate) gb_addr_config: u32,
    pub(crate) num_banks: u32,
    pub(crate) num_ranks: u32,
    pub(crate) reserved: [u32; 7],
}

/// `HSA_EVENTTYPE_SIGNAL`.
pub(crate) const EVENT_SIGNAL: u32 = 0;

/// `HSA_QUEUE_SDMA`, and its twin for links between GPUs.
pub(crate) const QUEUE_SDMA: u32 = 2;
pub(crate) const QUEUE_SDMA_XGMI: u32 = 5;
/// `HSA_QUEUE_COMPUTE_AQL`.
pub(crate) const QUEUE_AQL: u32 = 21;

/// Memory flags: `HSA_CAPABILITY` and `HsaMemFlags` are bit fields from the lowest bit up.
pub(crate) const MEM_SCRATCH: u32 = 1 << 9;
pub(crate) const MEM_FIXED_ADDRESS: u32 = 1 << 15;

/// Anything that the thunk's own tests and the ABI pass as an untyped address.
pub(crate) type Address = *mut c_void;

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn layouts_are_those_of_the_header() {
        // Read off a C program over Debian's `hsakmttypes.h`.
        assert_eq!(size_of::<HsaNodeProperties>(), 356);
        assert_eq!(offset_of!(HsaNodeProperties, local_mem_size), 80);
        assert_eq!(offset_of!(HsaNodeProperties, amd_name), 228);
        assert_eq!(size_of::<HsaMemoryProperties>(), 32);
        assert_eq!(size_of::<HsaCacheProperties>(), 1056);
        assert_eq!(size_of::<HsaIoLinkProperties>(), 48);
        assert_eq!(size_of::<HsaEvent>(), 48);
        assert_eq!(offset_of!(HsaEvent, hw_data2), 36);
        assert_eq!(size_of::<HsaEventDescriptor>(), 24);
        assert_eq!(size_of::<HsaQueueResource>(), 40);
        assert_eq!(size_of::<HsaPointerInfo>(), 68);
        assert_eq!(size_of::<HsaGpuTileConfig>(), 64);
    }
}
