//! The kernel trace: a CSV with the columns of rocprofv3's.

use crate::lock;
use crate::names::Kernel;
use crate::signals::Unheard;
use csv::{QuoteStyle, Writer, WriterBuilder};
use hsa_sys::hsa_kernel_dispatch_packet_t;
use serde::Serialize;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// What is known of a kernel when it is dispatched.
#[derive(Debug)]
pub(crate) struct Dispatched {
    pub(crate) kernel: Arc<Kernel>,
    /// The thread that the interceptor ran on: as a rule the one that submitted it.
    pub(crate) thread: u64,
    /// Counted from 1, in the whole process.
    pub(crate) number: u64,
    pub(crate) packet: hsa_kernel_dispatch_packet_t,
    pub(crate) serialized: bool,
}

/// When it ran, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// A row. What only the compiler or another library knows is 0: registers, and streams.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(rename = "Kind")]
    kind: &'static str,
    #[serde(rename = "Agent_Id")]
    agent: &'a str,
    #[serde(rename = "Queue_Id")]
    queue: u64,
    #[serde(rename = "Stream_Id")]
    stream: u64,
    #[serde(rename = "Thread_Id")]
    thread: u64,
    #[serde(rename = "Dispatch_Id")]
    dispatch: u64,
    #[serde(rename = "Kernel_Id")]
    kernel: u64,
    #[serde(rename = "Kernel_Name")]
    name: &'a str,
    #[serde(rename = "Correlation_Id")]
    correlation: u64,
    #[serde(rename = "Start_Timestamp")]
    start: u64,
    #[serde(rename = "End_Timestamp")]
    end: u64,
    #[serde(rename = "LDS_Block_Size")]
    lds: u32,
    #[serde(rename = "Scratch_Size")]
    scratch: u32,
    #[serde(rename = "VGPR_Count")]
    vgprs: u32,
    #[serde(rename = "Accum_VGPR_Count")]
    accum_vgprs: u32,
    #[serde(rename = "SGPR_Count")]
    sgprs: u32,
    #[serde(rename = "Workgroup_Size_X")]
    workgroup_x: u16,
    #[serde(rename = "Workgroup_Size_Y")]
    workgroup_y: u16,
    #[serde(rename = "Workgroup_Size_Z")]
    workgroup_z: u16,
    #[serde(rename = "Grid_Size_X")]
    grid_x: u32,
    #[serde(rename = "Grid_Size_Y")]
    grid_y: u32,
    #[serde(rename = "Grid_Size_Z")]
    grid_z: u32,
}

impl<'a> Row<'a> {
    fn of(agent: &'a str, queue: u64, of: &'a Dispatched, times: Times) -> Self {
        let packet = &of.packet;
        Self {
            kind: "KERNEL_DISPATCH",
            agent,
            queue,
            stream: 0,
            thread: of.thread,
            dispatch: of.number,
            kernel: of.kernel.id,
            name: &of.kernel.name,
            correlation: of.number,
            start: times.start,
            end: times.end,
            lds: packet.group_segment_size,
            scratch: packet.private_segment_size,
            vgprs: 0,
            accum_vgprs: 0,
            sgprs: 0,
            workgroup_x: packet.workgroup_size_x,
            workgroup_y: packet.workgroup_size_y,
            workgroup_z: packet.workgroup_size_z,
            grid_x: packet.grid_size_x,
            grid_y: packet.grid_size_y,
            grid_z: packet.grid_size_z,
        }
    }
}

/// The columns, so that a trace without kernels has them, too.
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

/// The file. It is buffered, and written to on the handlers' thread when that is full: a profiler of some
/// ambition would hand its records to a thread of its own.
#[derive(Debug)]
pub(crate) struct Trace {
    path: PathBuf,
    /// `None` once something could not be written, which was said.
    writer: Mutex<Option<Writer<Unheard>>>,
    /// Each row is written out at once: nobody may be there to do it later.
    at_once: AtomicBool,
}

impl Trace {
    /// Makes the file, with its header.
    pub(crate) fn create(path: &Path) -> Result<Self, String> {
        let file = File::create(path).map_err(|e| e.to_string())?;
        // As rocprofv3 writes them: text in quotes, numbers without.
        let mut builder = WriterBuilder::new();
        builder
            .quote_style(QuoteStyle::NonNumeric)
            .has_headers(false);
        let mut writer = builder.from_writer(Unheard(file));
        writer.write_record(COLUMNS).map_err(|e| e.to_string())?;
        Ok(Self {
            path: path.to_owned(),
            writer: Mutex::new(Some(writer)),
            at_once: AtomicBool::new(false),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a kernel's row.
    pub(crate) fn write(&self, agent: &str, queue: u64, dispatched: &Dispatched, times: Times) {
        let row = Row::of(agent, queue, dispatched, times);
        self.with(|writer| {
            writer.serialize(row)?;
            if self.at_once.load(SeqCst) {
                writer.flush()?;
            }
            Ok(())
        });
    }

    /// Writes out what is buffered.
    pub(crate) fn flush(&self) {
        self.with(Writer::flush);
    }

    /// Writes out what is buffered, and buffers nothing from now on.
    pub(crate) fn flush_from_now_on(&self) {
        // Before: a row that is written meanwhile is flushed by us, or by itself.
        self.at_once.store(true, SeqCst);
        self.flush();
    }

    fn with(&self, write: impl FnOnce(&mut Writer<Unheard>) -> std::io::Result<()>) {
        let mut place = lock(&self.writer);
        if let Some(Err(e)) = place.as_mut().map(write) {
            say!(
                "{}: {e}; nothing is written there any more",
                self.path.display()
            );
            *place = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_the_rows_fields() {
        let dispatched = Dispatched {
            kernel: Arc::new(Kernel {
                id: 3,
                name: "a \"b\", c".into(),
            }),
            thread: 7,
            number: 9,
            packet: hsa_kernel_dispatch_packet_t {
                grid_size_x: 64,
                ..Default::default()
            },
            serialized: true,
        };
        let times = Times { start: 10, end: 20 };
        let write = |headers| {
            let mut writer = WriterBuilder::new()
                .has_headers(headers)
                .from_writer(Vec::new());
            writer
                .serialize(Row::of("Agent 1", 2, &dispatched, times))
                .unwrap();
            String::from_utf8(writer.into_inner().unwrap()).unwrap()
        };
        assert_eq!(
            write(true),
            format!("{}\n{}", COLUMNS.join(","), write(false))
        );
        assert_eq!(
            write(false),
            "KERNEL_DISPATCH,Agent 1,2,0,7,9,3,\"a \"\"b\"\", c\",9,10,20,0,0,0,0,0,1,1,1,64,1,1\n"
        );
    }
}
