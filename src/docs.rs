//! Long documents. Nothing here is code; the examples in them run as tests.

#[doc = include_str!("../docs/algorithm.md")]
pub mod algorithm {}

#[doc = include_str!("../docs/integrating.md")]
pub mod integrating {}

#[doc = include_str!("../docs/verification.md")]
pub mod verification {}
