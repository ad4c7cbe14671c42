//! What a trace is once it has been read.

use std::fmt;
use std::sync::Arc;

use crate::{Row, Skipped};

/// A trace: its kernels, and the names of where they ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The kernels, by start, then by end, then as they stand in the file. Never empty.
    pub kernels: Vec<Kernel>,
    /// The agents (GPUs) by [`Kernel::agent`], as the file names them, in natural order.
    pub agents: Vec<String>,
    /// The queues by [`Kernel::queue`], by agent and then in natural order.
    pub queues: Vec<QueueInfo>,
    /// The earliest start on the file's own clock. All other times count from it.
    pub origin_ns: u64,
    /// What the file holds besides kernels.
    pub skipped: Skipped,
    /// What the file was.
    pub format: Format,
}

impl Trace {
    /// The kernels as [`write_csv`](crate::write_csv) takes them, on the file's own clock.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.kernels.iter().map(|kernel| Row {
            agent: &self.agents[kernel.agent as usize],
            queue: &self.queues[kernel.queue as usize].name,
            name: &kernel.name,
            start_ns: self.origin_ns.saturating_add(kernel.start_ns),
            end_ns: self.origin_ns.saturating_add(kernel.end_ns),
        })
    }
}

/// One kernel that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Its name. Kernels of one name share it.
    pub name: Arc<str>,
    /// Where it ran, an index of [`Trace::agents`].
    pub agent: u32,
    /// The queue it came through, an index of [`Trace::queues`], which are those of all agents.
    pub queue: u32,
    /// When it started, from [`Trace::origin_ns`].
    pub start_ns: u64,
    /// When it ended, from [`Trace::origin_ns`]. Not before it started.
    pub end_ns: u64,
    /// Which row after the header, or which event of the list, it is: from 0, skipped ones counted.
    pub index: u64,
    /// The line of the (unzipped) file on which it begins, from 1.
    pub line: u64,
}

/// A queue of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueInfo {
    /// Its agent, an index of [`Trace::agents`].
    pub agent: u32,
    /// What the file calls it. Queues of different agents may be called the same.
    pub name: String,
}

/// The formats that are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// rocprofv3's kernel trace.
    RocprofCsv,
    /// A Chrome trace.
    ChromeTrace,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::RocprofCsv => "rocprofv3's kernel-trace CSV",
            Format::ChromeTrace => "Chrome trace",
        })
    }
}
