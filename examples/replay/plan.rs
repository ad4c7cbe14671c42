//! A trace, as an application would submit it.

use traces::Trace;

/// A kernel to be submitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    /// Its queue, as the trace counts them.
    pub(crate) queue: usize,
    /// When it is submitted: at its start in the trace.
    pub(crate) at: u64,
    /// How long it runs by itself.
    pub(crate) lasts: u64,
    /// Whether it waits for all earlier kernels of its queue.
    pub(crate) barrier: bool,
}

/// What is replayed.
#[derive(Debug)]
pub(crate) struct Plan {
    /// By the time of submission.
    pub(crate) kernels: Vec<Planned>,
    /// Each queue's agent.
    pub(crate) agent_of: Vec<usize>,
    pub(crate) agents: usize,
    /// When the last kernel ends in the trace.
    pub(crate) ends: u64,
}

impl Plan {
    /// # Errors
    /// If, with its kernels one after another, its times would not fit into 64 bits.
    pub(crate) fn new(trace: &Trace) -> Result<Self, String> {
        let last_start = trace.kernels.last().map_or(0, |kernel| kernel.start_ns);
        let sum: u128 = trace
            .kernels
            .iter()
            .map(|kernel| u128::from(kernel.end_ns - kernel.start_ns))
            .sum();
        // From the last submission on some kernel runs at any time, so it can't take longer.
        let longest = u128::from(last_start) + sum;
        if longest >= u128::from(u64::MAX) {
            return Err(format!(
                "the trace is too long to be replayed: {longest} ns if serialized"
            ));
        }
        let mut busy_until = vec![0; trace.queues.len()];
        let kernels = trace.kernels.iter().map(|kernel| {
            let queue = kernel.queue as usize;
            // An application that lets kernels of one queue overlap leaves the bit clear. One that
            // began after all before it had ended may have had to.
            let barrier = kernel.start_ns >= busy_until[queue];
            busy_until[queue] = busy_until[queue].max(kernel.end_ns);
            Planned {
                queue,
                at: kernel.start_ns,
                lasts: kernel.end_ns - kernel.start_ns,
                barrier,
            }
        });
        Ok(Self {
            kernels: kernels.collect(),
            agent_of: trace.queues.iter().map(|q| q.agent as usize).collect(),
            agents: trace.agents.len(),
            ends: busy_until.iter().copied().max().unwrap_or(0),
        })
    }

    /// How many kernels overlapped an earlier one of their own queue.
    pub(crate) fn overlapping_their_queue(&self) -> usize {
        self.kernels.iter().filter(|kernel| !kernel.barrier).count()
    }

    pub(crate) fn agent_of(&self, kernel: &Planned) -> usize {
        self.agent_of[kernel.queue]
    }
}
