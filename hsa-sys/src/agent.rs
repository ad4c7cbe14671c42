//! What can be asked of the system and of an agent (`hsa.h`, `hsa_ext_amd.h`; Runtime specification
//! 2.3).

use crate::constants::constants;

constants! {
    /// What [`hsa_system_get_info`](crate::functions::hsa_system_get_info) is asked.
    value hsa_system_info_t: u32 {
        /// The specification's major version (`u16`).
        HSA_SYSTEM_INFO_VERSION_MAJOR = 0;
        /// The specification's minor version (`u16`).
        HSA_SYSTEM_INFO_VERSION_MINOR = 1;
        /// The current time (`u64`, ticks of the system clock).
        HSA_SYSTEM_INFO_TIMESTAMP = 2;
        /// Ticks of the system clock in a second (`u64`).
        HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY = 3;
        /// The longest that a wait takes (`u64`, ticks of the system clock).
        HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT = 4;
        /// AMD: the runtime's build, as text (`*const c_char`).
        HSA_AMD_SYSTEM_INFO_BUILD_VERSION = 0x200;
    }

    /// What [`hsa_agent_get_info`](crate::functions::hsa_agent_get_info) is asked. AMD's own
    /// attributes (`hsa_amd_agent_info_t`) go through the same function and have the same type.
    value hsa_agent_info_t: u32 {
        /// The agent's name (64 bytes of text, padded with zeroes); of a GPU, its target: `gfx90a`.
        HSA_AGENT_INFO_NAME = 0;
        /// The vendor's name (64 bytes of text, padded with zeroes).
        HSA_AGENT_INFO_VENDOR_NAME = 1;
        /// What it can do ([`hsa_agent_feature_t`]'s bits, `u32`).
        HSA_AGENT_INFO_FEATURE = 2;
        /// Work-items in a wavefront (`u32`).
        HSA_AGENT_INFO_WAVEFRONT_SIZE = 6;
        /// How many queues can exist at once (`u32`).
        HSA_AGENT_INFO_QUEUES_MAX = 12;
        /// The smallest queue (`u32`, packets).
        HSA_AGENT_INFO_QUEUE_MIN_SIZE = 13;
        /// The largest queue (`u32`, packets).
        HSA_AGENT_INFO_QUEUE_MAX_SIZE = 14;
        /// The kind of queue that it makes ([`hsa_queue_type32_t`](crate::hsa_queue_type32_t)).
        HSA_AGENT_INFO_QUEUE_TYPE = 15;
        /// The NUMA node (`u32`).
        HSA_AGENT_INFO_NODE = 16;
        /// CPU, GPU or DSP ([`hsa_device_type_t`]).
        HSA_AGENT_INFO_DEVICE = 17;
        /// The PCI device (`u32`).
        HSA_AMD_AGENT_INFO_CHIP_ID = 0xa000;
        /// Bytes of a cache line (`u32`).
        HSA_AMD_AGENT_INFO_CACHELINE_SIZE = 0xa001;
        /// Compute units (`u32`).
        HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT = 0xa002;
        /// The highest clock (`u32`, MHz).
        HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY = 0xa003;
        /// The kernel driver's number of the node (`u32`): what KFD and this process's other GPU
        /// libraries call it.
        HSA_AMD_AGENT_INFO_DRIVER_NODE_ID = 0xa004;
        /// PCI bus, device and function (`u32`).
        HSA_AMD_AGENT_INFO_BDFID = 0xa006;
        /// The marketing name (64 bytes of text).
        HSA_AMD_AGENT_INFO_PRODUCT_NAME = 0xa009;
        /// Wavefronts that a compute unit holds (`u32`).
        HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU = 0xa00a;
        /// SIMD units of a compute unit (`u32`).
        HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU = 0xa00b;
        /// Shader engines (`u32`).
        HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES = 0xa00c;
        /// Shader arrays of a shader engine (`u32`).
        HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE = 0xa00d;
        /// The PCI domain (`u32`); completes the BDF.
        HSA_AMD_AGENT_INFO_DOMAIN = 0xa00f;
        /// Whether cooperative queues can be made (`bool`).
        HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES = 0xa010;
        /// The agent's UUID (at most 21 bytes of text with the final zero).
        HSA_AMD_AGENT_INFO_UUID = 0xa011;
    }

    /// Bits of the answer to [`HSA_AGENT_INFO_FEATURE`].
    value hsa_agent_feature_t: u32 {
        /// It executes kernels.
        HSA_AGENT_FEATURE_KERNEL_DISPATCH = 1;
        /// It executes agent dispatches (functions).
        HSA_AGENT_FEATURE_AGENT_DISPATCH = 2;
    }

    /// The answer to [`HSA_AGENT_INFO_DEVICE`].
    value hsa_device_type_t: u32 {
        /// The host.
        HSA_DEVICE_TYPE_CPU = 0;
        /// A GPU.
        HSA_DEVICE_TYPE_GPU = 1;
        /// A digital signal processor.
        HSA_DEVICE_TYPE_DSP = 2;
    }

    /// Extensions with a table of their own, for [`hsa_system_get_major_extension_table`], which
    /// takes it as `u16`.
    ///
    /// [`hsa_system_get_major_extension_table`]: crate::functions::hsa_system_get_major_extension_table
    value hsa_extension_t: u16 {
        /// Loaded code objects, and where a device address comes from.
        HSA_EXTENSION_AMD_LOADER = 0x201;
        /// Programming the hardware counters (libhsa-amd-aqlprofile64).
        HSA_EXTENSION_AMD_AQLPROFILE = 0x202;
    }
}
