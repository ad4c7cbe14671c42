//! Invariant 2, where a cut is withdrawn: what is let go that need not be is not said, and does not
//! happen.
//!
//! What it fears: an older barrier is forced on behalf of the cut's, and a transition supersedes that one
//! before it is forced itself: all that it held back is held back still, and the older one was forced for
//! nothing. What holds it: the transition lock.

use super::agent::Agent;
use super::ending::try_dispatch;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::disabled();
    let (mut q0, mut q1) = (agent.queue(), agent.queue());
    let first = try_dispatch(&mut q0, &agent.sim).expect("open");
    let older = agent.serializer.cut().expect("a signal");
    // It is waited for by somebody, or the cut would supersede it.
    let second = try_dispatch(&mut q1, &agent.sim).expect("open");
    let cut = agent.serializer.cut().expect("a signal");
    let s = agent.serializer.clone();
    let (_, withdrawn) = together(
        &agent.domain,
        move || s.enable().expect("a signal"),
        || cut.withdraw(),
    );
    let counted = agent.serializer.statistics();
    agent.sim.expect(
        counted.forced == u64::from(withdrawn) * 2,
        "a barrier was forced for nothing",
    );
    agent.sim.expect(
        counted.superseded == u64::from(!withdrawn),
        "a cut that was not superseded was not withdrawn",
    );
    drop(older);
    agent.run_through(first);
    agent.run_through(second);
    agent.shut_down(vec![q0, q1]);
}

pub(crate) static MODEL: Model = Model {
    name: "withdraw against transition",
    bound: 2,
    quick: 2,
    run,
    controls: &[(Step::ForceUnderLock, "forced for nothing")],
};
