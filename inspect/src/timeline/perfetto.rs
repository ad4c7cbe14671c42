//! The trace-event format, which Perfetto and Chrome open.
//!
//! A process is a GPU in one run. Its threads are tracks: how kernels ran, the barriers, the token, and the
//! queues. Slices of one track have to nest, so what overlaps gets tracks beside each other. An arrow (a
//! *flow*) leads from a barrier to each kernel that carried its packet, and from a turn to its kernel.

use super::lanes::lanes;
use super::story::Story;
use super::{AgentTimeline, KernelSpan, Timeline, nanos};
use hsa_serializer::{Event, Mode, QueueId};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, Write};

/// Writes these runs, one below the other, as JSON of trace events: `ui.perfetto.dev` opens it.
///
/// Each kernel is one slice on the track of its queue; a barrier is one from being made to letting go; a turn is
/// one on the token's track. Where two of them overlap there is a second track of the same name, and so on.
///
/// # Errors
/// Those of writing.
pub fn perfetto(out: impl Write, timelines: &[Timeline]) -> io::Result<()> {
    let mut trace = Trace {
        out,
        any: false,
        flows: 0,
    };
    write!(trace.out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut process = 0;
    for timeline in timelines {
        for agent in &timeline.agents {
            process += 1;
            trace.agent(
                process,
                &format!("{}, {}", timeline.name, agent.name),
                agent,
            )?;
        }
    }
    write!(trace.out, "\n]}}")?;
    trace.out.flush()
}

/// What is being written: event by event, as a trace has hundreds of thousands.
struct Trace<W> {
    out: W,
    any: bool,
    flows: u64,
}

/// A place for slices: a process and a thread.
#[derive(Clone, Copy)]
struct Track {
    process: u32,
    thread: u32,
}

/// Tracks of one process are numbered in the order in which they are to be seen.
struct Tracks {
    process: u32,
    next: u32,
}

/// The format's microseconds.
fn micros(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

impl<W: Write> Trace<W> {
    fn event(&mut self, event: &Value) -> io::Result<()> {
        let comma = if self.any { "," } else { "" };
        self.any = true;
        write!(self.out, "{comma}\n{event}")
    }

    fn agent(&mut self, process: u32, name: &str, agent: &AgentTimeline) -> io::Result<()> {
        self.event(&json!({
            "ph": "M", "name": "process_name", "pid": process, "args": { "name": name },
        }))?;
        self.event(&json!({
            "ph": "M", "name": "process_sort_index", "pid": process, "args": { "sort_index": process },
        }))?;
        let mut tracks = Tracks { process, next: 1 };
        let story = Story::of(agent);
        if !agent.events.is_empty() {
            self.modes(&mut tracks, agent, &story)?;
        }
        let barriers = self.barriers(&mut tracks, &story)?;
        let turns = self.turns(&mut tracks, agent, &story)?;
        let kernels = self.kernels(&mut tracks, agent)?;
        self.tags(agent, &story, &barriers, &kernels)?;
        self.grants(&story, &turns, &kernels)
    }

    /// Names the next track.
    fn track(&mut self, tracks: &mut Tracks, name: &str) -> io::Result<Track> {
        let Tracks {
            process,
            next: thread,
        } = *tracks;
        tracks.next += 1;
        for (what, args) in [
            ("thread_name", json!({ "name": name })),
            ("thread_sort_index", json!({ "sort_index": thread })),
        ] {
            self.event(&json!({
                "ph": "M", "name": what, "pid": process, "tid": thread, "args": args,
            }))?;
        }
        Ok(Track { process, thread })
    }

    /// As many tracks of this name as it takes that these spans don't overlap; each span's track.
    fn lanes(
        &mut self,
        tracks: &mut Tracks,
        name: &str,
        spans: &[(u64, u64)],
    ) -> io::Result<Vec<Track>> {
        let (lane_of, count) = lanes(spans);
        let mut lanes = Vec::new();
        // A queue has its track also where it is idle.
        for lane in 0..count.max(1) {
            let name = match lane {
                0 => name.to_owned(),
                n => format!("{name} ({})", n + 1),
            };
            lanes.push(self.track(tracks, &name)?);
        }
        Ok(lane_of.into_iter().map(|lane| lanes[lane]).collect())
    }

    fn slice(
        &mut self,
        track: Track,
        (category, name): (&str, &str),
        (begin, end): (u64, u64),
        args: Value,
    ) -> io::Result<()> {
        self.event(&json!({
            "ph": "X", "cat": category, "name": name, "pid": track.process, "tid": track.thread,
            "ts": micros(begin), "dur": micros(end - begin), "args": args,
        }))
    }

    fn instant(&mut self, track: Track, name: &str, at: u64) -> io::Result<()> {
        self.event(&json!({
            "ph": "i", "s": "t", "cat": "serializer", "name": name,
            "pid": track.process, "tid": track.thread, "ts": micros(at),
        }))
    }

    /// An arrow; each end binds to the slice of its track that encloses its moment.
    fn flow(&mut self, name: &str, from: (Track, u64), to: (Track, u64)) -> io::Result<()> {
        self.flows += 1;
        let id = self.flows;
        for (phase, (track, at)) in [("s", from), ("f", to)] {
            let mut event = json!({
                "ph": phase, "id": id, "cat": "serializer", "name": name,
                "pid": track.process, "tid": track.thread, "ts": micros(at),
            });
            if phase == "f" {
                event["bp"] = json!("e");
            }
            self.event(&event)?;
        }
        Ok(())
    }

    fn modes(
        &mut self,
        tracks: &mut Tracks,
        agent: &AgentTimeline,
        story: &Story,
    ) -> io::Result<()> {
        let track = self.track(tracks, "serialization")?;
        for (mode, begin, end) in &story.modes {
            let name = match mode {
                Mode::Enabled => "on: one kernel at a time",
                Mode::Disabled => "off",
            };
            self.slice(track, ("mode", name), (*begin, *end), json!({}))?;
        }
        for (at, event) in &story.moments {
            let text = match *event {
                Event::QueueAdded(queue) => format!("{} added", agent.name_of(queue)),
                Event::QueueGone(queue) => format!("{} gone", agent.name_of(queue)),
                other => other.to_string(),
            };
            self.instant(track, &text, *at)?;
        }
        Ok(())
    }

    fn barriers(&mut self, tracks: &mut Tracks, story: &Story) -> io::Result<Vec<Track>> {
        if story.barriers.is_empty() {
            return Ok(Vec::new());
        }
        let spans: Vec<_> = story.barriers.iter().map(|b| (b.begin, b.end)).collect();
        let places = self.lanes(tracks, "barriers", &spans)?;
        for (barrier, track) in story.barriers.iter().zip(&places) {
            let ended = match barrier.ended {
                Some(event) => event.to_string(),
                None => "still armed".to_owned(),
            };
            let args = json!({
                "waits_for_queues": barrier.waits_for,
                "held_back_queues": barrier.tags.len(),
                "end": ended,
            });
            let name = format!("barrier {}", barrier.epoch);
            self.slice(
                *track,
                ("barrier", &name),
                (barrier.begin, barrier.end),
                args,
            )?;
            if let Some(Event::Forced { .. }) = barrier.ended {
                self.instant(*track, &ended, barrier.end)?;
            }
        }
        Ok(places)
    }

    fn turns(
        &mut self,
        tracks: &mut Tracks,
        agent: &AgentTimeline,
        story: &Story,
    ) -> io::Result<Vec<Track>> {
        if story.turns.is_empty() {
            return Ok(Vec::new());
        }
        let spans: Vec<_> = story.turns.iter().map(|t| (t.begin, t.end)).collect();
        let places = self.lanes(tracks, "token", &spans)?;
        for (turn, track) in story.turns.iter().zip(&places) {
            let name = agent.name_of(turn.queue);
            let args = json!({ "waited_ns": turn.waited });
            self.slice(*track, ("turn", &name), (turn.begin, turn.end), args)?;
            if turn.overtaken {
                let text = format!("{name} lost its turn, while its kernel may still be running");
                self.instant(*track, &text, turn.end)?;
            }
        }
        Ok(places)
    }

    fn kernels<'a>(
        &mut self,
        tracks: &mut Tracks,
        agent: &'a AgentTimeline,
    ) -> io::Result<Kernels<'a>> {
        let mut of = Kernels::default();
        for (queue, name) in &agent.queues {
            let mut kernels: Vec<_> = agent.kernels.iter().filter(|k| k.queue == *queue).collect();
            kernels.sort_by_key(|kernel| kernel.dispatch);
            let spans: Vec<_> = kernels.iter().map(|k| k.nanos()).collect();
            let places = self.lanes(tracks, name, &spans)?;
            for ((kernel, span), track) in kernels.iter().zip(spans).zip(&places) {
                let args = json!({ "dispatch": kernel.dispatch });
                self.slice(*track, ("kernel", &kernel.name), span, args)?;
            }
            of.queues
                .insert(*queue, kernels.into_iter().zip(places).collect());
        }
        Ok(of)
    }

    fn tags(
        &mut self,
        agent: &AgentTimeline,
        story: &Story,
        places: &[Track],
        kernels: &Kernels<'_>,
    ) -> io::Result<()> {
        for (barrier, track) in story.barriers.iter().zip(places) {
            for (at, queue, dispatch) in &barrier.tags {
                let who = agent.name_of(*queue);
                let name = format!("{who} waits for it with kernel {dispatch}");
                self.instant(*track, &name, *at)?;
                // One that never ran has no other end.
                if let Some((kernel, to)) = kernels.dispatched(*queue, *dispatch) {
                    let from = (*at).clamp(barrier.begin, barrier.end);
                    self.flow("lets go", (*track, from), (to, nanos(kernel.begin)))?;
                }
            }
        }
        Ok(())
    }

    fn grants(&mut self, story: &Story, places: &[Track], kernels: &Kernels<'_>) -> io::Result<()> {
        for (turn, track) in story.turns.iter().zip(places) {
            // A turn that was given back before has no kernel: its queue went.
            let kernel = kernels.begun(turn.queue, turn.begin);
            if let Some((kernel, to)) = kernel.filter(|k| nanos(k.0.begin) <= turn.end) {
                let from = (*track, turn.begin);
                self.flow("has its turn", from, (to, nanos(kernel.begin)))?;
            }
        }
        Ok(())
    }
}

/// The kernels of each queue in the order of their dispatches, and the tracks that they are on.
#[derive(Default)]
struct Kernels<'a> {
    queues: HashMap<QueueId, Vec<(&'a KernelSpan, Track)>>,
}

impl<'a> Kernels<'a> {
    fn dispatched(&self, queue: QueueId, dispatch: u64) -> Option<(&'a KernelSpan, Track)> {
        let kernels = self.queues.get(&queue)?;
        let place = kernels.binary_search_by_key(&dispatch, |(kernel, _)| kernel.dispatch);
        place.ok().map(|place| kernels[place])
    }

    /// The first one that began then or later.
    fn begun(&self, queue: QueueId, from: u64) -> Option<(&'a KernelSpan, Track)> {
        let kernels = self.queues.get(&queue)?;
        // A queue's kernels begin in the order of their dispatches.
        let place = kernels.partition_point(|(kernel, _)| nanos(kernel.begin) < from);
        kernels.get(place).copied()
    }
}
