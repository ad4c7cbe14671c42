//! Any packets, indices, doorbells and signals into the emulated GPU.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_tests::aql_rings(data));
