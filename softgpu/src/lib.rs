//! An emulated HSA GPU that checks who uses it.
//!
//! It behaves as the HSA specifications say where a profiler that serializes kernels can tell:
//! queues with rings, doorbells and INVALID headers; launch in order; the barrier bit; barrier-AND
//! and barrier-OR; completion signals; kernels that last and may end out of order; asynchronous
//! handlers; an interceptor under the queue's lock; queues that go with packets pending; handles
//! that are recycled last in, first out. It computes nothing: kernels only take time.
//!
//! A profiler is written against a [`Gpu`], which is run in one of two ways:
//!
//! - [`VirtualGpu`]: virtual time, one thread, and a seed that every choice of order comes from;
//! - [`ThreadedGpu`]: real threads, one for each queue and some for the handlers.
//!
//! The [`Witness`] checks what happened by packets, signals and clock alone, and a [`Stuck`] says
//! who waits for whom when nothing can go on.
//!
//! ```
//! use hsa_sys::SignalCondition;
//! use softgpu::{Config, Kernel, QueueConfig, SignalKind, VirtualGpu};
//!
//! let mut gpu = VirtualGpu::new(Config::seed(1));
//! let queue = gpu.create_queue(gpu.agent(0), QueueConfig::default())?;
//! let done = gpu.signals().create(1, SignalKind::Interrupt)?;
//! gpu.signals().on_signal(done, SignalCondition::Lt, 1, Box::new(|value| {
//!     assert_eq!(value, 0);
//!     false
//! }))?;
//! queue.submit(&[Kernel::lasting(5_000).completion(done).packet()])?;
//! gpu.run_until_idle().map_err(|stuck| println!("{stuck}")).unwrap();
//! assert_eq!(gpu.witness().kernels(gpu.agent(0)).ended, 1);
//! # Ok::<(), hsa_sys::hsa_status_t>(())
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `gpu` | the machine and its handle |
//! | `virtual_time`, `threads` | the two ways to run it |
//! | `queue`, `ring`, [`processor`], `bus`, `kernel` | the way of a packet |
//! | `signal`, `history`, `handler` | signals, what became of them, who hears of them |
//! | `witness`, `period`, `violation` | the checks |
//! | `report` | who waits for whom |
//! | `fault`, `dice`, `clock`, `wake`, `shared` | what the others stand on |
#![forbid(unsafe_code)]

mod bus;
mod clock;
mod dice;
mod fault;
mod gpu;
mod handler;
mod history;
mod kernel;
mod period;
pub mod processor;
mod queue;
mod report;
mod ring;
mod shared;
mod signal;
mod threads;
mod violation;
mod virtual_time;
mod wake;
mod witness;

pub use fault::{Failure, FaultPlan, Faults};
pub use gpu::{Config, Gpu};
pub use handler::HandlerStats;
pub use history::{Event, What};
pub use kernel::{Ends, Kernel, MAGIC, Runs};
pub use queue::{Interceptor, MOST_SLOTS, Queue, QueueConfig, QueueState};
pub use report::{SignalView, Stuck, Wait, Waits};
pub use signal::{SignalKind, SignalPool, SignalStats};
pub use threads::ThreadedGpu;
pub use violation::{Counts, KernelView, QueueId, Violation};
pub use virtual_time::{Step, VirtualGpu};
pub use witness::{KernelStats, RanKernel, Witness};
