//! Memory pools: where a profiler gets memory that the GPU writes counters to (`hsa_ext_amd.h`).

use crate::constants::constants;

constants! {
    /// What [`hsa_amd_memory_pool_get_info`](crate::functions::hsa_amd_memory_pool_get_info) is
    /// asked.
    value hsa_amd_memory_pool_info_t: u32 {
        /// The segment ([`hsa_amd_segment_t`]).
        HSA_AMD_MEMORY_POOL_INFO_SEGMENT = 0;
        /// Of a global pool: [`hsa_amd_memory_pool_global_flag_t`]'s bits (`u32`).
        HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS = 1;
        /// The size (`usize`, bytes).
        HSA_AMD_MEMORY_POOL_INFO_SIZE = 2;
        /// Whether memory can be allocated from it (`bool`).
        HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED = 5;
        /// Allocations are multiples of this (`usize`, bytes).
        HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE = 6;
        /// Allocations are aligned to this (`usize`, bytes).
        HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT = 7;
        /// Whether every agent can be given access (`bool`).
        HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL = 15;
        /// The most that all allocations together can have (`usize`, bytes).
        HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE = 16;
    }

    /// Where a pool is, as kernels see it.
    value hsa_amd_segment_t: u32 {
        /// Shared by all agents.
        HSA_AMD_SEGMENT_GLOBAL = 0;
        /// Constant while a kernel runs.
        HSA_AMD_SEGMENT_READONLY = 1;
        /// A work-item's own.
        HSA_AMD_SEGMENT_PRIVATE = 2;
        /// A work-group's own.
        HSA_AMD_SEGMENT_GROUP = 3;
    }

    /// Bits of the answer to [`HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS`].
    value hsa_amd_memory_pool_global_flag_t: u32 {
        /// For kernels' arguments.
        HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT = 1;
        /// Coherent with the host at every access.
        HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED = 2;
        /// One agent writes at a time; coherent at kernels' ends.
        HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED = 4;
    }

    /// What
    /// [`hsa_amd_agent_memory_pool_get_info`](crate::functions::hsa_amd_agent_memory_pool_get_info)
    /// is asked.
    value hsa_amd_agent_memory_pool_info_t: u32 {
        /// Whether the agent reaches the pool ([`hsa_amd_memory_pool_access_t`]).
        HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS = 0;
    }

    /// The answer to [`HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS`].
    value hsa_amd_memory_pool_access_t: u32 {
        /// Never.
        HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED = 0;
        /// Without asking.
        HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT = 1;
        /// After [`hsa_amd_agents_allow_access`](crate::functions::hsa_amd_agents_allow_access).
        HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT = 2;
    }
}
