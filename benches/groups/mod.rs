//! Criterion over the catalogue.

use criterion::Criterion;
use measure::catalogue::Group;

/// Runs all benches of these groups.
pub(crate) fn run(c: &mut Criterion, groups: Vec<Group>) {
    for group in groups {
        let mut runs = c.benchmark_group(group.name);
        for bench in group.benches {
            // Prepared once, and only if criterion's filter lets it come to that.
            let mut shape = None;
            runs.bench_function(&bench.name, |b| {
                b.iter_custom(|n| shape.get_or_insert_with(|| bench.make()).run(n));
            });
        }
        runs.finish();
    }
}
