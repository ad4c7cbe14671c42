//! Invariant 5: the token is never doubled; here where the holder is overtaken as it completes.
//!
//! What it fears: the stall's release and the completion both give the token on, and two queues hold
//! it, or it is counted as free while somebody has it. What holds it: overtaking and completing race
//! for the queue's state by compare-exchange, and the completion of a grant that was overtaken
//! releases nothing.

use super::agent::Agent;
use hsa_serializer::{StallPolicy, Step};
use loom_tests::{Model, together};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(1);

fn run() {
    let agent = Agent::new();
    let (q0, t0, block0) = agent.arrived();
    let (q1, t1, block1) = agent.arrived();
    let ids = [q0.id(), q1.id()];
    agent.ready(ids[0]);
    agent.ready(ids[1]);
    agent.sim.run(block0);
    let mut watch = agent.serializer.watch_stalls(LONG, StallPolicy::Release);
    let _ = watch.check_stalls(Duration::ZERO);
    let (stalls, ()) = together(
        &agent.domain,
        move || watch.check_stalls(LONG),
        || agent.complete(t0),
    );
    let released = stalls.iter().filter(|stall| stall.released).count() as u64;
    let overtaken = agent.serializer.statistics().overtaken;
    agent
        .sim
        .expect(released == overtaken, "a release was not told, or not done");
    agent.run_all(vec![(t1, block1)]);
    drop((q0, q1));
    agent.finish(ids.to_vec());
}

pub(crate) static MODEL: Model = Model {
    name: "overtake against completion",
    bound: 3,
    quick: 2,
    run,
    controls: &[(
        Step::OverrunReleasesNothing,
        "given back too often or not often enough",
    )],
};
