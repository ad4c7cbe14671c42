//! The part of HSA's interface that profilers need, as Rust types.
//!
//! Names, layouts and values are those of the *HSA Platform System Architecture Specification* 1.2
//! and the *HSA Runtime Programmer's Reference Manual* 1.2 (`hsa.h`), so that who knows one finds
//! the other. This crate has no dependencies and calls nothing: it is types and constants.
//!
//! | module | holds | specification |
//! |---|---|---|
//! | [`handle`] | opaque handles and signal conditions | Runtime 2.4, 2.5 |
//! | [`packet`] | the 64-byte AQL packets and their header bits | System 2.9; Runtime 2.6 |
//! | [`status`] | status codes with their names | Runtime 2.2 |
//!
//! ```
//! use hsa_sys::{hsa_barrier_and_packet_t, AqlPacket, PacketType};
//!
//! let packet = AqlPacket::from(hsa_barrier_and_packet_t::default());
//! assert_eq!(packet.packet_type(), Some(PacketType::BarrierAnd));
//! assert_eq!(size_of::<AqlPacket>(), 64);
//! ```
#![allow(
    non_camel_case_types,
    reason = "the names are those of hsa.h, so that they can be looked up there"
)]

pub mod handle;
pub mod packet;
pub mod status;

pub use handle::*;
pub use packet::*;
pub use status::*;
