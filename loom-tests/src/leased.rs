//! A lease with a value that tells when it is used too late, and how often it was dropped.

use crate::lease::{Lease, Refused};
use crate::sync::{AtomicPtr, AtomicU32, Ordering};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

/// What the value of the present execution has gone through.
struct Probe {
    /// How often it was used, as loom has it: whoever drops it has to see the last one.
    uses: AtomicU32,
    /// The same, as it is; and what loom does not see, since it changes together with what loom sees.
    used: Cell<u32>,
    is_used: Cell<bool>,
    drops: Cell<usize>,
}

// Of the operating system's thread: loom runs all threads of a model on one.
std::thread_local! {
    static PROBE: RefCell<Option<Rc<Probe>>> = const { RefCell::new(None) };
}

fn probe() -> Rc<Probe> {
    PROBE.with_borrow(|probe| probe.clone().expect("a lease was made"))
}

/// It takes no memory, so that to use it too late harms nobody.
struct Value;

impl Value {
    fn work(&mut self) {
        let probe = probe();
        assert_eq!(probe.drops.get(), 0, "the value was used after its drop");
        probe.is_used.set(true);
        let uses = probe.uses.load(Ordering::Relaxed) + 1;
        // A step in the middle of a use, so that others come in between.
        probe.uses.store(uses, Ordering::Relaxed);
        probe.used.set(uses);
        probe.is_used.set(false);
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        let probe = probe();
        assert!(!probe.is_used.get(), "the value was dropped under its user");
        let seen = probe.uses.load(Ordering::Relaxed);
        let used = probe.used.get();
        assert_eq!(
            seen, used,
            "the value was dropped, and its last use not seen"
        );
        probe.drops.set(probe.drops.get() + 1);
        assert_eq!(probe.drops.get(), 1, "the value was dropped twice");
    }
}

/// A queue's lease, as the C interface has it. Clones are the same one.
#[derive(Clone)]
pub struct Leased {
    lease: Arc<Lease<Value>>,
}

impl Leased {
    /// One that can be entered. Within a model only.
    #[must_use]
    pub fn new() -> Self {
        PROBE.set(Some(Rc::new(Probe {
            uses: AtomicU32::new(0),
            used: Cell::new(0),
            is_used: Cell::new(false),
            drops: Cell::new(0),
        })));
        let none = || AtomicPtr::new(ptr::null_mut());
        let lease = Lease::of(none(), AtomicU32::new(0), none());
        lease.fill(Value);
        Self {
            lease: Arc::new(lease),
        }
    }

    /// Uses the value; false if the lease has ended. One call at a time.
    ///
    /// # Panics
    /// If it is refused because somebody is inside, whom nobody sent there.
    #[must_use]
    pub fn enter(&self) -> bool {
        // SAFETY: models enter it one at a time.
        match unsafe { self.lease.enter(Value::work) } {
            Ok(()) => true,
            Err(Refused::Ended) => false,
            Err(Refused::Busy) => panic!("nobody is inside, and it is busy"),
        }
    }

    /// The same in two halves, as the C interface's dispatch does it.
    ///
    /// # Panics
    /// As there; or if what could not be come into is entered.
    #[must_use]
    pub fn come_and_go(&self) -> bool {
        // SAFETY: models enter it one at a time.
        let Some(mut value) = (unsafe { self.lease.come_in() }) else {
            assert!(!self.enter(), "it was refused, and then not");
            return false;
        };
        // SAFETY: nobody else has it until this goes out.
        unsafe { value.as_mut() }.work();
        if !self.lease.go_out() {
            self.lease.take_what_is_left();
        }
        true
    }

    /// Ends the lease; whether this call did.
    #[must_use]
    pub fn end(&self) -> bool {
        self.lease.end()
    }

    /// When all are through: it was dropped, and can't be entered any more.
    ///
    /// # Panics
    /// If it is otherwise.
    pub fn has_ended(&self) {
        let drops = probe().drops.get();
        assert_eq!(drops, 1, "the value was never dropped");
        assert!(!self.enter() && !self.end(), "it has not ended");
    }
}

impl Default for Leased {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leased").finish_non_exhaustive()
    }
}
