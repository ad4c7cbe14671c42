//! The tool stays mapped once it was loaded: threads and handlers of the runtime may be about to
//! call into it, and thread-local destructors make unloading unsound.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
