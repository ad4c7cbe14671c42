//! 6.1.2's own fault, which is borne.

use xtask::softgpu::Runtime;

/// Runs something, and again where 6.1.2 does what it does now and then where it is shut down under live
/// queues, as it locks a mutex that it has freed (hsa-tests/README.md): it hangs, or the C library notices.
pub(crate) fn unless_it_died_in_shut_down<T>(
    runtime: Runtime,
    what: &str,
    run: impl Fn() -> T,
    died: impl Fn(&T) -> bool,
) -> T {
    let mut ran = run();
    // One that always ends so is no accident of the runtime's.
    for _ in 0..2 {
        if runtime != Runtime::Trixie || !died(&ran) {
            break;
        }
        println!("again, since 6.1.2 has died in hsa_shut_down: {what}");
        ran = run();
    }
    ran
}

/// What the C library says where it notices.
pub(crate) const NOTICED: &str = "Fatal glibc error: tpp.c";
