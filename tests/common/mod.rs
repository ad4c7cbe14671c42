//! What tests on the emulated GPU share: a profiler on each agent, a runtime that can be looked into,
//! and an end that leaves nothing. Each test target uses its own part of it.
#![allow(dead_code, reason = "each test target uses its own part")]

pub(crate) mod spy;
pub(crate) mod stage;
