//! The profiler's queues: made, intercepted, destroyed.

use crate::calls::{self, CallId};
use crate::flights::Watched;
use crate::interceptor::{Interceptor, intercept};
use crate::lock;
use crate::order::Order;
use crate::profiler::Profiler;
use crate::setup::{Fault, QueueRequest};
use harness::Serializing;
use hsa_sys::{hsa_queue_t, hsa_signal_value_t, hsa_status_t};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

/// An intercepted queue: its interceptor was given to the runtime, and is freed after the queue.
pub(crate) struct Entry<S: Serializing> {
    pub(crate) watched: Arc<Watched<S>>,
    interceptor: *mut Interceptor<S>,
    error: CallId,
}

// SAFETY: the pointer owns its interceptor, which can be sent; until the queue is destroyed the
// runtime alone follows it.
unsafe impl<S: Serializing> Send for Entry<S> {}

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

impl<S: Serializing> Profiler<S> {
    /// Makes a queue and intercepts it. Its ring is longer than was asked for, since packets
    /// multiply.
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
            return Err(hsa_status_t::ERROR_NOT_INITIALIZED);
        };
        let api = core.hsa.api();
        let (Some(create), Some(register)) = (
            api.hsa_amd_queue_intercept_create,
            api.hsa_amd_queue_intercept_register,
        ) else {
            return Err(hsa_status_t::ERROR);
        };
        let serializer = self
            .serializer(request.agent)
            .map_err(|_| hsa_status_t::ERROR_OUT_OF_RESOURCES)?;
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
        let made = created.ok().and_then(|()| {
            // The runtime's queue is there, its first packet is not written.
            let half = serializer
                .add_queue()
                .map_err(|_| hsa_status_t::ERROR_OUT_OF_RESOURCES)?;
            let watched = Arc::new(Watched {
                serializer: serializer.clone(),
                id: S::id(&half),
                asked: u64::from(request.size),
                // SAFETY: the runtime has made it, and it lives.
                ring: u64::from(unsafe { (*queue).size }),
                launched: AtomicU64::new(0),
                under_way: AtomicU64::new(0),
                closed: AtomicBool::new(false),
                order: Order::default(),
                left: Mutex::default(),
            });
            Ok((half, watched))
        });
        let (half, watched) = match made {
            Ok(made) => made,
            Err(status) => {
                error.forget();
                if !queue.is_null() {
                    // SAFETY: it was made above, and nobody has seen it.
                    let _ = unsafe { (api.hsa_queue_destroy)(queue) };
                }
                return Err(status);
            }
        };
        let _ = known.set((queue as usize, watched.clone()));
        let interceptor = Box::into_raw(Box::new(Interceptor {
            core: core.clone(),
            watched: watched.clone(),
            half,
            out: Vec::new(),
            written: 0,
        }));
        let entry = Entry {
            watched,
            interceptor,
            error,
        };
        lock(&self.queues).insert(queue as usize, entry);
        // SAFETY: the interceptor lives until the queue is destroyed (`destroy_queue`), or for ever.
        let registered = unsafe { register(queue, intercept::<S>, interceptor.cast()) };
        if let Err(status) = registered.ok() {
            // SAFETY: it was made above, and nobody else has seen it.
            let _ = unsafe { self.destroy_queue(queue) };
            return Err(status);
        }
        Ok(queue)
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
        entry.error.forget();
        if let Some(_inside) = core.gate.enter() {
            core.pool
                .reset(std::mem::take(&mut *lock(&entry.watched.left)));
        }
        Ok(())
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
