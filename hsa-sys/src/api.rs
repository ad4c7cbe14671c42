//! The runtime's functions, ready to be called.

use crate::functions::{self, functions};
use crate::table::{TableError, Tables};
use crate::*;
use std::ffi::{c_char, c_int, c_void};

/// Declares the functions that the runtime calls.
macro_rules! callbacks {
    ($(
        $(#[$doc:meta])*
        $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?;
    )*) => {
        $($(#[$doc])* pub type $name = unsafe extern "C" fn($($arg: $ty),*) $(-> $ret)?;)*

        /// The callbacks: their names, the types of their parameters, and that of their value, as
        /// Rust writes them.
        pub const CALLBACKS: &[(&str, &[&str], &str)] = &[$(
            (stringify!($name), &[$(stringify!($ty)),*], callbacks!(@returns $($ret)?)),
        )*];
    };
    (@returns) => { "()" };
    (@returns $ret:ty) => { stringify!($ret) };
}

callbacks! {
    /// Called for each agent.
    hsa_iterate_agents_callback_t(agent: hsa_agent_t, data: *mut c_void) -> hsa_status_t;
    /// Called, on the runtime's own thread, when a queue has stopped because of an error: none of
    /// its packets executes any more.
    hsa_queue_error_callback_t(status: hsa_status_t, source: *mut hsa_queue_t, data: *mut c_void);
    /// Called for each kernel and variable.
    hsa_executable_iterate_agent_symbols_callback_t(
        executable: hsa_executable_t, agent: hsa_agent_t, symbol: hsa_executable_symbol_t,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Called once a signal meets its condition; true keeps it registered. It may still be called
    /// after the signal was destroyed.
    hsa_amd_signal_handler(value: hsa_signal_value_t, arg: *mut c_void) -> bool;
    /// Called once.
    hsa_amd_async_function_callback_t(arg: *mut c_void);
    /// Called for each memory pool.
    hsa_amd_agent_iterate_memory_pools_callback_t(
        pool: hsa_amd_memory_pool_t, data: *mut c_void,
    ) -> hsa_status_t;
    /// Takes the packets that an interceptor passes on. To be called once in a call of the
    /// interceptor (before 6.0 the runtime crashes at a second one), with fewer packets than the
    /// ring has slots.
    hsa_amd_queue_intercept_packet_writer(packets: *const c_void, count: u64);
    /// An interceptor: gets the packets that were submitted, in order, under the queue's own lock;
    /// `index` is that of the first one. Packets that it does not pass on never execute.
    hsa_amd_queue_intercept_handler(
        packets: *const c_void, count: u64, index: u64, data: *mut c_void,
        writer: hsa_amd_queue_intercept_packet_writer,
    );
    /// Called for each queue that the runtime makes for itself.
    hsa_amd_runtime_queue_notifier(
        queue: *const hsa_queue_t, agent: hsa_agent_t, data: *mut c_void,
    );
}

/// What a tool library exports under this name: the runtime calls it at the end of `hsa_init`.
///
/// The names of the tool libraries are in the environment variable `HSA_TOOLS_LIB`, separated by
/// spaces. The arguments are the runtime's tables (a [`Tables`] reads and changes them), its
/// version, and how many tools failed before this one with their names. False means that the tool
/// has failed: it is unloaded.
///
/// ```
/// use hsa_sys::{HsaApiTable, OnLoad, Tables};
/// use std::ffi::c_char;
///
/// #[unsafe(no_mangle)]
/// unsafe extern "C" fn OnLoad(
///     table: *mut HsaApiTable,
///     _runtime_version: u64,
///     _failed_tool_count: u64,
///     _failed_tool_names: *const *const c_char,
/// ) -> bool {
///     // SAFETY: the runtime hands its tables over, and they live as long as it does.
///     unsafe { Tables::from_raw(table) }.is_ok()
/// }
/// let _: OnLoad = OnLoad;
/// ```
pub type OnLoad = unsafe extern "C" fn(
    table: *mut HsaApiTable,
    runtime_version: u64,
    failed_tool_count: u64,
    failed_tool_names: *const *const c_char,
) -> bool;

macro_rules! api {
    (
        exported { $(
            $(#[$doc:meta])* $table:ident $slot:literal
            $name:ident, $pointer:ident: ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?;
        )* }
        for_tools { $(
            $(#[$tdoc:meta])* $ttable:ident $tslot:literal
            $tname:ident, $tpointer:ident: ($($targ:ident: $tty:ty),* $(,)?) $(-> $tret:ty)?;
        )* }
    ) => {
        $($(#[$doc])* pub type $pointer = unsafe extern "C" fn($($arg: $ty),*) $(-> $ret)?;)*
        $($(#[$tdoc])* pub type $tpointer = unsafe extern "C" fn($($targ: $tty),*) $(-> $tret)?;)*

        /// The runtime's functions, as pointers that were read once.
        ///
        /// There are two kinds: what a tool [saves from the tables](Self::from_tables) before it
        /// replaces some, so that its own functions can call the runtime's; and the library's
        /// (`Api::load`, feature `load`), which go through the tables, replaced or not.
        #[derive(Clone, Copy, Debug)]
        #[non_exhaustive]
        pub struct Api {
            $($(#[$doc])* pub $name: $pointer,)*
            $(
                $(#[$tdoc])*
                ///
                /// `None` where the functions were loaded from the library, which does not export
                /// it.
                pub $tname: Option<$tpointer>,
            )*
        }

        impl Api {
            /// The functions that are in the tables now.
            ///
            /// # Errors
            /// Where a table is not of a known form, or has not got one of the functions.
            pub fn from_tables(tables: &Tables) -> Result<Self, TableError> {
                Ok(Self {
                    $($name: tables.get(functions::$name)?,)*
                    $($tname: Some(tables.get(functions::$tname)?),)*
                })
            }

            /// The functions that `find` knows by their names.
            #[cfg(feature = "load")]
            pub(crate) fn from_symbols<E>(
                mut find: impl FnMut(&'static str) -> Result<*mut c_void, E>,
            ) -> Result<Self, E> {
                Ok(Self {
                    $($name: {
                        let symbol = find(stringify!($name))?;
                        // SAFETY: the symbol of this name is a function of this type: so the
                        // runtime's headers declare it.
                        unsafe { std::mem::transmute::<*mut c_void, $pointer>(symbol) }
                    },)*
                    $($tname: None,)*
                })
            }
        }
    };
}

functions!(api);
