//! Cases for proptest. They are drawn by the same table as a fuzzer's and shrink by losing
//! operations.

use crate::operation::{Case, Operation, Setup};
use proptest::collection::vec;
use proptest::prelude::*;

/// Cases of up to so many operations.
pub fn cases(operations: usize) -> impl Strategy<Value = Case> {
    let setup = (any::<u8>(), any::<u8>()).prop_map(|(choice, seed)| Setup::of(choice, seed));
    let operation =
        (any::<u8>(), any::<u8>(), any::<u8>()).prop_map(|(kind, a, b)| Operation::of(kind, a, b));
    (setup, vec(operation, 0..=operations))
        .prop_map(|(setup, operations)| Case { setup, operations })
}
