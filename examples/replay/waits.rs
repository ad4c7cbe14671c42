//! How long kernels waited, from being submitted to their start, and for what.

use crate::machine::Ran;
use crate::plan::Plan;
use std::collections::BTreeMap;

/// What one kernel waited for; nanoseconds, which add up to its whole wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wait {
    /// Earlier kernels of its own queue: behind them, or for their end.
    pub(crate) queue: u64,
    /// A transition barrier, in its own transition packet.
    pub(crate) transition: u64,
    /// The token, while its queue was ready.
    pub(crate) token: u64,
}

impl Wait {
    pub(crate) fn of(submitted: u64, ran: &Ran) -> Self {
        let mut wait = Self::default();
        // The moment from which on the next packet could have gone.
        let mut turn = submitted.max(ran.before);
        wait.queue = turn - submitted;
        if let Some(launched) = ran.transition {
            wait.transition = launched - turn;
            turn = launched;
        }
        if let Some((ready, granted)) = ran.token {
            wait.queue += ready - turn;
            wait.token = granted - ready;
            turn = granted;
        }
        wait.queue += ran.start - turn;
        wait
    }

    pub(crate) fn total(&self) -> u64 {
        self.queue + self.transition + self.token
    }
}

/// The waits of one queue's kernels.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueWaits {
    pub(crate) kernels: u64,
    /// Those of them that waited at all.
    pub(crate) waited: u64,
    pub(crate) total: u128,
    pub(crate) in_queue: u128,
    pub(crate) transition: u128,
    pub(crate) token: u128,
    /// Of the waits for the token, how long each other queue held it.
    pub(crate) held_by: BTreeMap<usize, u128>,
    /// The longest wait and its kernel, as the plan counts them.
    pub(crate) worst: (u64, usize),
}

impl QueueWaits {
    /// The mean of all kernels, those that did not wait included.
    pub(crate) fn mean(&self) -> u128 {
        self.total / u128::from(self.kernels.max(1))
    }

    /// Waits for the token while nobody had it.
    pub(crate) fn held_by_nobody(&self) -> u128 {
        let held = self.held_by.values().sum();
        self.token.saturating_sub(held)
    }
}

/// The waits of all queues.
pub(crate) fn by_queue(plan: &Plan, ran: &[Ran]) -> Vec<QueueWaits> {
    let holds = holds(plan, ran);
    let mut queues = vec![QueueWaits::default(); plan.agent_of.len()];
    for (number, (kernel, ran)) in plan.kernels.iter().zip(ran).enumerate() {
        let wait = Wait::of(kernel.at, ran);
        let queue = &mut queues[kernel.queue];
        queue.kernels += 1;
        queue.waited += u64::from(wait.total() > 0);
        queue.total += u128::from(wait.total());
        queue.in_queue += u128::from(wait.queue);
        queue.transition += u128::from(wait.transition);
        queue.token += u128::from(wait.token);
        if wait.total() > queue.worst.0 {
            queue.worst = (wait.total(), number);
        }
        let Some((ready, granted)) = ran.token else {
            continue;
        };
        let holds = &holds[plan.agent_of(kernel)];
        let first = holds.partition_point(|hold| hold.until <= ready);
        for hold in holds[first..].iter().take_while(|h| h.since < granted) {
            let held = hold.until.min(granted) - hold.since.max(ready);
            *queue.held_by.entry(hold.queue).or_default() += u128::from(held);
        }
    }
    queues
}

/// The token's whereabouts: a queue has it from the grant to the end of the kernel.
struct Hold {
    since: u64,
    until: u64,
    queue: usize,
}

/// By agent, in order of time: one ends before the next one begins.
fn holds(plan: &Plan, ran: &[Ran]) -> Vec<Vec<Hold>> {
    let mut holds: Vec<Vec<Hold>> = (0..plan.agents).map(|_| Vec::new()).collect();
    for (kernel, ran) in plan.kernels.iter().zip(ran) {
        if let Some((_, granted)) = ran.token {
            holds[plan.agent_of(kernel)].push(Hold {
                since: granted,
                until: ran.end,
                queue: kernel.queue,
            });
        }
    }
    for holds in &mut holds {
        holds.sort_unstable_by_key(|hold| (hold.since, hold.until));
    }
    holds
}
