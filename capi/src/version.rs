//! Which version it is.

use std::ffi::{CStr, c_char};

/// The version of the header, to be compared with hsa_serializer_version_number().
pub const HSA_SERIALIZER_VERSION_MAJOR: u32 = 0;
/// See HSA_SERIALIZER_VERSION_MAJOR.
pub const HSA_SERIALIZER_VERSION_MINOR: u32 = 1;
/// See HSA_SERIALIZER_VERSION_MAJOR.
pub const HSA_SERIALIZER_VERSION_PATCH: u32 = 0;

const TEXT: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a version has no zero in it"),
    };

/// The library's version as text, which lives as long as the library. Never null. From anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_version() -> *const c_char {
    TEXT.as_ptr()
}

/// The library's version: major << 16 | minor << 8 | patch. While the major version is 0, a program needs the
/// minor version that it was compiled with. From anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_serializer_version_number() -> u32 {
    HSA_SERIALIZER_VERSION_MAJOR << 16
        | HSA_SERIALIZER_VERSION_MINOR << 8
        | HSA_SERIALIZER_VERSION_PATCH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_package() {
        let numbers = [
            HSA_SERIALIZER_VERSION_MAJOR,
            HSA_SERIALIZER_VERSION_MINOR,
            HSA_SERIALIZER_VERSION_PATCH,
        ];
        let text = numbers.map(|n| n.to_string()).join(".");
        assert_eq!(TEXT.to_str(), Ok(&*text));
    }
}
