//! The C interface's lease: two threads dispatch on a queue one after the other, as HSA's lock has them do, while a
//! third says that it is gone.
//!
//! What it fears: the second user takes the first one's place between the ender's two steps, and the value goes under
//! it, or to nobody. What holds it: as for one user; the one that finds the value gone looks what was left, too.

use hsa_serializer::Domain;
use loom::sync::Mutex;
use loom_tests::{LeaseStep, Leased, Model, together3};
use std::sync::Arc;

fn run() {
    let (lease, lock) = (Leased::new(), Arc::new(Mutex::new(())));
    let user = |uses: fn(&Leased) -> bool| {
        let (lease, lock) = (lease.clone(), lock.clone());
        move || {
            let _alone = lock.lock().expect("nobody panics with it");
            uses(&lease)
        }
    };
    let (enters, comes) = (user(Leased::enter), user(Leased::come_and_go));
    let (_, _, ended) = together3(&Domain::new(), enters, comes, || lease.end());
    assert!(ended, "somebody else ended it");
    lease.has_ended();
}

pub(crate) static MODEL: Model<LeaseStep> = Model {
    name: "lease: two users against end",
    bound: 3,
    quick: 2,
    run,
    controls: &[
        (LeaseStep::HeavyFence, "the value was"),
        (LeaseStep::EnderLooks, "the value was dropped"),
        (LeaseStep::UserLooks, "the value was never dropped"),
    ],
};
