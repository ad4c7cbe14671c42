//! Parts of this crate by themselves, for the loom models.
//!
//! What goes through the public calls takes too many steps for three threads, or for two who meet in
//! the middle of a list. So the models get the parts themselves, each with a reclamation domain and
//! with memory that tells when it is used too late.

use crate::domain::Domain;
use crate::list::{Linked, List};
use crate::pending::{NEVER, Pending, Verdict};
use crate::recorder::{Recorder, WORDS};
use crate::registry::Registry;
use crate::sync::{AtomicPtr, AtomicU32, Ordering, Step, stands};
use loom::cell::UnsafeCell;
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;

const NODES: usize = 4;
const DUTIES: usize = 4;

struct Node {
    next: AtomicPtr<Node>,
    /// Its place. Written before it is linked: loom checks that linking publishes it.
    place: UnsafeCell<usize>,
    reclaimed: AtomicU32,
}

impl Linked for Node {
    fn next(&self) -> &AtomicPtr<Self> {
        // Changes nothing, and is not a load: of two who use a node loom explores both orders, hence
        // also who comes first of the traversal and of the remover that then reclaims. (It knows but
        // the last access to each location; the remover's own look would hide the traversal's.)
        let reclaimed = self.reclaimed.fetch_add(0, Ordering::Relaxed) > 0;
        assert!(!reclaimed, "a reclaimed node was used");
        &self.next
    }
}

/// A list of nodes that are named by their places.
pub struct Chain {
    nodes: [Node; NODES],
    list: List<Node>,
    domain: Domain,
}

// SAFETY: a node's place is written by its pusher alone, before anybody else can reach it. loom checks
// that.
unsafe impl Send for Chain {}
// SAFETY: as above.
unsafe impl Sync for Chain {}

impl Chain {
    /// With the first `linked` nodes in it.
    #[must_use]
    pub fn new(domain: &Domain, linked: usize) -> Arc<Self> {
        let chain = Arc::new(Self {
            nodes: std::array::from_fn(|_| Node {
                next: AtomicPtr::new(ptr::null_mut()),
                place: UnsafeCell::new(usize::MAX),
                reclaimed: AtomicU32::new(0),
            }),
            list: List::new(),
            domain: domain.clone(),
        });
        (0..linked).for_each(|place| chain.push(place));
        chain
    }

    /// Appends a node. One thread at a time.
    pub fn push(&self, place: usize) {
        let _guard = self.domain.pin();
        let node = &self.nodes[place];
        node.place.with_mut(|p| {
            // SAFETY: nobody else can reach it yet.
            unsafe { *p = place };
        });
        // SAFETY: pinned; models push one at a time and each node once; nodes live as long as the
        // chain.
        unsafe { self.list.push(NonNull::from(node)) };
    }

    /// Takes a node out, once, and has it reclaimed.
    pub fn remove(self: &Arc<Self>, place: usize) {
        let guard = self.domain.pin();
        // SAFETY: as in `push`; models remove each node once.
        unsafe { self.list.remove(NonNull::from(&self.nodes[place])) };
        let chain = self.clone();
        let reclaim = move || chain.nodes[place].reclaimed.store(1, Ordering::Relaxed);
        if stands(Step::DeferReclaim) {
            self.domain.defer(&guard, reclaim);
            Domain::flush(guard);
        } else {
            reclaim();
        }
    }

    /// Reclaims what can be.
    pub fn collect(&self) {
        self.domain.pump();
    }

    /// The nodes that a traversal meets, in order.
    #[must_use]
    pub fn walk(&self) -> Vec<usize> {
        let _guard = self.domain.pin();
        // SAFETY: the place was published by its pusher, and is not written again.
        self.list.collect(|node| node.place.with(|p| unsafe { *p }))
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").finish_non_exhaustive()
    }
}

/// What is due on one queue, with numbers for barriers.
pub struct Duties {
    pending: Pending<usize>,
    numbers: [usize; DUTIES],
    domain: Domain,
}

impl Duties {
    /// Nothing is due.
    #[must_use]
    pub fn new(domain: &Domain) -> Arc<Self> {
        Arc::new(Self {
            pending: Pending::new(),
            numbers: std::array::from_fn(|i| i),
            domain: domain.clone(),
        })
    }

    /// Appends a pair. One thread at a time.
    pub fn push(&self, due: u64, number: usize) {
        let barrier = NonNull::from(&self.numbers[number]);
        // SAFETY: models push one at a time; the numbers live as long as this.
        unsafe { self.pending.push(due, barrier) };
    }

    /// Takes what is due at `count`, and says what was taken.
    #[must_use]
    pub fn take(&self, count: u64) -> Vec<usize> {
        let guard = self.domain.pin();
        let (mut taken, mut deferred) = (Vec::new(), false);
        let left = self.pending.take_due(
            count,
            &self.domain,
            &guard,
            &mut deferred,
            |_| Verdict::Take,
            // SAFETY: see `push`.
            |number| taken.push(unsafe { *number.as_ref() }),
        );
        debug_assert!(left == NEVER || left > count);
        if deferred {
            Domain::flush(guard);
            self.domain.pump();
        }
        taken
    }

    /// Reclaims what can be.
    pub fn collect(&self) {
        self.domain.pump();
    }
}

impl fmt::Debug for Duties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Duties").finish_non_exhaustive()
    }
}

/// The registry of what can be found by a number.
pub struct Numbers(Registry<u32>);

impl Numbers {
    /// An empty one.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Registry::new()))
    }

    /// What its threads register with.
    #[must_use]
    pub fn domain(&self) -> Domain {
        self.0.domain()
    }

    /// What was inserted under that number.
    #[must_use]
    pub fn find(&self, number: u32) -> Option<u32> {
        self.0.find(number)
    }

    /// Inserts.
    pub fn insert(&self, number: u32, value: u32) {
        self.0.insert(number, value);
    }

    /// Removes.
    pub fn remove(&self, number: u32) {
        self.0.remove(number);
    }

    /// Reclaims what can be.
    pub fn collect(&self) {
        self.domain().pump();
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Numbers").finish_non_exhaustive()
    }
}

/// The flight recorder, with records of one number.
pub struct Records(Recorder);

impl Records {
    /// An empty one.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Recorder::new()))
    }

    /// Writes a record that consists of this number alone.
    pub fn write(&self, number: u64) {
        self.0.write([number; WORDS]);
    }

    /// Claims the slot of a record, alone.
    #[must_use]
    pub fn claim_alone(&self, number: u64) -> bool {
        self.0.claim_alone(number)
    }

    /// Completes a record that was claimed.
    pub fn complete(&self, number: u64) {
        self.0.complete(number, [number; WORDS]);
    }

    /// What the records consist of.
    #[must_use]
    pub fn read(&self) -> Vec<Vec<u64>> {
        self.0
            .read()
            .iter()
            .map(|(_, words)| words.to_vec())
            .collect()
    }

    /// Records that were given up.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.lost()
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").finish_non_exhaustive()
    }
}
