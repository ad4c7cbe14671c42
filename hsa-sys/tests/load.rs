//! Loading the runtime's library, and what is said where that fails.
#![cfg(feature = "load")]

use hsa_sys::{Api, LIBRARY_NAME, LoadError, hsa_status_t};
use std::error::Error as _;

#[test]
fn the_installed_runtime_has_every_exported_function() {
    let (library, api) = match Api::load() {
        Ok(loaded) => loaded,
        Err(error @ LoadError::Library { .. }) => {
            assert!(std::env::var_os("CI").is_none(), "{error}");
            eprintln!("SKIPPED: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    // Those for tools alone are in the tables and nowhere else.
    assert!(api.hsa_amd_queue_intercept_create.is_none());
    assert!(api.hsa_amd_queue_intercept_register.is_none());
    assert!(api.hsa_amd_runtime_queue_create_register.is_none());
    // One that may be called before `hsa_init`, and says that it is who it should be.
    let mut text = std::ptr::null();
    // SAFETY: `text` lives through the call; the library is loaded until the end of the test.
    let status = unsafe { (api.hsa_status_string)(hsa_status_t::ERROR_INVALID_SIGNAL, &mut text) };
    assert_eq!(status, hsa_status_t::SUCCESS);
    // SAFETY: a success gives a string that nobody frees.
    let text = unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy();
    assert!(
        text.starts_with("HSA_STATUS_ERROR_INVALID_SIGNAL"),
        "{text}"
    );
    drop(library);
}

#[test]
fn a_library_that_is_not_there_is_named_with_its_package() {
    // SAFETY: there is no such library.
    let error = unsafe { Api::load_from("libno-such-runtime.so.1") }.unwrap_err();
    assert!(matches!(error, LoadError::Library { .. }));
    let text = error.to_string();
    for part in ["libno-such-runtime.so.1", "hsa-rocr", "libhsa-runtime64-1"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(error.source().is_some());
    assert!(LIBRARY_NAME.ends_with(".so.1"));
}

#[test]
fn a_library_that_is_another_is_told_by_the_function_that_it_lacks() {
    // SAFETY: it is loaded already, and has none of the functions.
    let error = unsafe { Api::load_from("libc.so.6") }.unwrap_err();
    let LoadError::Symbol { symbol, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*symbol, "hsa_init");
    assert!(error.to_string().contains("libc.so.6"), "{error}");
}
