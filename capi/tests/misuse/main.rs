//! What C may do wrong, function by function and argument by argument: each comes to its status, writes nothing,
//! and changes nothing.
//!
//! Tickets are told apart more exactly in a checked build, so both builds are tested:
//!
//! ```text
//! cargo test -p hsa-serializer-capi --test misuse
//! cargo test -p hsa-serializer-capi --test misuse --features checked
//! ```

mod anything;
mod arguments;
mod arrays;
mod callbacks;
mod concurrency;
mod declared;
#[path = "../../../tests/hsa_runtime/fake.rs"]
#[allow(dead_code, reason = "the crate's own tests ask more of it")]
mod fake;
mod fork;
mod handles;
mod host;
mod lifecycle;
mod table;
mod tickets;
mod world;
