//! What ran beside what, and which packets named a signal that was not theirs any more.
//!
//! It goes by packets alone. A kernel is *gated* if, since the last kernel of its queue, a barrier
//! packet passed of whose dependencies one is also its completion signal: that is how a profiler lets a
//! queue's kernel through alone. A gated kernel may run beside no other kernel of its agent; of those,
//! the ones of queues on which no gated kernel was seen yet are counted apart, since they may be the
//! runtime's own.

use crate::signals::Stale;
use hsa_sys::{AqlPacket, PacketType, hsa_signal_t};
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// So many findings are kept as text.
const KEPT: usize = 64;

/// What the control function copies out; grows at its end only.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) kernels_started: u64,
    pub(crate) kernels_ended: u64,
    /// Of those started, gated ones.
    pub(crate) gated: u64,
    /// The most kernels that one agent ran at a time.
    pub(crate) most_running: u64,
    /// Pairs of kernels that ran at the same time though one of them was gated.
    pub(crate) overlaps: u64,
    /// Packets whose signal was destroyed, or another one of the same handle, before they executed.
    pub(crate) stale_packets: u64,
    /// Packets taken.
    pub(crate) packets: u64,
    pub(crate) queues_created: u64,
    pub(crate) queues_destroyed: u64,
    /// Copies and fills by the copy engines.
    pub(crate) copies: u64,
    /// Kernel events that exist now.
    pub(crate) events_live: u64,
    /// Pairs as in `overlaps`, the other kernel being of a queue without gated kernels.
    pub(crate) beside: u64,
    /// Kernels that were lost with their queue.
    pub(crate) kernels_lost: u64,
}

/// A kernel that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Running {
    node: u32,
    queue: u64,
    index: u64,
    gated: bool,
}

#[derive(Debug, Default)]
struct State {
    counts: Counts,
    running: Vec<Running>,
    /// Queues on which a gated kernel was seen.
    watched: BTreeSet<u64>,
    found: Vec<String>,
}

/// One for the process; it outlives a shut-down.
#[derive(Debug, Default)]
pub(crate) struct Witness(Mutex<State>);

/// Whether the packet lets one kernel through: what it waits for is what it writes.
pub(crate) fn is_gate(packet: &AqlPacket) -> bool {
    let completion = packet.completion_signal();
    let kind = packet.packet_type();
    matches!(kind, Some(PacketType::BarrierAnd | PacketType::BarrierOr))
        && !completion.is_null()
        && packet
            .dependencies()
            .is_some_and(|deps| deps.contains(&completion))
}

impl State {
    fn note(&mut self, text: String) {
        if self.found.len() < KEPT {
            eprintln!("softgpu: {text}");
            self.found.push(text);
        }
    }
}

impl Witness {
    pub(crate) fn started(&self, node: u32, queue: u64, index: u64, gated: bool) {
        let state = &mut *self.0.lock();
        let this = Running {
            node,
            queue,
            index,
            gated,
        };
        state.counts.kernels_started += 1;
        if gated {
            state.counts.gated += 1;
            state.watched.insert(queue);
        }
        let others: Vec<_> = state
            .running
            .iter()
            .copied()
            .filter(|k| k.node == node)
            .collect();
        for other in &others {
            if !(gated || other.gated) {
                continue;
            }
            let both = state.watched.contains(&queue) && state.watched.contains(&other.queue);
            if !both {
                state.counts.beside += 1;
                continue;
            }
            state.counts.overlaps += 1;
            state.note(format!(
                "overlap on node {node}: queue {queue} packet {index}{} started beside queue {} \
                 packet {}{}",
                if gated { " (gated)" } else { "" },
                other.queue,
                other.index,
                if other.gated { " (gated)" } else { "" },
            ));
        }
        state.running.push(this);
        let most = others.len() as u64 + 1;
        state.counts.most_running = state.counts.most_running.max(most);
    }

    /// A kernel ended, or was lost with its queue.
    pub(crate) fn finished(&self, queue: u64, index: u64, lost: bool) {
        let state = &mut *self.0.lock();
        if lost {
            state.counts.kernels_lost += 1;
        } else {
            state.counts.kernels_ended += 1;
        }
        let place = state
            .running
            .iter()
            .position(|k| k.queue == queue && k.index == index);
        if let Some(place) = place {
            state.running.swap_remove(place);
        }
    }

    pub(crate) fn stale(&self, queue: u64, index: u64, signal: hsa_signal_t, how: Stale) {
        let state = &mut *self.0.lock();
        state.counts.stale_packets += 1;
        state.note(format!(
            "queue {queue} packet {index}: its signal {:#x} {}",
            signal.handle,
            match how {
                Stale::NoSignal => "is none",
                Stale::Destroyed => "was destroyed before the packet executed",
                Stale::Recreated =>
                    "was destroyed and its handle given out again before the packet executed",
            }
        ));
    }

    /// A queue is gone.
    pub(crate) fn queue_destroyed(&self, queue: u64) {
        let state = &mut *self.0.lock();
        state.counts.queues_destroyed += 1;
        state.watched.remove(&queue);
    }

    /// Counts something else.
    pub(crate) fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.0.lock().counts);
    }

    pub(crate) fn counts(&self) -> Counts {
        self.0.lock().counts
    }

    /// What was found, as text.
    pub(crate) fn found(&self) -> String {
        let state = self.0.lock();
        state
            .found
            .iter()
            .fold(String::new(), |text, found| text + found + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hsa_sys::{hsa_barrier_and_packet_t, hsa_barrier_or_packet_t};

    #[test]
    fn a_gated_kernel_runs_alone() {
        let witness = Witness::default();
        witness.started(1, 10, 0, true);
        // Another agent's, and the runtime's own queue.
        witness.started(2, 20, 0, true);
        witness.started(1, 30, 0, false);
        assert_eq!((witness.counts().overlaps, witness.counts().beside), (0, 1));
        witness.finished(10, 0, false);
        witness.started(1, 10, 1, false);
        assert_eq!(witness.counts().overlaps, 0);
        witness.started(1, 11, 0, true);
        // Beside the one of queue 10, which is watched; and beside 30, which is not.
        assert_eq!((witness.counts().overlaps, witness.counts().beside), (1, 2));
        witness.finished(11, 0, true);
        witness.started(1, 11, 1, false);
        assert_eq!(witness.counts().overlaps, 1);
        assert_eq!(witness.counts().kernels_lost, 1);
        assert_eq!(witness.counts().most_running, 3);
        assert!(witness.found().contains("overlap on node 1"));
    }

    #[test]
    fn a_gate_waits_for_what_it_writes() {
        let signal = hsa_signal_t { handle: 64 };
        let mut packet = hsa_barrier_and_packet_t {
            completion_signal: signal,
            ..Default::default()
        };
        assert!(!is_gate(&packet.into()));
        packet.dep_signal[0] = signal;
        assert!(is_gate(&packet.into()));
        packet.completion_signal = hsa_signal_t::NULL;
        assert!(!is_gate(&packet.into()));
        // By barrier-OR, beside another signal.
        let mut packet = hsa_barrier_or_packet_t {
            completion_signal: signal,
            ..Default::default()
        };
        packet.dep_signal[0] = hsa_signal_t { handle: 128 };
        assert!(!is_gate(&packet.into()));
        packet.dep_signal[1] = signal;
        assert!(is_gate(&packet.into()));
    }
}
