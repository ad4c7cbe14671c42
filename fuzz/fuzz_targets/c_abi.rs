//! Any calls of the C interface, with any handles, tickets and numbers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_tests::calls_of_c(data));
