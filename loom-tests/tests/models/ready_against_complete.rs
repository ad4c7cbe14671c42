//! Invariant 5: every ready queue is granted; here the completing queue's own next kernel.
//!
//! What it fears: completing stores 0 to `ready`, the queue's next kernel reaches its gate at once,
//! and its handler finds the queue still granted: that kernel is never granted. What holds it: the
//! queue is idle again before `ready` is stored.

use super::agent::{Agent, dispatch};
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let (mut q0, t0, block0) = agent.arrived();
    let id = q0.id();
    let next = dispatch(&mut q0, &agent.sim);
    agent.ready(id);
    agent.sim.run(block0);
    let (s, sim) = (agent.serializer.clone(), agent.sim.clone());
    let (behind, ()) = together(
        &agent.domain,
        move || {
            if !sim.can_run(&next.ready) {
                return Err(next.ready);
            }
            sim.run(next.ready);
            let _ = s.ready(id);
            Ok(())
        },
        || agent.complete(t0),
    );
    if let Err(ready) = behind {
        agent.sim.run(ready);
        agent.ready(id);
    }
    agent.run_all(vec![(next.ticket, next.block)]);
    drop(q0);
    agent.finish(vec![id]);
}

pub(crate) static MODEL: Model = Model {
    name: "ready against complete",
    bound: 4,
    quick: 3,
    run,
    controls: &[(Step::IdleBeforeReady, "which was not idle")],
};
