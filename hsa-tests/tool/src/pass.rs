//! A tool beside another one: it makes intercept queues, and puts a packet of its own in front of each kernel.

use hsa_sys::{
    Api, AqlPacket, PacketType, TableError, Tables, functions, hsa_agent_t,
    hsa_amd_queue_intercept_packet_writer, hsa_barrier_and_packet_t, hsa_queue_error_callback_t,
    hsa_queue_t, hsa_queue_type32_t, hsa_status_t,
};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The functions that were in the tables.
static API: Mutex<Option<Api>> = Mutex::new(None);
/// Packets that were passed on.
static PACKETS: AtomicU64 = AtomicU64::new(0);

fn api() -> Option<Api> {
    *API.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn start(tables: &Tables) -> Result<(), TableError> {
    let saved = Api::from_tables(tables)?;
    *API.lock().unwrap_or_else(PoisonError::into_inner) = Some(saved);
    // SAFETY: it does what the runtime's does, by calling it; this library stays mapped.
    unsafe { tables.replace(functions::hsa_queue_create, queue_create) }?;
    // SAFETY: as above.
    unsafe { tables.replace(functions::hsa_shut_down, shut_down) }?;
    Ok(())
}

unsafe extern "C" fn shut_down() -> hsa_status_t {
    eprintln!("hsa_test_tool: passed {} packets", PACKETS.load(Relaxed));
    // SAFETY: as our caller called us.
    api().map_or(hsa_status_t::ERROR, |api| unsafe { (api.hsa_shut_down)() })
}

unsafe extern "C" fn queue_create(
    agent: hsa_agent_t,
    size: u32,
    kind: hsa_queue_type32_t,
    callback: Option<hsa_queue_error_callback_t>,
    data: *mut c_void,
    private_segment_size: u32,
    group_segment_size: u32,
    queue: *mut *mut hsa_queue_t,
) -> hsa_status_t {
    let functions = api().and_then(|api| {
        Some((
            api.hsa_amd_queue_intercept_create?,
            api.hsa_amd_queue_intercept_register?,
        ))
    });
    let Some((create, register)) = functions else {
        return hsa_status_t::ERROR;
    };
    // SAFETY: as our caller called us.
    let created = unsafe {
        create(
            agent,
            size,
            kind,
            callback,
            data,
            private_segment_size,
            group_segment_size,
            queue,
        )
    };
    if created.ok().is_err() {
        return created;
    }
    // SAFETY: it has just been made; the interceptor needs no data.
    unsafe { register(*queue, pass, std::ptr::null_mut()) }
}

unsafe extern "C" fn pass(
    packets: *const c_void,
    count: u64,
    _index: u64,
    _data: *mut c_void,
    writer: hsa_amd_queue_intercept_packet_writer,
) {
    PACKETS.fetch_add(count, Relaxed);
    let mut out = Vec::new();
    for n in 0..count as usize {
        // SAFETY: the runtime gives `count` packets; they may not be aligned as ours.
        let packet = unsafe { packets.cast::<AqlPacket>().add(n).read_unaligned() };
        if packet.packet_type() == Some(PacketType::KernelDispatch) {
            // It waits for nothing.
            out.push(hsa_barrier_and_packet_t::default().into());
        }
        out.push(packet);
    }
    // SAFETY: one call, with packets that live until it returns.
    unsafe { writer(out.as_ptr().cast(), out.len() as u64) };
}
