//! How the shared object is linked: that it stays mapped, and the name by which programs ask for it.
//!
//! What it exports needs nothing here: rustc gives the linker a version script of its own, in which
//! every symbol that is not one of the `no_mangle` functions is local. (A second script with a named version
//! can't stand beside that anonymous one.) `tests/exports.rs` looks.

use std::env;

/// Set by CMakeLists.txt. cargo-c says it by itself; what cargo alone has built is asked for by its file's name.
const SONAME: &str = "HSA_SERIALIZER_SONAME";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={SONAME}");
    if let Ok(soname) = env::var(SONAME) {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{soname}");
    }
    // A thread that has used the library runs code of it when it ends, and that can't be taken back.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
