//! Invariant 7: after a shutdown has finished nothing calls the runtime; here with the mode being
//! changed.
//!
//! What it fears: the call has created signals of which the shutdown has not heard, and destroys what
//! it did not need after the shutdown has finished. What holds it: such a call is counted before it
//! looks whether the serializer is open, and the shutdown waits for the counted ones.

use super::agent::Agent;
use super::ending::try_finish;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::disabled();
    let s = agent.serializer.clone();
    let _ = together(
        &agent.domain,
        move || s.enable(),
        || try_finish(&agent.serializer, &agent.sim, 2),
    );
    agent.shut_down(Vec::new());
}

pub(crate) static MODEL: Model = Model {
    name: "finish against enable",
    bound: 3,
    quick: 2,
    run,
    controls: &[(Step::WaitForCalls, "a signal was left")],
};
