//! Invariants 5 and 6: the queue that holds the token is destroyed as it is overtaken.
//!
//! What it fears: both give the token on, or neither does. What holds it: one of the two finds the
//! queue granted, by compare-exchange here and by swap there, and a removal releases only what was
//! granted.

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
    let (s, gone) = (agent.serializer.clone(), ids[0]);
    let ((), _) = together(
        &agent.domain,
        move || {
            s.queue_destroyed(gone).expect("alive");
            let _ = s.ready(gone);
        },
        move || watch.check_stalls(LONG),
    );
    // Its kernel was under way, and is reported late.
    agent.complete(t0);
    // The other one goes as well while it holds the token: a queue that is removed idle would not
    // show which of the two released too much.
    agent.sim.run(block1);
    drop((q0, q1, t1));
    agent.finish(vec![ids[1]]);
}

pub(crate) static MODEL: Model = Model {
    name: "overtake against removal",
    bound: 3,
    quick: 2,
    run,
    controls: &[(
        Step::ReleaseOnlyIfGranted,
        "given back too often or not often enough",
    )],
};
