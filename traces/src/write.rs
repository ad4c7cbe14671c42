//! rocprofv3's kernel trace, written.

use std::collections::HashMap;
use std::io;

use csv::{QuoteStyle, WriterBuilder};

const COLUMNS: [&str; 22] = [
    "Kind",
    "Agent_Id",
    "Queue_Id",
    "Stream_Id",
    "Thread_Id",
    "Dispatch_Id",
    "Kernel_Id",
    "Kernel_Name",
    "Correlation_Id",
    "Start_Timestamp",
    "End_Timestamp",
    "LDS_Block_Size",
    "Scratch_Size",
    "VGPR_Count",
    "Accum_VGPR_Count",
    "SGPR_Count",
    "Workgroup_Size_X",
    "Workgroup_Size_Y",
    "Workgroup_Size_Z",
    "Grid_Size_X",
    "Grid_Size_Y",
    "Grid_Size_Z",
];

/// A kernel to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// The GPU; rocprofv3 calls one `Agent 4`.
    pub agent: &'a str,
    /// The queue; rocprofv3 has numbers.
    pub queue: &'a str,
    /// The kernel's name.
    pub name: &'a str,
    /// When it started.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// Writes kernels as rocprofv3 does: its columns, in its order, quoted as it quotes them.
///
/// Dispatches are numbered from 1 in the order given, kernels in that of their first dispatch.
/// What a [`Row`] does not say (stream, thread, sizes) is written as 0.
///
/// # Errors
/// If the writer fails, or, with [`io::ErrorKind::InvalidInput`], for a row that could not be read
/// again: one that ends before it starts, or has an empty agent or queue.
pub fn write_csv(rows: &[Row<'_>], writer: impl io::Write) -> io::Result<()> {
    let mut csv = WriterBuilder::new()
        .quote_style(QuoteStyle::NonNumeric)
        .from_writer(writer);
    csv.write_record(COLUMNS)?;
    let mut kernel_ids: HashMap<&str, usize> = HashMap::new();
    for (row, dispatch_id) in rows.iter().zip(1..) {
        check(row)?;
        let next_id = kernel_ids.len() + 1;
        let kernel_id = *kernel_ids.entry(row.name).or_insert(next_id);
        let dispatch_id: u64 = dispatch_id;
        csv.serialize((
            ("KERNEL_DISPATCH", row.agent, row.queue),
            (0, 0, dispatch_id, kernel_id, row.name, dispatch_id),
            (row.start_ns, row.end_ns),
            [0; 11],
        ))?;
    }
    csv.flush()
}

fn check(row: &Row<'_>) -> io::Result<()> {
    let what = if row.end_ns < row.start_ns {
        "ends before it starts"
    } else if row.agent.is_empty() {
        "has no agent"
    } else if row.queue.is_empty() {
        "has no queue"
    } else {
        return Ok(());
    };
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{row:?} {what}"),
    ))
}
