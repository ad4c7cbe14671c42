//! An emulated GPU: packet processors that take packets in order.
//!
//! - A packet with the barrier bit waits until every earlier one of its queue has completed.
//! - A barrier-AND waits until all its dependencies are 0 (a null one is met), and nothing behind it
//!   is launched before it has completed.
//! - A kernel starts in one step and ends in another, so kernels can be seen to overlap.
//! - Completion subtracts 1 from the packet's completion signal.
//! - Destroying a queue drops what it has not executed.

use crate::signals::{Signal, Signals};
use crate::violation::{Checked, Rule, Violation};
use hsa_sys::{AqlPacket, PacketType, hsa_signal_t};
use std::collections::VecDeque;

/// What a packet is to the host that wrote it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    /// The dispatch that it belongs to.
    pub(crate) dispatch: Option<usize>,
    /// Whether it is the gate behind which the dispatch has the GPU to itself.
    pub(crate) is_grant: bool,
    /// Whether it is the last packet of its dispatch.
    pub(crate) is_last: bool,
    /// The application's own dependency: it waits for this dispatch's kernel.
    pub(crate) waits_for: Option<usize>,
}

#[derive(Debug)]
struct Slot {
    packet: AqlPacket,
    /// The signals that the host meant: those that the handles stood for when it wrote them.
    meant: Vec<(hsa_signal_t, Option<Signal>)>,
    part: Part,
}

#[derive(Debug)]
struct Running {
    dispatch: usize,
    is_last: bool,
}

#[derive(Debug, Default)]
struct Ring {
    gone: bool,
    slots: VecDeque<Slot>,
    running: Vec<Running>,
}

/// A step that a packet processor can make.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Launch a queue's next packet.
    Launch(usize),
    /// End the kernel at that place among a queue's running ones.
    End(usize, usize),
}

/// What came of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A dispatch's grant gate has executed.
    Passed(usize),
    Started(usize),
    Ended(usize),
    /// The last packet of a dispatch has completed.
    Through(usize),
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Gpu {
    rings: Vec<Ring>,
    /// Which dispatches' kernels have ended, one way or another.
    ended: Vec<bool>,
}

impl Gpu {
    pub(crate) fn add_queue(&mut self) {
        self.rings.push(Ring::default());
    }

    pub(crate) fn write(&mut self, queue: usize, packet: AqlPacket, part: Part, table: &Signals) {
        let mut meant: Vec<_> = packet.dependencies().unwrap_or_default().into();
        meant.push(packet.completion_signal());
        let meant = meant
            .into_iter()
            .filter(|s| !s.is_null())
            .map(|s| (s, table.now(s).map(|(signal, _)| signal)))
            .collect();
        if let Some(d) = part.dispatch {
            self.ended.resize(self.ended.len().max(d + 1), false);
            self.ended[d] |= self.rings[queue].gone;
        }
        if self.rings[queue].gone {
            return;
        }
        self.rings[queue].slots.push_back(Slot {
            packet,
            meant,
            part,
        });
    }

    /// Drops what the queue has not executed. The dispatches that will never end, now.
    pub(crate) fn destroy(&mut self, queue: usize) -> Vec<usize> {
        let ring = &mut self.rings[queue];
        ring.gone = true;
        let running = ring.running.drain(..).map(|r| r.dispatch);
        let mut dropped: Vec<_> = ring
            .slots
            .drain(..)
            .filter_map(|s| s.part.dispatch)
            .chain(running)
            .collect();
        dropped.sort_unstable();
        dropped.dedup();
        for &d in &dropped {
            self.ended[d] = true;
        }
        dropped
    }

    pub(crate) fn is_gone(&self, queue: usize) -> bool {
        self.rings[queue].gone
    }

    /// The queue that has an unexecuted packet which was written for that signal.
    pub(crate) fn who_refers_to(&self, signal: Signal) -> Option<usize> {
        self.rings.iter().position(|ring| {
            let mut meant = ring.slots.iter().flat_map(|s| &s.meant);
            meant.any(|(_, meant)| *meant == Some(signal))
        })
    }

    fn can_launch(&self, ring: &Ring, slot: &Slot, table: &Signals) -> bool {
        let met = || {
            let mut deps = slot.packet.dependencies().unwrap_or_default().into_iter();
            deps.all(|s| s.is_null() || table.value(s) == 0)
        };
        (!slot.packet.barrier_bit() || ring.running.is_empty())
            && slot.part.waits_for.is_none_or(|d| self.ended[d])
            && met()
    }

    /// The steps that the queue's packet processor can make now.
    pub(crate) fn steps(&self, queue: usize, table: &Signals) -> Vec<Step> {
        let ring = &self.rings[queue];
        let mut steps = Vec::new();
        if let Some(slot) = ring.slots.front() {
            if self.can_launch(ring, slot, table) {
                steps.push(Step::Launch(queue));
            }
        }
        steps.extend((0..ring.running.len()).map(|i| Step::End(queue, i)));
        steps
    }

    pub(crate) fn all_steps(&self, table: &Signals) -> Vec<Step> {
        let queues = 0..self.rings.len();
        queues.flat_map(|q| self.steps(q, table)).collect()
    }

    pub(crate) fn make(&mut self, step: Step, table: &mut Signals) -> Checked<Vec<Event>> {
        let mut events = Vec::new();
        match step {
            Step::End(queue, i) => {
                let ended = self.rings[queue].running.remove(i);
                self.ended[ended.dispatch] = true;
                events.push(Event::Ended(ended.dispatch));
                if ended.is_last {
                    events.push(Event::Through(ended.dispatch));
                }
            }
            Step::Launch(queue) => {
                let ring = &mut self.rings[queue];
                let Some(slot) = ring.slots.pop_front() else {
                    return Ok(events);
                };
                for &(handle, meant) in &slot.meant {
                    let now = table.now(handle).map(|(signal, _)| signal);
                    if meant.is_none() || now != meant {
                        return Err(Violation::new(
                            Rule::DestroyedUnderUse,
                            format!(
                                "queue {queue} executed {:?}, written for {meant:?}, which is \
                                 {now:?} by now",
                                slot.packet
                            ),
                        ));
                    }
                }
                let part = slot.part;
                match (slot.packet.packet_type(), part.dispatch) {
                    (Some(PacketType::KernelDispatch), Some(dispatch)) => {
                        ring.running.push(Running {
                            dispatch,
                            is_last: part.is_last,
                        });
                        events.push(Event::Started(dispatch));
                    }
                    (_, dispatch) => {
                        let completion = slot.packet.completion_signal();
                        if !completion.is_null() {
                            table.set(completion, table.value(completion) - 1);
                        }
                        events.extend(dispatch.filter(|_| part.is_grant).map(Event::Passed));
                        events.extend(dispatch.filter(|_| part.is_last).map(Event::Through));
                    }
                }
            }
        }
        Ok(events)
    }

    /// What each queue that has something left is doing.
    pub(crate) fn describe(&self, table: &Signals) -> String {
        let mut text = String::new();
        for (q, ring) in self.rings.iter().enumerate() {
            if let Some(slot) = ring.slots.front() {
                let values: Vec<_> = slot
                    .meant
                    .iter()
                    .map(|(s, _)| (s.handle, table.value(*s)))
                    .collect();
                text += &format!(
                    "\n    queue {q}: {} packets, {} running; next {:?} of dispatch {:?}, signals \
                     and their values {values:?}",
                    ring.slots.len(),
                    ring.running.len(),
                    slot.packet.packet_type(),
                    slot.part.dispatch
                );
            }
        }
        text
    }
}
