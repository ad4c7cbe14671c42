//! Reclamation: pinning, deferring, and making sure that what is deferred does run.
//!
//! # For those who know HSA and not crossbeam
//! A lock-free list can't free a node the moment it is unlinked: another thread may still stand on
//! it. *Epoch-based reclamation* settles that. A thread that is about to look at shared nodes
//! *pins* itself; who unlinks a node *defers* its destruction; the deferred function runs when
//! every thread that was pinned at that time has unpinned since. Pinning costs a few nanoseconds
//! and blocks nobody.
//!
//! # For those who know crossbeam
//! - The collector is our own ([`Domain`]), one a process by default: crossbeam's default one is
//!   never dropped and is shared with strangers whose deferred functions could run in a dispatch.
//!   Tests and fuzzers make one each.
//! - A function that was deferred and flushed still does not run by itself: the epoch has to
//!   advance twice. So after retiring, and on every later slow path, [`Domain::pump`] does up to
//!   two rounds of pin and flush while anything is pending.
//! - Collection can run inside any `pin`, on whichever thread pins. With it comes
//!   [`Runtime::destroy_signal`](crate::Runtime::destroy_signal). Because transitions, removals
//!   and retiring completions pump, it all but never falls to a dispatch.
//! - An idle registered thread does not hold anything back; a pinned one does.
//! - A thread that ends gives its handle back, and that pins once more. What this finds due is not
//!   run then, but kept for the next pump: the runtime may be gone by the time that a process's last
//!   thread-locals go, and a thread's end is no place to call it.

use crate::fork;
use crate::sync::statistic::{AtomicUsize, Ordering};
use crate::sync::thread_local;
use crossbeam_epoch::{Collector, Guard, LocalHandle};
use crossbeam_queue::SegQueue;
#[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
use std::cell::Cell;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Rounds of pin and flush after which a function that nothing holds back has run.
const PUMP_ROUNDS: usize = 2;

/// How often [`Domain::drain`] tries again where nothing moves: at once, and then after a pause each time,
/// for a thread that is ending may wait for a core. Models have no threads to wait for.
const TRIES: (usize, usize) = if cfg!(any(hsa_serializer_loom, hsa_serializer_shuttle)) {
    (0, 0)
} else {
    (100, 100)
};
const PAUSE: std::time::Duration = std::time::Duration::from_micros(100);

/// Threads keep this many handles of domains that are not the process's own. A test process makes
/// thousands of domains; a host makes none.
const KEPT_HANDLES: usize = 4;

/// A reclamation domain: the threads that wait for each other's pins.
///
/// A cheap handle; clones are the same domain. [`Domain::process`] is what a host wants. A domain
/// of its own makes sanitizers, fuzzing and tests exact: nothing is deferred by strangers.
///
/// A thread that sits pinned holds back every reclamation of its domain (and nothing else: the
/// serializer goes on, and what is not reclaimed is counted in
/// [`Statistics::reclaim_pending`](crate::Statistics::reclaim_pending)).
#[derive(Clone)]
pub struct Domain(Arc<Inner>);

struct Inner {
    collector: Collector,
    pending: AtomicUsize,
    /// What was due when a thread ended, or while one only looked.
    late: SegQueue<Box<dyn FnOnce() + Send>>,
    /// The process that made it.
    process: u32,
}

/// A thread's handles, by domain.
struct Handles(RefCell<Vec<(usize, Rc<LocalHandle>)>>);

#[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
std::thread_local! {
    /// Whether this thread has given its handles back, or is about to.
    static ENDING: Cell<bool> = const { Cell::new(false) };
}

#[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
impl Drop for Handles {
    fn drop(&mut self) {
        ENDING.set(true);
    }
}

#[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
std::thread_local! {
    /// Whether this thread only looks: what its pins find due is left to others.
    static LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// A pin that runs nothing: what it finds due is kept for the next pump.
///
/// For who looks at a process that hangs: a deferred function may wait for whom the process waits for.
pub(crate) struct QuietPin {
    guard: Option<Guard>,
    #[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
    before: bool,
}

impl QuietPin {
    pub(crate) fn guard(&self) -> &Guard {
        self.guard
            .as_ref()
            .expect("it is taken when this is dropped")
    }
}

impl Drop for QuietPin {
    fn drop(&mut self) {
        // Before the mark goes: giving a temporary handle back pins once more.
        drop(self.guard.take());
        #[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
        LOOKING.set(self.before);
    }
}

/// Whether what comes due on this thread is left to others: it ends, or only looks. All threads of a
/// model are one of the operating system's, so models leave this out.
fn leaves_it() -> bool {
    #[cfg(any(hsa_serializer_loom, hsa_serializer_shuttle))]
    return false;
    #[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
    return ENDING.get() || LOOKING.get();
}

thread_local! {
    #[cfg_attr(
        not(any(hsa_serializer_loom, hsa_serializer_shuttle)),
        expect(
            clippy::missing_const_for_thread_local,
            reason = "the model checkers' macros do not take a const block"
        )
    )]
    static HANDLES: Handles = Handles(RefCell::new(Vec::new()));
}

impl Domain {
    /// A domain of its own.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Inner {
            collector: Collector::new(),
            pending: AtomicUsize::new(0),
            late: SegQueue::new(),
            process: fork::watch(),
        }))
    }

    /// The domain that serializers of this process share by default. It is never dropped. In the child
    /// of a fork, where threads of the parent's may have been pinned in it for ever, each call makes
    /// one.
    #[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
    #[must_use]
    pub fn process() -> Self {
        static PROCESS: LazyDomain = LazyDomain::new();
        let shared = PROCESS.get();
        if shared.is_of_this_process() {
            shared
        } else {
            Self::new()
        }
    }

    /// Model checkers want one a model.
    #[cfg(any(hsa_serializer_loom, hsa_serializer_shuttle))]
    #[must_use]
    pub fn process() -> Self {
        Self::new()
    }

    /// Pins the current thread.
    ///
    /// The thread's handle is cached in a thread-local. Where that is gone already (a thread that
    /// is ending) or in use (dropping another domain's handle came back here), a temporary handle
    /// serves. Registering allocates: this is not for signal handlers.
    pub(crate) fn pin(&self) -> Guard {
        let cached = HANDLES
            .try_with(|handles| {
                let mut handles = handles.0.try_borrow_mut().ok()?;
                let key = Arc::as_ptr(&self.0).addr();
                if let Some((_, handle)) = handles.iter().find(|(k, h)| {
                    // An address can come back; the collector tells.
                    *k == key && *h.collector() == self.0.collector
                }) {
                    return Some(handle.clone());
                }
                if handles.len() >= KEPT_HANDLES {
                    handles.remove(0);
                }
                let handle = Rc::new(self.0.collector.register());
                handles.push((key, handle.clone()));
                Some(handle)
            })
            .ok()
            .flatten();
        // Pinned outside of the borrow: pinning may run deferred functions, which may pin.
        match cached {
            Some(handle) => handle.pin(),
            None => self.0.collector.register().pin(),
        }
    }

    /// Pins the current thread and runs nothing.
    pub(crate) fn pin_quietly(&self) -> QuietPin {
        let mut pin = QuietPin {
            guard: None,
            #[cfg(not(any(hsa_serializer_loom, hsa_serializer_shuttle)))]
            before: LOOKING.replace(true),
        };
        pin.guard = Some(self.pin());
        pin
    }

    /// Has `f` run by the next pump.
    #[cfg(all(
        feature = "debugger",
        not(any(hsa_serializer_loom, hsa_serializer_shuttle))
    ))]
    pub(crate) fn postpone(&self, f: impl FnOnce() + Send + 'static) {
        self.0.pending.fetch_add(1, Ordering::Relaxed);
        self.0.late.push(Box::new(f));
    }

    /// Registers the current thread and lets its first pin's collection go by, so that a model
    /// does not explore them each time.
    #[cfg(any(hsa_serializer_loom, hsa_serializer_shuttle))]
    #[doc(hidden)]
    pub fn register_thread(&self) {
        drop(self.pin());
    }

    /// Runs `f` when every thread that is pinned now has unpinned. The caller has to
    /// [`flush`](Self::flush) before it unpins: the bag of a thread that goes idle would keep `f` for
    /// ever.
    pub(crate) fn defer(&self, guard: &Guard, f: impl FnOnce() + Send + 'static) {
        self.0.pending.fetch_add(1, Ordering::Relaxed);
        let domain = self.clone();
        guard.defer(move || {
            if !leaves_it() {
                f();
                domain.0.pending.fetch_sub(1, Ordering::Relaxed);
            } else if domain.is_of_this_process() {
                domain.0.late.push(Box::new(f));
            } else {
                std::mem::forget(f);
            }
        });
    }

    /// Makes what was deferred visible to all threads, and unpins. It may run what others have
    /// deferred, so the caller holds no lock.
    pub(crate) fn flush(guard: Guard) {
        guard.flush();
    }

    /// Gives what is pending the chance to run. The caller must not be pinned.
    #[inline]
    pub(crate) fn pump(&self) {
        for _ in 0..PUMP_ROUNDS {
            if self.pending() == 0 {
                return;
            }
            self.pin().flush();
            self.run_late();
        }
    }

    /// Whether it was made here, and not by a parent of this process before its fork: then its queue
    /// may wait for a thread that is not there.
    #[inline]
    fn is_of_this_process(&self) -> bool {
        self.0.process == fork::number()
    }

    /// Runs what came due while a thread ended, or only looked.
    fn run_late(&self) {
        if self.is_of_this_process() {
            while let Some(f) = self.0.late.pop() {
                f();
                self.0.pending.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Pumps until nothing is pending, and gives up where somebody sits pinned, after some 15 ms. The
    /// caller must not be pinned.
    pub(crate) fn drain(&self) {
        let mut fruitless = 0;
        while self.pending() > 0 && fruitless <= TRIES.0 + TRIES.1 {
            let before = self.pending();
            self.pump();
            if self.pending() >= before {
                // Somebody is pinned, for a moment in most cases: a thread that ends pins once more.
                fruitless += 1;
                if fruitless <= TRIES.0 {
                    std::thread::yield_now();
                } else {
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }

    /// How many deferred functions have not run yet.
    #[must_use]
    #[inline]
    pub fn pending(&self) -> usize {
        self.0.pending.load(Ordering::Relaxed)
    }
}

/// A domain that is made when somebody wants it.
///
/// Not a `OnceLock`, which would have the child of a fork in that moment wait for a thread that it has
/// not got.
#[cfg(any(feature = "hsa", feature = "debugger", not(hsa_serializer_shuttle)))]
pub(crate) struct LazyDomain(std::sync::atomic::AtomicPtr<Inner>);

#[cfg(any(feature = "hsa", feature = "debugger", not(hsa_serializer_shuttle)))]
impl LazyDomain {
    pub(crate) const fn new() -> Self {
        Self(std::sync::atomic::AtomicPtr::new(std::ptr::null_mut()))
    }

    pub(crate) fn get(&self) -> Domain {
        // Acquire: what its maker wrote.
        let mut made = self.0.load(Ordering::Acquire);
        if made.is_null() {
            let new = Arc::into_raw(Domain::new().0).cast_mut();
            // AcqRel: who finds this one sees what it holds; who lost sees the other's.
            let first = std::ptr::null_mut();
            match self
                .0
                .compare_exchange(first, new, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => made = new,
                Err(other) => {
                    // SAFETY: it came from `into_raw` above, and nobody else has it.
                    drop(unsafe { Arc::from_raw(new) });
                    made = other;
                }
            }
        }
        // SAFETY: it came from `into_raw`, whose reference lives as long as this; the one that is added
        // here is the caller's.
        unsafe {
            Arc::increment_strong_count(made);
            Domain(Arc::from_raw(made))
        }
    }
}

#[cfg(any(feature = "hsa", feature = "debugger", not(hsa_serializer_shuttle)))]
impl Drop for LazyDomain {
    /// Not of a static; of one that a test has made.
    fn drop(&mut self) {
        let made = *self.0.get_mut();
        if !made.is_null() {
            // SAFETY: it came from `into_raw`, and nobody else gives that reference back.
            drop(unsafe { Arc::from_raw(made) });
        }
    }
}

impl Default for Domain {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain")
            .field("pending", &self.pending())
            .finish()
    }
}
