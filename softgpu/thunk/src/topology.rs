//! The machine that the runtime finds: one CPU node, then the GPUs.
//!
//! Only what the runtime, or HIP above it, was seen to want. Many a zero here aborts it: it divides
//! by them, or asserts.

use crate::types::{
    HsaCacheProperties, HsaIoLinkProperties, HsaMemoryProperties, HsaNodeProperties,
};

/// Heap types of `hsakmttypes.h`.
const HEAP_SYSTEM: u32 = 0;
const HEAP_FRAME_BUFFER_PUBLIC: u32 = 1;
const HEAP_GPU_LDS: u32 = 4;

/// Bytes of a GPU's own memory; only reserved, so it costs nothing.
pub(crate) const LOCAL_MEMORY: u64 = 16 << 30;
/// Where local data share appears: its upper 32 bits must not be 0.
const LDS_BASE: u64 = 1 << 48;
/// gfx9.0.0, which both versions know.
const ENGINE_ID: u32 = 9 << 10;
/// `DoorbellType` 2 of `HSA_CAPABILITY`: 64-bit doorbells in memory.
const DOORBELL_64: u32 = 2 << 12;
/// A GPU's caches: one for data.
const CACHES: u32 = 1;

/// How the nodes are numbered: 0 is the CPU.
pub(crate) fn is_gpu(node: u32, gpus: u32) -> bool {
    (1..=gpus).contains(&node)
}

/// A node's properties; `None` if there is no such node.
pub(crate) fn node(node: u32, gpus: u32) -> Option<HsaNodeProperties> {
    // SAFETY: plain integers, of which zero is valid.
    let mut properties: HsaNodeProperties = unsafe { std::mem::zeroed() };
    properties.num_caches = CACHES;
    properties.num_memory_banks = banks(node, gpus)?.len() as u32;
    properties.num_io_links = links(node, gpus)?.len() as u32;
    properties.max_engine_clock_mhz_c_compute = 3_000;
    properties.vendor_id = 0x1002;
    properties.num_xcc = 1;
    if !is_gpu(node, gpus) {
        properties.num_cpu_cores =
            std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        return Some(properties);
    }
    properties.num_f_compute_cores = 256;
    properties.f_compute_id_lo = 0x8000_0000 + node;
    properties.capability = DOORBELL_64;
    properties.max_waves_per_simd = 10;
    properties.lds_size_in_kb = 64;
    properties.wave_front_size = 64;
    properties.num_shader_banks = 4;
    properties.num_arrays = 1;
    properties.num_cu_per_array = 16;
    properties.num_simd_per_cu = 4;
    properties.max_slots_scratch_cu = 32;
    properties.engine_id = ENGINE_ID;
    properties.device_id = 0x6860;
    properties.location_id = node << 8;
    properties.local_mem_size = LOCAL_MEMORY;
    properties.max_engine_clock_mhz_f_compute = 1_500;
    properties.drm_render_minor = 127 + node as i32;
    let mut marketing = [0; 64];
    let name = "Emulated GPU (softgpu)";
    for (to, from) in marketing.iter_mut().zip(name.encode_utf16()) {
        *to = from;
    }
    properties.marketing_name = marketing;
    let mut amd = [0; 64];
    amd[..7].copy_from_slice(b"softgpu");
    properties.amd_name = amd;
    properties.num_sdma_engines = 2;
    properties.num_sdma_queues_per_engine = 2;
    properties.num_cp_queues = 24;
    properties.unique_id = 0x50f7_0000 + u64::from(node);
    properties.vgpr_size_per_cu = 256 << 10;
    properties.sgpr_size_per_cu = 12_800;
    properties.kfd_gpu_id = 0x1000 + node;
    properties.family_id = 141;
    Some(properties)
}

/// A node's memory; `None` if there is no such node.
pub(crate) fn banks(node: u32, gpus: u32) -> Option<Vec<HsaMemoryProperties>> {
    let bank = |heap_type, size_in_bytes, virtual_base_address| HsaMemoryProperties {
        heap_type,
        size_in_bytes,
        flags: 0,
        width: 256,
        memory_clock_max: 1_000,
        virtual_base_address,
    };
    if node == 0 {
        return Some(vec![bank(HEAP_SYSTEM, 16 << 30, 0)]);
    }
    is_gpu(node, gpus).then(|| {
        vec![
            bank(HEAP_FRAME_BUFFER_PUBLIC, LOCAL_MEMORY, 0),
            bank(HEAP_GPU_LDS, 64 << 10, LDS_BASE),
        ]
    })
}

/// A node's caches; `None` if there is no such node.
pub(crate) fn caches(node: u32, gpus: u32) -> Option<Vec<HsaCacheProperties>> {
    (node == 0 || is_gpu(node, gpus)).then(|| {
        vec![HsaCacheProperties {
            processor_id_low: 0,
            cache_level: 1,
            cache_size: 32,
            cache_line_size: 64,
            cache_lines_per_tag: 1,
            cache_associativity: 8,
            cache_latency: 1,
            // Data, and whose it is.
            cache_type: if node == 0 { 0b0101 } else { 0b1001 },
            sibling_map: [0; 256],
        }]
    })
}

/// A node's links: every GPU's to the CPU (without it, copies that share a signal never complete),
/// and to the other GPUs. `None` if there is no such node.
pub(crate) fn links(node: u32, gpus: u32) -> Option<Vec<HsaIoLinkProperties>> {
    const PCI_EXPRESS: u32 = 2;
    if node != 0 && !is_gpu(node, gpus) {
        return None;
    }
    let link = |to: u32| HsaIoLinkProperties {
        io_link_type: PCI_EXPRESS,
        version_major: 0,
        version_minor: 0,
        node_from: node,
        node_to: to,
        weight: 20,
        minimum_latency: 0,
        maximum_latency: 0,
        minimum_bandwidth: 0,
        maximum_bandwidth: 0,
        rec_transfer_size: 0,
        flags: 0,
    };
    Some((0..=gpus).filter(|to| *to != node).map(link).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_abort_the_runtime_is_there() {
        assert!(node(3, 2).is_none() && banks(3, 2).is_none() && links(3, 2).is_none());
        let cpu = node(0, 2).unwrap();
        let cores = cpu.num_cpu_cores;
        assert!(cores > 0);
        let gpu = node(2, 2).unwrap();
        for needed in [
            gpu.num_simd_per_cu,
            gpu.num_shader_banks,
            gpu.wave_front_size,
            gpu.num_f_compute_cores,
            gpu.num_xcc,
        ] {
            assert!(needed > 0);
        }
        let base = banks(2, 2).unwrap()[1].virtual_base_address;
        assert!(base >> 32 != 0);
        let to: Vec<u32> = links(2, 2)
            .unwrap()
            .iter()
            .map(|link| link.node_to)
            .collect();
        assert_eq!(to, [0, 1]);
    }
}
