//! Reads traces of GPU kernels, as a profiler recorded them.
//!
//! Two formats are understood, told apart by what is in the file and not by its name:
//!
//! - **rocprofv3's kernel trace**, the CSV that `rocprofv3 --kernel-trace --output-format csv`
//!   writes. Times are nanoseconds. Columns are found by their header, in any order; needed are
//!   `Kind`, `Agent_Id`, `Queue_Id`, `Kernel_Name`, `Start_Timestamp` and `End_Timestamp`. Rows
//!   whose `Kind` is not `KERNEL_DISPATCH` are skipped. A queue is (`Agent_Id`, `Queue_Id`).
//! - **A Chrome trace as PyTorch's profiler writes it**: an object with `traceEvents`, or a bare
//!   list of events. `ts` and `dur` are microseconds (`displayTimeUnit` says only how a viewer
//!   shows them). Kernels are the complete events (`ph` `X`) of category `kernel`, or, in traces
//!   of other versions and tools, `Kernel`, `gpu_kernel` or `gpu_op`. A queue is (`args.device`,
//!   `args.stream`); an event that lacks one of them is placed by its `pid` or `tid`. A stream is
//!   not always one HSA queue, but it is the nearest thing that such a trace knows.
//!
//! Either may be gzipped, start with a byte order mark, have CRLF line ends, and be in any order.
//!
//! Everything that is not a kernel is skipped and counted ([`Skipped`]). A kernel that cannot be
//! understood is never skipped: it is a [`TraceError`] which names file, line and field. That
//! holds for the whole file, so a trace is read in full or not at all.
//!
//! [`write_csv`] writes rocprofv3's columns, so that what is measured here can be read again.
//!
//! ```
//! let csv = "\
//! Kind,Agent_Id,Queue_Id,Kernel_Name,Start_Timestamp,End_Timestamp
//! KERNEL_DISPATCH,Agent 4,1,add,1020,1050
//! KERNEL_DISPATCH,Agent 4,2,mul,1000,1030
//! ";
//! let trace = traces::parse("example.csv", csv.as_bytes())?;
//! assert_eq!((trace.kernels.len(), trace.queues.len()), (2, 2));
//! assert_eq!(&*trace.kernels[0].name, "mul"); // by start, which counts from `origin_ns`
//! assert_eq!((trace.origin_ns, trace.kernels[1].start_ns), (1000, 20));
//! # Ok::<(), traces::TraceError>(())
//! ```
#![forbid(unsafe_code)]

mod chrome;
mod collect;
mod error;
mod lines;
mod options;
mod rocprof;
mod skipped;
mod text;
mod time;
mod trace;
mod unpack;
mod write;

pub use error::{ErrorKind, TraceError};
pub use options::{Options, parse, read};
pub use skipped::{Reason, Skipped};
pub use trace::{Format, Kernel, QueueInfo, Trace};
pub use write::{Row, write_csv};
