//! One serializer after another on the same machine: the life of one, and what is noted of it.

use crate::lock;
use crate::runtime::{Calls, Watched};
use harness::{BoxError, Reports};
use hsa_serializer::{
    Domain, QueueId, Serializer, Stall, StallPolicy, StallWatch, Stalled, Transition,
    TransitionError,
};
use softgpu::Gpu;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What stands still for so long is released.
const STALLS_AFTER: Duration = Duration::from_millis(8);

/// A queue of the machine whose earlier work a serializer does not know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attached {
    pub(crate) at: u64,
    /// What is dispatched from then on waits for the unknown work.
    pub(crate) covered: Option<u64>,
}

/// What was done to a serializer, and what it did, by the machine's clock. It is looked at when all is
/// over.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Its end was about to begin.
    pub(crate) ends: Option<u64>,
    /// It was about to let everything through.
    pub(crate) killed: Option<u64>,
    /// Before they were: the dispatches that were overtaken, and the epochs whose barriers were forced.
    pub(crate) overtaken: Vec<(u64, QueueId, u64)>,
    pub(crate) forced: Vec<(u64, u32)>,
    /// A kernel was passed on before the end, for want of a signal, and waits for nobody.
    pub(crate) leaked: Option<u64>,
    pub(crate) attached: HashMap<softgpu::QueueId, Attached>,
}

impl Log {
    fn released(&mut self, at: u64, stall: &Stall) {
        match stall.what {
            Stalled::Holder {
                queue, dispatch, ..
            } => self.overtaken.push((at, queue, dispatch)),
            Stalled::Barrier { epoch, .. } => self.forced.push((at, epoch)),
            _ => unreachable!("no other thing stalls"),
        }
    }

    pub(crate) fn was_forced(&self, by: u64) -> bool {
        self.forced.iter().any(|(at, _)| *at <= by)
    }
}

/// One serializer.
pub(crate) struct Reign {
    pub(crate) number: u32,
    pub(crate) serializer: Serializer<Watched>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) log: Arc<Mutex<Log>>,
    pub(crate) reports: Reports,
    /// Held while the mode changes, so that who gets it knows the mode.
    pub(crate) toggling: Mutex<()>,
    watch: Mutex<StallWatch<Watched>>,
    gpu: Gpu,
}

impl Reign {
    pub(crate) fn new(number: u32, gpu: &Gpu, domain: Domain) -> Self {
        let (calls, reports) = (Arc::new(Calls::default()), Reports::default());
        let runtime = Watched::new(gpu, reports.clone(), calls.clone());
        let builder = Serializer::<Watched>::builder().domain(domain);
        let serializer = builder.build(runtime);
        serializer.runtime().belongs_to(serializer.downgrade());
        let watch = serializer.watch_stalls(STALLS_AFTER, StallPolicy::Release);
        Self {
            number,
            serializer,
            calls,
            log: Arc::default(),
            reports,
            toggling: Mutex::new(()),
            watch: Mutex::new(watch),
            gpu: gpu.clone(),
        }
    }

    /// The host's look for stalls.
    pub(crate) fn check_stalls(&self) {
        let now = self.gpu.now();
        let mut watch = lock(&self.watch);
        let stalls = watch.check_stalls(Duration::from_nanos(now));
        let mut log = lock(&self.log);
        for stall in stalls.iter().filter(|stall| stall.released) {
            log.released(now, stall);
        }
    }

    /// Turns serialization on or off by `toggle`; whether that changed anything.
    pub(crate) fn toggle(
        &self,
        toggle: fn(&Serializer<Watched>) -> Result<Transition, TransitionError>,
    ) -> Result<bool, BoxError> {
        let _toggling = lock(&self.toggling);
        let bare = self.uncovered();
        let changed = toggle(&self.serializer)? != Transition::Unchanged;
        if changed {
            self.cover(&bare);
        }
        Ok(changed)
    }

    /// The queues whose unknown work no transition has counted yet.
    pub(crate) fn uncovered(&self) -> Vec<softgpu::QueueId> {
        let log = lock(&self.log);
        let bare = log.attached.iter().filter(|(_, a)| a.covered.is_none());
        bare.map(|(queue, _)| *queue).collect()
    }

    /// A transition has counted the unknown work of these.
    pub(crate) fn cover(&self, queues: &[softgpu::QueueId]) {
        let now = self.gpu.now();
        let mut log = lock(&self.log);
        for queue in queues {
            if let Some(attached) = log.attached.get_mut(queue) {
                attached.covered.get_or_insert(now);
            }
        }
    }

    pub(crate) fn ends(&self) -> bool {
        lock(&self.log).ends.is_some()
    }
}
