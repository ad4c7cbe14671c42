//! The machine and what its checks say.

use crate::border::{or, status};
use hsa_sys::{hsa_agent_t, hsa_status_t};
use parking_lot::RwLock;
use softgpu::{Config, Queue, ThreadedGpu};
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_void};
use std::time::Duration;

/// A machine, and its queues by the numbers that C has of them.
#[derive(Debug)]
pub struct softgpu_t {
    pub(crate) gpu: ThreadedGpu,
    pub(crate) queues: RwLock<HashMap<u64, Queue>>,
}

pub type softgpu_text_fn = Option<unsafe extern "C" fn(userdata: *mut c_void, text: *const c_char)>;

#[unsafe(no_mangle)]
pub extern "C" fn softgpu_create(seed: u64, agents: u32, handler_threads: u32) -> *mut softgpu_t {
    or(std::ptr::null_mut(), || {
        let config = Config {
            agents: agents.max(1) as usize,
            handler_threads: handler_threads as usize,
            ..Config::seed(seed)
        };
        Box::into_raw(Box::new(softgpu_t {
            gpu: ThreadedGpu::new(config),
            queues: RwLock::default(),
        }))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_destroy(gpu: *mut softgpu_t) -> bool {
    or(false, || {
        if gpu.is_null() {
            return false;
        }
        // SAFETY: made by `softgpu_create`, and nobody uses it any more, says the header.
        let machine = unsafe { Box::from_raw(gpu) };
        machine.gpu.finish();
        true
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_agent(gpu: *const softgpu_t, number: u32) -> u64 {
    // SAFETY: a machine that lives, says the header.
    let gpu = unsafe { &(*gpu).gpu };
    let agent = gpu.agents().get(number as usize);
    agent.map_or(0, |agent| agent.handle)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_now(gpu: *const softgpu_t) -> u64 {
    // SAFETY: a machine that lives, says the header.
    unsafe { (*gpu).gpu.now() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_wait_idle(
    gpu: *mut softgpu_t,
    timeout_ns: u64,
    stuck: softgpu_text_fn,
    userdata: *mut c_void,
) -> bool {
    or(false, || {
        // SAFETY: a machine that lives, says the header.
        let gpu = unsafe { &(*gpu).gpu };
        match gpu.wait_idle(Duration::from_nanos(timeout_ns)) {
            Ok(()) => true,
            Err(waits) => {
                tell(&waits.to_string(), stuck, userdata);
                false
            }
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_mode_begins(gpu: *mut softgpu_t, agent: u64, serialized: bool) {
    let agent = hsa_agent_t { handle: agent };
    or((), || {
        // SAFETY: a machine that lives, says the header.
        let witness = unsafe { (*gpu).gpu.witness() };
        if serialized {
            witness.enable_begin(agent);
        } else {
            witness.disable_begin(agent);
        }
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_mode_is(gpu: *mut softgpu_t, agent: u64, serialized: bool) {
    let agent = hsa_agent_t { handle: agent };
    or((), || {
        // SAFETY: a machine that lives, says the header.
        let witness = unsafe { (*gpu).gpu.witness() };
        if serialized {
            witness.enable_end(agent);
        } else {
            witness.disable_end(agent);
        }
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_mode_failed(gpu: *mut softgpu_t, agent: u64) {
    let agent = hsa_agent_t { handle: agent };
    or((), || {
        // SAFETY: a machine that lives, says the header.
        unsafe { (*gpu).gpu.witness().transition_failed(agent) };
    });
}

/// What was seen so far.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct softgpu_checks_t {
    pub started: u64,
    pub ended: u64,
    pub lost: u64,
    pub most_running: u64,
    pub violations: u64,
    pub overlaps: u64,
    pub stale_packets: u64,
    pub dead_signals: u64,
    pub live_signals: u64,
    pub recycled_signals: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_checks(
    gpu: *mut softgpu_t,
    agent: u64,
    checks: *mut softgpu_checks_t,
) -> u32 {
    status(|| {
        // SAFETY: a machine that lives, says the header.
        let gpu = unsafe { &(*gpu).gpu };
        let agent = hsa_agent_t { handle: agent };
        if !gpu.agents().contains(&agent) {
            return Err(hsa_status_t::ERROR_INVALID_AGENT);
        }
        let kernels = gpu.witness().kernels(agent);
        let counts = gpu.witness().counts();
        let signals = gpu.signals().stats();
        let seen = softgpu_checks_t {
            started: kernels.started,
            ended: kernels.ended,
            lost: kernels.abandoned,
            most_running: kernels.most_running,
            violations: counts.total(),
            overlaps: counts.overlaps + counts.mode_overlaps,
            stale_packets: counts.stale_packets,
            dead_signals: counts.touched_destroyed + counts.destroyed_twice,
            live_signals: signals.live,
            recycled_signals: signals.recycled,
        };
        // SAFETY: there is room for one, says the header.
        unsafe { checks.write(seen) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_violations(
    gpu: *mut softgpu_t,
    text: softgpu_text_fn,
    userdata: *mut c_void,
) {
    or((), || {
        // SAFETY: a machine that lives, says the header.
        let list = unsafe { (*gpu).gpu.witness().violations() };
        for violation in list.iter().take(20) {
            tell(&violation.to_string(), text, userdata);
        }
    });
}

/// Gives a text to C.
fn tell(text: &str, told: softgpu_text_fn, userdata: *mut c_void) {
    if let (Some(told), Ok(text)) = (told, CString::new(text)) {
        // SAFETY: the header says what it is called with; the text lives through the call.
        unsafe { told(userdata, text.as_ptr()) };
    }
}
