//! Invariant 7: after a shutdown has finished nothing calls the runtime; here with a late callback of
//! a queue that it removes.
//!
//! What it fears: the callback found the queue alive, and reads its `ready` signal when that is
//! destroyed, or when the shutdown has said that it has finished; or it takes the -1 that was for the
//! handler's last call, and the handler stays registered for ever. What holds it: the signal is
//! destroyed by a deferred function, which waits for the callback's pin and for which finishing waits;
//! and who took the -1 finds the queue removed, and goes.

use super::agent::Agent;
use super::ending::try_finish;
use hsa_serializer::{Handler, Step};
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::disabled();
    let q0 = agent.queue();
    let (s, sim, id) = (agent.serializer.clone(), agent.sim.clone(), q0.id());
    together(
        &agent.domain,
        move || {
            if s.ready(id) == Handler::Drop {
                sim.unwatch(id);
            }
        },
        || try_finish(&agent.serializer, &agent.sim, 2),
    );
    agent.shut_down(vec![q0]);
}

pub(crate) static MODEL: Model = Model {
    name: "finish against ready",
    bound: 2,
    quick: 1,
    run,
    controls: &[(Step::DeferSignals, "a destroyed signal was")],
};
