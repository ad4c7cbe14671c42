//! The one emulated machine of a process.

use crate::engine::Engine;
use crate::events::Events;
use crate::faults::Faults;
use crate::memory::Memory;
use crate::settings::Settings;
use crate::witness::{Counts, Witness};
use parking_lot::Mutex;
use std::fmt::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

pub(crate) struct Device {
    pub(crate) settings: Settings,
    pub(crate) memory: Memory,
    pub(crate) events: Events,
    pub(crate) faults: Faults,
    pub(crate) witness: Witness,
    pub(crate) engine: Engine,
    kernel_ns: AtomicU64,
    /// How often the driver was opened and not closed.
    opened: Mutex<u32>,
}

static DEVICE: OnceLock<Result<Device, String>> = OnceLock::new();

/// Whether this process is a child of the one that made the machine: it has no thread that plays the
/// hardware, and locks may be held for ever that its parent's threads held.
static FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn forked() {
    FORKED.store(true, Relaxed);
}

/// The machine, made at the first call.
///
/// # Errors
/// What is wrong with the environment; that it is the parent's.
pub(crate) fn device() -> Result<&'static Device, &'static str> {
    if FORKED.load(Relaxed) {
        return Err("the emulated GPU is that of the process that forked");
    }
    let made = DEVICE.get_or_init(|| {
        // SAFETY: registers a function of this library, which is never unloaded; it stores to an
        // atomic and nothing else.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        Settings::read().map(Device::new)
    });
    made.as_ref().map_err(String::as_str)
}

impl Device {
    pub(crate) fn new(settings: Settings) -> Self {
        let faults = Faults::new(settings.seed);
        for (name, value) in &settings.faults {
            // Checked when they were read.
            let known = faults.set(name, *value);
            debug_assert!(known);
        }
        Self {
            memory: Memory::default(),
            events: Events::new(settings.events),
            faults,
            witness: Witness::default(),
            engine: Engine::default(),
            kernel_ns: AtomicU64::new(settings.kernel_ns),
            opened: Mutex::new(0),
            settings,
        }
    }

    /// How long a kernel lasts that does not say so itself (ns).
    pub(crate) fn kernel_ns(&self) -> u64 {
        self.kernel_ns.load(Relaxed)
    }

    pub(crate) fn set_kernel_ns(&self, nanoseconds: u64) {
        self.kernel_ns.store(nanoseconds, Relaxed);
    }

    pub(crate) fn open(&self) {
        let mut opened = self.opened.lock();
        *opened += 1;
        if *opened == 1 && self.settings.report.is_some() {
            static ONCE: std::sync::Once = std::sync::Once::new();
            // SAFETY: registers a function of this library, which is never unloaded: its thread
            // and its doorbells would go with it (`-z nodelete`).
            ONCE.call_once(|| unsafe {
                libc::atexit(write_report);
            });
        }
    }

    /// Whether it was open.
    pub(crate) fn close(&self) -> bool {
        let mut opened = self.opened.lock();
        if *opened == 0 {
            return false;
        }
        *opened -= 1;
        if *opened == 0 {
            self.engine.close(self);
        }
        true
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            events_live: self.events.live(),
            ..self.witness.counts()
        }
    }

    /// Writes the report, if one is wanted.
    pub(crate) fn report(&self) {
        let Some(path) = &self.settings.report else {
            return;
        };
        if let Err(error) = std::fs::write(path, self.describe()) {
            eprintln!("softgpu: SOFTGPU_REPORT={}: {error}", path.display());
        }
    }

    /// Who waits for whom, and what was found.
    pub(crate) fn describe(&self) -> String {
        let mut text = self.engine.describe(self);
        let (regions, bytes) = self.memory.totals();
        let _ = writeln!(
            text,
            "{regions} allocations of {bytes} bytes; {:#?}",
            self.counts()
        );
        text.push_str(&self.witness.found());
        text
    }
}

extern "C" fn write_report() {
    if let Ok(device) = device() {
        device.report();
    }
}
