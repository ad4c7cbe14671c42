//! Who waits for whom, for Graphviz.

use hsa_serializer::{BarrierState, BarrierView, Party, QueueActivity, QueueView, Snapshot};
use petgraph::dot::{Config, Dot};
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::HashMap;
use std::fmt;

/// Who stands in the graph: what is written on it, and whether it is a root.
pub(crate) struct Label {
    pub(crate) party: Party,
    pub(crate) text: String,
    pub(crate) is_root: bool,
}

/// Who waits for whom: an edge leads from who waits, and says why.
pub(crate) type Waits = DiGraph<Label, String>;

/// Who waits for whom in these serializers, in the language of Graphviz: an arrow leads from who waits to
/// what it waits for. Who is waited for and waits for nobody is red: where nothing moves, the cause is there.
///
/// ```text
/// dot -Tsvg waits.dot > waits.svg
/// ```
pub fn dot<'a>(snapshots: impl IntoIterator<Item = &'a Snapshot>) -> String {
    let mut graph = DiGraph::new();
    for snapshot in snapshots {
        add(&mut graph, snapshot);
    }
    let edge = |_, _: petgraph::graph::EdgeReference<'_, String>| String::new();
    let node = |_, (_, label): (NodeIndex, &Label)| {
        let color = if label.is_root { ", color=red" } else { "" };
        // It escapes what a string in a string needs escaped.
        format!("shape=box, label={:?}{color}", label.text)
    };
    let config = [Config::NodeNoLabel];
    Dot::with_attr_getters(&graph, &config, &edge, &node).to_string()
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

pub(crate) fn add(graph: &mut Waits, snapshot: &Snapshot) {
    let roots: Vec<Party> = snapshot.roots().into_iter().map(|(root, _)| root).collect();
    let of = match snapshot.agent {
        Some(agent) => format!("GPU {agent:#x}"),
        None => format!("serializer {}", snapshot.serializer),
    };
    let mut nodes: HashMap<Party, NodeIndex> = HashMap::new();
    let queues = snapshot
        .queues
        .iter()
        .map(|queue| (Party::Queue(queue.queue), of_queue(queue)));
    let barriers = snapshot
        .barriers
        .iter()
        .map(|barrier| (Party::Barrier(barrier.epoch), of_barrier(barrier)));
    for (party, text) in queues.chain(barriers) {
        let label = Label {
            party,
            text: format!("{of}\n{party}\n{text}"),
            is_root: roots.contains(&party),
        };
        nodes.insert(party, graph.add_node(label));
    }
    for wait in snapshot.waits() {
        // A barrier that a queue waits for can have gone between two looks.
        if let (Some(who), Some(whom)) = (nodes.get(&wait.who), nodes.get(&wait.whom)) {
            let why = match (wait.who, wait.whom) {
                (Party::Queue(_), Party::Queue(_)) => "waits for its turn",
                (Party::Queue(_), _) => "is from after the change",
                _ => "waits for what is from before",
            };
            graph.add_edge(*who, *whom, why.to_owned());
        }
    }
}

fn of_queue(queue: &QueueView) -> String {
    let doing = match queue.activity {
        QueueActivity::Running if queue.in_flight() == 0 => "idle",
        QueueActivity::Running => "runs",
        QueueActivity::WaitsForToken => "is ready",
        QueueActivity::HoldsToken => "has its turn",
        QueueActivity::Overtaken => "was overtaken",
        QueueActivity::WaitsForBarrier(_) => "waits for a barrier",
        _ => "does something else",
    };
    let of = format!("{} of {} ended", queue.completed, queue.dispatched);
    match queue.lasts {
        Some(lasts) => format!("{of}, {doing} for {lasts:.1?}"),
        None => format!("{of}, {doing}"),
    }
}

fn of_barrier(barrier: &BarrierView) -> String {
    let state = match barrier.state {
        BarrierState::Armed => "holds back what comes after it",
        BarrierState::Cleared => "open",
        BarrierState::Forced => "opened by force",
        BarrierState::Superseded => "replaced",
        _ => "is something else",
    };
    format!("{state}, {:.1?} old", barrier.age)
}
