//! Invariant 6: a queue's place goes to one next owner, who inherits nothing.
//!
//! What it fears: a `ready` with the id of the place's next queue, which is being added, takes the seat
//! for that of the queue that went, and then the next one's signal along. What holds it: a seat that
//! everybody has let go of is vacant before anybody sees the next generation.

use super::agent::{Agent, dispatch};
use hsa_serializer::{Handler, QueueId, Step};
use loom_tests::{Model, drain, together};

fn run() {
    let agent = Agent::new();
    let old = agent.queue();
    let gone = old.id();
    let next = QueueId::from_raw(gone.to_raw() + (1 << 24));
    let s = agent.serializer.clone();
    s.queue_destroyed(gone).expect("alive");
    let dropped = s.ready(gone) == Handler::Drop;
    agent.sim.expect(dropped, "a removed queue's handler stays");
    drop(old);
    drain(&agent.domain, || agent.serializer.collect());
    let ((), mut new) = together(
        &agent.domain,
        move || {
            let _ = s.ready(next);
        },
        || agent.queue(),
    );
    drain(&agent.domain, || agent.serializer.collect());
    agent
        .sim
        .expect(new.id() == next, "another place was taken");
    let kernel = dispatch(&mut new, &agent.sim);
    agent.sim.raise();
    agent.sim.run(kernel.ready);
    agent.ready(next);
    agent.run_all(vec![(kernel.ticket, kernel.block)]);
    drop(new);
    agent.finish(vec![next]);
}

pub(crate) static MODEL: Model = Model {
    name: "guessed id against add_queue",
    bound: 3,
    quick: 2,
    run,
    controls: &[(Step::VacantBeforeNext, "for a destroyed signal")],
};
