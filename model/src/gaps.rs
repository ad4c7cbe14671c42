//! Gaps: kernels that the serializer was not told of, and the marker that stands for them.

use crate::calls::wrong;
use crate::dispatches::{check_packets, kernel};
use crate::fault::Fault;
use crate::gpu::Part;
use crate::operation::Failure;
use crate::oracle::{Due, Unseen};
use crate::run::{Run, pick};
use crate::violation::{Checked, Rule, ensure};
use crate::world::World;
use hsa_serializer::{AqlPacket, DispatchError, GapError, MAX_PACKETS, Marker, Mode, SignalError};
use hsa_sys::PacketType;

impl Run {
    pub(crate) fn unseen(&self, queue: u8, overlaps: bool) {
        if let Some(queue) = pick(&self.live(), queue) {
            self.pass_on(queue, overlaps);
        }
    }

    /// Writes a kernel that the serializer was not told of, or that it turned away.
    pub(crate) fn pass_on(&self, queue: usize, overlaps: bool) {
        let mut world = self.world();
        if world.gpu.is_gone(queue) {
            return;
        }
        world.tally.unseen += 1;
        world.model.unseen.push(Unseen {
            queue,
            marker: None,
            over: false,
        });
        let part = Part {
            unseen: Some(world.model.unseen.len() - 1),
            ..Part::default()
        };
        let World { gpu, signals, .. } = &mut *world;
        gpu.write(queue, kernel(!overlaps), part, signals);
    }

    pub(crate) fn gap(&mut self, queue: u8, kernels: u8, failure: Option<Failure>) -> Checked {
        let Some(queue) = pick(&self.halves(), queue) else {
            return Ok(());
        };
        for kernel in 0..kernels {
            self.pass_on(queue, kernel % 2 == 0);
        }
        let before = self.plan(failure);
        let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
        let Some(half) = &mut self.hosts[queue].half else {
            return Ok(());
        };
        let short = half.gap(&mut packets[..MAX_PACKETS - 1]).map(drop);
        let given = MAX_PACKETS - 1;
        if short != Err(GapError::Dispatch(DispatchError::TooFewPackets { given })) {
            return wrong("gap", short);
        }
        let answer = half.gap(&mut packets);
        let is_error = matches!(answer, Err(GapError::Signal(_)));
        let failed = self.has_failed(before, is_error)?;
        let (shut_down, removed) = {
            let world = self.world();
            let model = &world.model;
            (model.shut_down(), model.queues[queue].removed)
        };
        match answer {
            Ok(marker) if !shut_down && !removed => self.marked(queue, marker, &packets),
            Err(GapError::Dispatch(DispatchError::ShutDown)) if shut_down => Ok(()),
            Err(GapError::Dispatch(DispatchError::QueueGone(_))) if removed && !shut_down => Ok(()),
            Err(GapError::Signal(error)) if failed && !shut_down => {
                let null = failure.is_some_and(|f| f.null);
                let told = error == SignalError::NullHandle;
                ensure(null == told, Rule::Answer, || format!("{error:?}"))
            }
            other => wrong("gap", other),
        }
    }

    /// The marker was counted like a dispatch that is not serialized; while others are, with a
    /// transition behind it.
    fn marked(&mut self, queue: usize, marker: Marker, packets: &[AqlPacket]) -> Checked {
        let shared = self.shared.clone();
        let mut world = shared.world();
        let due = Due {
            serialized: false,
            ..world.model.due(queue)
        };
        let expected = usize::from(due.tag) + 1;
        ensure(marker.packets == expected, Rule::Packets, || {
            format!("{marker:?} on queue {queue}; due were {expected} packets")
        })?;
        let clean = packets[expected..].iter().all(|p| *p == AqlPacket::INVALID);
        ensure(clean, Rule::Packets, || {
            format!("more than {expected} packets were written")
        })?;
        let signal = check_packets(&world, queue, &packets[..expected - 1], due.tag)?;
        let packet = packets[expected - 1];
        check_marker(&packet)?;
        let number = (self.setup.start.1.wrapping_add(due.number)) as u32;
        let ticket = &marker.ticket;
        let right = ticket.dispatch() == number
            && ticket.mode() == Mode::Disabled
            && ticket.queue() == self.hosts[queue].id;
        ensure(right, Rule::Answer, || {
            format!("{ticket:?}; number {number}")
        })?;
        let dispatch = world.model.dispatch(queue, signal, due)?;
        let enabled = world.model.enabled();
        if enabled {
            world.model.begin(true, 2);
        }
        self.tickets.push(marker.ticket.into_raw());
        let mut covered = 0;
        for unseen in &mut world.model.unseen {
            if unseen.queue == queue && !unseen.over && unseen.marker.is_none() {
                unseen.marker = Some(dispatch);
                covered += 1;
            }
        }
        world.tally.tags += u64::from(due.tag);
        world.tally.gaps += 1;
        world.tally.gaps_serialized += u64::from(enabled);
        world.tally.unseen_marked += covered;
        let World { gpu, signals, .. } = &mut *world;
        let part = Part {
            dispatch: Some(dispatch),
            ..Part::default()
        };
        for packet in &packets[..expected - 1] {
            gpu.write(queue, *packet, part, signals);
        }
        let packet = if self.fault == Some(Fault::MarkerOvertakes) {
            packet.with_header(packet.header() & !(1 << 8))
        } else {
            packet
        };
        let part = Part {
            is_last: true,
            ..part
        };
        gpu.write(queue, packet, part, signals);
        if self.fault == Some(Fault::MarkerReportedAtOnce) {
            world.notices.push(dispatch);
        }
        Ok(())
    }
}

/// A marker waits for everything in front of it and for nothing else.
fn check_marker(packet: &AqlPacket) -> Checked {
    let none = packet.dependencies().unwrap_or_default();
    let right = packet.packet_type() == Some(PacketType::BarrierAnd)
        && packet.barrier_bit()
        && packet.completion_signal().is_null()
        && none.iter().all(|s| s.is_null());
    ensure(right, Rule::Packets, || format!("the marker is {packet:?}"))
}
