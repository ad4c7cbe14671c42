//! Two threads: on queues of their own, and one dispatching what the other completes.

#![expect(missing_docs, reason = "criterion's macro makes a public function")]

mod groups;

use criterion::{Criterion, criterion_group, criterion_main};

fn threads(c: &mut Criterion) {
    groups::run(c, measure::catalogue::threads());
}

criterion_group!(benches, threads);
criterion_main!(benches);
