//! The interceptor of one queue.
//!
//! The runtime calls it under the queue's own lock. What it makes of a call goes to the packet writer in
//! one call: runtimes before 6.0 crash at a second one.

use crate::calls;
use crate::flights::{Flight, Slot, Watched};
use crate::lock;
use crate::process;
use crate::profiler::Profiler;
use crate::trace::Dispatched;
use hsa_serializer::hsa::HsaRuntime;
use hsa_serializer::{MAX_PACKETS, Queue, Ticket};
use hsa_sys::{
    AqlPacket, hsa_amd_queue_intercept_packet_writer, hsa_barrier_and_packet_t,
    hsa_kernel_dispatch_packet_t, hsa_signal_t,
};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// The most packets that one kernel becomes: what is injected, and the kernel; and the same for a marker.
const MOST: u64 = 2 * (MAX_PACKETS as u64 + 1);

/// Slots of the ring that are never counted on: the runtime takes one to call itself back, and the
/// ring's read index, which it looks at, may lag behind the completions, which we look at.
const MARGIN: u64 = 16;

/// Kernels are numbered from 1 in the whole process.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The interceptor's own state.
pub(crate) struct Interceptor {
    pub(crate) profiler: Arc<Profiler>,
    pub(crate) watched: Arc<Watched>,
    /// The dispatching half.
    pub(crate) half: Queue<HsaRuntime>,
    /// What becomes of a call's packets.
    pub(crate) out: Vec<AqlPacket>,
    /// Packets that were passed on so far.
    pub(crate) written: u64,
    /// Packets whose ends nobody hears of, since the last of ours that tells of those before it.
    pub(crate) unheard: u64,
    /// Whether the queue may hold kernels that the serializer knows nothing of.
    pub(crate) unknown: bool,
}

/// What is registered with the runtime.
///
/// # Safety
/// `data` is an [`Interceptor`] that lives until the queue is destroyed, and nobody else uses it; the
/// rest is as the runtime calls it.
pub(crate) unsafe extern "C" fn intercept(
    packets: *const c_void,
    count: u64,
    _index: u64,
    data: *mut c_void,
    writer: hsa_amd_queue_intercept_packet_writer,
) {
    // SAFETY: the runtime calls the interceptors of a queue one at a time, under the queue's lock.
    let interceptor = unsafe { &mut *data.cast::<Interceptor>() };
    interceptor.out.clear();
    interceptor.wait_for_room(count);
    for n in 0..count as usize {
        // SAFETY: the runtime gives `count` packets; they may not be aligned as ours.
        let packet = unsafe { packets.cast::<AqlPacket>().add(n).read_unaligned() };
        interceptor.packet(&packet);
    }
    interceptor.hear();
    let out = &interceptor.out;
    interceptor.written += out.len() as u64;
    // SAFETY: one call, with packets that live until it returns.
    unsafe { writer(out.as_ptr().cast(), out.len() as u64) };
}

impl Interceptor {
    fn packet(&mut self, packet: &AqlPacket) {
        // What is no kernel, of whatever type, passes unchanged.
        let Some(kernel) = packet.as_kernel_dispatch() else {
            return self.pass(packet);
        };
        let profiler = self.profiler.clone();
        let passed = match profiler.gate.enter() {
            // The tool has ended.
            None => false,
            Some(_inside) => {
                profiler.counts.kernels.fetch_add(1, Relaxed);
                let known = !self.unknown || self.mark();
                known && self.kernel(packet, kernel) || {
                    profiler.counts.passed_on.fetch_add(1, Relaxed);
                    false
                }
            }
        };
        if !passed {
            self.pass(packet);
        }
    }

    /// Passes a packet on as it is.
    fn pass(&mut self, packet: &AqlPacket) {
        self.out.push(*packet);
        self.unheard += 1;
    }

    /// Has it heard how far the queue is, behind many packets that do not tell. A kernel before them may run on until
    /// the application has seen them through, so its end does not tell either; and the read index that the runtime gives
    /// is that of the application's ring, not of the one beneath it.
    fn hear(&mut self) {
        if self.unheard < self.watched.ring / 8 {
            return;
        }
        let profiler = self.profiler.clone();
        let Some(_inside) = profiler.gate.enter() else {
            return;
        };
        let Some(slot) = profiler.pool.take() else {
            return;
        };
        // Without the barrier bit: it waits for no kernel.
        let packet = AqlPacket::from(hsa_barrier_and_packet_t::default());
        self.out.push(packet.with_completion_signal(slot.signal));
        self.unheard = 0;
        self.take_off(&slot, None, None, None);
    }

    /// Has the serializer count the kernels that it does not know; false where that can't be done now.
    fn mark(&mut self) -> bool {
        let Some(slot) = self.profiler.pool.take() else {
            return false;
        };
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let Ok(marker) = self.half.gap(&mut packets) else {
            self.profiler.pool.give(slot);
            return false;
        };
        let packets = &mut packets[..marker.packets];
        if let Some(last) = packets.last_mut() {
            *last = last.with_completion_signal(slot.signal);
        }
        self.out.extend_from_slice(packets);
        self.unknown = false;
        self.take_off(&slot, Some(marker.ticket), None, None);
        true
    }

    /// Passes a kernel on through the serializer; false where it has to be passed on as it is.
    fn kernel(&mut self, packet: &AqlPacket, kernel: hsa_kernel_dispatch_packet_t) -> bool {
        let profiler = self.profiler.clone();
        // What can fail comes before the dispatch.
        let Some(slot) = profiler.pool.take() else {
            self.unknown = true;
            return false;
        };
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let Ok(dispatch) = self.half.dispatch(&mut packets) else {
            profiler.pool.give(slot);
            return false;
        };
        self.out.extend_from_slice(&packets[..dispatch.packets]);
        let ours = packet.with_completion_signal(slot.signal);
        let serialized = dispatch.serialized;
        self.out.push(if serialized {
            profiler.counts.serialized.fetch_add(1, Relaxed);
            ours.with_barrier_bit()
        } else {
            ours
        });
        let dispatched = Dispatched {
            kernel: profiler.names.get(kernel.kernel_object),
            thread: process::thread(),
            number: NEXT.fetch_add(1, Relaxed),
            packet: kernel,
            serialized,
        };
        self.take_off(&slot, Some(dispatch.ticket), Some(dispatched), Some(packet));
        true
    }

    /// Has the end of what was just pushed waited for.
    fn take_off(
        &self,
        slot: &Arc<Slot>,
        ticket: Option<Ticket>,
        dispatched: Option<Dispatched>,
        kernel: Option<&AqlPacket>,
    ) {
        let flight = Flight {
            queue: self.watched.clone(),
            ticket,
            dispatched,
            forward: kernel.map_or(hsa_signal_t::NULL, AqlPacket::completion_signal),
            number: self.watched.order.number(),
            barrier: kernel.is_some_and(AqlPacket::barrier_bit),
            end: self.written + self.out.len() as u64,
        };
        if let Some(flight) = self.profiler.pool.start(slot, flight) {
            // The queue was declared dead within this very call. Its packets never execute; the slot
            // goes back when it is destroyed.
            self.profiler.lost(&flight);
            flight.abandon();
            lock(&self.watched.left).push(slot.clone());
        }
    }

    /// Waits until the queue has room, as its application would have had to wait.
    ///
    /// The runtime lets an application submit to an intercept queue without end: it takes what does
    /// not fit into the ring aside, and before 6.0 it aborts when it has to do that with several
    /// packets. So, where that is possible, there are never more kernels under way than the
    /// application wanted the ring to hold, and never more packets than the ring holds. An
    /// application that keeps to the length that it asked for never waits here.
    fn wait_for_room(&self, packets: u64) {
        let watched = &self.watched;
        let after = self.written + packets * MOST + MARGIN;
        loop {
            let under_way = watched.under_way.load(SeqCst);
            let fits = after <= watched.launched.load(SeqCst) + watched.ring;
            let in_vain = under_way == 0
                || watched.closed.load(SeqCst)
                || self.profiler.gate.is_closed()
                // It would wait for itself; the application's own handlers run there, too.
                || calls::on_handlers_thread();
            if under_way < watched.asked && fits || in_vain {
                return;
            }
            thread::sleep(Duration::from_micros(20));
        }
    }
}
