//! What an application does: start the runtime, create queues, submit, wait.

use crate::hsa::Hsa;
use crate::watchdog;
use anyhow::{Context, Result, ensure};
use hsa_sys::{
    Api, AqlPacket, HSA_QUEUE_TYPE_MULTI, HsaApiTable, Tables, hsa_agent_t, hsa_queue_t,
    hsa_status_t,
};
use libloading::Library;
use std::env;
use std::sync::atomic::{AtomicU32, Ordering::Release};
use std::thread;

/// The part of a scenario in which it shuts the runtime down.
pub const SHUTTING_DOWN: &str = "hsa_shut_down";

/// An initialized runtime.
#[derive(Debug)]
pub struct App {
    /// The library's functions: they go through the tables, so a tool sees them.
    pub hsa: Hsa,
    /// The GPUs.
    pub gpus: Vec<hsa_agent_t>,
}

impl App {
    /// Loads the runtime and initializes it.
    ///
    /// # Errors
    /// Where it can't be loaded or initialized, or finds no GPU.
    pub fn start() -> Result<Self> {
        let (library, api) = Api::load()?;
        // Its functions are used as long as the process lives.
        std::mem::forget(library);
        // SAFETY: the runtime's first function.
        unsafe { (api.hsa_init)() }.ok().context("hsa_init")?;
        // SAFETY: it is initialized and stays loaded; `stop` takes the application back.
        let hsa = unsafe { Hsa::new(api) };
        let gpus = hsa.gpus().context("hsa_iterate_agents")?;
        ensure!(!gpus.is_empty(), "the runtime finds no GPU");
        Ok(Self { hsa, gpus })
    }

    /// Shuts the runtime down (or counts one user less).
    ///
    /// # Errors
    /// What the runtime answered.
    pub fn stop(self) -> Result<(), hsa_status_t> {
        // SAFETY: nobody else has it.
        unsafe { self.shut_down() }
    }

    /// The same for an application that goes on to look at what it has of the runtime.
    ///
    /// # Errors
    /// What the runtime answered.
    ///
    /// # Safety
    /// Where it was the last user of the runtime, nobody calls that any more.
    pub unsafe fn shut_down(&self) -> Result<(), hsa_status_t> {
        watchdog::stage(SHUTTING_DOWN);
        // SAFETY: it was initialized by `start`.
        unsafe { (self.hsa.api().hsa_shut_down)() }.ok()
    }

    /// The functions that the test tool has saved from the runtime's tables: what a profiler has.
    ///
    /// # Errors
    /// Where the tool was not loaded by the runtime (`HSA_TOOLS_LIB`), or its table is of no known
    /// form.
    pub fn saved(&self) -> Result<Hsa> {
        type Table = unsafe extern "C" fn() -> *const HsaApiTable;
        let name =
            env::var("HSA_TOOLS_LIB").context("HSA_TOOLS_LIB does not name the test tool")?;
        // SAFETY: the runtime has loaded it, its initializers have run.
        let tool = unsafe { Library::new(&name) }.with_context(|| format!("loading {name}"))?;
        // SAFETY: it is the type of the tool's function, which has no requirements.
        let root = unsafe { tool.get::<Table>(b"hsa_test_tool_table\0")?() };
        std::mem::forget(tool);
        // SAFETY: the runtime's tables, which live as long as its library; or null.
        let tables = unsafe { Tables::from_raw(root) }.context("the table that the tool saved")?;
        let api = Api::from_tables(&tables)?;
        // SAFETY: as in `start`.
        Ok(unsafe { Hsa::new(api) })
    }

    /// Makes a queue by the library's function, as an application does.
    ///
    /// # Errors
    /// What the runtime answered.
    pub fn create_queue(&self, agent: hsa_agent_t, size: u32) -> Result<AppQueue, hsa_status_t> {
        let mut queue = std::ptr::null_mut();
        let null = std::ptr::null_mut();
        let create = self.hsa.api().hsa_queue_create;
        // SAFETY: no callback; `queue` is written where the call succeeds.
        unsafe {
            create(
                agent,
                size,
                HSA_QUEUE_TYPE_MULTI,
                None,
                null,
                0,
                0,
                &raw mut queue,
            )
        }
        .ok()?;
        // SAFETY: it was just made.
        Ok(unsafe { AppQueue::new(self.hsa, queue) })
    }
}

/// A queue, as an application sees it. Any thread may submit.
#[derive(Clone, Copy, Debug)]
pub struct AppQueue {
    hsa: Hsa,
    queue: *mut hsa_queue_t,
}

// SAFETY: the runtime's queue functions may be called by any thread, and the slots that a submission
// has reserved are its own.
unsafe impl Send for AppQueue {}
// SAFETY: as above.
unsafe impl Sync for AppQueue {}

impl AppQueue {
    /// A queue that the runtime has made.
    ///
    /// # Safety
    /// It lives while this and its copies are used, and several threads may submit to it.
    #[must_use]
    pub unsafe fn new(hsa: Hsa, queue: *mut hsa_queue_t) -> Self {
        Self { hsa, queue }
    }

    /// The runtime's queue.
    #[must_use]
    pub fn raw(&self) -> *mut hsa_queue_t {
        self.queue
    }

    /// How many packets its ring holds.
    #[must_use]
    pub fn size(&self) -> u64 {
        u64::from(self.fields().size)
    }

    fn fields(&self) -> hsa_queue_t {
        // SAFETY: it lives, and the runtime does not change these fields.
        unsafe { self.queue.read() }
    }

    /// Submits a batch with one ring of the doorbell, once there is room for it.
    ///
    /// # Panics
    /// If it is larger than the ring.
    pub fn submit(&self, packets: &[AqlPacket]) {
        let count = packets.len() as u64;
        if count > 0 {
            let first = self.reserve(count);
            self.publish(first, packets);
            self.ring(first + count - 1);
        }
    }

    /// Reserves so many slots, once there is room for them; the index of the first one.
    ///
    /// # Panics
    /// If they are more than the ring has.
    #[must_use]
    pub fn reserve(&self, count: u64) -> u64 {
        let (api, size) = (self.hsa.api(), self.size());
        assert!(count <= size, "{count} packets for a ring of {size}");
        // SAFETY: it lives.
        let first = unsafe { (api.hsa_queue_add_write_index_scacq_screl)(self.queue, count) };
        // SAFETY: it lives.
        while first + count - unsafe { (api.hsa_queue_load_read_index_scacquire)(self.queue) }
            > size
        {
            thread::yield_now();
        }
        first
    }

    /// Writes packets into slots that were reserved, from this index on.
    pub fn publish(&self, first: u64, packets: &[AqlPacket]) {
        let (fields, size) = (self.fields(), self.size());
        let ring = fields.base_address.cast::<[u64; 8]>();
        for (index, packet) in (first..).zip(packets) {
            let words = packet.words();
            // SAFETY: within the ring. The slot was reserved and has been read, so it is ours until its
            // header says otherwise, which comes last.
            unsafe {
                let slot = ring.add((index % size) as usize);
                let slot = slot.cast::<u32>();
                slot.add(1).write_volatile((words[0] >> 32) as u32);
                for (n, word) in words.iter().enumerate().skip(1) {
                    slot.cast::<u64>().add(n).write_volatile(*word);
                }
                AtomicU32::from_ptr(slot).store(words[0] as u32, Release);
            }
        }
    }

    /// Rings the doorbell for the packet of that index.
    pub fn ring(&self, index: u64) {
        self.hsa.store(self.fields().doorbell_signal, index as i64);
    }

    /// Destroys it by the library's function.
    ///
    /// # Errors
    /// What the runtime answered.
    pub fn destroy(self) -> Result<(), hsa_status_t> {
        // SAFETY: it lives, and whoever calls this uses it no more (see `new`).
        unsafe { (self.hsa.api().hsa_queue_destroy)(self.queue) }.ok()
    }
}
