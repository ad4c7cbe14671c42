//! Queues: made, intercepted, destroyed.

use crate::book::Left;
use crate::calls::{self, CallId};
use crate::flights::Watched;
use crate::interceptor::{Interceptor, intercept};
use crate::lock;
use crate::order::Order;
use crate::profiler::Profiler;
use hsa_serializer::AddQueueError;
use hsa_sys::{
    HSA_QUEUE_TYPE_COOPERATIVE, hsa_agent_t, hsa_queue_create_fn, hsa_queue_error_callback_t,
    hsa_queue_t, hsa_queue_type32_t, hsa_signal_value_t, hsa_status_t,
};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

/// The arguments of `hsa_queue_create`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) agent: hsa_agent_t,
    pub(crate) size: u32,
    pub(crate) kind: hsa_queue_type32_t,
    pub(crate) callback: Option<hsa_queue_error_callback_t>,
    pub(crate) data: *mut c_void,
    pub(crate) private_segment_size: u32,
    pub(crate) group_segment_size: u32,
}

impl Request {
    /// # Safety
    /// As `hsa_queue_create`, which `create` is, or something that does as much.
    unsafe fn make(&self, create: hsa_queue_create_fn) -> Result<*mut hsa_queue_t, hsa_status_t> {
        let mut queue = std::ptr::null_mut();
        // SAFETY: the caller's promise.
        let created = unsafe {
            create(
                self.agent,
                self.size,
                self.kind,
                self.callback,
                self.data,
                self.private_segment_size,
                self.group_segment_size,
                &raw mut queue,
            )
        };
        created.ok()?;
        Ok(queue)
    }
}

/// An intercepted queue: its interceptor was given to the runtime, and is freed after the queue.
pub(crate) struct Entry {
    watched: Arc<Watched>,
    interceptor: *mut Interceptor,
    error: CallId,
    /// The agent, where it is its shared one.
    shared: Option<hsa_agent_t>,
}

// SAFETY: the pointer owns its interceptor, which can be sent; until the queue is destroyed the
// runtime alone follows it.
unsafe impl Send for Entry {}

/// The queue of an error callback, known once it was made.
type Known = OnceLock<(usize, Arc<Watched>)>;

/// Held while the runtime creates a queue: 6.1.2 loses its heap where two threads create queues of one
/// agent at a time.
static CREATING: Mutex<()> = Mutex::new(());

/// Queues are numbered from 1 in the whole process.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A ring that is long enough for what becomes of `size` packets: 4 for each, and some room.
fn longer(size: u32, longest: u32) -> u32 {
    if !size.is_power_of_two() || size > longest {
        // The runtime refuses it, as it would without us.
        return size;
    }
    let wanted = (u64::from(size) * 4 + 64).next_power_of_two();
    wanted.min(u64::from(longest)) as u32
}

impl Profiler {
    /// Makes a queue and intercepts it, where its GPU is to be serialized.
    ///
    /// # Errors
    /// What the runtime answered; out of resources where the serializer could not have its signals.
    ///
    /// # Safety
    /// As `hsa_queue_create`.
    pub(crate) unsafe fn create_queue(
        &self,
        request: &Request,
    ) -> Result<*mut hsa_queue_t, hsa_status_t> {
        let _creating = lock(&CREATING);
        let (Some(gpu), Some(_inside)) = (self.gpu(request.agent), self.gate.enter()) else {
            // SAFETY: the caller's promise.
            return unsafe { request.make(self.hsa.api().hsa_queue_create) };
        };
        let shared = (request.kind == HSA_QUEUE_TYPE_COOPERATIVE).then_some(request.agent);
        if let Some(queue) = shared.and_then(|agent| lock(&self.queues).join(agent)) {
            return Ok(std::ptr::with_exposed_provenance_mut(queue));
        }
        let (error, known) = self.error_call(request);
        // SAFETY: the caller's promise.
        let made = unsafe { self.make_intercepted(request, gpu, error, shared) };
        match made {
            Ok((queue, watched)) => {
                let _ = known.set((queue as usize, watched));
                Ok(queue)
            }
            Err(refused) => {
                error.forget();
                match refused {
                    Refused::Runtime(status) => Err(status),
                    // SAFETY: the caller's promise.
                    Refused::Ended => unsafe { request.make(self.hsa.api().hsa_queue_create) },
                }
            }
        }
    }

    /// # Safety
    /// As [`create_queue`](Self::create_queue).
    unsafe fn make_intercepted(
        &self,
        request: &Request,
        gpu: usize,
        error: CallId,
        shared: Option<hsa_agent_t>,
    ) -> Result<(*mut hsa_queue_t, Arc<Watched>), Refused> {
        let api = self.hsa.api();
        let ours = Request {
            size: longer(request.size, self.hsa.longest_ring(request.agent)?),
            callback: Some(calls::handle_error),
            data: error.argument(),
            ..*request
        };
        let intercepting = api
            .hsa_amd_queue_intercept_create
            .ok_or(hsa_status_t::ERROR)?;
        if other_tool(api.hsa_queue_create, intercepting) {
            // It wants to see the queue, too. If it makes an intercept queue, that will do.
            // SAFETY: our callback can be called with any number, the rest is the caller's promise.
            let queue = unsafe { ours.make(api.hsa_queue_create) }?;
            // SAFETY: it was just made, and nobody has seen it.
            match unsafe { self.adopt(request, queue, gpu, error, shared) } {
                Err(Refused::Runtime(hsa_status_t::ERROR_INVALID_QUEUE)) => {}
                made => return made.map(|watched| (queue, watched)),
            }
        }
        // SAFETY: as above.
        let queue = unsafe { ours.make(intercepting) }?;
        // SAFETY: as above.
        let watched = unsafe { self.adopt(request, queue, gpu, error, shared) }?;
        Ok((queue, watched))
    }

    /// Adds a new queue to its serializer and intercepts it; where this fails the queue is destroyed.
    ///
    /// # Safety
    /// It lives, and nobody else has seen it.
    unsafe fn adopt(
        &self,
        request: &Request,
        queue: *mut hsa_queue_t,
        gpu: usize,
        error: CallId,
        shared: Option<hsa_agent_t>,
    ) -> Result<Arc<Watched>, Refused> {
        // SAFETY: the caller's promise.
        let entry = unsafe { self.intercept(request, queue, gpu, error, shared) };
        let entry = entry.inspect_err(|_| {
            // SAFETY: as above.
            let _ = unsafe { (self.hsa.api().hsa_queue_destroy)(queue) };
        })?;
        let watched = entry.watched.clone();
        lock(&self.queues).add(queue as usize, shared, entry);
        Ok(watched)
    }

    /// # Safety
    /// As [`adopt`](Self::adopt).
    unsafe fn intercept(
        &self,
        request: &Request,
        queue: *mut hsa_queue_t,
        gpu: usize,
        error: CallId,
        shared: Option<hsa_agent_t>,
    ) -> Result<Entry, Refused> {
        let register = self.hsa.api().hsa_amd_queue_intercept_register;
        let register = register.ok_or(hsa_status_t::ERROR)?;
        let serializer = self
            .agents
            .of(request.agent.handle)
            .map_err(|_| hsa_status_t::ERROR_OUT_OF_RESOURCES)?;
        let half = serializer.add_queue().map_err(|e| match e {
            AddQueueError::ShutDown => Refused::Ended,
            _ => hsa_status_t::ERROR_OUT_OF_RESOURCES.into(),
        })?;
        // Without it the trace has no times, and everything else works.
        // SAFETY: the caller's promise.
        let _ = unsafe { self.hsa.profile(queue, true) };
        let watched = Arc::new(Watched {
            serializer: serializer.clone(),
            id: half.id(),
            gpu,
            number: NEXT.fetch_add(1, Relaxed),
            asked: u64::from(request.size),
            // SAFETY: the caller's promise.
            ring: u64::from(unsafe { (*queue).size }),
            launched: AtomicU64::new(0),
            under_way: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            order: Order::default(),
            left: Mutex::default(),
        });
        let interceptor = Box::into_raw(Box::new(Interceptor {
            profiler: self.pool.owner().ok_or(Refused::Ended)?,
            watched: watched.clone(),
            half,
            out: Vec::new(),
            written: 0,
            unheard: 0,
            unknown: false,
        }));
        // SAFETY: the interceptor lives until the queue is destroyed (`destroy_queue`), or for ever.
        let registered = unsafe { register(queue, intercept, interceptor.cast()) };
        if let Err(status) = registered.ok() {
            self.queue_gone(&watched);
            // SAFETY: it came from a box above, and the runtime does not have it.
            drop(unsafe { Box::from_raw(interceptor) });
            return Err(status.into());
        }
        Ok(Entry {
            watched,
            interceptor,
            error,
            shared,
        })
    }

    /// What the runtime calls when a queue has stopped, and where it looks for that queue.
    fn error_call(&self, request: &Request) -> (CallId, Arc<Known>) {
        let known = Arc::new(Known::new());
        let (owner, found) = (
            self.pool.owner().map(|owner| Arc::downgrade(&owner)),
            known.clone(),
        );
        let (callback, data) = (request.callback, request.data.expose_provenance());
        let id = CallId::of(Arc::new(move |status: hsa_signal_value_t| {
            let profiler = owner.as_ref().and_then(|owner| owner.upgrade());
            let (Some(profiler), Some((queue, watched))) = (profiler, found.get()) else {
                return false;
            };
            if let Some(_inside) = profiler.gate.enter() {
                profiler.queue_gone(watched);
            }
            if let Some(callback) = callback {
                let status = hsa_status_t(status as u32);
                let queue = std::ptr::with_exposed_provenance_mut::<hsa_queue_t>(*queue);
                // SAFETY: the application registered it with this data.
                unsafe { callback(status, queue, std::ptr::with_exposed_provenance_mut(data)) };
            }
            true
        }));
        (id, known)
    }

    /// Destroys a queue, then tells the serializer: until the runtime's function has returned, a
    /// packet of the queue may still execute.
    ///
    /// # Errors
    /// What the runtime answered.
    ///
    /// # Safety
    /// As `hsa_queue_destroy`: the queue lives, and nobody uses it any more.
    pub(crate) unsafe fn destroy_queue(&self, queue: *mut hsa_queue_t) -> Result<(), hsa_status_t> {
        // Taken out before: the address is another queue's as soon as it is destroyed.
        let entry = match lock(&self.queues).leave(queue as usize) {
            Left::Last(entry) => Some(entry),
            Left::Others => return Ok(()),
            Left::Unknown => None,
        };
        // No lock is held: the runtime waits for its handlers' thread here.
        // SAFETY: the caller's promise.
        let destroyed = unsafe { (self.hsa.api().hsa_queue_destroy)(queue) };
        let Some(entry) = entry else {
            return destroyed.ok();
        };
        if let Err(status) = destroyed.ok() {
            lock(&self.queues).add(queue as usize, entry.shared, entry);
            return Err(status);
        }
        let inside = self.gate.enter();
        if inside.is_some() {
            self.queue_gone(&entry.watched);
            let left = std::mem::take(&mut *lock(&entry.watched.left));
            self.pool.reset(left);
        }
        drop(inside);
        // SAFETY: it came from a box, the runtime does not call it any more, and the entry was taken
        // out of the book: nobody else frees it.
        drop(unsafe { Box::from_raw(entry.interceptor) });
        entry.error.forget();
        Ok(())
    }

    /// Inactivates a queue, then tells the serializer.
    ///
    /// # Errors
    /// What the runtime answered.
    ///
    /// # Safety
    /// As `hsa_queue_inactivate`: the queue lives.
    pub(crate) unsafe fn inactivate_queue(
        &self,
        queue: *mut hsa_queue_t,
    ) -> Result<(), hsa_status_t> {
        // SAFETY: the caller's promise.
        unsafe { (self.hsa.api().hsa_queue_inactivate)(queue) }.ok()?;
        let entry = lock(&self.queues)
            .get(queue as usize)
            .map(|entry| entry.watched.clone());
        if let (Some(watched), Some(_inside)) = (entry, self.gate.enter()) {
            self.queue_gone(&watched);
        }
        Ok(())
    }
}

/// Why a queue was not intercepted.
enum Refused {
    Runtime(hsa_status_t),
    /// The serializer has ended: queues are the application's alone from now on.
    Ended,
}

impl From<hsa_status_t> for Refused {
    fn from(status: hsa_status_t) -> Self {
        Self::Runtime(status)
    }
}

/// Whether another tool has put a function of its own in the place of the runtime's: then the two are not
/// of one library.
fn other_tool(create: hsa_queue_create_fn, intercepting: hsa_queue_create_fn) -> bool {
    let library = |function: hsa_queue_create_fn| {
        let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: it is written where the call succeeds.
        let known = unsafe { libc::dladdr(function as *const c_void, found.as_mut_ptr()) } != 0;
        // SAFETY: zeroes are a `Dl_info`, too: null pointers.
        known.then(|| unsafe { found.assume_init() }.dli_fbase)
    };
    library(create) != library(intercepting)
}
