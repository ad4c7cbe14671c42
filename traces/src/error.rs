//! Why a file is no trace: the file, the line, the field, what was expected and what was found.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;

use crate::Skipped;

/// A file that could not be read as a trace.
///
/// Its `Display` is the whole story in one line, an I/O error's own text included:
///
/// ```
/// let error = traces::parse("t.json", br#"[{"ph":"X","cat":"kernel","name":"k","ts":-1}]"#);
/// assert_eq!(
///     error.unwrap_err().to_string(),
///     "t.json: line 1, event 0, field `ts`: \
///      expected microseconds from 0 to 18446744073709551.615, found \"-1\"",
/// );
/// ```
#[derive(Debug)]
pub struct TraceError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    file: String,
    line: Option<u64>,
    event: Option<u64>,
    kind: ErrorKind,
}

/// What is wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file could not be opened or read.
    Io(io::Error),
    /// The file, or what it unpacks to, is larger than
    /// [`Options::max_bytes`](crate::Options::max_bytes) allows.
    TooLarge {
        /// The limit that was in force.
        limit: u64,
    },
    /// The gzip stream is cut off or broken.
    Gzip {
        /// How many bytes came out before.
        unpacked: u64,
        /// What the decoder says.
        cause: io::Error,
    },
    /// There is nothing in it.
    Empty,
    /// The file begins like a trace, but a line of it is not UTF-8.
    NotUtf8,
    /// The file is in no format that is understood.
    Foreign {
        /// What it is, or how it begins.
        found: String,
    },
    /// A CSV file lacks columns.
    MissingColumns(Vec<&'static str>),
    /// A CSV file has a column twice.
    DuplicateColumn(String),
    /// A CSV row has not as many fields as the header.
    RowLength {
        /// The fields of the header.
        expected: usize,
        /// The fields of the row.
        found: usize,
    },
    /// The file is not well-formed JSON, or not of a trace's shape.
    Syntax {
        /// The column of the line, from 1.
        column: u64,
        /// What the parser says.
        message: String,
    },
    /// An event as a whole is wrong.
    Event {
        /// In which way.
        message: String,
    },
    /// A field is missing or has a value that it cannot have.
    Field {
        /// The field, as the format calls it.
        field: &'static str,
        /// What it has to be.
        expected: Cow<'static, str>,
        /// What stands there, shortened and quoted, or `nothing`.
        found: String,
    },
    /// The file is well-formed, but no kernel is in it.
    NoKernels(Skipped),
}

impl TraceError {
    pub(crate) fn new(file: &str, kind: ErrorKind) -> Self {
        Self(Box::new(Inner {
            file: file.to_owned(),
            line: None,
            event: None,
            kind,
        }))
    }

    pub(crate) fn at_line(mut self, line: u64) -> Self {
        self.0.line = Some(line);
        self
    }

    pub(crate) fn at_event(mut self, index: u64) -> Self {
        self.0.event = Some(index);
        self
    }

    /// The file, as it was named to the reader.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// The line, from 1, where the error has one; of the unpacked text if the file is gzipped.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.0.line
    }

    /// The event of a Chrome trace, from 0.
    #[must_use]
    pub fn event(&self) -> Option<u64> {
        self.0.event
    }

    /// The field or column (the first one, if several are missing).
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        match &self.0.kind {
            ErrorKind::Field { field, .. } => Some(field),
            ErrorKind::MissingColumns(columns) => columns.first().copied(),
            ErrorKind::DuplicateColumn(column) => Some(column),
            _ => None,
        }
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            file,
            line,
            event,
            kind,
        } = &*self.0;
        write!(f, "{file}: ")?;
        if let Some(line) = line {
            write!(f, "line {line}")?;
            if let ErrorKind::Syntax { column, .. } = kind {
                write!(f, ", column {column}")?;
            }
            if let Some(event) = event {
                write!(f, ", event {event}")?;
            }
            f.write_str(if matches!(kind, ErrorKind::Field { .. }) {
                ", "
            } else {
                ": "
            })?;
        }
        kind.fmt(f)
    }
}

impl Error for TraceError {}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::Io(cause) => write!(f, "cannot be read: {cause}"),
            ErrorKind::TooLarge { limit } => {
                write!(
                    f,
                    "larger, or unpacks to more, than the limit of {limit} bytes"
                )
            }
            ErrorKind::Gzip { unpacked, cause } => {
                write!(f, "broken gzip after {unpacked} unpacked bytes: {cause}")
            }
            ErrorKind::Empty => f.write_str("empty"),
            ErrorKind::NotUtf8 => f.write_str("expected UTF-8, found other bytes"),
            ErrorKind::Foreign { found } => write!(
                f,
                "expected rocprofv3's kernel-trace CSV or a Chrome trace as PyTorch's profiler \
                 writes it (JSON), either one plain or gzipped; found {found}"
            ),
            ErrorKind::MissingColumns(columns) => {
                let s = if columns.len() == 1 { "" } else { "s" };
                write!(
                    f,
                    "the header lacks the column{s} `{}`",
                    columns.join("`, `")
                )
            }
            ErrorKind::DuplicateColumn(column) => {
                write!(
                    f,
                    "the header has the column `{}` twice",
                    column.escape_debug()
                )
            }
            ErrorKind::RowLength { expected, found } => {
                write!(
                    f,
                    "expected {expected} fields as in the header, found {found}"
                )
            }
            ErrorKind::Syntax { message, .. } | ErrorKind::Event { message } => {
                f.write_str(message)
            }
            ErrorKind::Field {
                field,
                expected,
                found,
            } => {
                write!(f, "field `{field}`: expected {expected}, found {found}")
            }
            ErrorKind::NoKernels(skipped) => write!(f, "no kernels in it; skipped: {skipped}"),
        }
    }
}
