//! The library that `HSA_TOOLS_LIB` names in the tests on the real runtime.
//!
//! | environment | |
//! |---|---|
//! | `HSA_TEST_TOOL=save` | keeps the runtime's table for whoever asks with [`hsa_test_tool_table`]; the default |
//! | `HSA_TEST_TOOL=serialize` | intercepts every queue of any program, and serializes its kernels |
//! | `HSA_TEST_TOOL=pass` | intercepts every queue, and puts a packet of its own in front of each kernel: a tool beside another one |
//! | `HSA_TEST_TOOL=scarce` | [`scarce::hsa_test_tool_fail_signals`] works: a runtime that has no signals left, for a tool that is loaded later |
//! | `HSA_TEST_TOGGLE_US=N` | a thread pauses and resumes every N microseconds; 0 or unset: it stays on |
//! | `HSA_TEST_STALLS_MS=N` | a thread looks for what has stood still for N milliseconds; 0 or unset: none |
//! | `HSA_TEST_STALLS=release`, `report` | what it does about it; the default is to release |
//! | `HSA_TEST_END=nothing` | the tool does nothing where the runtime is shut down or the program ends, and there is no summary |
//! | `HSA_TEST_SUMMARY=FILE` | what was done, as JSON, when the runtime is shut down or the program ends |
//!
//! | module | holds |
//! |---|---|
//! | `settings` | the environment |
//! | `hooks` | the functions that replace the runtime's |
//! | `pass` | a tool that has intercept queues of its own |
//! | `scarce` | a runtime that has no signals left |
//! | `session` | the profiler between the first `hsa_init` and the last `hsa_shut_down` |

mod hooks;
mod pass;
pub mod scarce;
mod session;
mod settings;

use hsa_sys::{HsaApiTable, OnLoad, Tables};
use settings::{Mode, Settings};
use std::ffi::c_char;
use std::sync::atomic::{AtomicPtr, Ordering};

static TABLE: AtomicPtr<HsaApiTable> = AtomicPtr::new(std::ptr::null_mut());

/// The table that the runtime gave at the last `hsa_init` which started it; null before.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_test_tool_table() -> *const HsaApiTable {
    TABLE.load(Ordering::Acquire)
}

/// The runtime calls this at the end of an `hsa_init` that starts it.
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
    TABLE.store(table, Ordering::Release);
    // SAFETY: the runtime's tables, which live as long as it does.
    let started = unsafe { Tables::from_raw(table) }
        .map_err(|e| e.to_string())
        .and_then(|tables| {
            let settings = Settings::read()?;
            match settings.mode {
                Mode::Save => Ok(()),
                Mode::Scarce => scarce::start(&tables).map_err(|e| e.to_string()),
                Mode::Pass => pass::start(&tables).map_err(|e| e.to_string()),
                Mode::Serialize => session::start(tables, settings).map_err(|e| e.to_string()),
            }
        });
    if let Err(e) = &started {
        eprintln!("hsa_test_tool: {e}");
    }
    started.is_ok()
}

const _: OnLoad = OnLoad;

/// The runtime calls this when it is shut down. By then `hsa_shut_down`, which is replaced, has ended
/// everything.
#[unsafe(no_mangle)]
pub extern "C" fn OnUnload() {}
