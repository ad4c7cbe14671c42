//! A snapshot as text, for a reader who does not know this crate.

use super::{BarrierState, BarrierView, EndState, Party, QueueView, Snapshot};
use crate::queue::Mode;
use crate::stall::QueueActivity;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// Events that are shown; the snapshot has more.
const SHOWN: usize = 24;

impl Display for Snapshot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        self.causes(f)?;
        self.list_queues(f)?;
        self.list_barriers(f)?;
        self.costs(f)?;
        self.events(f)
    }
}

impl Snapshot {
    fn head(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.agent {
            Some(agent) => write!(f, "GPU {agent:#x} (serializer {})", self.serializer)?,
            None => write!(f, "Serializer {} of a GPU", self.serializer)?,
        }
        match (self.end, self.mode) {
            (EndState::Open, mode) => {
                let how = match mode {
                    Mode::Enabled => "kernels run one at a time",
                    Mode::Disabled => "kernels run as the application likes",
                };
                write!(f, ": {how}, for {} now", time(self.mode_for))?;
            }
            (_, Mode::Enabled) => write!(f, ": kernels ran one at a time until the end began")?,
            (_, Mode::Disabled) => write!(
                f,
                ": kernels ran as the application likes until the end began"
            )?,
        }
        match (self.requests, self.requests_of_all) {
            (0, 0) => {}
            (own, 0) => write!(f, "; requested {own} times")?,
            (own, all) => write!(f, "; requested {own} times, and {all} times for all GPUs")?,
        }
        writeln!(f, ".")?;
        match self.end {
            EndState::Open => {}
            EndState::ShuttingDown => writeln!(f, "It is shutting down.")?,
            EndState::LetThrough => {
                writeln!(f, "Everything was let through: it holds nobody back.")?;
            }
            EndState::Finished => writeln!(f, "It has ended.")?,
            EndState::Left => writeln!(f, "It was left as it was: it does nothing any more.")?,
        }
        if self.in_transition {
            writeln!(
                f,
                "A thread is inside of turning it on or off, or of something like it."
            )?;
        }
        Ok(())
    }

    /// What a reader wants to know who finds that nothing moves.
    fn causes(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let roots = self.roots();
        if roots.is_empty() {
            let idle = self.queues.iter().all(|queue| queue.in_flight() == 0);
            let why = if idle { ": no kernel is in flight" } else { "" };
            return writeln!(f, "\nNo kernel waits because of it{why}.");
        }
        writeln!(f, "\nWho waits for whom:")?;
        for (root, behind) in roots {
            match root {
                Party::Queue(id) => {
                    let Some(queue) = self.queues.iter().find(|queue| queue.queue == id) else {
                        continue;
                    };
                    self.cause(f, queue, &behind)?;
                }
                Party::Barrier(epoch) => {
                    writeln!(
                        f,
                        "  barrier {epoch} waits for nobody: it is about to let go."
                    )?;
                }
            }
        }
        Ok(())
    }

    fn cause(&self, f: &mut Formatter<'_>, root: &QueueView, behind: &[Party]) -> fmt::Result {
        let id = root.queue;
        let (why, its) = if root.activity == QueueActivity::HoldsToken {
            let kernel = root.completed;
            let ago = time(root.lasts.unwrap_or_default());
            (
                format!("the others: its kernel {kernel} was let go {ago} ago, and has not ended"),
                format!("kernel {kernel} of {id}"),
            )
        } else {
            let old = old_kernels(root, self).unwrap_or_else(|| doing(root, self));
            (
                format!("others: {old}"),
                format!("what is left of {id} from before"),
            )
        };
        writeln!(f, "  {id} holds up {why}.")?;
        for party in behind {
            match party {
                Party::Queue(id) => {
                    if let Some(queue) = self.queues.iter().find(|queue| queue.queue == *id) {
                        writeln!(f, "    {id}: {}", doing(queue, self))?;
                    }
                }
                Party::Barrier(epoch) => {
                    if let Some(barrier) = self.barriers.iter().find(|b| b.epoch == *epoch) {
                        writeln!(f, "    {}", reason(barrier))?;
                    }
                }
            }
        }
        let done = match (self.end, self.let_go()) {
            (EndState::LetThrough, _) => "everything was let through".to_owned(),
            (_, 0) => {
                "nothing, so far (`StallPolicy::Release` would let these run beside it)".to_owned()
            }
            (_, n) => format!("of what stood still before, {n} let go"),
        };
        writeln!(
            f,
            "    What has to happen: {its} ends; then these go on by themselves.\n    \
             It never ends if it waits for a kernel that is held up here (spins until that one has started, or has\n    \
             written): then this is a deadlock, which serializing makes. Without it they run side by side.\n    \
             Done about it: {done}."
        )
    }

    /// How often something was let go before its time.
    fn let_go(&self) -> u64 {
        self.statistics.forced + self.statistics.overtaken
    }

    fn list_queues(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.queues.is_empty() {
            return writeln!(f, "\nNo queues.");
        }
        writeln!(f, "\nQueues (kernels are counted from 0):")?;
        for queue in &self.queues {
            writeln!(
                f,
                "  {:<10} {} dispatched, {} ended: {}",
                queue.queue.to_string(),
                queue.dispatched,
                queue.completed,
                doing(queue, self)
            )?;
        }
        Ok(())
    }

    fn list_barriers(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.barriers.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\nBarriers (one for each change: kernels from after it wait for those from before it):"
        )?;
        for barrier in &self.barriers {
            let state = match barrier.state {
                BarrierState::Armed => "holds back what comes after it",
                BarrierState::Cleared => "open, and kept until no queue refers to it any more",
                BarrierState::Forced => "opened by force, and kept until its kernels have ended",
                BarrierState::Superseded => "replaced by a later one, and about to go",
            };
            writeln!(
                f,
                "  barrier {}, {} old, signal {:#x}: {state}",
                barrier.epoch,
                time(barrier.age),
                barrier.signal.handle
            )?;
            for wait in &barrier.waits_for {
                writeln!(
                    f,
                    "    waits for {}: {} of {} kernels have ended",
                    wait.queue, wait.completed, wait.until
                )?;
            }
            for (queue, dispatch) in &barrier.holds_back {
                writeln!(f, "    in front of kernel {dispatch} of {queue}")?;
            }
        }
        Ok(())
    }

    fn costs(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let s = &self.statistics;
        let changes = match s.transitions {
            1 => "1 change".to_owned(),
            n => format!("{n} changes"),
        };
        writeln!(f, "\nSo far: {changes} (turned on or off, or a cut).")?;
        let costs = [
            ("kernels ran one at a time", s.serialized, None),
            (
                "queues waited for their turn, all added up",
                s.token_waited,
                Some(s.token_waited_most),
            ),
            (
                "barriers that have ended held back what came after them, all added up",
                s.barriers_armed,
                Some(s.barriers_armed_most),
            ),
        ];
        for (what, total, most) in costs.iter().filter(|(_, total, _)| *total > 0) {
            write!(f, "  {what}: {}", nanos(*total))?;
            if let Some(most) = most {
                write!(f, ", {} at most", nanos(*most))?;
            }
            writeln!(f)?;
        }
        let lost = self.let_go();
        if lost > 0 {
            writeln!(f, "Let go before its time: {lost} times.")?;
        }
        if s.misuse > 0 {
            writeln!(
                f,
                "The profiler has broken the rules {} times: nothing here may be true any more.",
                s.misuse
            )?;
        }
        Ok(())
    }

    fn events(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.recent.is_empty() {
            return Ok(());
        }
        let hidden = self.recent.len().saturating_sub(SHOWN);
        writeln!(f, "\nWhat has happened, the latest last:")?;
        for record in &self.recent[hidden..] {
            let ago = time(self.taken.saturating_sub(record.at));
            writeln!(f, "  {ago:>9} ago  {}", record.event)?;
        }
        Ok(())
    }
}

/// What a queue is doing.
fn doing(queue: &QueueView, snapshot: &Snapshot) -> String {
    let next = queue.completed;
    let lasts = time(queue.lasts.unwrap_or_default());
    match queue.activity {
        QueueActivity::WaitsForToken => {
            format!("kernel {next} is ready, and has waited for its turn for {lasts}")
        }
        QueueActivity::HoldsToken => format!("kernel {next} has its turn, for {lasts}"),
        QueueActivity::Overtaken => {
            format!("kernel {next} lost its turn to others, and may still be running")
        }
        QueueActivity::WaitsForBarrier(epoch) => {
            format!("kernel {next} waits until barrier {epoch} lets it through")
        }
        QueueActivity::Running => match (queue.in_flight(), before(queue, snapshot)) {
            (0, _) => "idle".to_owned(),
            (n, Some((barrier, left))) => format!(
                "{n} in flight (from kernel {next} on), {left} of them from before the change of barrier {}",
                barrier.epoch
            ),
            (n, None) if snapshot.mode == Mode::Enabled => {
                format!("{n} in flight, of which none has asked for its turn")
            }
            (n, None) => format!("{n} in flight"),
        },
    }
}

/// The oldest armed barrier that waits for the queue, and for how many of its kernels.
fn before<'a>(queue: &QueueView, snapshot: &'a Snapshot) -> Option<(&'a BarrierView, u64)> {
    let armed = |barrier: &&BarrierView| barrier.state == BarrierState::Armed;
    snapshot.barriers.iter().filter(armed).find_map(|barrier| {
        let mut waits = barrier.waits_for.iter();
        let wait = waits.find(|wait| wait.queue == queue.queue)?;
        Some((barrier, wait.until.saturating_sub(wait.completed)))
    })
}

/// What is left of the queue from before a change.
fn old_kernels(queue: &QueueView, snapshot: &Snapshot) -> Option<String> {
    let (barrier, left) = before(queue, snapshot)?;
    let (kernels, have) = match left {
        1 => ("kernel", "has"),
        _ => ("kernels", "have"),
    };
    let ago = time(barrier.age);
    Some(format!(
        "{left} {kernels} of it, dispatched before the change {ago} ago (serializing turned on or off, or a cut), {have} not ended"
    ))
}

/// Why a barrier holds anybody back.
fn reason(barrier: &BarrierView) -> String {
    format!(
        "barrier {}: kernels from after a change {} ago wait for those from before it",
        barrier.epoch,
        time(barrier.age)
    )
}

fn nanos(nanoseconds: u64) -> String {
    time(Duration::from_nanos(nanoseconds))
}

fn time(time: Duration) -> String {
    format!("{time:.1?}")
}
