//! Explores the models of `models`, each in a process of its own. Without loom there are none.

#[cfg(hsa_serializer_loom)]
mod models;

#[cfg(hsa_serializer_loom)]
fn main() -> std::process::ExitCode {
    loom_tests::main(&models::ALL)
}

#[cfg(not(hsa_serializer_loom))]
fn main() {}
