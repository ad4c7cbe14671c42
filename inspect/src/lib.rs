//! Looking at serializers from outside: [snapshots](hsa_serializer::Snapshot) as a graph, as a picture and as
//! JSON; [events](hsa_serializer::Event) for `tracing`, and as [timelines](timeline).
//!
//! The core has none of this, so that who only serializes does not build it.
//!
//! ```
//! use hsa_serializer::{Serializer, doc_runtime::Host};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let serializer = Serializer::<Host>::builder().agent(0xa001).build(Host::default());
//! let queue = serializer.add_queue()?;
//! let now = serializer.snapshot();
//! println!("{now}"); // for people
//! println!("{}", hsa_serializer_inspect::dot([&now])); // for Graphviz
//! assert_eq!(hsa_serializer_inspect::json(&now)["agent"], "0xa001");
//! # drop(queue); serializer.leave(); Ok(()) }
//! ```
//!
//! # A process that hangs
//! [`hsa_serializer_print_all`] is there for a debugger to call:
//! `gdb -p PID -batch -ex 'call (void) hsa_serializer_print_all()'`. In a program of the host's own,
//! [`snapshots`] gives the same as data.

mod drawing;
mod graph;
mod stall;
pub mod timeline;
mod traced;
mod value;

pub use graph::dot;
pub use hsa_serializer::{hsa_serializer_print_all, snapshots};
pub use stall::{Stalled, stall_svg};
pub use traced::Traced;
pub use value::json;
