//! Files that are opened before anything runs, and written at the end.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A file that can be written, and what is to be said if it can't.
#[derive(Debug)]
pub(crate) struct Output {
    named: String,
    file: File,
}

impl Output {
    /// What was in the file stays until it is written.
    ///
    /// # Errors
    /// The option, the path, and what is wrong with it.
    pub(crate) fn open(option: &str, path: &Path) -> Result<Self, String> {
        let named = format!("{option} {}", path.display());
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = file.map_err(|e| unwritten(&named, e))?;
        Ok(Self { named, file })
    }

    /// Writes the file anew.
    ///
    /// # Errors
    /// The option, the path, and what went wrong.
    pub(crate) fn write(
        self,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), String> {
        let Self { named, file } = self;
        let written = file.set_len(0).and_then(|()| {
            let mut file = BufWriter::new(file);
            write(&mut file)?;
            file.flush()
        });
        written.map_err(|e| unwritten(&named, e))
    }
}

fn unwritten(named: &str, error: impl Display) -> String {
    format!("{named}: cannot be written: {error}")
}
