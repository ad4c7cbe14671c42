//! Invariant 2, where a stall is released: what a barrier's end says is true.
//!
//! What it fears: of two barriers that stall the newer one is forced. Work that it held back runs, on
//! a queue that the older one still counts, and its completions pass for those that the older one
//! waits for: that one clears by itself, though what it counted is running, and nobody is told. What
//! holds it: the older one is forced first.

use super::agent::Agent;
use super::ending::try_dispatch;
use hsa_serializer::{StallPolicy, Step};
use loom_tests::{Model, together};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(1);

fn run() {
    let agent = Agent::disabled();
    let (mut q0, mut q1) = (agent.queue(), agent.queue());
    let (t0, _) = try_dispatch(&mut q0, &agent.sim).expect("open");
    agent.serializer.enable().expect("a signal");
    // It is waited for by nobody's kernel but this one, or it would be superseded.
    let (t1, lost) = try_dispatch(&mut q1, &agent.sim).expect("open");
    agent.serializer.disable().expect("reserved");
    let (t2, mut packets) = try_dispatch(&mut q0, &agent.sim).expect("open");
    let transition = packets.pop().expect("the barrier is armed");
    let mut watch = agent.serializer.watch_stalls(LONG, StallPolicy::Release);
    let _ = watch.check_stalls(Duration::ZERO);
    let (s, sim) = (agent.serializer.clone(), agent.sim.clone());
    let (behind, _) = together(
        &agent.domain,
        move || {
            if !sim.can_run(&transition) {
                return Some((t2, vec![transition]));
            }
            sim.run(transition);
            s.complete(t2).expect("counted");
            None
        },
        || [1, 2].map(|i| watch.check_stalls(LONG * i)),
    );
    let counted = agent.serializer.statistics();
    agent.sim.expect(
        counted.cleared == 0,
        "a barrier cleared while what it counted was running",
    );
    agent
        .sim
        .expect(counted.forced == 2, "a stall was not released");
    agent.sim.raise();
    if let Some(behind) = behind {
        agent.run_through(behind);
    }
    agent.complete(t0);
    lost.into_iter().for_each(|packet| agent.sim.lose(packet));
    agent.serializer.queue_destroyed(q1.id()).expect("alive");
    drop((t1, watch));
    agent.shut_down(vec![q0, q1]);
}

pub(crate) static MODEL: Model = Model {
    name: "force older first",
    bound: 3,
    quick: 2,
    run,
    controls: &[(Step::ForceOlderFirst, "cleared while what it counted")],
};
