//! Queues, their interceptors, and kernels.

use crate::border::{Userdata, or, status};
use crate::machine::softgpu_t;
use hsa_sys::{AqlPacket, hsa_agent_t, hsa_signal_t, hsa_status_t};
use softgpu::{Interceptor, Kernel, Queue, QueueConfig};
use std::ffi::c_void;

/// Where an interceptor writes packets.
#[derive(Debug)]
pub struct softgpu_writer_t(Vec<AqlPacket>);

pub type softgpu_interceptor_fn = Option<
    unsafe extern "C" fn(
        userdata: *mut c_void,
        packets: *const c_void,
        count: usize,
        writer: *mut softgpu_writer_t,
    ),
>;

fn intercepted(
    call: unsafe extern "C" fn(*mut c_void, *const c_void, usize, *mut softgpu_writer_t),
    userdata: Userdata,
) -> Interceptor {
    Box::new(move |given, out| {
        // The caller's vector, so that nothing is allocated for each batch.
        let mut writer = softgpu_writer_t(std::mem::take(out));
        // SAFETY: the header says with what it is called; both live through the call.
        unsafe {
            call(
                userdata.get(),
                given.as_ptr().cast(),
                given.len(),
                &raw mut writer,
            )
        };
        *out = writer.0;
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_write(
    writer: *mut softgpu_writer_t,
    packets: *const c_void,
    count: usize,
) {
    or((), || {
        // SAFETY: the interceptor's own writer.
        let writer = unsafe { &mut *writer };
        // SAFETY: so many packets are there, says the header.
        writer.0.extend(unsafe { read(packets, count) });
    });
}

/// Copies packets, wherever they lie.
///
/// # Safety
/// So many are there.
unsafe fn read(packets: *const c_void, count: usize) -> impl Iterator<Item = AqlPacket> {
    let packets = packets.cast::<AqlPacket>();
    // SAFETY: the caller's promise; a C program's array need not be aligned to 64 bytes.
    (0..count).map(move |place| unsafe { packets.add(place).read_unaligned() })
}

fn find(machine: &softgpu_t, queue: u64) -> Result<Queue, hsa_status_t> {
    let queues = machine.queues.read();
    let found = queues.get(&queue).cloned();
    found.ok_or(hsa_status_t::ERROR_INVALID_QUEUE)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_queue_create(
    gpu: *mut softgpu_t,
    agent: u64,
    slots: usize,
    interceptor: softgpu_interceptor_fn,
    userdata: *mut c_void,
    queue: *mut u64,
) -> u32 {
    let userdata = Userdata::new(userdata);
    status(|| {
        // SAFETY: a machine that lives, says the header.
        let machine = unsafe { &*gpu };
        let config = QueueConfig {
            slots,
            interceptor: interceptor.map(|call| intercepted(call, userdata)),
            ..QueueConfig::default()
        };
        let agent = hsa_agent_t { handle: agent };
        let created = machine.gpu.create_queue(agent, config)?;
        // Unlike its handle, which is recycled, the id is never another queue's. 0 is none.
        let number = created.id().0 + 1;
        machine.queues.write().insert(number, created);
        // SAFETY: room for a handle, says the header.
        unsafe { queue.write(number) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_queue_destroy(gpu: *mut softgpu_t, queue: u64) -> u32 {
    status(|| {
        // SAFETY: a machine that lives, says the header.
        let machine = unsafe { &*gpu };
        let removed = machine.queues.write().remove(&queue);
        let removed = removed.ok_or(hsa_status_t::ERROR_INVALID_QUEUE)?;
        machine.gpu.destroy_queue(&removed)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_submit(
    gpu: *mut softgpu_t,
    queue: u64,
    packets: *const c_void,
    count: usize,
) -> u32 {
    status(|| {
        // SAFETY: a machine that lives, says the header.
        let queue = find(unsafe { &*gpu }, queue)?;
        // SAFETY: so many packets are there, says the header.
        let packets: Vec<_> = unsafe { read(packets, count) }.collect();
        queue.submit(&packets)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn softgpu_kernel(
    packet: *mut c_void,
    number: u32,
    lasts_ns: u64,
    completion: u64,
) {
    let kernel = match lasts_ns {
        u64::MAX => Kernel::endless(),
        _ => Kernel::lasting(lasts_ns),
    };
    let completion = hsa_signal_t { handle: completion };
    let made = kernel.id(number).completion(completion).packet();
    // SAFETY: room for a packet, says the header; it need not be aligned.
    unsafe { packet.cast::<AqlPacket>().write_unaligned(made) };
}
