//! A load in virtual time: every choice comes from the seed.

use crate::load::{Failed, Load, Run, toggle};
use crate::profiler::Profiler;
use crate::runtime::SoftRuntime;
use crate::serializing::Serializing;
use softgpu::{QueueConfig, VirtualGpu};

/// Runs the load; `progress` is told how many kernels were submitted.
///
/// # Errors
/// Who waits for whom, if it stands still; the error of a call that failed.
pub fn run_virtual<S: Serializing>(
    load: &Load,
    make: impl FnOnce(SoftRuntime) -> S,
    progress: &dyn Fn(u64),
) -> Result<Run, Failed> {
    let mut gpu = VirtualGpu::new(load.config());
    let profiler = Profiler::new(gpu.gpu(), gpu.agent(0), make);
    profiler.reserve(load.most_at_once());
    let queues = (0..load.queues)
        .map(|_| profiler.create_queue(QueueConfig::default()))
        .collect::<Result<Vec<_>, _>>()?;
    let mut rng = fastrand::Rng::with_seed(load.seed);
    let (mut submitted, mut toggled) = (0, 0);
    let stuck = |gpu: &VirtualGpu, stuck| {
        let run = Run::read(gpu, &profiler, &queues, Some(gpu.trace_hash()));
        Failed::Stuck(Box::new((stuck, run)))
    };
    while submitted < load.kernels || toggled < load.toggles {
        // Most of the time the machine goes on; a submission or a toggle may come at any step.
        let full = profiler.in_flight() >= load.most_in_flight;
        let mine = rng.u32(0..8) == 0;
        if mine && toggled < load.toggles_due(submitted) {
            toggle(&profiler, toggled)?;
            toggled += 1;
        } else if mine && !full && submitted < load.kernels {
            let batch = load.batch(&mut rng, submitted);
            let queue = &queues[rng.usize(0..queues.len())];
            queue.submit(&batch).map_err(|e| Failed::Error(e.into()))?;
            submitted += batch.len() as u64;
            progress(submitted);
        } else if gpu.step().is_none() && full {
            return Err(stuck(&gpu, gpu.describe()));
        }
    }
    if let Err(waits) = gpu.run_until_idle() {
        return Err(stuck(&gpu, waits));
    }
    Ok(Run::read(&gpu, &profiler, &queues, Some(gpu.trace_hash())))
}
