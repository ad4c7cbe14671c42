//! The emulated GPU's own witness, asked past the runtime.

use anyhow::{Context, Result, ensure};
use libloading::os::unix::Library;
use serde::Serialize;
use std::ffi::{c_char, c_int};

/// What the emulated GPU has seen of this process, by the packets alone (`struct softgpu_counts`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Kernels that were started.
    pub kernels_started: u64,
    /// Kernels that have ended.
    pub kernels_ended: u64,
    /// Kernels that stood directly behind a serializer's gate.
    pub gated: u64,
    /// The most kernels that ran at once on one agent.
    pub most_running: u64,
    /// Gated kernels that ran beside another kernel of a queue that has had gated ones.
    pub overlaps: u64,
    /// Packets whose signal had been destroyed, or destroyed and made anew since the packet was
    /// first seen.
    pub stale_packets: u64,
    /// All packets.
    pub packets: u64,
    /// Hardware queues created.
    pub queues_created: u64,
    /// Hardware queues destroyed.
    pub queues_destroyed: u64,
    /// Copies.
    pub copies: u64,
    /// The kernel driver's events that are there now.
    pub events_live: u64,
    /// Gated kernels that ran beside one of a queue that has had none: the runtime's own, say.
    pub beside: u64,
    /// Kernels that were lost with their queue.
    pub kernels_lost: u64,
}

type GetCounts = unsafe extern "C" fn(*mut Counts, usize) -> c_int;
type Describe = unsafe extern "C" fn(*mut c_char, usize) -> usize;
type SetFault = unsafe extern "C" fn(*const c_char, f64) -> c_int;

/// The emulated GPU that this process's runtime runs on.
#[derive(Debug)]
pub struct Witness {
    get: GetCounts,
    describe: Describe,
    set_fault: SetFault,
}

impl Witness {
    /// Finds it: the runtime has loaded it.
    ///
    /// # Errors
    /// Where the `libhsakmt.so.1` that the loader finds is not the emulated GPU.
    pub fn find() -> Result<Self> {
        let open = || -> Result<Self, libloading::Error> {
            // SAFETY: the library is loaded already, by the runtime; its initializers have run.
            let library = unsafe { Library::new("libhsakmt.so.1") }?;
            // SAFETY: these are the types of the emulated GPU's functions.
            let (get, describe, set_fault) = unsafe {
                (
                    *library.get::<GetCounts>(b"softgpu_get_counts")?,
                    *library.get::<Describe>(b"softgpu_describe")?,
                    *library.get::<SetFault>(b"softgpu_set_fault")?,
                )
            };
            // The functions are used as long as the process lives.
            std::mem::forget(library);
            Ok(Self {
                get,
                describe,
                set_fault,
            })
        };
        open().context("libhsakmt.so.1 is not the emulated GPU: see hsa-tests/README.md")
    }

    /// What it has seen so far.
    ///
    /// # Errors
    /// Where it is of another version.
    pub fn counts(&self) -> Result<Counts> {
        let mut counts = Counts::default();
        // SAFETY: `counts` is that structure, and so large.
        let status = unsafe { (self.get)(&raw mut counts, size_of::<Counts>()) };
        ensure!(status == 0, "softgpu_get_counts answered {status}");
        Ok(counts)
    }

    /// Whether the host hears of nothing any more: no interrupt is raised.
    ///
    /// # Errors
    /// Where it is of another version.
    pub fn set_deaf(&self, deaf: bool) -> Result<()> {
        let name = c"events_dead";
        // SAFETY: a string that ends with a zero.
        let status = unsafe { (self.set_fault)(name.as_ptr(), f64::from(u8::from(deaf))) };
        ensure!(status == 0, "softgpu_set_fault answered {status}");
        Ok(())
    }

    /// Who waits for whom, as text.
    #[must_use]
    pub fn describe(&self) -> String {
        // SAFETY: a buffer of no bytes may be null.
        let mut wanted = unsafe { (self.describe)(std::ptr::null_mut(), 0) };
        loop {
            let mut text = vec![0_u8; wanted + 1];
            // SAFETY: the buffer has that many bytes.
            let length = unsafe { (self.describe)(text.as_mut_ptr().cast(), text.len()) };
            // It may have become longer meanwhile.
            if length < text.len() {
                text.truncate(length);
                return String::from_utf8_lossy(&text)
                    .trim_end_matches('\0')
                    .to_owned();
            }
            wanted = length;
        }
    }
}

impl Counts {
    /// What has been added since `before`. What is no sum stays as it is.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            kernels_started: self.kernels_started - before.kernels_started,
            kernels_ended: self.kernels_ended - before.kernels_ended,
            gated: self.gated - before.gated,
            most_running: self.most_running,
            overlaps: self.overlaps - before.overlaps,
            stale_packets: self.stale_packets - before.stale_packets,
            packets: self.packets - before.packets,
            queues_created: self.queues_created - before.queues_created,
            queues_destroyed: self.queues_destroyed - before.queues_destroyed,
            copies: self.copies - before.copies,
            events_live: self.events_live,
            beside: self.beside - before.beside,
            kernels_lost: self.kernels_lost - before.kernels_lost,
        }
    }
}
