//! Loaded code: how a profiler finds a kernel's name by its code object's address (`hsa.h`; Runtime
//! specification 2.8).

use crate::constants::constants;

constants! {
    /// What
    /// [`hsa_executable_symbol_get_info`](crate::functions::hsa_executable_symbol_get_info) is
    /// asked.
    value hsa_executable_symbol_info_t: u32 {
        /// A kernel or a variable ([`hsa_symbol_kind_t`]).
        HSA_EXECUTABLE_SYMBOL_INFO_TYPE = 0;
        /// Bytes of the name, without a final zero (`u32`).
        HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH = 1;
        /// The name (that many bytes, no final zero).
        HSA_EXECUTABLE_SYMBOL_INFO_NAME = 2;
        /// Bytes of the kernel's arguments (`u32`).
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE = 11;
        /// Bytes of group memory for a work-group (`u32`).
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE = 13;
        /// Bytes of private memory for a work-item (`u32`).
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE = 14;
        /// What a dispatch has in
        /// [`kernel_object`](crate::hsa_kernel_dispatch_packet_t::kernel_object) (`u64`).
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT = 22;
    }

    /// The answer to [`HSA_EXECUTABLE_SYMBOL_INFO_TYPE`].
    value hsa_symbol_kind_t: u32 {
        /// A variable.
        HSA_SYMBOL_KIND_VARIABLE = 0;
        /// A kernel.
        HSA_SYMBOL_KIND_KERNEL = 1;
    }
}
