//! Invariant 7: after a shutdown has finished nothing calls the runtime; here with a queue being
//! added.
//!
//! What it fears: the call has created signals and registered a handler of which the shutdown has not
//! heard when it looks for what is left: it finishes, and they are left, or destroyed afterwards.
//! What holds it: such a call is counted before it looks whether the serializer is open, and the
//! shutdown waits for the counted ones before it looks for what they have made.

use super::agent::Agent;
use super::ending::try_finish;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::disabled();
    let s = agent.serializer.clone();
    let (added, _) = together(
        &agent.domain,
        move || s.add_queue(),
        || try_finish(&agent.serializer, &agent.sim, 2),
    );
    agent.shut_down(added.into_iter().collect());
}

pub(crate) static MODEL: Model = Model {
    name: "finish against add_queue",
    bound: 3,
    quick: 3,
    run,
    controls: &[
        (Step::WaitForCalls, "a signal was left"),
        (Step::CallsFirst, "a signal was left"),
    ],
};
