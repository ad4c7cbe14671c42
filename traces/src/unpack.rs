//! From a file's bytes to its text: gzip, byte order mark, UTF-8, and never more than the limit.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::MultiGzDecoder;

use crate::{ErrorKind, TraceError};

const GZIP: &[u8] = &[0x1f, 0x8b];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads all, but at most one byte more than the limit, which is what tells that it is exceeded.
pub(crate) fn read_limited(reader: impl Read, limit: u64) -> (Vec<u8>, std::io::Result<()>) {
    let mut out = Vec::new();
    let result = reader.take(limit.saturating_add(1)).read_to_end(&mut out);
    (out, result.map(drop))
}

/// The bytes within, unpacked if they are gzipped, without a byte order mark.
pub(crate) fn unpack<'a>(
    file: &str,
    bytes: &'a [u8],
    limit: u64,
) -> Result<Cow<'a, [u8]>, TraceError> {
    check_size(file, bytes, limit)?;
    let mut unpacked = if bytes.starts_with(GZIP) {
        let (out, result) = read_limited(MultiGzDecoder::new(bytes), limit);
        if let Err(cause) = result {
            let unpacked = out.len() as u64;
            return Err(TraceError::new(file, ErrorKind::Gzip { unpacked, cause }));
        }
        check_size(file, &out, limit)?;
        Cow::Owned(out)
    } else {
        Cow::Borrowed(bytes)
    };
    if unpacked.starts_with(BYTE_ORDER_MARK) {
        match &mut unpacked {
            Cow::Borrowed(bytes) => *bytes = &bytes[BYTE_ORDER_MARK.len()..],
            Cow::Owned(bytes) => drop(bytes.drain(..BYTE_ORDER_MARK.len())),
        }
    }
    Ok(unpacked)
}

/// The bytes as text, or the line that is none.
pub(crate) fn to_text<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, TraceError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let newlines = bytes[..error.valid_up_to()]
            .iter()
            .filter(|&&b| b == b'\n')
            .count();
        TraceError::new(file, ErrorKind::NotUtf8).at_line(newlines as u64 + 1)
    })
}

pub(crate) fn check_size(file: &str, bytes: &[u8], limit: u64) -> Result<(), TraceError> {
    if bytes.len() as u64 > limit {
        return Err(TraceError::new(file, ErrorKind::TooLarge { limit }));
    }
    Ok(())
}
