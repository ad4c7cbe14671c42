//! The profiler's queues: made, intercepted, destroyed.

use crate::calls::{self, CallId};
use crate::flights::Watched;
use crate::interceptor::{Interceptor, intercept};
use crate::lifecycle::Lifecycle;
use crate::lock;
use crate::order::Order;
use crate::profiler::Profiler;
use crate::setup::{Fault, QueueRequest};
use hsa_serializer::AddQueueError;
use hsa_sys::{hsa_agent_t, hsa_queue_t, hsa_signal_value_t, hsa_status_t};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

/// An intercepted queue: its interceptor was given to the runtime, and is freed after the queue.
pub(crate) struct Entry<S: Lifecycle> {
    pub(crate) watched: Arc<Watched<S>>,
    interceptor: *mut Interceptor<S>,
    /// Its error callback, where it was made here.
    error: Option<CallId>,
}

// SAFETY: the pointer owns its interceptor, which can be sent; until the queue is destroyed the
// runtime alone follows it.
unsafe impl<S: Lifecycle> Send for Entry<S> {}

/// The queue of an error callback, known once it was made.
type Known<S> = OnceLock<(usize, Arc<Watched<S>>)>;

/// Held while the runtime creates a queue.
static CREATING: Mutex<()> = Mutex::new(());

/// A ring that is long enough for what becomes of `size` packets: 4 for each, and some room.
fn longer(size: u32, longest: u32) -> u32 {
    if !size.is_power_of_two() || size > longest {
        // The runtime refuses it, as it would without us.
        return size;
    }
    let wanted = (u64::from(size) * 4 + 64).next_power_of_two();
    wanted.min(u64::from(longest)) as u32
}

impl<S: Lifecycle> Profiler<S> {
    /// Makes a queue and intercepts it. Its ring is longer than was asked for, since packets
    /// multiply. After the end it is an ordinary queue.
    ///
    /// # Errors
    /// What the runtime answered; out of resources where the serializer could not have its signals.
    ///
    /// # Safety
    /// As `hsa_queue_create`: the callback can be called with the data while the queue lives.
    pub unsafe fn create_queue(
        &self,
        request: QueueRequest,
    ) -> Result<*mut hsa_queue_t, hsa_status_t> {
        let core = &self.core;
        let Some(_inside) = core.gate.enter() else {
            // SAFETY: the caller's promise.
            return unsafe { self.create_plain(request) };
        };
        let api = core.hsa.api();
        let create = api
            .hsa_amd_queue_intercept_create
            .ok_or(hsa_status_t::ERROR)?;
        let size = longer(request.size, core.hsa.longest_ring(request.agent)?);
        let (error, known) = self.error_call(request);
        let mut queue = std::ptr::null_mut();
        // 6.1.2 loses its heap where two threads create queues of one agent at a time.
        let creating = lock(&CREATING);
        // SAFETY: the caller's promise; our callback can be called with any number.
        let created = unsafe {
            create(
                request.agent,
                size,
                request.kind,
                Some(calls::handle_error),
                error.argument(),
                request.private_segment_size,
                request.group_segment_size,
                &raw mut queue,
            )
        };
        drop(creating);
        // SAFETY: the runtime has just made it.
        let adopted = created
            .ok()
            .and_then(|()| unsafe { self.adopt(request, queue, Some(error), false) });
        match adopted {
            Ok(Some(watched)) => {
                let _ = known.set((queue as usize, watched));
                Ok(queue)
            }
            refused => {
                error.forget();
                if !queue.is_null() {
                    // SAFETY: it was made above, and nobody has seen it.
                    let _ = unsafe { (api.hsa_queue_destroy)(queue) };
                }
                match refused {
                    Err(status) => Err(status),
                    // SAFETY: the caller's promise.
                    Ok(_) => unsafe { self.create_plain(request) },
                }
            }
        }
    }

    /// Makes a queue as the application wanted it.
    ///
    /// # Safety
    /// As `hsa_queue_create`.
    unsafe fn create_plain(&self, request: QueueRequest) -> Result<*mut hsa_queue_t, hsa_status_t> {
        let create = self.core.hsa.api().hsa_queue_create;
        let mut queue = std::ptr::null_mut();
        let _creating = lock(&CREATING);
        // SAFETY: the caller's promise.
        let created = unsafe {
            create(
                request.agent,
                request.size,
                request.kind,
                request.callback,
                request.data,
                request.private_segment_size,
                request.group_segment_size,
                &raw mut queue,
            )
        };
        created.ok()?;
        Ok(queue)
    }

    /// Intercepts a queue from now on that others have made, as one that can be intercepted, and have
    /// used: it may hold kernels that nobody knows of.
    ///
    /// # Errors
    /// What the runtime answered, which refuses an ordinary queue; out of resources where the
    /// serializer could not have its signals, or has ended.
    ///
    /// # Safety
    /// It lives, its application does not ring its doorbell within this call, and it is destroyed by
    /// [`destroy_queue`](Self::destroy_queue).
    pub unsafe fn attach_queue(
        &self,
        agent: hsa_agent_t,
        queue: *mut hsa_queue_t,
    ) -> Result<(), hsa_status_t> {
        let Some(_inside) = self.core.gate.enter() else {
            return Err(hsa_status_t::ERROR_NOT_INITIALIZED);
        };
        // SAFETY: it lives.
        let size = unsafe { (*queue).size };
        let request = QueueRequest::new(agent, size);
        // SAFETY: the caller's promise.
        let adopted = unsafe { self.adopt(request, queue, None, true) }?;
        adopted
            .map(drop)
            .ok_or(hsa_status_t::ERROR_OUT_OF_RESOURCES)
    }

    /// Adds a queue to its serializer and intercepts it; `None` where the serializer has ended. The
    /// queue is as it was where this fails.
    ///
    /// # Safety
    /// As [`attach_queue`](Self::attach_queue).
    unsafe fn adopt(
        &self,
        request: QueueRequest,
        queue: *mut hsa_queue_t,
        error: Option<CallId>,
        unknown: bool,
    ) -> Result<Option<Arc<Watched<S>>>, hsa_status_t> {
        let core = &self.core;
        let register = core
            .hsa
            .api()
            .hsa_amd_queue_intercept_register
            .ok_or(hsa_status_t::ERROR)?;
        let serializer = self
            .serializer(request.agent)
            .map_err(|_| hsa_status_t::ERROR_OUT_OF_RESOURCES)?;
        let half = match serializer.add_queue() {
            Ok(half) => half,
            Err(e) if e.downcast_ref() == Some(&AddQueueError::ShutDown) => return Ok(None),
            Err(_) => return Err(hsa_status_t::ERROR_OUT_OF_RESOURCES),
        };
        let watched = Arc::new(Watched {
            id: S::id(&half),
            serializer,
            asked: u64::from(request.size),
            // SAFETY: it lives.
            ring: u64::from(unsafe { (*queue).size }),
            launched: AtomicU64::new(0),
            under_way: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            order: Order::default(),
            left: Mutex::default(),
        });
        let interceptor = Box::into_raw(Box::new(Interceptor {
            core: core.clone(),
            watched: watched.clone(),
            half,
            out: Vec::new(),
            written: 0,
            unknown,
        }));
        let entry = Entry {
            watched: watched.clone(),
            interceptor,
            error,
        };
        lock(&self.queues).insert(queue as usize, entry);
        // SAFETY: the interceptor lives until the queue is destroyed (`destroy_queue`), or for ever.
        let registered = unsafe { register(queue, intercept::<S>, interceptor.cast()) };
        if let Err(status) = registered.ok() {
            lock(&self.queues).remove(&(queue as usize));
            core.queue_gone(&watched);
            // SAFETY: it came from a box above, and the runtime does not have it.
            drop(unsafe { Box::from_raw(interceptor) });
            return Err(status);
        }
        Ok(Some(watched))
    }

    /// What the runtime calls when a queue has stopped, and where it looks for that queue.
    fn error_call(&self, request: QueueRequest) -> (CallId, Arc<Known<S>>) {
        let known = Arc::new(Known::new());
        let (core, found) = (Arc::downgrade(&self.core), known.clone());
        let callback = request.callback;
        let data = request.data as usize;
        let id = CallId::of(Arc::new(move |status: hsa_signal_value_t| {
            let (Some(core), Some((queue, watched))) = (core.upgrade(), found.get()) else {
                return false;
            };
            let inside = core.gate.enter();
            if inside.is_some() {
                core.queue_gone(watched);
            }
            drop(inside);
            if let Some(callback) = callback {
                let status = hsa_status_t(status as u32);
                // SAFETY: the application registered it with this data.
                unsafe { callback(status, *queue as *mut hsa_queue_t, data as *mut c_void) };
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
    pub unsafe fn destroy_queue(&self, queue: *mut hsa_queue_t) -> Result<(), hsa_status_t> {
        let core = &self.core;
        // Taken out before: the address is another queue's as soon as it is destroyed.
        let entry = lock(&self.queues).remove(&(queue as usize));
        if let (Some(Fault::RemoveEarly), Some(entry)) = (core.fault, &entry) {
            core.queue_gone(&entry.watched);
            thread::sleep(Duration::from_millis(5));
        }
        // SAFETY: the caller's promise.
        let destroyed = unsafe { (core.hsa.api().hsa_queue_destroy)(queue) };
        let Some(entry) = entry else {
            return destroyed.ok();
        };
        if let Err(status) = destroyed.ok() {
            lock(&self.queues).insert(queue as usize, entry);
            return Err(status);
        }
        core.queue_gone(&entry.watched);
        // SAFETY: it came from a box, the runtime does not call it any more, and the entry was taken
        // out of the map: nobody else frees it.
        drop(unsafe { Box::from_raw(entry.interceptor) });
        if let Some(error) = entry.error {
            error.forget();
        }
        if let Some(_inside) = core.gate.enter() {
            core.pool
                .reset(std::mem::take(&mut *lock(&entry.watched.left)));
        }
        Ok(())
    }

    /// Frees what was kept of queues that nobody has destroyed, the dispatching halves among it.
    ///
    /// # Safety
    /// The runtime was shut down: nothing calls their interceptors any more.
    pub unsafe fn free_queues(&self) {
        for entry in std::mem::take(&mut *lock(&self.queues)).into_values() {
            entry.watched.closed.store(true, SeqCst);
            for (_, ticket) in self.core.pool.close(&entry.watched) {
                self.core.counts.abandoned.fetch_add(1, SeqCst);
                entry.watched.serializer.abandon(ticket);
            }
            // SAFETY: as in `destroy_queue`.
            drop(unsafe { Box::from_raw(entry.interceptor) });
            if let Some(error) = entry.error {
                error.forget();
            }
        }
    }

    /// Inactivates a queue, then tells the serializer.
    ///
    /// # Errors
    /// What the runtime answered.
    ///
    /// # Safety
    /// As `hsa_queue_inactivate`: the queue lives.
    pub unsafe fn inactivate_queue(&self, queue: *mut hsa_queue_t) -> Result<(), hsa_status_t> {
        // SAFETY: the caller's promise.
        unsafe { (self.core.hsa.api().hsa_queue_inactivate)(queue) }.ok()?;
        let watched = lock(&self.queues)
            .get(&(queue as usize))
            .map(|entry| entry.watched.clone());
        if let Some(watched) = watched {
            self.core.queue_gone(&watched);
        }
        Ok(())
    }
}
