//! The way in: limits and choices, and which reader gets the file.

use std::fs::File;
use std::path::Path;

use crate::unpack::{read_limited, to_text, unpack};
use crate::{ErrorKind, Trace, TraceError, chrome, rocprof};

/// Reads a trace from a file, with the default [`Options`].
///
/// # Errors
/// If the file cannot be read, is in no format that is understood, or is broken.
pub fn read(path: &Path) -> Result<Trace, TraceError> {
    Options::new().read(path)
}

/// Reads a trace from bytes, with the default [`Options`]; `name` is for messages only.
///
/// # Errors
/// If the bytes are in no format that is understood, or broken.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Trace, TraceError> {
    Options::new().parse(name, bytes)
}

/// How to read a trace.
#[derive(Debug, Clone)]
pub struct Options {
    max_bytes: u32,
    copies: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_bytes: 1 << 30,
            copies: false,
        }
    }
}

impl Options {
    /// A limit of 1 GiB, kernels only.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The largest file, and the most that a gzipped file may unpack to, in bytes. It bounds the
    /// memory that a hostile file can take, to a few times as much.
    #[must_use]
    pub fn max_bytes(mut self, limit: u32) -> Self {
        self.max_bytes = limit;
        self
    }

    /// Whether the copies and fills of a Chrome trace (`gpu_memcpy` and `gpu_memset`, or `Memcpy`
    /// and `Memset`) are taken for kernels. They are not dispatched as kernels are, so by default
    /// they are skipped and counted.
    #[must_use]
    pub fn copies(mut self, copies: bool) -> Self {
        self.copies = copies;
        self
    }

    /// Reads a trace from a file.
    ///
    /// # Errors
    /// As [`read`].
    pub fn read(&self, path: &Path) -> Result<Trace, TraceError> {
        let name = path.display().to_string();
        let io = |cause| TraceError::new(&name, ErrorKind::Io(cause));
        let file = File::open(path).map_err(io)?;
        let (bytes, result) = read_limited(file, self.max_bytes.into());
        result.map_err(io)?;
        self.parse(&name, &bytes)
    }

    /// Reads a trace from bytes; `name` is for messages only.
    ///
    /// # Errors
    /// As [`parse`].
    pub fn parse(&self, name: &str, bytes: &[u8]) -> Result<Trace, TraceError> {
        let bytes = unpack(name, bytes, self.max_bytes.into())?;
        match bytes.trim_ascii_start().first() {
            None => Err(TraceError::new(name, ErrorKind::Empty)),
            Some(b'{' | b'[') => chrome::parse(name, to_text(name, &bytes)?, self.copies),
            Some(_) => {
                rocprof::expect_header(name, &bytes)?;
                rocprof::parse(name, to_text(name, &bytes)?)
            }
        }
    }
}
