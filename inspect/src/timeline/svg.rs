//! Runs beside each other on one page: a row for each queue, a panel for each run.

use super::lanes::lanes;
use super::story::{BarrierSpan, Story, Turn};
use super::{AgentTimeline, Timeline, nanos};
use crate::drawing::{PAGE, add_text, document, rect, time, titled};
use hsa_serializer::{Event, Mode, QueueId};
use std::collections::HashMap;
use svg::node::element::{Group, Line};

/// Where the panels are, in pixels.
const LABELS: f64 = 130.0;
const GAP: f64 = 16.0;
const TOP: f64 = 70.0;
/// Between the rows of two GPUs.
const HEADER: f64 = 24.0;
/// A barrier, and how many beside each other have so much.
const BARRIER: f64 = 12.0;
const MOST_BARRIERS: usize = 5;
/// How wide it is drawn, what would be too thin to be seen.
const THINNEST: f64 = 0.8;
/// A wait.
const WAIT: f64 = 3.0;
/// Of all rows together, if they are few enough for that.
const ROWS: f64 = 640.0;
/// A run that is over soon still has so much of the longest one's width.
const NARROWEST: f64 = 0.2;

const STYLE: &str = "\
.mode{fill:#fdf0c4}.kernel{fill:#4c78a8;stroke:#fff;stroke-width:.5}\
.barrier,.held{fill:#c0392b}.barrier{stroke:#fff;stroke-width:.5}.waits{fill:#f28e2b}.row{fill:none;stroke:#ddd}\
.name{fill:#fff;font-size:10px}.axis{stroke:#888}";

/// Draws these runs side by side, all to one scale: one row for each queue, in it a rectangle for each
/// kernel, and what it waited for before; above them the barriers, and behind them the times in which kernels
/// are serialized. Each panel begins with the first kernel of its run and ends with the last one.
///
/// Some hundred kernels can be read on a page: of a longer run, give it only those that are of interest.
/// Whoever rests the pointer on a kernel, a wait or a barrier is told its name and times.
///
/// The runs' GPUs and queues are taken to be the same, in the same order; their ids need not be.
#[must_use]
pub fn svg(title: &str, timelines: &[Timeline]) -> String {
    let page = Page::of(timelines);
    let mut picture = document(PAGE, page.bottom + 72.0, STYLE);
    picture = add_text(picture, (8.0, 24.0), "title", title);
    for agent in &page.agents {
        picture = add_text(
            picture,
            (8.0, agent.top + HEADER - 7.0),
            "agent",
            &agent.name,
        );
        if agent.barriers > 0.0 {
            let y = agent.top + HEADER + 10.0;
            picture = add_text(picture, (8.0, y), "label", "barriers");
        }
        for row in &agent.rows {
            let label = add_text(
                Group::new().set("class", "queue"),
                (8.0, row.y + page.height / 2.0 + 4.0),
                "label",
                &row.name,
            );
            picture = picture.add(label);
        }
    }
    for panel in &page.panels {
        picture = picture.add(page.panel(panel));
    }
    legend(picture, page.bottom + 44.0).to_string()
}

/// A GPU's place.
struct Place {
    name: String,
    top: f64,
    /// How high the row of barriers is.
    barriers: f64,
    rows: Vec<Row>,
}

/// A queue's row.
struct Row {
    name: String,
    y: f64,
}

/// A run's place, and the times that it shows.
struct Panel<'a> {
    timeline: &'a Timeline,
    /// By agent.
    stories: Vec<Story>,
    from: u64,
    to: u64,
    x: f64,
    width: f64,
}

struct Page<'a> {
    agents: Vec<Place>,
    panels: Vec<Panel<'a>>,
    /// The height of a queue's row.
    height: f64,
    bottom: f64,
    /// Pixels of a nanosecond.
    scale: f64,
}

impl<'a> Panel<'a> {
    /// It has its place later.
    fn of(timeline: &'a Timeline) -> Self {
        let (from, to) = shown(timeline);
        Self {
            timeline,
            stories: timeline.agents.iter().map(Story::of).collect(),
            from,
            to,
            x: 0.0,
            width: 0.0,
        }
    }

    /// The barriers that are to be seen, each with its lane, and how many lanes there are.
    fn barriers(&self, agent: usize) -> (Vec<(&BarrierSpan, usize)>, usize) {
        let barriers = self
            .stories
            .get(agent)
            .map_or(&[][..], |story| &story.barriers);
        let seen = |barrier: &&BarrierSpan| barrier.end >= self.from && barrier.begin <= self.to;
        let barriers: Vec<_> = barriers.iter().filter(seen).collect();
        let spans: Vec<_> = barriers.iter().map(|b| (b.begin, b.end)).collect();
        let (lane_of, count) = lanes(&spans);
        (barriers.into_iter().zip(lane_of).collect(), count)
    }
}

impl<'a> Page<'a> {
    fn of(timelines: &'a [Timeline]) -> Self {
        let mut panels: Vec<_> = timelines.iter().map(Panel::of).collect();
        let agents = timelines.iter().map(|timeline| &*timeline.agents);
        let agents: &[AgentTimeline] = agents.max_by_key(|agents| agents.len()).unwrap_or(&[]);
        let count: usize = agents.iter().map(|agent| agent.queues.len()).sum();
        let height = (ROWS / count.max(1) as f64).clamp(12.0, 48.0);
        let (mut places, mut y) = (Vec::new(), TOP);
        for (number, agent) in agents.iter().enumerate() {
            let top = y;
            let beside = panels.iter().map(|panel| panel.barriers(number).1);
            let barriers = BARRIER * beside.max().unwrap_or(0).min(MOST_BARRIERS) as f64;
            y += HEADER + barriers;
            let rows = agent.queues.iter().map(|(_, name)| {
                let row = Row {
                    name: name.clone(),
                    y,
                };
                y += height;
                row
            });
            places.push(Place {
                name: agent.name.clone(),
                top,
                barriers,
                rows: rows.collect(),
            });
        }
        let longest = panels.iter().map(|panel| panel.to - panel.from).max();
        let least = longest.unwrap_or(0) as f64 * NARROWEST;
        let lasts = |panel: &Panel<'_>| ((panel.to - panel.from) as f64).max(least).max(1.0);
        let all: f64 = panels.iter().map(lasts).sum();
        let gaps = GAP * panels.len().saturating_sub(1) as f64;
        let scale = (PAGE - LABELS - gaps - 12.0) / all.max(1.0);
        let mut x = LABELS;
        for panel in &mut panels {
            panel.x = x;
            panel.width = lasts(panel) * scale;
            x += panel.width + GAP;
        }
        Self {
            agents: places,
            panels,
            height,
            bottom: y,
            scale,
        }
    }

    fn x(&self, panel: &Panel<'_>, at: u64) -> f64 {
        panel.x + (at.clamp(panel.from, panel.to) - panel.from) as f64 * self.scale
    }

    /// A rectangle of that time; `None` if the panel shows nothing of it.
    fn span(
        &self,
        panel: &Panel<'_>,
        (begin, end): (u64, u64),
        (y, height): (f64, f64),
    ) -> Option<(f64, f64, f64, f64)> {
        if end < panel.from || begin > panel.to {
            return None;
        }
        let x = self.x(panel, begin);
        // What takes hardly any time is still to be seen.
        Some((x, y, (self.x(panel, end) - x).max(THINNEST), height))
    }

    fn panel(&self, panel: &Panel<'_>) -> Group {
        let mut group = Group::new().set("class", "panel");
        let name = format!("{}: {}", panel.timeline.name, time(panel.to - panel.from));
        group = add_text(group, (panel.x, TOP - 16.0), "run", &name);
        for (number, place) in self.agents.iter().enumerate() {
            let Some(agent) = panel.timeline.agents.get(number) else {
                continue;
            };
            group = self.modes(group, panel, place, &panel.stories[number]);
            group = self.barriers(group, panel, place, number);
            for (row, (queue, _)) in place.rows.iter().zip(&agent.queues) {
                let story = &panel.stories[number];
                group = group.add(self.row(panel, row, *queue, agent, story));
            }
        }
        self.axis(group, panel)
    }

    /// Behind all rows of a GPU.
    fn modes(&self, mut group: Group, panel: &Panel<'_>, place: &Place, story: &Story) -> Group {
        let y = place.top + HEADER;
        let across = (y, place.barriers + place.rows.len() as f64 * self.height);
        let mut drawn = Drawn::default();
        for (_, begin, end) in story.modes.iter().filter(|mode| mode.0 == Mode::Enabled) {
            let span = self.span(panel, (*begin, *end), across);
            if let Some(span) = span.filter(|span| drawn.adds(span)) {
                group = group.add(rect("mode", span));
            }
        }
        group
    }

    fn barriers(&self, mut group: Group, panel: &Panel<'_>, place: &Place, agent: usize) -> Group {
        let (barriers, lanes) = panel.barriers(agent);
        let height = place.barriers / lanes.max(1) as f64;
        let mut drawn = vec![Drawn::default(); lanes];
        for (barrier, lane) in barriers {
            let y = place.top + HEADER + lane as f64 * height;
            let span = (barrier.begin, barrier.end);
            let span = self.span(panel, span, (y, height - 1.0));
            let Some(span) = span.filter(|span| drawn[lane].adds(span)) else {
                continue;
            };
            group = group.add(titled(rect("barrier", span), &of_barrier(barrier)));
            let number = barrier.epoch.to_string();
            if height >= BARRIER && span.2 > 7.0 * number.len() as f64 + 4.0 {
                group = add_text(group, (span.0 + 2.0, y + 9.0), "name", &number);
            }
        }
        group
    }

    fn row(
        &self,
        panel: &Panel<'_>,
        row: &Row,
        queue: QueueId,
        agent: &AgentTimeline,
        story: &Story,
    ) -> Group {
        let mut group = Group::new().set("class", "lane");
        group = group.add(rect("row", (panel.x, row.y, panel.width, self.height)));
        let kernels: Vec<_> = agent.kernels.iter().filter(|k| k.queue == queue).collect();
        let spans: Vec<_> = kernels.iter().map(|k| k.nanos()).collect();
        let (lane_of, count) = lanes(&spans);
        // Below the kernels there is room for the waits.
        let height = (self.height - 2.0 * WAIT - 2.0) / count.max(1) as f64;
        for ((kernel, span), lane) in kernels.iter().zip(spans).zip(lane_of) {
            let y = row.y + 1.0 + lane as f64 * height;
            let Some(place) = self.span(panel, span, (y, height)) else {
                continue;
            };
            let text = format!("{}: {}", kernel.name, time(span.1 - span.0));
            group = group.add(titled(rect("kernel", place), &text));
            // Six pixels a letter.
            let letters = ((place.2 - 3.0) / 6.0).max(0.0) as usize;
            if height >= 10.0 && kernel.name.chars().count() <= letters {
                let at = (place.0 + 2.0, y + height / 2.0 + 3.5);
                group = add_text(group, at, "name", &kernel.name);
            }
        }
        let low = row.y + self.height - 2.0 * WAIT - 0.5;
        let began: HashMap<u64, u64> = kernels
            .iter()
            .map(|k| (k.dispatch, nanos(k.begin)))
            .collect();
        for barrier in &story.barriers {
            for (at, _, dispatch) in barrier.tags.iter().filter(|tag| tag.1 == queue) {
                // A kernel that is not on the page has no wait on it either.
                let Some(began) = began.get(dispatch) else {
                    continue;
                };
                let until = barrier.end.min(*began).max(*at);
                if let Some(place) = self.span(panel, (*at, until), (low, WAIT)) {
                    let text = format!("kernel {dispatch} waits for barrier {}", barrier.epoch);
                    group = group.add(titled(rect("held", place), &text));
                }
            }
        }
        let turns = story.turns.iter();
        for turn in turns.filter(|turn| turn.queue == queue && turn.waited > 0) {
            let ready = turn.begin.saturating_sub(turn.waited);
            let place = self.span(panel, (ready, turn.begin), (low + WAIT, WAIT));
            if let Some(place) = place {
                group = group.add(titled(rect("waits", place), &of_turn(&row.name, turn)));
            }
        }
        group
    }

    fn axis(&self, mut group: Group, panel: &Panel<'_>) -> Group {
        let y = self.bottom + 6.0;
        let line = |x1: f64, x2: f64, y2: f64| {
            let line = Line::new().set("class", "axis").set("x1", x1).set("x2", x2);
            line.set("y1", y).set("y2", y2)
        };
        group = group.add(line(panel.x, panel.x + panel.width, y));
        let step = step((110.0 / self.scale) as u64);
        let mut at = 0;
        while at as f64 * self.scale <= panel.width {
            let x = panel.x + at as f64 * self.scale;
            group = group.add(line(x, x, y + 5.0));
            if x + 40.0 < panel.x + panel.width {
                group = add_text(group, (x, y + 18.0), "tick", &time(at));
            }
            // Of a run as long as there are nanoseconds, the next one may be beyond all time.
            let Some(next) = at.checked_add(step) else {
                break;
            };
            at = next;
        }
        group
    }
}

/// How far a row is drawn. Of thousands of things that are too thin to be seen most lie upon each other.
#[derive(Clone, Copy, Debug, Default)]
struct Drawn(f64);

impl Drawn {
    /// Whether there would be anything new to be seen.
    fn adds(&mut self, (x, _, width, _): &(f64, f64, f64, f64)) -> bool {
        let adds = *width > THINNEST || *x >= self.0;
        if adds {
            self.0 = x + width;
        }
        adds
    }
}

/// From the first kernel's begin to the last one's end.
fn shown(timeline: &Timeline) -> (u64, u64) {
    let kernels = timeline.agents.iter().flat_map(|agent| &agent.kernels);
    let from = kernels.clone().map(|kernel| nanos(kernel.begin)).min();
    let to = kernels.map(|kernel| kernel.nanos().1).max();
    (from.unwrap_or(0), to.unwrap_or(0))
}

/// 1, 2 or 5 times a power of ten; the smallest that is not less.
fn step(least: u64) -> u64 {
    let mut power: u64 = 1;
    loop {
        for factor in [1, 2, 5] {
            if power.saturating_mul(factor) >= least {
                return power.saturating_mul(factor);
            }
        }
        power = power.saturating_mul(10);
    }
}

fn of_barrier(barrier: &BarrierSpan) -> String {
    let ended = match barrier.ended {
        Some(Event::Superseded { .. }) => "superseded",
        Some(Event::Forced { .. }) => "cleared by force",
        Some(_) => "cleared",
        None => "still armed",
    };
    format!(
        "barrier {}: {ended} after {}",
        barrier.epoch,
        time(barrier.end - barrier.begin)
    )
}

fn of_turn(name: &str, turn: &Turn) -> String {
    let overtaken = if turn.overtaken {
        ", which it then lost"
    } else {
        ""
    };
    format!(
        "{name} waited {} for its turn{overtaken}",
        time(turn.waited)
    )
}

fn legend(mut picture: svg::Document, y: f64) -> svg::Document {
    let entries = [
        ("kernel", "a kernel runs"),
        ("waits", "a kernel waits for its turn (the token)"),
        ("barrier", "a barrier, until cleared or superseded"),
        ("held", "a kernel held back by a barrier"),
        (
            "mode",
            "what is dispatched now runs one at a time (what runs may be older)",
        ),
    ];
    let mut x = 8.0;
    for (class, text) in entries {
        let height = match class {
            "waits" | "held" => WAIT,
            _ => 14.0,
        };
        let swatch = rect(class, (x, y + (14.0 - height) / 2.0, 24.0, height));
        picture = picture.add(swatch.set("data-legend", class));
        picture = add_text(picture, (x + 30.0, y + 11.0), "legend", text);
        x += 60.0 + 6.4 * text.len() as f64;
    }
    picture
}
