//! Any sequence of operations, side by side with the sequential model.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_tests::operations(data));
