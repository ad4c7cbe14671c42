//! Dispatches: what the serializer has to put in front of a kernel, and the batch that is written.

use crate::calls::wrong;
use crate::fault::Fault;
use crate::gpu::Part;
use crate::operation::Shape;
use crate::oracle::Stage;
use crate::run::{Run, pick};
use crate::signals::Signal;
use crate::violation::{Checked, Rule, ensure};
use crate::world::World;
use hsa_serializer::{
    AqlPacket, Completion, Dispatch, DispatchError, MAX_PACKETS, Mode, SignalKind,
};
use hsa_sys::{
    FenceScope, PacketType, header, hsa_barrier_and_packet_t, hsa_kernel_dispatch_packet_t,
    hsa_signal_t,
};

impl Run {
    pub(crate) fn short_array(&mut self, queue: u8, given: u8) -> Checked {
        let Some(queue) = pick(&self.halves(), queue) else {
            return Ok(());
        };
        let given = usize::from(given) % MAX_PACKETS;
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let Some(half) = &mut self.hosts[queue].half else {
            return Ok(());
        };
        self.shared.world().tally.refused_dispatches += 1;
        match half.dispatch(&mut packets[..given]) {
            Err(DispatchError::TooFewPackets { given: g }) if g == given => Ok(()),
            other => wrong("dispatch", other),
        }
    }

    pub(crate) fn dispatch(&mut self, queue: u8, shape: Shape) -> Checked {
        let mut halves = self.halves();
        if queue < 240 {
            let world = self.world();
            // Mostly on those that are there.
            halves.retain(|&q| !world.model.queues[q].removed);
        }
        let Some(queue) = pick(&halves, queue) else {
            return Ok(());
        };
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let Some(half) = &mut self.hosts[queue].half else {
            return Ok(());
        };
        let answer = half.dispatch(&mut packets);
        let shared = self.shared.clone();
        let mut world = shared.world();
        let written = answer.as_ref().map_or(0, |d| d.packets);
        let clean = packets[written.min(MAX_PACKETS)..]
            .iter()
            .all(|p| *p == AqlPacket::INVALID);
        ensure(clean, Rule::Packets, || {
            format!("more than {written} packets were written: {answer:?}")
        })?;
        if world.model.queues[queue].removed {
            drop(world);
            return self.dispatched_on_gone(answer);
        }
        let mut got = match answer {
            Err(DispatchError::ShutDown) if world.model.shut_down() => {
                world.tally.refused_dispatches += 1;
                drop(world);
                // The host passes the kernel on, or refuses it.
                if shape.before == 0 {
                    self.pass_on(queue, shape.overlaps);
                }
                return Ok(());
            }
            // It may be counted, for nobody, as long as it waits for nobody.
            Ok(got) if world.model.stage == Stage::Left && got.packets == 0 && !got.serialized => {
                got.ticket.abandon();
                drop(world);
                self.pass_on(queue, shape.overlaps);
                return Ok(());
            }
            Ok(got) if !world.model.shut_down() => got,
            other => return wrong("dispatch", other),
        };
        let mut first = 0;
        let due = world.model.due(queue);
        if self.fault == Some(Fault::TransitionPacketNotGiven) && due.tag {
            (first, got.packets) = (1, got.packets - 1);
        }
        let written = &packets[first..first + got.packets];
        let expected = usize::from(due.tag) + 2 * usize::from(due.serialized);
        ensure(
            (written.len(), got.serialized) == (expected, due.serialized),
            Rule::Packets,
            || format!("{got:?} on queue {queue}; due was {due:?}"),
        )?;
        let signal = check_packets(&world, queue, written, due.tag)?;
        let number = (self.setup.start.1.wrapping_add(due.number)) as u32;
        let mode = if world.model.enabled() {
            Mode::Enabled
        } else {
            Mode::Disabled
        };
        let ticket = &got.ticket;
        let right = ticket.dispatch() == number
            && ticket.mode() == mode
            && ticket.queue() == self.hosts[queue].id;
        ensure(right, Rule::Answer, || {
            format!("{ticket:?}; number {number}, {mode:?}")
        })?;
        world.tally.numbers_wrapped += u64::from(number == 0 && self.setup.start.1 != 0);
        world.tally.tags += u64::from(due.tag);
        let dispatch = world.model.dispatch(queue, signal, due)?;
        self.tickets.push(got.ticket.into_raw());
        let skip = usize::from(due.tag && self.fault == Some(Fault::TransitionPacketLost));
        write(
            &mut world,
            queue,
            dispatch,
            &written[skip..],
            shape,
            due.serialized,
        );
        Ok(())
    }

    fn dispatched_on_gone(&mut self, answer: Result<Dispatch, DispatchError>) -> Checked {
        self.on_gone += 1;
        self.world().tally.dispatches_on_gone += 1;
        match answer {
            Err(DispatchError::QueueGone(_) | DispatchError::ShutDown) => Ok(()),
            Ok(got) => match self.subject.complete(got.ticket) {
                Ok(Completion::QueueGone) => Ok(()),
                other => wrong("complete", other),
            },
            other => wrong("dispatch", other),
        }
    }

    pub(crate) fn wait(&mut self, queue: u8, on: u8) {
        let (Some(queue), Some(on)) = (pick(&self.live(), queue), pick(&self.live(), on)) else {
            return;
        };
        let mut world = self.world();
        let latest = world.model.dispatches.iter().rposition(|d| d.queue == on);
        if latest.is_some_and(|d| world.gpu.awaits_dispatch(d)) {
            return;
        }
        let part = Part {
            waits_for: latest,
            ..Part::default()
        };
        let World { gpu, signals, .. } = &mut *world;
        gpu.write(queue, marker(false), part, signals);
    }
}

/// Checks the packets that the serializer wrote; the signal of the transition packet.
pub(crate) fn check_packets(
    world: &World,
    queue: usize,
    written: &[AqlPacket],
    tag: bool,
) -> Checked<Option<Signal>> {
    let mut signal = None;
    let q = &world.model.queues[queue];
    let mut own = [q.ready, q.block].into_iter();
    for (i, packet) in written.iter().enumerate() {
        let fences =
            packet.header() >> 9 == (FenceScope::System as u16 | (FenceScope::System as u16) << 2);
        let deps = packet.dependencies().unwrap_or_default();
        let waits_for = world.signals.now(deps[0]).map(|(s, _)| s);
        // Beside its own signal each waits for the escape signal, by which everything is let
        // through; barriers by themselves have none.
        let escape = world.signals.now(deps[1]).map(|(_, kind)| kind);
        let escapes = escape == q.ready.map(|_| SignalKind::Escape);
        let alone = escapes && deps[2..].iter().all(|s| s.is_null());
        let right = if tag && i == 0 {
            signal = waits_for;
            waits_for.is_some() && packet.completion_signal().is_null()
        } else {
            packet.barrier_bit()
                && packet.completion_signal() == deps[0]
                && waits_for.is_some()
                && own.next() == Some(waits_for)
        };
        let is_or = packet.packet_type() == Some(PacketType::BarrierOr);
        ensure(right && is_or && fences && alone, Rule::Packets, || {
            format!("packet {i} of queue {queue}: {packet:?}")
        })?;
    }
    Ok(signal)
}

/// Writes a dispatch's batch to the queue.
fn write(
    world: &mut World,
    queue: usize,
    dispatch: usize,
    injected: &[AqlPacket],
    shape: Shape,
    serialized: bool,
) {
    let World {
        gpu,
        signals,
        model,
        tally,
        ..
    } = world;
    let part = Part {
        dispatch: Some(dispatch),
        ..Part::default()
    };
    for (i, &packet) in injected.iter().enumerate() {
        let is_grant = serialized && i + 1 == injected.len();
        gpu.write(queue, packet, Part { is_grant, ..part }, signals);
    }
    for _ in 0..shape.before {
        gpu.write(queue, marker(false), part, signals);
    }
    let alone = shape.after == 0;
    let packet = kernel(serialized || !shape.overlaps);
    // Barriers by themselves have nobody who looks for stalls.
    let needs_next = shape.needs_next && model.serializes;
    tally.needy += u64::from(needs_next);
    gpu.write(
        queue,
        packet,
        Part {
            is_last: alone,
            needs_next,
            ..part
        },
        signals,
    );
    for i in 1..=shape.after {
        let is_last = i == shape.after;
        gpu.write(queue, marker(is_last), Part { is_last, ..part }, signals);
    }
}

pub(crate) fn kernel(barrier_bit: bool) -> AqlPacket {
    hsa_kernel_dispatch_packet_t {
        header: header(
            PacketType::KernelDispatch,
            barrier_bit,
            FenceScope::System,
            FenceScope::System,
        ),
        setup: 1,
        workgroup_size_x: 64,
        workgroup_size_y: 1,
        workgroup_size_z: 1,
        reserved0: 0,
        grid_size_x: 64,
        grid_size_y: 1,
        grid_size_z: 1,
        private_segment_size: 0,
        group_segment_size: 0,
        kernel_object: 1,
        kernarg_address: 0,
        reserved2: 0,
        completion_signal: hsa_signal_t::NULL,
    }
    .into()
}

/// A barrier-AND without dependencies.
fn marker(barrier_bit: bool) -> AqlPacket {
    let packet = AqlPacket::from(hsa_barrier_and_packet_t::default());
    if barrier_bit {
        packet.with_barrier_bit()
    } else {
        packet
    }
}
