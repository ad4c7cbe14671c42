//! What the project's commands and its tests share.

pub mod build;
pub mod fuzz;
pub mod process;
pub mod softgpu;
pub mod trixie;
