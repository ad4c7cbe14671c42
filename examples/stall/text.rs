//! What is printed of a run.

use crate::run::{Cost, End, Run, Who};
use hsa_serializer::{Stall, StallPolicy};
use softgpu::{SignalView, Stuck, Waits};
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// Who serializes.
pub(crate) fn who(who: Who) -> &'static str {
    match who {
        Who::Nobody => "unserialized",
        Who::Locked => "under locks",
        Who::Crate(StallPolicy::Report, _) => "this crate, report",
        Who::Crate(..) => "this crate, release",
    }
}

/// All that is said about a run.
pub(crate) fn of(run: &Run) -> impl Display + '_ {
    struct Text<'a>(&'a Run);

    impl Display for Text<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            let run = self.0;
            let took = milliseconds(run.took);
            write!(f, "  {:<21}", who(run.who))?;
            match &run.end {
                End::Hangs(stuck) => {
                    writeln!(f, "hangs: not at its end after {took}")?;
                    waits(f, stuck)
                }
                End::Named(stalls, then) => {
                    writeln!(f, "hangs, and was named after {took}:")?;
                    stalls.iter().try_for_each(|s| stall(f, run, s))?;
                    writeln!(f, "    Its snapshot then:")?;
                    let text = then.to_string();
                    text.lines()
                        .try_for_each(|line| writeln!(f, "      {line}"))
                }
                End::Finished => {
                    writeln!(f, "at its end after {took}")?;
                    run.released.iter().try_for_each(|s| stall(f, run, s))?;
                    cost(f, run)
                }
            }
        }
    }

    Text(run)
}

fn milliseconds(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1e3)
}

/// A serializer is of one agent, so it does not name it.
fn stall(f: &mut Formatter<'_>, run: &Run, stall: &Stall) -> fmt::Result {
    let text = format!("agent {:#x}: {stall}", run.agent.handle);
    text.lines().try_for_each(|line| writeln!(f, "    {line}"))
}

fn cost(f: &mut Formatter<'_>, run: &Run) -> fmt::Result {
    write!(f, "    kernels side by side: {} at most", run.most_running)?;
    if run.who == Who::Nobody {
        return writeln!(f);
    }
    let Cost { forced, overtaken } = run.cost;
    writeln!(
        f,
        ", of which {} started beside another's turn, the price of going on\n    losses of exclusiveness, as counted: \
         {forced} forced, {overtaken} overtaken",
        run.overlaps
    )
}

/// Who waits for whom, of the packets and kernels.
fn waits(f: &mut Formatter<'_>, stuck: &Stuck) -> fmt::Result {
    for wait in &stuck.waits {
        let (queue, packet) = (wait.queue, wait.packet);
        match &wait.waits {
            Waits::KernelUntil(signal) => {
                writeln!(
                    f,
                    "    {queue} packet {packet} runs until {}",
                    value(signal)
                )?;
            }
            Waits::Barrier(_, signals) => {
                let signals: Vec<_> = signals.iter().map(value).collect();
                let signals = signals.join(" or ");
                writeln!(f, "    {queue} packet {packet} waits until {signals}")?;
            }
            other => writeln!(f, "    {queue} packet {packet} {other}")?,
        }
    }
    Ok(())
}

fn value(signal: &SignalView) -> String {
    format!("{:?} is 0 (it is {})", signal.label, signal.value)
}
