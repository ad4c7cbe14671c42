//! The runtime's library, loaded at run time (feature `load`).

use crate::Api;
use libloading::Library;
use std::ffi::{OsString, c_void};
use std::path::Path;

/// The runtime's library, as the dynamic loader finds it.
pub const LIBRARY_NAME: &str = "libhsa-runtime64.so.1";

/// Why the runtime's functions could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The library is not there, or could not be loaded.
    #[error(
        "the HSA runtime could not be loaded as {name:?} (it comes with ROCm, in the package \
         hsa-rocr, or with Debian's libhsa-runtime64-1)"
    )]
    Library {
        /// What was tried.
        name: OsString,
        /// What the dynamic loader said.
        source: libloading::Error,
    },
    /// The library has no such function.
    #[error("{name:?} has no function {symbol}: it is no HSA runtime, or too old")]
    Symbol {
        /// The library.
        name: OsString,
        /// The function.
        symbol: &'static str,
        /// What the dynamic loader said.
        source: libloading::Error,
    },
}

impl Api {
    /// Loads [`LIBRARY_NAME`] and the functions that it exports.
    ///
    /// The functions can be called as long as the [`Library`] lives; nothing checks that.
    /// `std::mem::forget` it where they are kept.
    ///
    /// # Errors
    /// Where the library or one of the functions is missing.
    pub fn load() -> Result<(Library, Self), LoadError> {
        // SAFETY: the runtime's library starts nothing when it is loaded, and its functions are those
        // of its header.
        unsafe { Self::load_from(Path::new(LIBRARY_NAME)) }
    }

    /// Loads the library of that path, or of that name where the path has no directory.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    ///
    /// # Safety
    /// Loading that library is sound, and its symbols of these names are HSA's functions.
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<(Library, Self), LoadError> {
        let name = path.as_ref().as_os_str();
        // SAFETY: the caller's promise.
        let library = unsafe { Library::new(name) }.map_err(|source| LoadError::Library {
            name: name.to_owned(),
            source,
        })?;
        let api = Self::from_symbols(|symbol| {
            // SAFETY: only the address is taken here.
            unsafe { library.get::<*mut c_void>(symbol.as_bytes()) }
                // A symbol may lawfully be null, but not a function that is to be called.
                .and_then(|found| match *found {
                    address if address.is_null() => Err(libloading::Error::DlSymUnknown),
                    address => Ok(address),
                })
                .map_err(|source| LoadError::Symbol {
                    name: name.to_owned(),
                    symbol,
                    source,
                })
        })?;
        Ok((library, api))
    }
}
