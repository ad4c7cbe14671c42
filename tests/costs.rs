//! What the crate costs where that is counted and not timed: memory, allocations, writes to signals.
//!
//! What is timed is checked by `cargo xtask bench-check`; how each figure comes about is in `measure`.

use measure::allocations::{Counting, during};
use measure::exact;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_allocator_counts() {
    let (allocated, kept) = during(|| (vec![0_u8; 100], drop(vec![0_u8; 50])).0);
    assert_eq!((allocated.times, allocated.bytes), (2, 100));
    drop(kept);
}

#[test]
fn dispatches_first_ones_completions_and_readies_allocate_nothing() {
    for step in exact::steps() {
        assert_eq!(step.allocated.times, 0, "{}", step.what);
    }
}

#[test]
fn a_completion_allocates_only_where_it_reclaims() {
    let [drains, retires] = exact::reclaiming();
    // A block holds four tags.
    assert!(drains.allocated.times <= 100 / 4, "{drains:?}");
    // The collector's block for the barrier, and now and then one for a block of tags.
    assert!(retires.allocated.times <= 100 + 100 / 4, "{retires:?}");
}

#[test]
fn a_queue_takes_384_bytes() {
    // Among them those for which most is made and not used: just over a chunk.
    for queues in [64, 65, 100, 512, 513, 1024, 1025] {
        let bytes = exact::bytes_per_queue(queues);
        assert!(bytes <= 384.0, "{bytes} bytes each of {queues}");
    }
}

#[test]
fn a_barrier_takes_128_bytes_and_16_for_each_queue_that_it_concerns() {
    for queues in [1, 8, 32] {
        let bytes = exact::bytes_per_barrier(512, queues);
        let most = 128.0 + 16.0 * (queues + 1) as f64;
        assert!(bytes <= most, "{bytes} bytes over {queues} queues");
    }
}

#[test]
fn ten_thousand_toggles_behind_a_long_kernel_have_two_live_barriers() {
    assert_eq!(exact::barriers_behind_a_long_kernel(10_000), 2);
}

#[test]
fn a_completion_grants_the_next_kernel_by_three_writes_to_signals() {
    assert_eq!(exact::writes_per_grant(), 3);
}
