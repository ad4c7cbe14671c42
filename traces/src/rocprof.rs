//! rocprofv3's kernel trace: a CSV with a header, in nanoseconds.

use csv::{ReaderBuilder, StringRecord};

use crate::collect::{Collector, Found};
use crate::lines::Lines;
use crate::text::{snippet, snippet_bytes};
use crate::{ErrorKind, Format, Reason, Trace, TraceError, time};

const REQUIRED: [&str; 6] = [
    "Kind",
    "Agent_Id",
    "Queue_Id",
    "Kernel_Name",
    "Start_Timestamp",
    "End_Timestamp",
];
const KERNEL_DISPATCH: &str = "KERNEL_DISPATCH";

/// Refuses what does not begin with a header of rocprofv3's, be it text or not: one that has any
/// of the columns.
pub(crate) fn expect_header(file: &str, bytes: &[u8]) -> Result<(), TraceError> {
    let line = bytes
        .trim_ascii_start()
        .split(|&b| b == b'\n')
        .next()
        .unwrap_or_default();
    let mut header = csv::ByteRecord::new();
    let known = reader(line).read_byte_record(&mut header).is_ok()
        && header
            .iter()
            .any(|column| REQUIRED.iter().any(|known| known.as_bytes() == column));
    if known {
        return Ok(());
    }
    let found = format!(
        "a file that starts with {}",
        snippet_bytes(line.trim_ascii_end())
    );
    Err(TraceError::new(file, ErrorKind::Foreign { found }))
}

pub(crate) fn parse(file: &str, text: &str) -> Result<Trace, TraceError> {
    let body = text.trim_start();
    let mut rows = Rows {
        file,
        text,
        start: text.len() - body.len(),
        lines: Lines::default(),
        reader: reader(body.as_bytes()),
        record: StringRecord::new(),
    };
    let line = rows.next()?.unwrap_or(1);
    let header = rows.record.clone();
    let columns =
        Columns::find(&header).map_err(|kind| TraceError::new(file, kind).at_line(line))?;

    let mut collector = Collector::default();
    let mut index = 0;
    while let Some(line) = rows.next()? {
        let record = &rows.record;
        if record.len() != header.len() {
            let kind = ErrorKind::RowLength {
                expected: header.len(),
                found: record.len(),
            };
            return Err(TraceError::new(file, kind).at_line(line));
        }
        let kind = &record[columns.kind];
        if kind == KERNEL_DISPATCH {
            let found = columns
                .kernel(record, index, line)
                .map_err(|kind| TraceError::new(file, kind).at_line(line))?;
            collector.add(&found);
        } else {
            collector.skip(Reason::Kind(kind.to_owned()));
        }
        index += 1;
    }
    collector.finish(file, Format::RocprofCsv)
}

fn reader(bytes: &[u8]) -> csv::Reader<&[u8]> {
    // Rows of another length are let through, to be refused with their line.
    ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(bytes)
}

/// The rows with their lines. The csv crate's own line is that of the end of the row before, which
/// is another one after a blank line.
struct Rows<'a> {
    file: &'a str,
    text: &'a str,
    /// Where in the text the reader's part of it starts.
    start: usize,
    lines: Lines,
    reader: csv::Reader<&'a [u8]>,
    record: StringRecord,
}

impl Rows<'_> {
    /// The next row is in `record`; here is its line.
    fn next(&mut self) -> Result<Option<u64>, TraceError> {
        let more = self.reader.read_record(&mut self.record);
        let read_to = self.start + self.record.position().map_or(0, |at| at.byte() as usize);
        let rest = self.text.get(read_to..).unwrap_or_default();
        let line_ends = rest.len() - rest.trim_start_matches(['\r', '\n']).len();
        let line = self.lines.advance(self.text, read_to + line_ends);
        match more {
            Ok(more) => Ok(more.then_some(line)),
            Err(error) => {
                let kind = ErrorKind::Syntax {
                    column: 1,
                    message: error.to_string(),
                };
                Err(TraceError::new(self.file, kind).at_line(line))
            }
        }
    }
}

/// Where the columns stand.
struct Columns {
    kind: usize,
    agent: usize,
    queue: usize,
    name: usize,
    start: usize,
    end: usize,
}

impl Columns {
    fn find(header: &StringRecord) -> Result<Self, ErrorKind> {
        let place = |column: &str| header.iter().position(|name| name == column);
        let [
            Some(kind),
            Some(agent),
            Some(queue),
            Some(name),
            Some(start),
            Some(end),
        ] = REQUIRED.map(place)
        else {
            let missing = REQUIRED
                .into_iter()
                .filter(|column| place(column).is_none());
            return Err(ErrorKind::MissingColumns(missing.collect()));
        };
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = header.iter().find(|name| !seen.insert(*name)) {
            return Err(ErrorKind::DuplicateColumn(twice.to_owned()));
        }
        Ok(Self {
            kind,
            agent,
            queue,
            name,
            start,
            end,
        })
    }

    fn kernel<'r>(
        &self,
        record: &'r StringRecord,
        index: u64,
        line: u64,
    ) -> Result<Found<'r>, ErrorKind> {
        let start_ns = nanos("Start_Timestamp", &record[self.start])?;
        let end_ns = nanos("End_Timestamp", &record[self.end])?;
        if end_ns < start_ns {
            return Err(ErrorKind::Field {
                field: "End_Timestamp",
                expected: format!("no less than Start_Timestamp, {start_ns}").into(),
                found: snippet(&record[self.end]),
            });
        }
        Ok(Found {
            name: &record[self.name],
            agent: identity("Agent_Id", &record[self.agent])?,
            queue: identity("Queue_Id", &record[self.queue])?,
            start_ns,
            end_ns,
            index,
            line,
        })
    }
}

fn nanos(field: &'static str, text: &str) -> Result<u64, ErrorKind> {
    time::parse_nanos(text).ok_or_else(|| ErrorKind::Field {
        field,
        expected: "whole nanoseconds from 0 to 18446744073709551615".into(),
        found: snippet(text),
    })
}

fn identity<'r>(field: &'static str, text: &'r str) -> Result<&'r str, ErrorKind> {
    if text.is_empty() {
        let expected = "a number or a name".into();
        return Err(ErrorKind::Field {
            field,
            expected,
            found: snippet(text),
        });
    }
    Ok(text)
}
