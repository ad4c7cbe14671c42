//! The runtime loads the tool.

use crate::settings::Settings;
use crate::{process, session};
use hsa_sys::{HsaApiTable, OnLoad, Tables};
use std::ffi::c_char;

/// The runtime calls this at the end of an `hsa_init` that starts it: once for each round of starting and
/// shutting down. False, said with the reason: the program goes on without the tool.
///
/// # Safety
/// `table` is the runtime's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OnLoad(
    table: *mut HsaApiTable,
    _runtime_version: u64,
    _failed_tool_count: u64,
    _failed_tool_names: *const *const c_char,
) -> bool {
    if process::is_child() {
        // Locks that this needs may be held by threads that only the parent has.
        return false;
    }
    if session::current().is_some() {
        // The tables have our own functions: they would call themselves.
        say!("this tool is named twice; it is loaded once");
        return false;
    }
    // SAFETY: the runtime's tables, which live as long as it does.
    let started = unsafe { Tables::from_raw(table) }
        .map_err(|e| e.to_string())
        .and_then(|tables| session::start(&tables, Settings::read()?));
    if let Err(e) = &started {
        say!("{e}; the program runs without this tool");
    }
    started.is_ok()
}

const _: OnLoad = OnLoad;

/// The runtime calls this when its last user shuts it down, before anything of it is gone: under the lock under
/// which it counts its users and calls [`OnLoad`](fn@OnLoad). So we need not count them; and nobody may wait here for
/// somebody who starts it or shuts it down.
#[unsafe(no_mangle)]
pub extern "C" fn OnUnload() {
    if !process::is_child() {
        session::end();
    }
}
