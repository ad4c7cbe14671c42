//! What the project's commands and its tests share.

pub mod bench_check;
pub mod build;
pub mod capi;
pub mod fuzz;
pub mod process;
pub mod sanitize;
pub mod softgpu;
pub mod trixie;
