//! Loom models of the serializer, over the real crossbeam-epoch.
//!
//! Empty without `--cfg hsa_serializer_loom --cfg crossbeam_loom`, which `cargo xtask loom` gives.
//! The models are in `tests/models`, one question a file; here is what they stand on: `Sim`, a
//! runtime whose signals loom sees; `Model`, and `main`, which explores each model and then
//! explores it again without each of its guards, when it has to fail.

#[cfg(hsa_serializer_loom)]
mod check;
#[cfg(hsa_serializer_loom)]
#[allow(dead_code, reason = "the models have what a call does")]
#[path = "../../capi/src/lease.rs"]
mod lease;
#[cfg(hsa_serializer_loom)]
mod leased;
#[cfg(hsa_serializer_loom)]
mod limits;
#[cfg(hsa_serializer_loom)]
mod race;
#[cfg(hsa_serializer_loom)]
mod sim;
#[cfg(hsa_serializer_loom)]
mod sync;
#[cfg(hsa_serializer_loom)]
mod table;

#[cfg(hsa_serializer_loom)]
pub use check::{Explored, Guard, Model};
#[cfg(hsa_serializer_loom)]
pub use leased::Leased;
#[cfg(hsa_serializer_loom)]
pub use race::{drain, together, together3};
#[cfg(hsa_serializer_loom)]
pub use sim::{Packet, Sim};
#[cfg(hsa_serializer_loom)]
pub use sync::Step as LeaseStep;
#[cfg(hsa_serializer_loom)]
pub use table::main;
