//! The clocks that the runtime compares: the host's, and a GPU's of its own.

use std::sync::OnceLock;
use std::time::Instant;

/// Ticks of the GPU's clock start here, so that nobody takes them for the host's.
const GPU_OFFSET: u64 = 1 << 40;

/// Nanoseconds since the first look: the packet processors' time.
pub(crate) fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// That time by the GPU's clock, which runs at 100 MHz.
pub(crate) fn gpu_ticks(now: u64) -> u64 {
    GPU_OFFSET + now / 10
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the structure that it is given; both clocks exist on Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The host's monotonic clock (ns).
pub(crate) fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC_RAW)
}

/// The clock that 6.1.2 takes for the system's (ns).
pub(crate) fn boot_time() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}
