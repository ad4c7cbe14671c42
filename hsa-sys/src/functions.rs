//! The runtime's functions: one list, from which everything else is made.
//!
//! Each function has here a type of its own, of the same name and without a value: it says what the
//! function's pointer looks like and where it is in the runtime's tables. [`Tables`](crate::Tables)
//! is asked by it:
//!
//! ```no_run
//! use hsa_sys::{Tables, functions, hsa_queue_destroy_fn};
//! # fn f(tables: Tables) -> Result<(), hsa_sys::TableError> {
//! let destroy: hsa_queue_destroy_fn = tables.get(functions::hsa_queue_destroy)?;
//! # Ok(()) }
//! ```
//!
//! What a function does in full is in the *HSA Runtime Programmer's Reference Manual* 1.2 (`hsa_`)
//! and in `hsa_ext_amd.h` (`hsa_amd_`); here is what a profiler has to know.

use crate::api;

mod sealed {
    pub trait Sealed {}
}

/// A function of the runtime's tables.
pub trait Function: sealed::Sealed + Copy {
    /// Its pointer: as large as a data pointer, and never null.
    type Pointer: Copy;
    /// Its name, which is also the library's symbol where it is exported.
    const NAME: &'static str;
    /// Where its pointer is.
    const PLACE: Place;
}

/// Where a function's pointer is: the table, and which slot of it, counted from the first pointer
/// behind the table's 16-byte version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the core table, which has kept its order from 5.0 to 6.2.
    Core(usize),
    /// In the table of AMD's extension, as ordered up to ROCr 5.5:
    /// [`AmdExtOrder`](crate::AmdExtOrder) says where later ones have it.
    AmdExt(usize),
}

/// What is known of a function without its type: for tests and listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// Its name.
    pub name: &'static str,
    /// Where its pointer is.
    pub place: Place,
    /// Whether the library has a symbol of that name. Those without are for tools alone.
    pub exported: bool,
    /// The types of its parameters, as Rust writes them (with any number of blanks).
    pub parameters: &'static [&'static str],
    /// The type of its value, as Rust writes it; `()` for none.
    pub returns: &'static str,
}

/// Hands the list to another macro.
///
/// `exported` functions are in the tables and are symbols of the library; those `for_tools` are in
/// the tables alone.
macro_rules! functions { ($then:ident) => { $then! {
    exported {
        /// Starts the runtime, or counts one user more.
        Core 0 hsa_init, hsa_init_fn: () -> hsa_status_t;
        /// Counts one user less; the last one stops the runtime, and none of the other
        /// functions may be called any more.
        Core 1 hsa_shut_down, hsa_shut_down_fn: () -> hsa_status_t;
        /// Answers what is asked about the system.
        Core 2 hsa_system_get_info, hsa_system_get_info_fn:
            (attribute: hsa_system_info_t, value: *mut c_void) -> hsa_status_t;
        /// Calls back for each agent, until one call answers otherwise than success.
        Core 5 hsa_iterate_agents, hsa_iterate_agents_fn:
            (callback: hsa_iterate_agents_callback_t, data: *mut c_void) -> hsa_status_t;
        /// Answers what is asked about an agent.
        Core 6 hsa_agent_get_info, hsa_agent_get_info_fn:
            (
                agent: hsa_agent_t, attribute: hsa_agent_info_t, value: *mut c_void,
            ) -> hsa_status_t;
        /// Makes a queue. What a tool replaces, to make an intercept queue in its stead.
        Core 7 hsa_queue_create, hsa_queue_create_fn:
            (
                agent: hsa_agent_t, size: u32, kind: hsa_queue_type32_t,
                callback: Option<hsa_queue_error_callback_t>, data: *mut c_void,
                private_segment_size: u32, group_segment_size: u32,
                queue: *mut *mut hsa_queue_t,
            ) -> hsa_status_t;
        /// Destroys a queue. Its packets that have not executed are dropped.
        Core 9 hsa_queue_destroy, hsa_queue_destroy_fn:
            (queue: *mut hsa_queue_t) -> hsa_status_t;
        /// Stops a queue. Its packets that have not executed are dropped.
        Core 10 hsa_queue_inactivate, hsa_queue_inactivate_fn:
            (queue: *mut hsa_queue_t) -> hsa_status_t;
        /// Loads a queue's read index, with acquire semantics.
        Core 11 hsa_queue_load_read_index_scacquire, hsa_queue_load_read_index_scacquire_fn:
            (queue: *const hsa_queue_t) -> u64;
        /// Loads a queue's read index, with no ordering.
        Core 12 hsa_queue_load_read_index_relaxed, hsa_queue_load_read_index_relaxed_fn:
            (queue: *const hsa_queue_t) -> u64;
        /// Loads a queue's write index, with acquire semantics.
        Core 13 hsa_queue_load_write_index_scacquire, hsa_queue_load_write_index_scacquire_fn:
            (queue: *const hsa_queue_t) -> u64;
        /// Loads a queue's write index, with no ordering.
        Core 14 hsa_queue_load_write_index_relaxed, hsa_queue_load_write_index_relaxed_fn:
            (queue: *const hsa_queue_t) -> u64;
        /// Stores a queue's write index, with no ordering.
        Core 15 hsa_queue_store_write_index_relaxed, hsa_queue_store_write_index_relaxed_fn:
            (queue: *const hsa_queue_t, value: u64);
        /// Stores a queue's write index, with release semantics.
        Core 16 hsa_queue_store_write_index_screlease, hsa_queue_store_write_index_screlease_fn:
            (queue: *const hsa_queue_t, value: u64);
        /// Replaces a queue's write index where it is as expected, with acquire and release
        /// semantics; returns what it was.
        Core 17 hsa_queue_cas_write_index_scacq_screl, hsa_queue_cas_write_index_scacq_screl_fn:
            (queue: *const hsa_queue_t, expected: u64, value: u64) -> u64;
        /// Replaces a queue's write index where it is as expected, with acquire semantics;
        /// returns what it was.
        Core 18 hsa_queue_cas_write_index_scacquire, hsa_queue_cas_write_index_scacquire_fn:
            (queue: *const hsa_queue_t, expected: u64, value: u64) -> u64;
        /// Replaces a queue's write index where it is as expected, with no ordering;
        /// returns what it was.
        Core 19 hsa_queue_cas_write_index_relaxed, hsa_queue_cas_write_index_relaxed_fn:
            (queue: *const hsa_queue_t, expected: u64, value: u64) -> u64;
        /// Replaces a queue's write index where it is as expected, with release semantics;
        /// returns what it was.
        Core 20 hsa_queue_cas_write_index_screlease, hsa_queue_cas_write_index_screlease_fn:
            (queue: *const hsa_queue_t, expected: u64, value: u64) -> u64;
        /// Adds to a queue's write index, with acquire and release semantics; returns what
        /// it was: the first of the slots taken.
        Core 21 hsa_queue_add_write_index_scacq_screl, hsa_queue_add_write_index_scacq_screl_fn:
            (queue: *const hsa_queue_t, value: u64) -> u64;
        /// Adds to a queue's write index, with acquire semantics; returns what it was: the
        /// first of the slots taken.
        Core 22 hsa_queue_add_write_index_scacquire, hsa_queue_add_write_index_scacquire_fn:
            (queue: *const hsa_queue_t, value: u64) -> u64;
        /// Adds to a queue's write index, with no ordering; returns what it was: the first
        /// of the slots taken.
        Core 23 hsa_queue_add_write_index_relaxed, hsa_queue_add_write_index_relaxed_fn:
            (queue: *const hsa_queue_t, value: u64) -> u64;
        /// Adds to a queue's write index, with release semantics; returns what it was: the
        /// first of the slots taken.
        Core 24 hsa_queue_add_write_index_screlease, hsa_queue_add_write_index_screlease_fn:
            (queue: *const hsa_queue_t, value: u64) -> u64;
        /// Stores the read index of a queue whose packets the host processes, with no
        /// ordering.
        Core 25 hsa_queue_store_read_index_relaxed, hsa_queue_store_read_index_relaxed_fn:
            (queue: *const hsa_queue_t, value: u64);
        /// Stores the read index of a queue whose packets the host processes, with release
        /// semantics.
        Core 26 hsa_queue_store_read_index_screlease, hsa_queue_store_read_index_screlease_fn:
            (queue: *const hsa_queue_t, value: u64);
        /// Copies memory, and returns when it is done.
        Core 35 hsa_memory_copy, hsa_memory_copy_fn:
            (dst: *mut c_void, src: *const c_void, size: usize) -> hsa_status_t;
        /// Makes a signal. With no consumers named, everybody may wait for it: it takes one
        /// of the kernel's events. With GPUs alone named, it takes none.
        Core 37 hsa_signal_create, hsa_signal_create_fn:
            (
                initial: hsa_signal_value_t, num_consumers: u32,
                consumers: *const hsa_agent_t, signal: *mut hsa_signal_t,
            ) -> hsa_status_t;
        /// Destroys a signal. Its handle is the next one to be given out again.
        Core 38 hsa_signal_destroy, hsa_signal_destroy_fn:
            (signal: hsa_signal_t) -> hsa_status_t;
        /// Loads a signal's value, with no ordering.
        Core 39 hsa_signal_load_relaxed, hsa_signal_load_relaxed_fn:
            (signal: hsa_signal_t) -> hsa_signal_value_t;
        /// Loads a signal's value, with acquire semantics.
        Core 40 hsa_signal_load_scacquire, hsa_signal_load_scacquire_fn:
            (signal: hsa_signal_t) -> hsa_signal_value_t;
        /// Stores a signal's value, with no ordering.
        Core 41 hsa_signal_store_relaxed, hsa_signal_store_relaxed_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t);
        /// Stores a signal's value, with release semantics.
        Core 42 hsa_signal_store_screlease, hsa_signal_store_screlease_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t);
        /// Waits until the condition holds or about `timeout` ticks of the system clock
        /// have gone, with no ordering; returns the value last seen. 0 may also mean that
        /// the signal was destroyed meanwhile.
        Core 43 hsa_signal_wait_relaxed, hsa_signal_wait_relaxed_fn:
            (
                signal: hsa_signal_t, condition: hsa_signal_condition_t,
                compare: hsa_signal_value_t, timeout: u64, state: hsa_wait_state_t,
            ) -> hsa_signal_value_t;
        /// Waits until the condition holds or about `timeout` ticks of the system clock
        /// have gone, with acquire semantics; returns the value last seen. 0 may also mean
        /// that the signal was destroyed meanwhile.
        Core 44 hsa_signal_wait_scacquire, hsa_signal_wait_scacquire_fn:
            (
                signal: hsa_signal_t, condition: hsa_signal_condition_t,
                compare: hsa_signal_value_t, timeout: u64, state: hsa_wait_state_t,
            ) -> hsa_signal_value_t;
        /// Replaces a signal's value, with no ordering; returns what it was.
        Core 57 hsa_signal_exchange_relaxed, hsa_signal_exchange_relaxed_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t) -> hsa_signal_value_t;
        /// Replaces a signal's value, with acquire semantics; returns what it was.
        Core 58 hsa_signal_exchange_scacquire, hsa_signal_exchange_scacquire_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t) -> hsa_signal_value_t;
        /// Replaces a signal's value, with release semantics; returns what it was.
        Core 59 hsa_signal_exchange_screlease, hsa_signal_exchange_screlease_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t) -> hsa_signal_value_t;
        /// Replaces a signal's value, with acquire and release semantics; returns what it
        /// was.
        Core 60 hsa_signal_exchange_scacq_screl, hsa_signal_exchange_scacq_screl_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t) -> hsa_signal_value_t;
        /// Adds to a signal's value, with no ordering.
        Core 61 hsa_signal_add_relaxed, hsa_signal_add_relaxed_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t);
        /// Adds to a signal's value, with acquire semantics.
        Core 62 hsa_signal_add_scacquire, hsa_signal_add_scacquire_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t);
        /// Adds to a signal's value, with release semantics.
        Core 63 hsa_signal_add_screlease, hsa_signal_add_screlease_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t);
        /// Adds to a signal's value, with acquire and release semantics.
        Core 64 hsa_signal_add_scacq_screl, hsa_signal_add_scacq_screl_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t);
        /// Subtracts from a signal's value, with no ordering: what a packet processor does
        /// at a completion.
        Core 65 hsa_signal_subtract_relaxed, hsa_signal_subtract_relaxed_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t);
        /// Subtracts from a signal's value, with acquire semantics: what a packet processor
        /// does at a completion.
        Core 66 hsa_signal_subtract_scacquire, hsa_signal_subtract_scacquire_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t);
        /// Subtracts from a signal's value, with release semantics: what a packet processor
        /// does at a completion.
        Core 67 hsa_signal_subtract_screlease, hsa_signal_subtract_screlease_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t);
        /// Subtracts from a signal's value, with acquire and release semantics: what a
        /// packet processor does at a completion.
        Core 68 hsa_signal_subtract_scacq_screl, hsa_signal_subtract_scacq_screl_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t);
        /// Replaces a signal's value where it is as expected, with no ordering; returns
        /// what it was.
        Core 69 hsa_signal_cas_relaxed, hsa_signal_cas_relaxed_fn:
            (
                signal: hsa_signal_t, expected: hsa_signal_value_t,
                value: hsa_signal_value_t,
            ) -> hsa_signal_value_t;
        /// Replaces a signal's value where it is as expected, with acquire semantics;
        /// returns what it was.
        Core 70 hsa_signal_cas_scacquire, hsa_signal_cas_scacquire_fn:
            (
                signal: hsa_signal_t, expected: hsa_signal_value_t,
                value: hsa_signal_value_t,
            ) -> hsa_signal_value_t;
        /// Replaces a signal's value where it is as expected, with release semantics;
        /// returns what it was.
        Core 71 hsa_signal_cas_screlease, hsa_signal_cas_screlease_fn:
            (
                signal: hsa_signal_t, expected: hsa_signal_value_t,
                value: hsa_signal_value_t,
            ) -> hsa_signal_value_t;
        /// Replaces a signal's value where it is as expected, with acquire and release
        /// semantics; returns what it was.
        Core 72 hsa_signal_cas_scacq_screl, hsa_signal_cas_scacq_screl_fn:
            (
                signal: hsa_signal_t, expected: hsa_signal_value_t,
                value: hsa_signal_value_t,
            ) -> hsa_signal_value_t;
        /// Unloads code. A profiler forgets its kernels' names.
        Core 84 hsa_executable_destroy, hsa_executable_destroy_fn:
            (executable: hsa_executable_t) -> hsa_status_t;
        /// Ends the loading of code. A profiler learns its kernels' names afterwards.
        Core 86 hsa_executable_freeze, hsa_executable_freeze_fn:
            (executable: hsa_executable_t, options: *const c_char) -> hsa_status_t;
        /// Answers what is asked about a kernel or a variable.
        Core 93 hsa_executable_symbol_get_info, hsa_executable_symbol_get_info_fn:
            (
                symbol: hsa_executable_symbol_t, attribute: hsa_executable_symbol_info_t,
                value: *mut c_void,
            ) -> hsa_status_t;
        /// A status as text, which nobody frees.
        Core 95 hsa_status_string, hsa_status_string_fn:
            (status: hsa_status_t, string: *mut *const c_char) -> hsa_status_t;
        /// Copies the table of an extension: aqlprofile's, which programs the counters.
        Core 98 hsa_system_get_major_extension_table, hsa_system_get_major_extension_table_fn:
            (
                extension: u16, version_major: u16, table_length: usize, table: *mut c_void,
            ) -> hsa_status_t;
        /// Stores a signal's value and wakes nobody, with no ordering.
        Core 102 hsa_signal_silent_store_relaxed, hsa_signal_silent_store_relaxed_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t);
        /// Stores a signal's value and wakes nobody, with release semantics.
        Core 103 hsa_signal_silent_store_screlease, hsa_signal_silent_store_screlease_fn:
            (signal: hsa_signal_t, value: hsa_signal_value_t);
        /// Calls back for each kernel and variable that loaded code has for an agent.
        Core 123 hsa_executable_iterate_agent_symbols, hsa_executable_iterate_agent_symbols_fn:
            (
                executable: hsa_executable_t, agent: hsa_agent_t,
                callback: hsa_executable_iterate_agent_symbols_callback_t,
                data: *mut c_void,
            ) -> hsa_status_t;
        /// Whether a queue's dispatches write their times to their completion signals.
        AmdExt 2 hsa_amd_profiling_set_profiler_enabled, hsa_amd_profiling_set_profiler_enabled_fn:
            (queue: *mut hsa_queue_t, enable: c_int) -> hsa_status_t;
        /// Whether copies write their times to their completion signals, on every agent.
        AmdExt 3 hsa_amd_profiling_async_copy_enable, hsa_amd_profiling_async_copy_enable_fn:
            (enable: bool) -> hsa_status_t;
        /// When a dispatch ran, by its completion signal.
        AmdExt 4 hsa_amd_profiling_get_dispatch_time, hsa_amd_profiling_get_dispatch_time_fn:
            (
                agent: hsa_agent_t, signal: hsa_signal_t,
                time: *mut hsa_amd_profiling_dispatch_time_t,
            ) -> hsa_status_t;
        /// When a copy ran, by its completion signal.
        AmdExt 5 hsa_amd_profiling_get_async_copy_time, hsa_amd_profiling_get_async_copy_time_fn:
            (
                signal: hsa_signal_t, time: *mut hsa_amd_profiling_async_copy_time_t,
            ) -> hsa_status_t;
        /// A time of the GPU's clock, in ticks of the system clock.
        AmdExt 6 hsa_amd_profiling_convert_tick_to_system_domain, hsa_amd_profiling_convert_tick_to_system_domain_fn:
            (agent: hsa_agent_t, agent_tick: u64, system_tick: *mut u64) -> hsa_status_t;
        /// Has a function called, on the runtime's own thread, once the condition holds,
        /// and again while it holds and the function returned true. A signal without an
        /// event (GPU-only) is refused:
        /// [`ERROR_INVALID_SIGNAL`](crate::hsa_status_t::ERROR_INVALID_SIGNAL).
        AmdExt 7 hsa_amd_signal_async_handler, hsa_amd_signal_async_handler_fn:
            (
                signal: hsa_signal_t, condition: hsa_signal_condition_t,
                value: hsa_signal_value_t, handler: hsa_amd_signal_handler,
                arg: *mut c_void,
            ) -> hsa_status_t;
        /// Has a function called once, on the runtime's own thread.
        AmdExt 8 hsa_amd_async_function, hsa_amd_async_function_fn:
            (callback: hsa_amd_async_function_callback_t, arg: *mut c_void) -> hsa_status_t;
        /// Waits until the condition of one of several signals holds; returns which.
        AmdExt 9 hsa_amd_signal_wait_any, hsa_amd_signal_wait_any_fn:
            (
                signal_count: u32, signals: *mut hsa_signal_t,
                conditions: *mut hsa_signal_condition_t, values: *mut hsa_signal_value_t,
                timeout: u64, state: hsa_wait_state_t,
                satisfying_value: *mut hsa_signal_value_t,
            ) -> u32;
        /// On which compute units a queue's kernels run.
        AmdExt 10 hsa_amd_queue_cu_set_mask, hsa_amd_queue_cu_set_mask_fn:
            (
                queue: *const hsa_queue_t, num_cu_mask_count: u32, cu_mask: *const u32,
            ) -> hsa_status_t;
        /// Answers what is asked about a memory pool.
        AmdExt 11 hsa_amd_memory_pool_get_info, hsa_amd_memory_pool_get_info_fn:
            (
                pool: hsa_amd_memory_pool_t, attribute: hsa_amd_memory_pool_info_t,
                value: *mut c_void,
            ) -> hsa_status_t;
        /// Calls back for each of an agent's memory pools.
        AmdExt 12 hsa_amd_agent_iterate_memory_pools, hsa_amd_agent_iterate_memory_pools_fn:
            (
                agent: hsa_agent_t, callback: hsa_amd_agent_iterate_memory_pools_callback_t,
                data: *mut c_void,
            ) -> hsa_status_t;
        /// Allocates memory from a pool.
        AmdExt 13 hsa_amd_memory_pool_allocate, hsa_amd_memory_pool_allocate_fn:
            (
                pool: hsa_amd_memory_pool_t, size: usize, flags: u32, ptr: *mut *mut c_void,
            ) -> hsa_status_t;
        /// Frees such memory.
        AmdExt 14 hsa_amd_memory_pool_free, hsa_amd_memory_pool_free_fn:
            (ptr: *mut c_void) -> hsa_status_t;
        /// Copies memory after its dependencies, and decrements a signal when it is done.
        AmdExt 15 hsa_amd_memory_async_copy, hsa_amd_memory_async_copy_fn:
            (
                dst: *mut c_void, dst_agent: hsa_agent_t, src: *const c_void,
                src_agent: hsa_agent_t, size: usize, num_dep_signals: u32,
                dep_signals: *const hsa_signal_t, completion_signal: hsa_signal_t,
            ) -> hsa_status_t;
        /// Answers what is asked about an agent and a pool.
        AmdExt 16 hsa_amd_agent_memory_pool_get_info, hsa_amd_agent_memory_pool_get_info_fn:
            (
                agent: hsa_agent_t, pool: hsa_amd_memory_pool_t,
                attribute: hsa_amd_agent_memory_pool_info_t, value: *mut c_void,
            ) -> hsa_status_t;
        /// Lets agents access memory of a pool. `flags` must be null.
        AmdExt 17 hsa_amd_agents_allow_access, hsa_amd_agents_allow_access_fn:
            (
                num_agents: u32, agents: *const hsa_agent_t, flags: *const u32,
                ptr: *const c_void,
            ) -> hsa_status_t;
        /// Pins host memory, for agents to access.
        AmdExt 20 hsa_amd_memory_lock, hsa_amd_memory_lock_fn:
            (
                host_ptr: *mut c_void, size: usize, agents: *mut hsa_agent_t,
                num_agent: c_int, agent_ptr: *mut *mut c_void,
            ) -> hsa_status_t;
        /// Unpins such memory.
        AmdExt 21 hsa_amd_memory_unlock, hsa_amd_memory_unlock_fn:
            (host_ptr: *mut c_void) -> hsa_status_t;
        /// Fills memory of a pool: `count` times the 32-bit value.
        AmdExt 22 hsa_amd_memory_fill, hsa_amd_memory_fill_fn:
            (ptr: *mut c_void, value: u32, count: usize) -> hsa_status_t;
        /// Makes a signal with
        /// [`hsa_amd_signal_attribute_t`](crate::hsa_amd_signal_attribute_t)'s bits. Those
        /// are ignored where consumers are named.
        AmdExt 31 hsa_amd_signal_create, hsa_amd_signal_create_fn:
            (
                initial: hsa_signal_value_t, num_consumers: u32,
                consumers: *const hsa_agent_t, attributes: u64, signal: *mut hsa_signal_t,
            ) -> hsa_status_t;
        /// Before whom a queue comes.
        AmdExt 37 hsa_amd_queue_set_priority, hsa_amd_queue_set_priority_fn:
            (queue: *mut hsa_queue_t, priority: hsa_amd_queue_priority_t) -> hsa_status_t;
    }
    for_tools {
        /// Makes a queue whose packets pass through interceptors. From 6.0 on it wants a
        /// size of at least 3.
        AmdExt 35 hsa_amd_queue_intercept_create, hsa_amd_queue_intercept_create_fn:
            (
                agent: hsa_agent_t, size: u32, kind: hsa_queue_type32_t,
                callback: Option<hsa_queue_error_callback_t>, data: *mut c_void,
                private_segment_size: u32, group_segment_size: u32,
                queue: *mut *mut hsa_queue_t,
            ) -> hsa_status_t;
        /// Registers an interceptor on such a queue.
        AmdExt 36 hsa_amd_queue_intercept_register, hsa_amd_queue_intercept_register_fn:
            (
                queue: *mut hsa_queue_t, callback: hsa_amd_queue_intercept_handler,
                user_data: *mut c_void,
            ) -> hsa_status_t;
        /// Has a function called for each queue that the runtime makes for itself.
        AmdExt 39 hsa_amd_runtime_queue_create_register, hsa_amd_runtime_queue_create_register_fn:
            (
                callback: hsa_amd_runtime_queue_notifier, user_data: *mut c_void,
            ) -> hsa_status_t;
    }
} } }
pub(crate) use functions;

macro_rules! types {
    ($($group:ident { $(
        $(#[$doc:meta])* $table:ident $slot:literal
        $name:ident, $pointer:ident: ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?;
    )* })*) => {
        $($(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name;

            impl sealed::Sealed for $name {}
            impl Function for $name {
                type Pointer = api::$pointer;
                const NAME: &'static str = stringify!($name);
                const PLACE: Place = Place::$table($slot);
            }

            // What lies behind moved by another number of slots than two.
            const _: () = assert!(!matches!(Place::$table($slot), Place::AmdExt(47..)));
        )*)*

        /// All functions that this crate declares.
        pub const ALL: &[FunctionInfo] = &[$($(FunctionInfo {
            name: stringify!($name),
            place: Place::$table($slot),
            exported: types!(@exported $group),
            parameters: &[$(stringify!($ty)),*],
            returns: types!(@returns $($ret)?),
        },)*)*];
    };
    (@exported exported) => { true };
    (@exported for_tools) => { false };
    (@returns) => { "()" };
    (@returns $ret:ty) => { stringify!($ret) };
}

functions!(types);
