//! Arbitrary bytes as a trace file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_tests::trace_reader(data));
