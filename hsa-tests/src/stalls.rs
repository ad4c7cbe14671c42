//! Looking for stalls, as a host's own thread does.

use crate::lock;
use crate::looking::LookingTime;
use crate::setup::Ours;
use hsa_serializer::hsa::HsaRuntime;
use hsa_serializer::{QueueId, Stall, StallPolicy, StallWatch, Stalled};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// So many stalls are kept as text.
const KEPT: usize = 4;

/// What was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Found {
    /// Looks that found something.
    pub looks: u64,
    /// Barriers that were released.
    pub barriers: u64,
    /// Holders of the token that were overtaken.
    pub holders: u64,
    /// The first ones that were released, or, where that is not the policy, found.
    pub texts: Vec<String>,
    /// Queues that the first one names.
    #[serde(skip)]
    pub named: Vec<QueueId>,
}

impl Found {
    /// How often something was released.
    #[must_use]
    pub fn released(&self) -> u64 {
        self.barriers + self.holders
    }

    fn take(&mut self, stalls: &[Stall], policy: StallPolicy) {
        self.looks += u64::from(!stalls.is_empty());
        for stall in stalls {
            if self.named.is_empty() {
                self.named = named(&stall.what);
            }
            if stall.released {
                match stall.what {
                    Stalled::Barrier { .. } => self.barriers += 1,
                    _ => self.holders += 1,
                }
            }
            let tells = stall.released || policy == StallPolicy::Report;
            if tells && self.texts.len() < KEPT {
                self.texts.push(stall.to_string());
            }
        }
    }
}

fn named(what: &Stalled) -> Vec<QueueId> {
    match what {
        Stalled::Barrier {
            waits_for,
            holds_back,
            ..
        } => {
            let waits_for = waits_for.iter().map(|wait| wait.queue);
            let holds_back = holds_back.iter().map(|(queue, _)| *queue);
            waits_for.chain(holds_back).collect()
        }
        Stalled::Holder { queue, waiting, .. } => [&[*queue], waiting.as_slice()].concat(),
        _ => Vec::new(),
    }
}

/// Looks at these serializers, and at those that join them, until told to stop: for a thread of its own.
pub fn watch(
    serializers: impl Fn() -> Vec<Arc<Ours>>,
    after: Duration,
    policy: StallPolicy,
    stop: &AtomicBool,
    found: &Mutex<Found>,
) {
    let pause = (after / 4).max(Duration::from_millis(1));
    let mut time = LookingTime::every(pause);
    let mut watches: Vec<StallWatch<HsaRuntime>> = Vec::new();
    while !stop.load(SeqCst) {
        // They are only added to.
        for serializer in serializers().iter().skip(watches.len()) {
            watches.push(serializer.watch_stalls(after, policy));
        }
        let now = time.look(Instant::now());
        for watch in &mut watches {
            let stalls = watch.check_stalls(now);
            lock(found).take(&stalls, policy);
        }
        thread::park_timeout(pause);
    }
}
