//! Two queues are added at once, the first ones: each has a cell and signals of its own, and there is
//! one escape signal.
//!
//! What it fears: both make the escape signal, and one of the two is never destroyed, or is waited for
//! by packets that nobody lets through. What holds it: one of them sets it, by compare-exchange, and the
//! other destroys its own.

use super::agent::{Agent, dispatch};
use hsa_serializer::Step;
use loom_tests::{Model, together};

fn run() {
    let agent = Agent::new();
    let s = agent.serializer.clone();
    let (mut q0, mut q1) = together(
        &agent.domain,
        move || s.add_queue().expect("there is room"),
        || agent.queue(),
    );
    agent
        .sim
        .expect(q0.id() != q1.id(), "two queues have one cell");
    agent.sim.raise();
    let waiting = [&mut q0, &mut q1].map(|queue| {
        let kernel = dispatch(queue, &agent.sim);
        agent.sim.run(kernel.ready);
        agent.ready(queue.id());
        (kernel.ticket, kernel.block)
    });
    agent.run_all(waiting.into());
    let ids = vec![q0.id(), q1.id()];
    drop((q0, q1));
    agent.finish(ids);
}

pub(crate) static MODEL: Model = Model {
    name: "two queues added",
    bound: 3,
    quick: 2,
    run,
    controls: &[(Step::EscapeByExchange, "a signal was left")],
};
