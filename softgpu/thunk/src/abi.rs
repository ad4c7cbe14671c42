//! The thunk's functions, as `hsakmt.h` declares them: 42 that 5.2.3 is linked to and 16 more for
//! 6.1.2. Each checks what it is given and hands on; what each must do was found by trial.
//!
//! A panic here would end the process, as a fault in a C library does: none is meant to be possible.

use crate::clock;
use crate::device::{Device, device};
use crate::engine::NewQueue;
use crate::topology;
use crate::types::*;
use std::mem::zeroed;
use std::slice;

/// The interface's version. From 1.14 on the runtime waits with event ages.
const VERSION: HsaVersionInfo = HsaVersionInfo {
    major: 1,
    minor: 14,
};

/// `HSA_POINTER_ALLOCATED`.
const POINTER_ALLOCATED: u32 = 1;

fn with(act: impl FnOnce(&'static Device) -> Status) -> Status {
    device().map_or(Status::Error, act)
}

/// Writes through a pointer of the caller's, unless that is null.
///
/// # Safety
/// `to` is null or writable; it need not be aligned (the structures are packed).
unsafe fn give<T>(to: *mut T, value: T) -> Status {
    if to.is_null() {
        return Status::InvalidParameter;
    }
    // SAFETY: the caller's contract.
    unsafe { to.write_unaligned(value) };
    Status::Success
}

/// Copies as many of the values as the caller has room for.
///
/// # Safety
/// `to` is null or writable for `room` values.
unsafe fn give_all<T: Copy>(to: *mut T, room: u32, values: Option<Vec<T>>) -> Status {
    let Some(values) = values else {
        return Status::InvalidParameter;
    };
    if to.is_null() {
        return Status::InvalidParameter;
    }
    for (n, value) in values.into_iter().take(room as usize).enumerate() {
        // SAFETY: the caller's contract; `n` is below `room`.
        unsafe { to.add(n).write_unaligned(value) };
    }
    Status::Success
}

/// The version that the runtime is linked to; without it the loader warns on stderr.
macro_rules! versioned {
    ($name:ident) => {
        std::arch::global_asm!(concat!(
            ".symver ",
            stringify!($name),
            ",",
            stringify!($name),
            "@@HSAKMT_1"
        ));
    };
}

macro_rules! exports {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The pointers are as `hsakmt.h` says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($arg: $type),*) -> Status $body
        versioned!($name);
    )*};
}

/// Functions that succeed and do nothing, or say that there is no such thing. Their arguments are
/// left where the caller put them.
macro_rules! fixed {
    ($status:ident: $($name:ident)*) => {$(
        #[doc = concat!("Answers `", stringify!($status), "`.")]
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name() -> Status {
            Status::$status
        }
        versioned!($name);
    )*};
}

fixed! { Success:
    hsaKmtReleaseSystemProperties
    hsaKmtRuntimeDisable
    hsaKmtSetTrapHandler
    hsaKmtSetQueueCUMask
    hsaKmtRegisterMemoryWithFlags
    hsaKmtDeregisterMemory
    hsaKmtUnmapMemoryToGPU
    hsaKmtSetMemoryPolicy
}

fixed! { NotSupported:
    // With SUCCESS, queues tell of errors in another way.
    hsaKmtRuntimeEnable
    hsaKmtAllocQueueGWS
    hsaKmtSetXNACKMode
    hsaKmtSVMGetAttr
    hsaKmtSVMSetAttr
    hsaKmtShareMemory
    hsaKmtRegisterSharedHandle
    hsaKmtRegisterSharedHandleToNodes
    hsaKmtRegisterGraphicsHandleToNodes
    hsaKmtDbgDisable
    hsaKmtDbgEnable
    hsaKmtDbgGetDeviceData
    hsaKmtDbgGetQueueData
    hsaKmtExportDMABufHandle
    hsaKmtOpenSMI
    hsaKmtReplaceAsanHeaderPage
    hsaKmtReturnAsanHeaderPage
    hsaKmtSPMAcquire
    hsaKmtSPMRelease
    hsaKmtSPMSetDestBuffer
}

exports! {
    /// The driver is opened, and the environment read the first time.
    fn hsaKmtOpenKFD() {
        match device() {
            Ok(device) => {
                device.open();
                Status::Success
            }
            Err(error) => {
                eprintln!("softgpu: {error}");
                Status::Error
            }
        }
    }

    /// The driver is closed: the last time, all queues go.
    fn hsaKmtCloseKFD() {
        with(|device| if device.close() { Status::Success } else { Status::Error })
    }

    /// The interface's version.
    fn hsaKmtGetVersion(version: *mut HsaVersionInfo) {
        // SAFETY: the caller's contract.
        unsafe { give(version, VERSION) }
    }

    /// How many nodes there are.
    fn hsaKmtAcquireSystemProperties(properties: *mut HsaSystemProperties) {
        with(|device| {
            let found = HsaSystemProperties {
                num_nodes: 1 + device.settings.gpus,
                platform_oem: 0,
                platform_id: 0,
                platform_rev: 0,
            };
            // SAFETY: the caller's contract.
            unsafe { give(properties, found) }
        })
    }

    /// What a node is.
    fn hsaKmtGetNodeProperties(node: u32, properties: *mut HsaNodeProperties) {
        with(|device| match topology::node(node, device.settings.gpus) {
            // SAFETY: the caller's contract.
            Some(found) => unsafe { give(properties, found) },
            None => Status::InvalidParameter,
        })
    }

    /// A node's memory.
    fn hsaKmtGetNodeMemoryProperties(node: u32, room: u32, to: *mut HsaMemoryProperties) {
        // SAFETY: the caller's contract.
        with(|device| unsafe { give_all(to, room, topology::banks(node, device.settings.gpus)) })
    }

    /// A node's caches.
    fn hsaKmtGetNodeCacheProperties(node: u32, _processor: u32, room: u32, to: *mut HsaCacheProperties) {
        // SAFETY: the caller's contract.
        with(|device| unsafe { give_all(to, room, topology::caches(node, device.settings.gpus)) })
    }

    /// A node's links.
    fn hsaKmtGetNodeIoLinkProperties(node: u32, room: u32, to: *mut HsaIoLinkProperties) {
        // SAFETY: the caller's contract.
        with(|device| unsafe { give_all(to, room, topology::links(node, device.settings.gpus)) })
    }

    /// Page faults are not replayed.
    fn hsaKmtGetXNACKMode(enabled: *mut i32) {
        // SAFETY: the caller's contract.
        unsafe { give(enabled, 0) }
    }

    /// The clocks, all now.
    fn hsaKmtGetClockCounters(_node: u32, counters: *mut HsaClockCounters) {
        let found = HsaClockCounters {
            gpu: clock::gpu_ticks(clock::now()),
            cpu: clock::monotonic(),
            system: clock::boot_time(),
            system_frequency: 1_000_000_000,
        };
        // SAFETY: the caller's contract.
        unsafe { give(counters, found) }
    }

    /// The image extension wants it; no tiles.
    fn hsaKmtGetTileConfig(_node: u32, config: *mut HsaGpuTileConfig) {
        if config.is_null() {
            return Status::InvalidParameter;
        }
        // SAFETY: the caller's contract: the arrays are as long as it says.
        unsafe {
            let found = &mut *config;
            if !found.tile_config.is_null() {
                found.tile_config.write_bytes(0, found.num_tile_configs as usize);
            }
            if !found.macro_tile_config.is_null() {
                found.macro_tile_config.write_bytes(0, found.num_macro_tile_configs as usize);
            }
            found.gb_addr_config = 0;
            found.num_banks = 0;
            found.num_ranks = 0;
        }
        Status::Success
    }

    /// Zeroed pages, on any node.
    fn hsaKmtAllocMemory(node: u32, size: u64, flags: u32, address: *mut Address) {
        if address.is_null() {
            return Status::InvalidParameter;
        }
        with(|device| {
            // Scratch memory is asked for while an agent is made, where a failure is an abort.
            if flags & MEM_SCRATCH == 0 && device.faults.fails_memory() {
                return Status::NoMemory;
            }
            let at = if flags & MEM_FIXED_ADDRESS == 0 {
                0
            } else {
                // SAFETY: the caller's contract: with this flag it says where.
                unsafe { address.read_unaligned() as usize }
            };
            match device.memory.allocate(size, node, flags, at) {
                // SAFETY: the caller's contract.
                Some(start) => unsafe { give(address, start as Address) },
                None => Status::NoMemory,
            }
        })
    }

    /// Gives pages back.
    fn hsaKmtFreeMemory(address: Address, _size: u64) {
        with(|device| {
            if device.memory.free(address as usize) {
                Status::Success
            } else {
                Status::InvalidParameter
            }
        })
    }

    /// The GPU's address is the host's.
    fn hsaKmtMapMemoryToGPU(address: Address, _size: u64, alternate: *mut u64) {
        if !alternate.is_null() {
            // SAFETY: the caller's contract.
            unsafe { alternate.write_unaligned(address as u64) };
        }
        Status::Success
    }

    /// The same, for some GPUs.
    fn hsaKmtMapMemoryToGPUNodes(address: Address, size: u64, alternate: *mut u64, _flags: u32, _count: u64, _nodes: *const u32) {
        // SAFETY: the caller's contract.
        unsafe { hsaKmtMapMemoryToGPU(address, size, alternate) }
    }

    /// What is known of an address; where nothing is, a zeroed structure besides the error.
    fn hsaKmtQueryPointerInfo(address: Address, info: *mut HsaPointerInfo) {
        with(|device| {
            let region = device.memory.hold().find(address as usize);
            // SAFETY: plain integers, of which zero is valid.
            let mut found: HsaPointerInfo = unsafe { zeroed() };
            if let Some(region) = region {
                found.kind = POINTER_ALLOCATED;
                found.node = region.node;
                found.mem_flags = region.flags;
                found.cpu_address = region.start as u64;
                found.gpu_address = region.start as u64;
                found.size_in_bytes = region.size as u64;
                found.user_data = region.user_data as u64;
            }
            // SAFETY: the caller's contract.
            let given = unsafe { give(info, found) };
            if region.is_some() { given } else { Status::Error }
        })
    }

    /// A word of the runtime's, for `hsaKmtQueryPointerInfo`.
    fn hsaKmtSetMemoryUserData(address: Address, user_data: Address) {
        with(|device| {
            if device.memory.set_user_data(address as usize, user_data as usize) {
                Status::Success
            } else {
                Status::InvalidParameter
            }
        })
    }

    /// A new event.
    fn hsaKmtCreateEvent(what: *const HsaEventDescriptor, manual: bool, set: bool, event: *mut *mut HsaEvent) {
        if what.is_null() || event.is_null() {
            return Status::InvalidParameter;
        }
        with(|device| {
            if device.faults.fails_event() {
                return Status::OutOfResources;
            }
            // SAFETY: the caller's contract.
            let kind = unsafe { what.read_unaligned() }.event_type;
            match device.events.create(kind, manual, set) {
                // SAFETY: the caller's contract.
                Some(made) => unsafe { give(event, made) },
                None => Status::OutOfResources,
            }
        })
    }

    /// An event goes.
    fn hsaKmtDestroyEvent(event: *mut HsaEvent) {
        with(|device| {
            if device.events.destroy(event) {
                Status::Success
            } else {
                Status::InvalidHandle
            }
        })
    }

    /// The host sets an event.
    fn hsaKmtSetEvent(event: *mut HsaEvent) {
        with(|device| {
            if device.events.set(event) {
                Status::Success
            } else {
                Status::InvalidHandle
            }
        })
    }

    /// Waits for an event.
    fn hsaKmtWaitOnEvent(event: *mut HsaEvent, milliseconds: u32) {
        with(|device| device.events.wait(&[event], false, milliseconds, None))
    }

    /// Waits for an event of which it has seen this age.
    fn hsaKmtWaitOnEvent_Ext(event: *mut HsaEvent, milliseconds: u32, age: *mut u64) {
        // SAFETY: the caller's contract.
        unsafe { wait(&[event], false, milliseconds, age) }
    }

    /// Waits for any or all of some events.
    fn hsaKmtWaitOnMultipleEvents(events: *const *mut HsaEvent, count: u32, all: bool, milliseconds: u32) {
        // SAFETY: the caller's contract.
        unsafe { hsaKmtWaitOnMultipleEvents_Ext(events, count, all, milliseconds, std::ptr::null_mut()) }
    }

    /// The same, with the ages that it has seen.
    fn hsaKmtWaitOnMultipleEvents_Ext(events: *const *mut HsaEvent, count: u32, all: bool, milliseconds: u32, ages: *mut u64) {
        if events.is_null() {
            return Status::InvalidHandle;
        }
        // SAFETY: the caller's contract.
        unsafe { wait(slice::from_raw_parts(events, count as usize), all, milliseconds, ages) }
    }

    /// A queue of AQL packets, or a copy engine's.
    fn hsaKmtCreateQueue(node: u32, kind: u32, _percentage: u32, _priority: i32, ring: Address, bytes: u64, _event: *mut HsaEvent, resource: *mut HsaQueueResource) {
        if resource.is_null() {
            return Status::InvalidParameter;
        }
        with(|device| {
            if !topology::is_gpu(node, device.settings.gpus) {
                return Status::InvalidParameter;
            }
            // SAFETY: the caller's contract.
            let mut given = unsafe { resource.read_unaligned() };
            let mut queue = NewQueue {
                node,
                kind,
                ring: ring as usize,
                ring_bytes: bytes,
                read_ptr: given.read_ptr,
                write_ptr: given.write_ptr,
                id: 0,
                doorbell: 0,
            };
            let status = device.engine.create(device, &mut queue);
            if status != Status::Success {
                return status;
            }
            given.queue_id = queue.id;
            given.doorbell = queue.doorbell;
            given.read_ptr = queue.read_ptr;
            given.write_ptr = queue.write_ptr;
            // SAFETY: the caller's contract.
            unsafe { give(resource, given) }
        })
    }

    /// A queue's share of the GPU: none after an error.
    fn hsaKmtUpdateQueue(queue: u64, percentage: u32, _priority: i32, _ring: Address, _bytes: u64, _event: *mut HsaEvent) {
        with(|device| {
            let known = if percentage == 0 {
                device.engine.stop(device, queue)
            } else {
                device.engine.knows(queue)
            };
            if known { Status::Success } else { Status::InvalidHandle }
        })
    }

    /// A queue goes: when this returns, its memory is not touched any more.
    fn hsaKmtDestroyQueue(queue: u64) {
        with(|device| {
            if device.engine.destroy(device, queue) {
                Status::Success
            } else {
                Status::InvalidHandle
            }
        })
    }

    /// How much memory a GPU has left: all of it, always.
    fn hsaKmtAvailableMemory(_node: u32, bytes: *mut u64) {
        // SAFETY: the caller's contract.
        unsafe { give(bytes, topology::LOCAL_MEMORY) }
    }

    /// A handle for the display driver's library, which copies a description of the GPU from it.
    fn hsaKmtGetAMDGPUDeviceHandle(_node: u32, handle: *mut Address) {
        // Large enough for what it reads (416 bytes at 552), and of values that it can divide by.
        static DESCRIPTION: [u32; 4_096] = [100_000; 4_096];
        // SAFETY: the caller's contract.
        unsafe { give(handle, DESCRIPTION.as_ptr() as Address) }
    }

    /// No capabilities beside the plain ones.
    fn hsaKmtGetRuntimeCapabilities(mask: *mut u32) {
        // SAFETY: the caller's contract.
        unsafe { give(mask, 0) }
    }
}

/// # Safety
/// `ages` is null or has an age for each event.
unsafe fn wait(events: &[*mut HsaEvent], all: bool, milliseconds: u32, ages: *mut u64) -> Status {
    with(|device| {
        let ages = (!ages.is_null())
            // SAFETY: the caller's contract.
            .then(|| unsafe { slice::from_raw_parts_mut(ages, events.len()) });
        device.events.wait(events, all, milliseconds, ages)
    })
}
