//! The interceptor of one queue.
//!
//! The runtime calls it under the queue's own lock, usually with one packet a call. What it makes of
//! a call goes to the packet writer in one call: runtimes before 6.0 crash at a second one.

use crate::calls;
use crate::flights::{Flight, Slot, Watched};
use crate::lifecycle::Lifecycle;
use crate::lock;
use crate::setup::Fault;
use crate::shared::Core;
use crate::watchdog;
use hsa_serializer::MAX_PACKETS;
use hsa_sys::{
    AqlPacket, FenceScope, PacketType, header, hsa_amd_queue_intercept_packet_writer,
    hsa_barrier_and_packet_t, hsa_signal_t,
};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::thread;
use std::time::Duration;

/// The most packets that one kernel becomes: what is injected, the kernel, and the profiler's own
/// packet behind it.
const MOST: u64 = MAX_PACKETS as u64 + 2;

/// Slots of the ring that are never counted on: the runtime takes one to call itself back, and the
/// read index, which it looks at, may lag behind the completions, which we look at.
const MARGIN: u64 = 16;

/// The interceptor's own state.
pub(crate) struct Interceptor<S: Lifecycle> {
    pub(crate) core: Arc<Core<S>>,
    pub(crate) watched: Arc<Watched<S>>,
    pub(crate) half: S::Queue,
    pub(crate) out: Vec<AqlPacket>,
    /// Packets that were passed on so far.
    pub(crate) written: u64,
    /// Whether the queue may hold kernels that the serializer knows nothing of.
    pub(crate) unknown: bool,
}

/// What is registered with the runtime.
///
/// # Safety
/// `data` is an [`Interceptor`] that lives until the queue is destroyed, and nobody else uses it; the
/// rest is as the runtime calls it.
pub(crate) unsafe extern "C" fn intercept<S: Lifecycle>(
    packets: *const c_void,
    count: u64,
    _index: u64,
    data: *mut c_void,
    writer: hsa_amd_queue_intercept_packet_writer,
) {
    // SAFETY: the runtime calls the interceptors of a queue one at a time, under the queue's lock.
    let interceptor = unsafe { &mut *data.cast::<Interceptor<S>>() };
    interceptor.out.clear();
    for n in 0..count as usize {
        // SAFETY: the runtime gives `count` packets; they may not be aligned as ours.
        let packet = unsafe { packets.cast::<AqlPacket>().add(n).read_unaligned() };
        interceptor.packet(&packet);
    }
    let out = &interceptor.out;
    interceptor.written += out.len() as u64;
    // SAFETY: one call, with packets that live until it returns.
    unsafe { writer(out.as_ptr().cast(), out.len() as u64) };
}

impl<S: Lifecycle> Interceptor<S> {
    fn packet(&mut self, packet: &AqlPacket) {
        let core = self.core.clone();
        let inside = match packet.packet_type() {
            Some(PacketType::KernelDispatch) => core.gate.enter(),
            _ => None,
        };
        if inside.is_none() || !self.listens() || !self.kernel(packet) {
            self.out.push(*packet);
        }
    }

    /// Whether the profiler wants to know of the next kernel, and can: what came before it and was not
    /// known is.
    fn listens(&mut self) -> bool {
        let core = self.core.clone();
        let listens = core.listens.load(SeqCst) && (!self.unknown || self.mark());
        if !listens {
            self.unknown = true;
            core.counts.unseen.fetch_add(1, Relaxed);
        }
        listens
    }

    /// Has the serializer count what it does not know; false where that can't be done now.
    fn mark(&mut self) -> bool {
        let core = self.core.clone();
        if core.fault == Some(Fault::SkipGap) {
            self.unknown = false;
            return true;
        }
        let Some(slot) = core.pool.take() else {
            return false;
        };
        let serializer = self.watched.serializer.clone();
        let Some(ticket) = serializer.gap(&mut self.half, &mut self.out) else {
            core.pool.give(slot);
            return false;
        };
        if let Some(marker) = self.out.last_mut() {
            *marker = marker.with_completion_signal(slot.signal);
        }
        self.unknown = false;
        core.counts.markers.fetch_add(1, Relaxed);
        core.counts.dispatched.fetch_add(1, Relaxed);
        self.take_off(&slot, ticket, hsa_signal_t::NULL, false);
        true
    }

    /// Passes a kernel on through the serializer; false where it has to be passed on as it is.
    fn kernel(&mut self, kernel: &AqlPacket) -> bool {
        let core = self.core.clone();
        let number = core.counts.kernels.fetch_add(1, Relaxed);
        self.wait_for_room();
        let unseen = core.fault == Some(Fault::Unseen) && number % 7 == 6;
        // What can fail comes before the dispatch.
        let Some(slot) = (!unseen).then(|| core.pool.take()).flatten() else {
            core.counts.passed_on.fetch_add(1, Relaxed);
            self.unknown |= !unseen;
            return false;
        };
        let watched = self.watched.clone();
        let dispatched = watched.serializer.dispatch(&mut self.half, &mut self.out);
        let Some(dispatched) = dispatched else {
            core.pool.give(slot);
            core.counts.passed_on.fetch_add(1, Relaxed);
            return false;
        };
        if dispatched.serialized {
            core.counts.serialized.fetch_add(1, Relaxed);
        }
        core.counts.dispatched.fetch_add(1, Relaxed);
        push(
            &mut self.out,
            kernel,
            dispatched.serialized,
            core.tail,
            slot.signal,
        );
        let forward = kernel.completion_signal();
        self.take_off(&slot, dispatched.ticket, forward, kernel.barrier_bit());
        true
    }

    /// Has the end of what was just written waited for.
    fn take_off(
        &self,
        slot: &Arc<Slot<S>>,
        ticket: S::Ticket,
        forward: hsa_signal_t,
        barrier: bool,
    ) {
        let core = &self.core;
        let flight = Flight {
            queue: self.watched.clone(),
            ticket,
            forward,
            number: self.watched.order.number(),
            barrier,
            end: self.written + self.out.len() as u64,
        };
        if let Err(flight) = core.pool.start(slot, flight) {
            // The queue was declared dead within this very call. Its packets never execute; the slot
            // goes back when it is destroyed.
            core.counts.abandoned.fetch_add(1, Relaxed);
            flight.queue.serializer.abandon(flight.ticket);
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
    fn wait_for_room(&self) {
        let watched = &self.watched;
        let after = self.written + self.out.len() as u64 + MOST + MARGIN;
        let mut waited = None;
        loop {
            let under_way = watched.under_way.load(SeqCst);
            let launched = watched.launched.load(SeqCst);
            let fits = after <= launched + watched.ring;
            let in_vain = under_way == 0
                || watched.closed.load(SeqCst)
                || self.core.gate.is_closed()
                || calls::on_handlers_thread();
            if under_way < watched.asked && fits || in_vain {
                break;
            }
            if waited
                .replace(launched)
                .is_some_and(|before| before < launched)
            {
                // It is no standstill.
                watchdog::step();
            }
            thread::sleep(Duration::from_micros(20));
        }
        if waited.is_some() {
            self.core.counts.waited_for_room.fetch_add(1, Relaxed);
        }
    }
}

/// Pushes the group of a kernel: the kernel and, if there is a tail, the profiler's own packet behind
/// it, as one that reads counters has. The last packet completes `signal`, so that what is heard of is
/// the end of the whole.
fn push(
    out: &mut Vec<AqlPacket>,
    kernel: &AqlPacket,
    serialized: bool,
    tail: bool,
    signal: hsa_signal_t,
) {
    let kernel = if serialized {
        kernel.with_barrier_bit()
    } else {
        *kernel
    };
    if tail {
        out.push(kernel.with_completion_signal(hsa_signal_t::NULL));
        out.push(behind().with_completion_signal(signal));
    } else {
        out.push(kernel.with_completion_signal(signal));
    }
}

/// Waits for the kernel in front of it, by its barrier bit.
fn behind() -> AqlPacket {
    let system = FenceScope::System;
    hsa_barrier_and_packet_t {
        header: header(PacketType::BarrierAnd, true, system, system),
        ..Default::default()
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use softgpu::Kernel;

    #[test]
    fn the_last_packet_of_the_group_completes_the_profilers_signal() {
        let (ours, theirs) = (hsa_signal_t { handle: 1 }, hsa_signal_t { handle: 2 });
        let kernel = Kernel::lasting(5).completion(theirs).packet();
        let mut out = Vec::new();
        push(&mut out, &kernel, false, false, ours);
        push(&mut out, &kernel, true, true, ours);
        let null = hsa_signal_t::NULL;
        assert_eq!(
            out,
            [
                kernel.with_completion_signal(ours),
                kernel.with_barrier_bit().with_completion_signal(null),
                behind().with_completion_signal(ours),
            ]
        );
        assert!(out[2].barrier_bit());
    }
}
