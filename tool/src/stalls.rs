//! The thread that looks for what stands still: some programs can't be serialized, and this tool is not
//! to be the silent reason why one hangs.

use crate::looking::LookingTime;
use crate::profiler::Profiler;
use hsa_serializer::hsa::HsaRuntime;
use hsa_serializer::{Stall, StallPolicy, StallWatch, Stalled};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// Looks until told to stop.
pub(crate) fn watch(profiler: &Profiler, after: Duration, policy: StallPolicy, stop: &AtomicBool) {
    let pause = (after / 4).max(Duration::from_millis(1));
    let mut time = LookingTime::every(pause);
    let mut watches: Vec<(u64, StallWatch<HsaRuntime>)> = Vec::new();
    // What is named at each look is said once in that time.
    let mut said: Option<Instant> = None;
    while !stop.load(SeqCst) {
        for (agent, serializer) in profiler.agents.iter() {
            if watches.iter().all(|(known, _)| *known != agent) {
                watches.push((agent, serializer.watch_stalls(after, policy)));
            }
        }
        let due = said.is_none_or(|said| said.elapsed() >= after);
        let now = time.look(Instant::now());
        for (_, watch) in &mut watches {
            for stall in watch.check_stalls(now) {
                if stall.released || due && holds_somebody_back(&stall) {
                    say!("{stall}");
                    said = Some(Instant::now());
                }
            }
        }
        thread::park_timeout(pause);
    }
}

/// A kernel that takes its time, and nobody minds, is not worth a word.
fn holds_somebody_back(stall: &Stall) -> bool {
    match &stall.what {
        Stalled::Barrier { holds_back, .. } => !holds_back.is_empty(),
        Stalled::Holder { waiting, .. } => !waiting.is_empty(),
        _ => true,
    }
}
