//! Timelines: what ran when, and why not earlier.
//!
//! A [`Timeline`] is one run: the kernels, which the host knows (from its own timestamps, or from the GPU's),
//! and the serializer's events, which a [`Log`] collects. Several of them, an application by itself and
//! serialized say, are drawn beside each other: [`perfetto`] for `ui.perfetto.dev`, [`svg`] for a page.
//!
//! ```
//! use hsa_serializer::QueueId;
//! use hsa_serializer_inspect::timeline::{AgentTimeline, KernelSpan, Timeline, perfetto, svg};
//! use std::time::Duration;
//!
//! let queue = QueueId::from_raw(0); // what `Queue::id` says
//! let run = Timeline {
//!     name: "serialized".into(),
//!     agents: vec![AgentTimeline {
//!         name: "GPU 0".into(),
//!         queues: vec![(queue, "queue 0".into())],
//!         kernels: vec![KernelSpan {
//!             queue,
//!             dispatch: 0,
//!             name: "gemm".into(),
//!             begin: Duration::from_micros(5),
//!             end: Duration::from_micros(45),
//!         }],
//!         events: vec![], // what `Log::take` has
//!     }],
//! };
//! let mut trace = Vec::new();
//! perfetto(&mut trace, &[run.clone()])?;
//! assert!(String::from_utf8_lossy(&trace).contains(r#""dur":40.0"#));
//! assert!(svg("One kernel", &[run]).contains("gemm: 40 µs"));
//! # Ok::<(), std::io::Error>(())
//! ```

mod lanes;
mod perfetto;
mod story;
mod svg;

pub use perfetto::perfetto;
pub use svg::svg;

use crossbeam_queue::SegQueue;
use hsa_serializer::{Event, Observer, QueueId};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What happened in one run. All times are of one clock, by which the kernels' times and those of the
/// events agree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// What the run is called.
    pub name: String,
    /// What happened on each GPU.
    pub agents: Vec<AgentTimeline>,
}

/// What happened on one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentTimeline {
    /// What it is called.
    pub name: String,
    /// Its queues and what they are called, in the order in which they are drawn. What belongs to a queue
    /// that is not among them is left out.
    pub queues: Vec<(QueueId, String)>,
    /// The kernels that ran.
    pub kernels: Vec<KernelSpan>,
    /// What the serializer did, in order: see [`Log`]. Empty where there was none.
    pub events: Vec<(Duration, Event)>,
}

impl AgentTimeline {
    /// What the queue is called here, or else by the serializer.
    fn name_of(&self, queue: QueueId) -> String {
        let mut queues = self.queues.iter();
        match queues.find(|(id, _)| *id == queue) {
            Some((_, name)) => name.clone(),
            None => queue.to_string(),
        }
    }
}

/// A kernel that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSpan {
    /// Its queue.
    pub queue: QueueId,
    /// Which of its queue's dispatches it was, counted from 0, as the serializer counts them.
    pub dispatch: u64,
    /// What it is called. Kernels of one name may share it.
    pub name: Arc<str>,
    /// When it began.
    pub begin: Duration,
    /// When it ended. One that ended before it began, by a clock that is off, is drawn as taking no time.
    pub end: Duration,
}

/// An observer that keeps all events with their times, for a [`Timeline`].
///
/// It takes no lock, and allocates; what it keeps grows with the run. Its runtime gives a reference to it
/// from [`Runtime::observer`](hsa_serializer::Runtime::observer).
pub struct Log {
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
    events: SegQueue<(Duration, Event)>,
}

impl Log {
    /// By this clock, which should be the one that kernels are timed by. It is called where events happen,
    /// so what [`Runtime::now`](hsa_serializer::Runtime::now) demands is demanded of it.
    pub fn new(clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self {
            clock: Box::new(clock),
            events: SegQueue::new(),
        }
    }

    /// Takes out what it has kept until now, in order of time.
    #[must_use]
    pub fn take(&self) -> Vec<(Duration, Event)> {
        let mut events: Vec<_> = std::iter::from_fn(|| self.events.pop()).collect();
        // Stable: what happened at one moment stays in the order in which it was told.
        events.sort_by_key(|(at, _)| *at);
        events
    }
}

impl Observer for Log {
    fn event(&self, event: Event) {
        self.events.push(((self.clock)(), event));
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("events", &self.events.len())
            .finish_non_exhaustive()
    }
}

impl KernelSpan {
    fn nanos(&self) -> (u64, u64) {
        let begin = nanos(self.begin);
        (begin, nanos(self.end).max(begin))
    }
}

/// Nanoseconds, as they are reckoned with here.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
