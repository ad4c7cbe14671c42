//! Any sequence of operations, side by side with the sequential model: no invariant is broken.
#![no_main]

libfuzzer_sys::fuzz_target!(|case: model::Case| {
    if let Err(violation) = model::run(&case) {
        panic!("{violation}\n{case:?}");
    }
});
