//! The part of HSA's interface that profilers need, as Rust types and functions.
//!
//! Names, layouts and values are those of the *HSA Platform System Architecture Specification* 1.2
//! and the *HSA Runtime Programmer's Reference Manual* 1.2 (`hsa.h`), and of AMD's extension
//! (`hsa_ext_amd.h`, `hsa_api_trace.h`), so that who knows one finds the other. Each of them is
//! compared with the headers by a test, which ran against those of ROCr 5.2.3 and 6.1.2.
//!
//! | module | holds | where it is specified |
//! |---|---|---|
//! | [`handle`] | opaque handles and signal conditions | Runtime 2.4, 2.5 |
//! | [`packet`] | the 64-byte AQL packets and their header bits | System 2.9; Runtime 2.6 |
//! | [`status`] | status codes with their names | Runtime 2.2; `hsa_ext_amd.h` |
//! | [`agent`] | what can be asked of the system and of an agent | Runtime 2.3; `hsa_ext_amd.h` |
//! | [`signal`] | kinds of signals, `amd_signal_t`, profiling times | Runtime 2.4; `amd_hsa_signal.h` |
//! | [`queue`] | `hsa_queue_t`, `amd_queue_t`, priorities | Runtime 2.5; `amd_hsa_queue.h` |
//! | [`memory`] | memory pools | `hsa_ext_amd.h` |
//! | [`code`] | loaded kernels and their names | Runtime 2.8 |
//! | [`functions`] | the list of functions, and where each is in the runtime's tables | |
//! | [`api`] | the functions ready to be called ([`Api`]), callbacks, [`OnLoad`] | |
//! | [`table`](mod@table) | the tables that the runtime hands to a tool ([`Tables`]) | `hsa_api_trace.h` |
//! | `load` | the library, loaded at run time ([`Api::load`](api::Api#method.load); feature `load`) | |
//!
//! A tool is given the tables ([`OnLoad`]), saves what is in them ([`Api::from_tables`]), and puts
//! its own functions in ([`Tables::replace`]). A program loads the library. Neither links against
//! the runtime: without the feature `load` this crate has no dependencies.
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

mod constants;

pub mod agent;
pub mod api;
pub mod code;
pub mod functions;
pub mod handle;
#[cfg(feature = "load")]
pub mod load;
pub mod memory;
pub mod packet;
pub mod queue;
pub mod signal;
pub mod status;
pub mod table;

pub use agent::*;
pub use api::*;
pub use code::*;
pub use handle::*;
#[cfg(feature = "load")]
pub use load::*;
pub use memory::*;
pub use packet::*;
pub use queue::*;
pub use signal::*;
pub use status::*;
pub use table::*;
