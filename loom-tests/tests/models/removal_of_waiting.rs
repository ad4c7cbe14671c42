//! Invariants 5 and 6: a queue that waits for the token is destroyed, while the holder releases it.
//!
//! What it fears: the removal releases a token that its queue did not hold, and two queues run at
//! once; or the granter grants to the queue that goes, and nobody else is. What holds it: the
//! removal learns by one swap what its queue was doing, and releases only what was granted. And the
//! granter may be about to store to the `block` signal of the queue that goes: what holds that is that
//! a queue's signals are destroyed by deferred functions, which wait for the granter's pin.

use super::agent::Agent;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let (q0, t0, block0) = agent.arrived();
    let (q1, t1, block1) = agent.arrived();
    let ids = [q0.id(), q1.id()];
    agent.ready(ids[0]);
    agent.ready(ids[1]);
    let (s, sim, gone) = (agent.serializer.clone(), agent.sim.clone(), ids[1]);
    agent.sim.run(block0);
    let ((), ()) = together(
        &agent.domain,
        move || {
            sim.lose(block1);
            s.queue_destroyed(gone).expect("alive");
            let _ = s.ready(gone);
        },
        || agent.complete(t0),
    );
    agent.complete(t1);
    // The token is free: the next queue gets it at once.
    let (q2, t2, block2) = agent.arrived();
    let third = q2.id();
    agent.ready(third);
    agent.run_all(vec![(t2, block2)]);
    drop((q0, q1, q2));
    agent.finish(vec![ids[0], third]);
}

pub(crate) static MODEL: Model = Model {
    name: "removal of a waiting queue",
    bound: 3,
    quick: 2,
    run,
    controls: &[
        (Step::ReleaseOnlyIfGranted, "a granter found no ready queue"),
        (Step::DeferSignals, "a destroyed signal was stored to"),
    ],
};
