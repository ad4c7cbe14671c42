//! Every report reaches the host, or is counted among the lost.
//!
//! What it fears: two threads report at once and there is room for one. The other's is lost, and by the
//! time that it counts it nobody is left who delivers; or both tell the host of the same loss. What
//! holds it: who has noted a report delivers afterwards, also where the queue is empty; and the number
//! of the lost is taken away by exchange. The order in which reports come out matters to nobody.

use hsa_serializer::{BarrierSet, Domain, OnMisuse, Serializer, Step, Ticket};
use loom_tests::{Model, Sim, together};

fn run() {
    let (sim, domain) = (Sim::new(), Domain::new());
    sim.is_misused();
    let builder = Serializer::<Sim>::builder();
    let builder = builder.domain(domain.clone()).on_misuse(OnMisuse::GoOn);
    let set = BarrierSet::with(builder, sim.clone());
    let other = set.clone();
    let foreign = || Ticket::from_raw([0, 0]);
    let refused = together(
        &domain,
        move || other.complete(foreign()).is_err(),
        || set.complete(foreign()).is_err(),
    );
    sim.expect(refused == (true, true), "a foreign ticket was counted");
    let (given, lost) = sim.reports();
    sim.expect(
        given + lost >= 2,
        "a report was neither delivered nor counted",
    );
    sim.expect(given + lost <= 2, "a lost report was counted twice");
    drop(set);
    sim.finish();
}

pub(crate) static MODEL: Model = Model {
    name: "reports of two",
    bound: 4,
    quick: 3,
    run,
    controls: &[
        (Step::DroppedIsRead, "neither delivered nor counted"),
        (Step::DroppedBySwap, "a lost report was counted twice"),
    ],
};
