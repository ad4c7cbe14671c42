//! Transitions and what follows from them: first dispatches, drains, queues that come and go.

#![expect(missing_docs, reason = "criterion's macro makes a public function")]

mod groups;

use criterion::{Criterion, criterion_group, criterion_main};

fn transitions(c: &mut Criterion) {
    groups::run(c, measure::catalogue::rare());
}

criterion_group!(benches, transitions);
criterion_main!(benches);
