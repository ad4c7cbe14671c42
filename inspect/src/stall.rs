//! Who waits for whom, as a picture.

use crate::drawing::{add_text, document, rect};
use crate::graph::{Waits, add};
use hsa_serializer::{Party, Snapshot};
use petgraph::Direction::Incoming;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef;
use std::collections::VecDeque;
use svg::Document;
use svg::node::element::{Definitions, Marker, Path};

/// Something that stands still.
#[derive(Clone, Copy, Debug)]
pub struct Stalled<'a> {
    /// What is said above the picture.
    pub title: &'a str,
    /// Who waits for whom.
    pub snapshot: &'a Snapshot,
    /// Who besides waits for whom, as the host knows and the serializer can't, and why: drawn dashed.
    pub also: &'a [(Party, Party, &'a str)],
}

const BOX: (f64, f64) = (290.0, 66.0);
/// Between the boxes of two columns, and of two rows.
const BETWEEN: (f64, f64) = (200.0, 24.0);
const TITLE: f64 = 36.0;
const BELOW: f64 = 56.0;

const STYLE: &str = "\
.party{fill:#f4f4f4;stroke:#666}.root{fill:#fde0dd;stroke:#d62728;stroke-width:2}\
.waits{fill:none;stroke:#333;marker-end:url(#tip)}\
.also{fill:none;stroke:#d62728;stroke-dasharray:6 4;marker-end:url(#tip)}.why{font-size:11px;fill:#555}";

/// Draws who waits for whom in each of these, one below the other: an arrow leads from who waits to what it
/// waits for. Who is waited for and waits for nobody is red and on the left: where nothing moves, the cause is
/// there. Who takes no part in it is left out.
#[must_use]
pub fn stall_svg(stalls: &[Stalled<'_>]) -> String {
    let pictures: Vec<_> = stalls.iter().map(Layout::of).collect();
    let width = pictures.iter().map(|p| p.size.0).fold(800.0, f64::max);
    let height: f64 = pictures.iter().map(|p| p.size.1).sum();
    let mut picture = document(width, height + 24.0, STYLE);
    let tip = Marker::new()
        .set("id", "tip")
        .set("viewBox", "0 0 10 10")
        .set("refX", 9)
        .set("refY", 5)
        .set("markerWidth", 8)
        .set("markerHeight", 8)
        .set("orient", "auto-start-reverse")
        .add(
            Path::new()
                .set("d", "M0,0 L10,5 L0,10 z")
                .set("fill", "#333"),
        );
    picture = picture.add(Definitions::new().add(tip));
    let mut y = 0.0;
    for layout in &pictures {
        picture = layout.draw(picture, y);
        y += layout.size.1;
    }
    let legend = "An arrow leads from who waits to what it waits for. Red: the cause; it waits for nothing that the serializer knows. \
                  Dashed: known to the program alone.";
    add_text(picture, (12.0, height + 12.0), "why", legend).to_string()
}

/// Where everybody stands.
struct Layout<'a> {
    stalled: &'a Stalled<'a>,
    graph: Waits,
    /// Column and row of each node that takes part.
    places: Vec<Option<(usize, usize)>>,
    size: (f64, f64),
}

impl<'a> Layout<'a> {
    /// A column for each step from a root.
    fn of(stalled: &'a Stalled<'a>) -> Self {
        let mut graph = Waits::new();
        add(&mut graph, stalled.snapshot);
        let mut column: Vec<Option<usize>> = vec![None; graph.node_count()];
        let takes_part = |node: NodeIndex| graph.neighbors_undirected(node).next().is_some();
        let mut next: VecDeque<NodeIndex> =
            graph.node_indices().filter(|n| graph[*n].is_root).collect();
        for root in &next {
            column[root.index()] = Some(0);
        }
        while let Some(node) = next.pop_front() {
            let step = column[node.index()].map_or(0, |step| step + 1);
            for who in graph.neighbors_directed(node, Incoming) {
                if column[who.index()].is_none() {
                    column[who.index()] = Some(step);
                    next.push_back(who);
                }
            }
        }
        // Of two looks at different moments a ring can come, which no root leads to.
        for node in graph.node_indices().filter(|n| takes_part(*n)) {
            column[node.index()].get_or_insert(0);
        }
        let mut rows: Vec<usize> = Vec::new();
        let places = column.iter().map(|column| {
            let column = (*column)?;
            rows.resize(rows.len().max(column + 1), 0);
            rows[column] += 1;
            Some((column, rows[column] - 1))
        });
        let places = places.collect();
        let most = rows.iter().copied().max().unwrap_or(0);
        let size = (
            rows.len() as f64 * (BOX.0 + BETWEEN.0) + 24.0,
            TITLE + most as f64 * (BOX.1 + BETWEEN.1) + BELOW,
        );
        Self {
            stalled,
            graph,
            places,
            size,
        }
    }

    /// A box's upper left corner.
    fn corner(&self, node: NodeIndex) -> Option<(f64, f64)> {
        let (column, row) = self.places[node.index()]?;
        let x = 12.0 + column as f64 * (BOX.0 + BETWEEN.0);
        Some((x, TITLE + row as f64 * (BOX.1 + BETWEEN.1)))
    }

    fn draw(&self, mut picture: Document, top: f64) -> Document {
        picture = add_text(picture, (12.0, top + 22.0), "title", self.stalled.title);
        for edge in self.graph.edge_references() {
            let ends = (self.corner(edge.source()), self.corner(edge.target()));
            let (Some(from), Some(to)) = ends else {
                continue;
            };
            // From the left side of who waits to the right side of what it waits for.
            let from = (from.0, top + from.1 + BOX.1 / 2.0);
            let to = (to.0 + BOX.0, top + to.1 + BOX.1 / 2.0);
            let half = (from.0 - to.0) / 2.0;
            let path = format!(
                "M{},{} C{},{} {},{} {},{}",
                from.0,
                from.1,
                from.0 - half,
                from.1,
                to.0 + half,
                to.1,
                to.0,
                to.1
            );
            picture = picture.add(Path::new().set("class", "waits").set("d", path));
            let middle = (to.0 + 10.0, (from.1 + to.1) / 2.0 - 6.0);
            picture = add_text(picture, middle, "why", edge.weight());
        }
        for (who, whom, why) in self.stalled.also {
            picture = self.also(picture, top, (*who, *whom), why);
        }
        for node in self.graph.node_indices() {
            let Some((x, y)) = self.corner(node) else {
                continue;
            };
            let label = &self.graph[node];
            let class = if label.is_root { "root" } else { "party" };
            let place = (x, top + y, BOX.0, BOX.1);
            picture = picture.add(rect(class, place).set("rx", 6));
            for (line, text) in label.text.lines().enumerate() {
                let y = top + y + 20.0 + line as f64 * 17.0;
                picture = add_text(picture, (x + 10.0, y), "label", text);
            }
        }
        picture
    }

    /// Below the boxes, from the bottom of one to that of the other.
    fn also(&self, picture: Document, top: f64, ends: (Party, Party), why: &str) -> Document {
        let find = |party| {
            self.graph
                .node_indices()
                .find(|n| self.graph[*n].party == party)
        };
        let corner = |party| find(party).and_then(|node| self.corner(node));
        let (Some(from), Some(to)) = (corner(ends.0), corner(ends.1)) else {
            return picture;
        };
        let low = top + self.size.1 - BELOW + 10.0;
        let foot = |(x, y): (f64, f64)| (x + BOX.0 / 2.0, top + y + BOX.1);
        let (from, to) = (foot(from), foot(to));
        let path = format!(
            "M{},{} C{},{low} {},{low} {},{}",
            from.0, from.1, from.0, to.0, to.0, to.1
        );
        let picture = picture.add(Path::new().set("class", "also").set("d", path));
        let left = from.0.min(to.0);
        add_text(picture, (left + 40.0, low + 8.0), "why", why)
    }
}
