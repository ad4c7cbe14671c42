//! Events for `tracing`.

use hsa_serializer::{Event, Observer};
use std::time::Duration;
use tracing::{Level, enabled, event};

/// An observer that makes each of a serializer's events one of `tracing`'s, under the target
/// `hsa_serializer`.
///
/// | level | events |
/// |---|---|
/// | warn | what is let go before its time: forced, overtaken, everything let through |
/// | info | transitions; queues added and gone |
/// | debug | the life of barriers |
/// | trace | turns: ready, granted, released |
///
/// Fields: `agent`, and where the event has them `epoch`, `queue` and `waited_ns`; the message is the event
/// as text.
///
/// A subscriber is called where the event happens: under an epoch pin, possibly under the transition lock,
/// on the application's dispatching threads and on the runtime's handlers' (see
/// [`Observer`](hsa_serializer::Observer)). One that waits, or calls HSA, does not belong there; one that
/// hands over to a thread of its own (as `tracing-appender` does) does.
///
/// ```
/// use hsa_serializer::Observer;
/// use hsa_serializer_inspect::Traced;
/// struct MyRuntime {
///     traced: Traced,
///     // ...
/// }
/// impl MyRuntime {
///     // In `impl Runtime for MyRuntime`:
///     fn observer(&self) -> Option<&dyn Observer> {
///         Some(&self.traced)
///     }
/// }
/// # let _ = MyRuntime { traced: Traced::new(0xa001) }.observer();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Traced {
    agent: u64,
}

impl Traced {
    /// For this agent, by the handle of HSA's `hsa_agent_t`.
    #[must_use]
    pub const fn new(agent: u64) -> Self {
        Self { agent }
    }
}

/// What an event names.
#[derive(Default)]
struct Fields {
    epoch: Option<u32>,
    queue: Option<String>,
    waited: Option<u64>,
}

impl Fields {
    fn of(event: Event) -> Self {
        let mut fields = Self::default();
        match event {
            Event::Transition { epoch, .. }
            | Event::Made { epoch, .. }
            | Event::Armed { epoch, .. }
            | Event::Cleared { epoch }
            | Event::Superseded { epoch }
            | Event::Forced { epoch }
            | Event::Retired { epoch }
            | Event::Reclaimed { epoch, .. } => fields.epoch = Some(epoch),
            Event::Tagged { epoch, queue, .. } | Event::Drained { epoch, queue } => {
                fields.epoch = Some(epoch);
                fields.queue = Some(queue.to_string());
            }
            Event::QueueAdded(queue)
            | Event::QueueGone(queue)
            | Event::Ready(queue)
            | Event::Released(queue)
            | Event::Overtaken(queue) => fields.queue = Some(queue.to_string()),
            Event::Granted { queue, waited } => {
                fields.queue = Some(queue.to_string());
                fields.waited = Some(nanos(waited));
            }
            _ => {}
        }
        fields
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn level(event: Event) -> Level {
    match event {
        Event::Forced { .. } | Event::Overtaken(_) | Event::LetThrough => Level::WARN,
        Event::Transition { .. } | Event::QueueAdded(_) | Event::QueueGone(_) => Level::INFO,
        Event::Ready(_) | Event::Granted { .. } | Event::Released(_) => Level::TRACE,
        _ => Level::DEBUG,
    }
}

/// `tracing` wants to know the level where the event is written down.
macro_rules! tell {
    ($level:expr, $agent:expr, $event:expr) => {
        if enabled!(target: "hsa_serializer", $level) {
            let Fields { epoch, queue, waited } = Fields::of($event);
            event!(
                target: "hsa_serializer",
                $level,
                agent = $agent,
                epoch,
                queue,
                waited_ns = waited,
                "{}",
                $event
            );
        }
    };
}

impl Observer for Traced {
    fn event(&self, event: Event) {
        match level(event) {
            Level::WARN => tell!(Level::WARN, self.agent, event),
            Level::INFO => tell!(Level::INFO, self.agent, event),
            Level::TRACE => tell!(Level::TRACE, self.agent, event),
            _ => tell!(Level::DEBUG, self.agent, event),
        }
    }
}
