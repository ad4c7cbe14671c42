//! Every kernel's way through the serializer, on one thread, beside the machine's limit and beside
//! locks. What each bench does is in `measure`.

#![expect(missing_docs, reason = "criterion's macro makes a public function")]

mod groups;

use criterion::{Criterion, criterion_group, criterion_main};

fn hot_path(c: &mut Criterion) {
    groups::run(c, measure::catalogue::hot());
}

criterion_group!(benches, hot_path);
criterion_main!(benches);
