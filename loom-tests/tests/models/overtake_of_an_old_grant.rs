//! Invariant 4, where a stall is released: a healthy grant is not overtaken.
//!
//! What it fears: a stall is seen, its kernel completes after all, and the same queue's next kernel
//! is granted before the token is taken from the queue: a kernel that has just begun is overtaken,
//! and another queue's runs beside it. What holds it: overtaking names the grant by its number.

use super::agent::{Agent, dispatch};
use hsa_serializer::{StallPolicy, Step};
use loom_tests::{Model, together};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(1);

fn run() {
    let agent = Agent::new();
    let (mut q0, t0, block0) = agent.arrived();
    let (mut q1, t1, block1) = agent.arrived();
    let [next0, next1] = [&mut q0, &mut q1].map(|queue| dispatch(queue, &agent.sim));
    let ids = [q0.id(), q1.id()];
    agent.ready(ids[0]);
    agent.ready(ids[1]);
    agent.sim.run(block0);
    let mut watch = agent.serializer.watch_stalls(LONG, StallPolicy::Release);
    let _ = watch.check_stalls(Duration::ZERO);
    let (stalls, behind) = together(
        &agent.domain,
        move || watch.check_stalls(LONG),
        || {
            agent.complete(t0);
            agent.sim.run(next0.ready);
            agent.ready(ids[0]);
            // Where the token is on its way from one to the other, it comes later.
            if !agent.sim.can_run(&block1) {
                return vec![(t1, block1)];
            }
            agent.run_all(vec![(t1, block1)]);
            Vec::new()
        },
    );
    agent.run_all(behind);
    agent.sim.run(next1.ready);
    agent.ready(ids[1]);
    let released = stalls.iter().any(|stall| stall.released);
    let overtaken = agent.serializer.statistics().overtaken == 1;
    agent
        .sim
        .expect(released == overtaken, "a release was not told, or not done");
    agent.run_all(vec![
        (next0.ticket, next0.block),
        (next1.ticket, next1.block),
    ]);
    drop((q0, q1));
    agent.finish(ids.to_vec());
}

pub(crate) static MODEL: Model = Model {
    name: "overtake of an old grant",
    bound: 3,
    quick: 2,
    run,
    controls: &[(Step::OvertakeOneGrant, "two queues were granted at once")],
};
