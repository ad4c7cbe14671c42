//! Invariant 2, where everything is let through: a barrier clears before its last counted dispatch
//! only if that is told, and nobody is blamed for it.
//!
//! What it fears: a kernel behind a transition packet is let through by the escape signal, and is
//! reported before its barrier was cleared by force: it looks like a completion that the host made
//! up. What holds it: barriers are cleared by force before the escape signal opens.

use super::agent::Agent;
use super::ending::try_dispatch;
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::disabled();
    let (mut q0, mut q1) = (agent.queue(), agent.queue());
    let old = try_dispatch(&mut q0, &agent.sim).expect("open");
    agent.serializer.enable().expect("a signal");
    agent.serializer.disable().expect("reserved");
    let (t1, mut packets) = try_dispatch(&mut q1, &agent.sim).expect("open");
    let transition = packets.pop().expect("the barrier is armed");
    let (s, sim) = (agent.serializer.clone(), agent.sim.clone());
    let (behind, ()) = together(
        &agent.domain,
        move || {
            if !sim.can_run(&transition) {
                return Some((t1, vec![transition]));
            }
            sim.run(transition);
            s.complete(t1).expect("counted");
            None
        },
        || agent.serializer.release_all(),
    );
    agent.sim.raise();
    if let Some(behind) = behind {
        agent.run_through(behind);
    }
    let counted = agent.serializer.statistics();
    agent.sim.expect(
        counted.forced == 1 && counted.cleared == 0,
        "a barrier cleared before its last dispatch, and it was not told",
    );
    agent.run_through(old);
    agent.shut_down(vec![q0, q1]);
}

pub(crate) static MODEL: Model = Model {
    name: "release against transition packet",
    bound: 3,
    quick: 2,
    run,
    controls: &[(
        Step::ForceBeforeEscape,
        "behind an armed barrier was reported",
    )],
};
