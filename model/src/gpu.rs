//! An emulated GPU: packet processors that take packets in order.
//!
//! - A packet with the barrier bit waits until every earlier one of its queue has completed.
//! - A barrier-AND waits until all its dependencies are 0 (a null one is met), a barrier-OR until one
//!   is (a null one is not met), and nothing behind them is launched before they have completed.
//! - A kernel starts in one step and ends in another, so kernels can be seen to overlap. Some do not
//!   end before the next dispatch, where that is of another queue, has started.
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
    /// Whether the kernel ends only when the next dispatch has started.
    pub(crate) needs_next: bool,
    /// A kernel that no dispatch was made for.
    pub(crate) unseen: Option<usize>,
}

#[derive(Debug)]
struct Slot {
    packet: AqlPacket,
    /// The signals that the host meant: those that the handles stood for when it wrote them.
    meant: Vec<(hsa_signal_t, Option<Signal>)>,
    part: Part,
}

/// What has become of a dispatch.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    queue: usize,
    /// Its kernel, or what stands for it, was launched.
    started: bool,
    /// Its kernel has ended, one way or another.
    ended: bool,
}

#[derive(Debug, Default)]
struct Ring {
    gone: bool,
    slots: VecDeque<Slot>,
    /// What the host wrote of each kernel that runs.
    running: Vec<Part>,
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
    /// A kernel that no dispatch was made for has ended.
    UnseenEnded(usize),
    /// The last packet of a dispatch has completed.
    Through(usize),
    /// A marker, which has no kernel, has completed.
    Marked(usize),
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Gpu {
    rings: Vec<Ring>,
    fates: Vec<Fate>,
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
            let length = self.fates.len().max(d + 1);
            self.fates.resize(length, Fate::default());
            self.fates[d].queue = queue;
            self.fates[d].ended |= self.rings[queue].gone;
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
        let running = ring.running.drain(..).filter_map(|part| part.dispatch);
        let mut dropped: Vec<_> = ring
            .slots
            .drain(..)
            .filter_map(|s| s.part.dispatch)
            .chain(running)
            .collect();
        dropped.sort_unstable();
        dropped.dedup();
        for &d in &dropped {
            self.fates[d].ended = true;
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
            let named = slot.packet.dependencies().unwrap_or_default();
            let mut named = named.into_iter().filter(|s| !s.is_null());
            match slot.packet.packet_type() {
                Some(PacketType::BarrierOr) => named.any(|s| table.value(s) == 0),
                _ => named.all(|s| table.value(s) == 0),
            }
        };
        (!slot.packet.barrier_bit() || ring.running.is_empty())
            && slot.part.waits_for.is_none_or(|d| self.fates[d].ended)
            && met()
    }

    fn can_end(&self, part: Part) -> bool {
        let Some(dispatch) = part.dispatch.filter(|_| part.needs_next) else {
            return true;
        };
        let next = self.fates.get(dispatch + 1);
        next.is_none_or(|f| f.started || f.ended || f.queue == self.fates[dispatch].queue)
    }

    /// Whether that queue's last kernel waits for one that was not dispatched yet: who waited for it
    /// in front of that one would deadlock the application.
    pub(crate) fn awaits_dispatch(&self, dispatch: usize) -> bool {
        let slots = self.rings.iter().flat_map(|ring| {
            let slots = ring.slots.iter().map(|slot| slot.part);
            slots.chain(ring.running.iter().copied())
        });
        let mut of = slots.filter(|part| part.dispatch == Some(dispatch));
        dispatch + 1 >= self.fates.len() && of.any(|part| part.needs_next)
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
        let ends = (0..ring.running.len()).filter(|&i| self.can_end(ring.running[i]));
        steps.extend(ends.map(|i| Step::End(queue, i)));
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
                events.extend(ended.unseen.map(Event::UnseenEnded));
                if let Some(dispatch) = ended.dispatch {
                    self.fates[dispatch].ended = true;
                    events.push(Event::Ended(dispatch));
                    events.extend(ended.is_last.then_some(Event::Through(dispatch)));
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
                    (Some(PacketType::KernelDispatch), dispatch) => {
                        ring.running.push(part);
                        if let Some(dispatch) = dispatch {
                            self.fates[dispatch].started = true;
                            events.push(Event::Started(dispatch));
                        }
                    }
                    (_, dispatch) => {
                        let completion = slot.packet.completion_signal();
                        if !completion.is_null() {
                            table.set(completion, table.value(completion) - 1);
                        }
                        events.extend(dispatch.filter(|_| part.is_grant).map(Event::Passed));
                        if let Some(dispatch) = dispatch.filter(|_| part.is_last) {
                            let fate = &mut self.fates[dispatch];
                            events.push(if fate.started {
                                Event::Through(dispatch)
                            } else {
                                Event::Marked(dispatch)
                            });
                            (fate.started, fate.ended) = (true, true);
                        }
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
