//! Signals: how they are made, and what AMD's runtime keeps behind a handle (`hsa.h`,
//! `hsa_ext_amd.h`, `amd_hsa_signal.h`).

use crate::constants::constants;
use crate::handle::{SignalCondition, hsa_signal_value_t};
use crate::queue::amd_queue_t;

constants! {
    /// How a wait or an asynchronous handler compares: the C form of [`SignalCondition`].
    value hsa_signal_condition_t: u32 {
        /// Equal to the given value.
        HSA_SIGNAL_CONDITION_EQ = 0;
        /// Not equal to it.
        HSA_SIGNAL_CONDITION_NE = 1;
        /// Less than it.
        HSA_SIGNAL_CONDITION_LT = 2;
        /// Greater than or equal to it.
        HSA_SIGNAL_CONDITION_GTE = 3;
    }

    /// What a wait does meanwhile.
    value hsa_wait_state_t: u32 {
        /// Sleeps; on a signal that has no kernel event, AMD's runtime polls all the same.
        HSA_WAIT_STATE_BLOCKED = 0;
        /// Spins.
        HSA_WAIT_STATE_ACTIVE = 1;
    }

    /// Bits of the attributes of [`hsa_amd_signal_create`](crate::functions::hsa_amd_signal_create),
    /// which are a `u64`.
    value hsa_amd_signal_attribute_t: u64 {
        /// GPUs alone wait for it: it takes no kernel event. The host may store, not wait.
        HSA_AMD_SIGNAL_AMD_GPU_ONLY = 1;
        /// May be shared with other processes.
        HSA_AMD_SIGNAL_IPC = 2;
    }

    /// What kind a signal is (`amd_signal_kind_t`).
    value amd_signal_kind64_t: i64 {
        /// Destroyed, or never made.
        AMD_SIGNAL_KIND_INVALID = 0;
        /// An ordinary one.
        AMD_SIGNAL_KIND_USER = 1;
        /// A queue's doorbell: a store goes to the hardware.
        AMD_SIGNAL_KIND_DOORBELL = -1;
        /// The doorbell of GPUs before gfx9.
        AMD_SIGNAL_KIND_LEGACY_DOORBELL = -2;
    }
}

impl From<SignalCondition> for hsa_signal_condition_t {
    fn from(condition: SignalCondition) -> Self {
        Self(condition as u32)
    }
}

/// What a signal's handle points to in AMD's runtime (`amd_signal_t`, 64 bytes).
///
/// For emulations and debuggers: a program has no business in it. Who writes it while packet
/// processors or other threads look has to do so by atomics through raw pointers.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct amd_signal_t {
    /// What kind it is; 0 once destroyed.
    pub kind: amd_signal_kind64_t,
    /// The value; of a doorbell, the address of the hardware's register.
    pub value: hsa_signal_value_t,
    /// Where the packet processor writes [`event_id`](Self::event_id) to wake a waiter; 0 if the
    /// signal has no event.
    pub event_mailbox_ptr: u64,
    /// The kernel's event.
    pub event_id: u32,
    /// Must be 0.
    pub reserved1: u32,
    /// When the packet that it belongs to started (GPU clock), if its queue profiles.
    pub start_ts: u64,
    /// When that packet ended (GPU clock).
    pub end_ts: u64,
    /// Of a doorbell: its queue.
    pub queue_ptr: *mut amd_queue_t,
    /// Must be 0.
    pub reserved3: [u32; 2],
}

/// When a dispatch ran, in ticks of the system clock. What
/// `hsa_amd_profiling_get_dispatch_time` answers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_amd_profiling_dispatch_time_t {
    /// The packet processor began.
    pub start: u64,
    /// The kernel had ended.
    pub end: u64,
}

/// When a copy ran, in ticks of the system clock. What `hsa_amd_profiling_get_async_copy_time`
/// answers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_amd_profiling_async_copy_time_t {
    /// The copy began.
    pub start: u64,
    /// The copy had ended.
    pub end: u64,
}
