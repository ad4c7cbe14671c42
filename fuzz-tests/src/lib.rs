//! The fuzz targets of `fuzz/`: what each does with an input's bytes.
//!
//! They stand in a crate of their own so that stable `cargo test` runs the same code, on the
//! committed seeds and findings (`tests/replay.rs`) and on random bytes.

use arbitrary::{Arbitrary, Unstructured};

pub mod c_abi;
#[path = "../../capi/tests/misuse/host.rs"]
#[allow(dead_code, reason = "the interface's own tests ask more of it")]
mod host;
mod pool;
pub mod rings;

/// A target's name, and what it does with an input: it panics where something is wrong.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 4] = [
    ("operations", operations),
    ("aql_rings", aql_rings),
    ("c_abi", calls_of_c),
    ("trace_reader", trace_reader),
];

fn decode<'a, T: Arbitrary<'a>>(data: &'a [u8]) -> Option<T> {
    T::arbitrary_take_rest(Unstructured::new(data)).ok()
}

/// Any sequence of operations, side by side with the sequential model: no invariant is broken.
///
/// # Panics
/// If one is.
pub fn operations(data: &[u8]) {
    let Some(case) = decode::<model::Case>(data) else {
        return;
    };
    if let Err(violation) = model::run(&case) {
        panic!("{violation}\n{case:?}");
    }
}

/// Any packets, indices, doorbells and signals into the emulated GPU: it does what HSA says.
///
/// # Panics
/// If it does not.
pub fn aql_rings(data: &[u8]) {
    let Some(case) = decode::<rings::Case>(data) else {
        return;
    };
    if let Err(violation) = rings::run(&case) {
        panic!("{violation}\n{case:?}");
    }
}

/// Any calls of the C interface: each comes to what its arguments deserve.
///
/// # Panics
/// If one does not.
pub fn calls_of_c(data: &[u8]) {
    if let Some(case) = decode::<c_abi::Case>(data) {
        c_abi::run(&case);
    }
}

/// Arbitrary bytes as a trace file: an error that names the file, or a trace that holds together.
///
/// # Panics
/// If it is neither.
pub fn trace_reader(data: &[u8]) {
    match traces::Options::new()
        .max_bytes(1 << 20)
        .parse("fuzz", data)
    {
        Err(error) => assert!(error.to_string().starts_with("fuzz: ")),
        Ok(trace) => {
            assert_eq!(trace.kernels.first().map(|kernel| kernel.start_ns), Some(0));
            assert!(trace.kernels.is_sorted_by_key(|kernel| kernel.start_ns));
            for kernel in &trace.kernels {
                assert!(kernel.start_ns <= kernel.end_ns);
                assert!(trace.origin_ns.checked_add(kernel.end_ns).is_some());
                assert_eq!(trace.queues[kernel.queue as usize].agent, kernel.agent);
            }
        }
    }
}
