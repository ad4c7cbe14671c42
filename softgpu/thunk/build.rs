//! The library's name, its symbols' version, and its life: it is found as `libhsakmt.so.1`, and it
//! is never unloaded, since its thread and its doorbells are used to the end of the process.

fn main() {
    let map = concat!(env!("CARGO_MANIFEST_DIR"), "/hsakmt.map");
    println!("cargo:rerun-if-changed={map}");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={map}");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libhsakmt.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
