//! The epoch-reclaimed lock-free list that holds the barriers, oldest first.
//!
//! # Participants
//! - *The pusher* appends at the end. There is one at a time (transitions exclude each other).
//! - *Removers*, any number, take a node out from anywhere, each node once.
//! - *Traversers*, any number, walk from the head, pinned.
//!
//! # States of a node
//! | state | `next` | reachable from the head |
//! |---|---|---|
//! | linked | successor or null, unmarked | yes |
//! | removed | the same with the mark bit: nobody can link behind it or change it any more | yes |
//! | unlinked | marked | by no traversal that starts now |
//!
//! A node is marked first (one compare-exchange, which decides who removes it) and then unlinked
//! by whoever passes. The remover walks until it has seen the list without its node, and only then
//! may the node be reclaimed; traversers that still stand on it are pinned, so it is reclaimed
//! after them.
//!
//! # What a traverser may miss
//! It sees every node that was linked when it started and was not removed while it walked. It may
//! or may not see nodes pushed or removed meanwhile. On a node that is being removed it goes on
//! through the node's frozen successor; on a changed predecessor it starts again from the head, so
//! that it may be asked about a node twice.
//!
//! # Costs
//! Pushing is constant (there is a tail). Removing the oldest is constant; removing from the middle
//! costs its distance from the head. Looking at the newest is constant.
//!
//! # ABA
//! A node is in the list once in its life and is freed only after every pin of that time, so an
//! address seen under a pin means one node.

use crate::sync::{AtomicPtr, Ordering, Step, stands};
use std::ptr::{self, NonNull};

/// The low bit of a `next` pointer: the node that holds it is removed.
const MARK: usize = 1;

fn is_marked<T>(p: *mut T) -> bool {
    p.addr() & MARK != 0
}

fn marked<T>(p: *mut T) -> *mut T {
    p.map_addr(|a| a | MARK)
}

fn unmarked<T>(p: *mut T) -> *mut T {
    p.map_addr(|a| a & !MARK)
}

/// A type that can be in a [`List`]: it holds the link.
pub(crate) trait Linked: Sized {
    /// The link to the next node. Only the list uses it.
    fn next(&self) -> &AtomicPtr<Self>;
}

/// The list. It does not own its nodes.
#[derive(Debug)]
pub(crate) struct List<T> {
    head: AtomicPtr<T>,
    /// The newest node, or null. Set before that node is linked and emptied by its remover before
    /// it may be freed, so under a pin it never dangles.
    tail: AtomicPtr<T>,
}

impl<T: Linked> List<T> {
    pub(crate) fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            tail: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Appends `node`.
    ///
    /// # Safety
    /// The caller is pinned and is the only pusher; `node` is in no list, is not removed before
    /// this returns, and stays valid until a grace period after [`remove`](Self::remove).
    pub(crate) unsafe fn push(&self, node: NonNull<T>) {
        // Acquire: what the last pusher wrote into its node.
        let mut last = self.tail.load(Ordering::Acquire);
        // Release: who finds the node here sees its fields.
        self.tail.store(node.as_ptr(), Ordering::Release);
        // Release: who comes to the node over its link sees its fields.
        let publishes = if stands(Step::LinkReleases) {
            Ordering::Release
        } else {
            Ordering::Relaxed
        };
        loop {
            // SAFETY: `last` is null or a node that was not reclaimed when the caller pinned.
            let link = unsafe { last.as_ref() }.map_or(&self.head, T::next);
            let linked =
                link.compare_exchange(ptr::null_mut(), node.as_ptr(), publishes, Ordering::Relaxed);
            if linked.is_ok() {
                return;
            }
            // The last node was removed in the meantime, or there was no tail: look for the end.
            last = self.walk(ptr::null(), |_, _| false).1;
        }
    }

    /// Takes `node` out. When this returns, no traversal that starts afterwards meets it.
    ///
    /// # Safety
    /// The caller is pinned; `node` was pushed and is removed by nobody else.
    pub(crate) unsafe fn remove(&self, node: NonNull<T>) {
        // SAFETY: the node is valid until a grace period after this call.
        let link = unsafe { node.as_ref() }.next();
        let mut next = link.load(Ordering::Relaxed);
        // Marking freezes the link: a pusher that wants to append here fails and looks again.
        // AcqRel: who follows the frozen link sees the successor's fields.
        while stands(Step::MarkFirst) {
            match link.compare_exchange(next, marked(next), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break,
                Err(seen) => next = seen,
            }
        }
        // Before the node may be freed the tail must not name it. It is the pusher who sets the
        // tail, before it links the node, hence before anybody can remove it: no store to come
        // can put it back.
        if stands(Step::TailEmptied) {
            let _ = self.tail.compare_exchange(
                node.as_ptr(),
                ptr::null_mut(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
        }
        if stands(Step::WalkUntilUnlinked) {
            self.walk(node.as_ptr(), |_, _| false);
        }
    }

    /// The first node for which `found` holds, if there is one that is not removed.
    ///
    /// The caller is pinned; the pointer is valid while it stays so.
    pub(crate) fn find(&self, mut found: impl FnMut(&T) -> bool) -> Option<NonNull<T>> {
        NonNull::new(self.walk(ptr::null(), |node, _| found(node)).0)
    }

    /// What `f` makes of each node, oldest first and once. The caller is pinned.
    pub(crate) fn collect<U>(&self, mut f: impl FnMut(&T) -> U) -> Vec<U> {
        let mut all = Vec::new();
        let (_, last) = self.walk(ptr::null(), |node, is_first| {
            if is_first && stands(Step::CollectOnce) {
                all.clear();
            }
            all.push(f(node));
            false
        });
        if last.is_null() {
            // All that it had seen was gone when it started again.
            all.clear();
        }
        all
    }

    /// The newest node, if it is not removed. The caller is pinned, as for [`find`](Self::find).
    pub(crate) fn newest(&self) -> Option<NonNull<T>> {
        NonNull::new(self.tail.load(Ordering::Acquire))
    }

    /// Walks the list, unlinking what is marked. Returns the first unmarked node for which `found`
    /// holds (or null), and the last unmarked node passed (or null). Ends early where it has itself
    /// unlinked `until`.
    ///
    /// `found` is told besides whether the node is the first one since the walk has started, or
    /// started again.
    fn walk(&self, until: *const T, mut found: impl FnMut(&T, bool) -> bool) -> (*mut T, *mut T) {
        'restart: loop {
            let mut previous: *mut T = ptr::null_mut();
            let mut link = &self.head;
            // Acquire here and below: the fields of the node that the link leads to.
            let mut current = link.load(Ordering::Acquire);
            loop {
                // SAFETY: `current` was reachable under the caller's pin, or is null.
                let Some(node) = (unsafe { current.as_ref() }) else {
                    return (ptr::null_mut(), previous);
                };
                let next = node.next().load(Ordering::Acquire);
                let goes = is_marked(next) || !stands(Step::MarkFirst) && ptr::eq(current, until);
                if goes {
                    // Unlink it. Fails where the predecessor was removed or has another successor:
                    // then what we know of the list is old. AcqRel: pass the successor's fields on.
                    let unlinked = link.compare_exchange(
                        current,
                        unmarked(next),
                        Ordering::AcqRel,
                        Ordering::Relaxed,
                    );
                    if unlinked.is_err() && stands(Step::RestartOnChange) {
                        continue 'restart;
                    }
                    if ptr::eq(current, until) {
                        return (ptr::null_mut(), previous);
                    }
                    current = unmarked(next);
                    continue;
                }
                if found(node, previous.is_null()) {
                    return (current, previous);
                }
                previous = current;
                link = node.next();
                current = next;
            }
        }
    }
}

#[cfg(all(test, not(any(hsa_serializer_loom, hsa_serializer_shuttle))))]
mod tests {
    use super::*;

    struct Item {
        value: u32,
        next: AtomicPtr<Item>,
    }

    impl Linked for Item {
        fn next(&self) -> &AtomicPtr<Self> {
            &self.next
        }
    }

    #[expect(clippy::vec_box, reason = "the nodes' addresses must not change")]
    fn items(n: u32) -> Vec<Box<Item>> {
        (0..n)
            .map(|value| {
                Box::new(Item {
                    value,
                    next: AtomicPtr::new(ptr::null_mut()),
                })
            })
            .collect()
    }

    fn values(list: &List<Item>) -> Vec<u32> {
        list.collect(|n| n.value)
    }

    #[test]
    fn removal_from_every_place_keeps_the_order_of_the_rest() {
        for gone in 0..4 {
            let list = List::new();
            let nodes = items(4);
            for node in &nodes {
                // SAFETY: single-threaded; the boxes outlive the list's use.
                unsafe { list.push(NonNull::from(&**node)) };
            }
            // SAFETY: as above; removed once.
            unsafe { list.remove(NonNull::from(&*nodes[gone as usize])) };
            let rest: Vec<u32> = (0..4).filter(|v| *v != gone).collect();
            assert_eq!(values(&list), rest);
            assert_eq!(list.newest().is_some(), gone != 3);
        }
    }

    #[test]
    fn a_list_whose_last_node_went_can_be_pushed_to() {
        let list = List::new();
        let nodes = items(3);
        // SAFETY: single-threaded; the boxes outlive the list's use; each is removed once.
        unsafe {
            list.push(NonNull::from(&*nodes[0]));
            list.push(NonNull::from(&*nodes[1]));
            list.remove(NonNull::from(&*nodes[1]));
            list.push(NonNull::from(&*nodes[2]));
        }
        assert_eq!(values(&list), [0, 2]);
        // SAFETY: as above.
        unsafe {
            list.remove(NonNull::from(&*nodes[0]));
            list.remove(NonNull::from(&*nodes[2]));
        }
        assert!(values(&list).is_empty());
        assert!(list.newest().is_none());
    }
}
