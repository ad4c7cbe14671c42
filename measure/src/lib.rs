//! How each figure of the crate is measured: one place for the benches, for the tests of what is
//! counted, and for `cargo xtask bench-check`.
//!
//! What is measured is a [`Shape`]: something that does an operation so many times and says how
//! long that took. Whoever measures chooses how often and beside what.
//!
//! | module | holds |
//! |---|---|
//! | [`shape`] | shapes, on one thread and on two |
//! | [`signals`] | a `Runtime` whose signals are atomics and nothing else |
//! | [`bare`] | what the machine asks: the limit, a pin, an empty call; lists of barriers by other means |
//! | [`hot`] | dispatch and completion, kernels unserialized, on one thread |
//! | [`serialized`] | the token: ready, grant, completion |
//! | [`c_abi`] | the hot calls through the C interface |
//! | [`rare`] | transitions, first dispatches, drains, queues that come and go |
//! | [`pairs`] | two threads |
//! | [`yardstick`] | the same job by any serializer, through the trait by which profilers use one |
//! | [`latency`] | a histogram of single calls while others toggle and complete |
//! | [`instructions`] | instructions, by callgrind, and whether they have grown |
//! | [`allocations`], [`exact`] | what is counted and not timed: memory, allocations, stores, live barriers |
//! | [`compare`], [`verdict`], [`table`] | interleaved comparison; what is met, missed, too noisy; the targets |
//! | [`catalogue`] | everything that is timed, for criterion and for the documents |
//! | [`plot`], [`report`], [`documents`] | pictures, tables, and where they stand |

pub mod allocations;
pub mod bare;
pub mod c_abi;
pub mod catalogue;
pub mod compare;
pub mod documents;
pub mod exact;
pub mod hot;
pub mod instructions;
pub mod latency;
pub mod pairs;
pub mod plot;
pub mod rare;
pub mod report;
pub mod serialized;
pub mod shape;
pub mod signals;
pub mod table;
pub mod verdict;
pub mod yardstick;

pub use shape::Shape;
pub use signals::Signals;
