//! Arbitrary bytes as a trace file: an error or a trace, never a panic, and within the limit.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(trace) = traces::Options::new().max_bytes(1 << 20).parse("fuzz", data) {
        assert!(!trace.kernels.is_empty());
        assert!(trace.kernels.iter().all(|k| k.start_ns <= k.end_ns));
    }
});
