//! The way to the runtime, which can be closed for good.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// Whoever is about to call the runtime on the profiler's account enters; after
/// [`close`](Self::close) nobody can, so that nothing of the profiler's calls a runtime that has been
/// shut down.
///
/// Entering again while inside is fine, but may be refused: whoever closes waits for the outermost
/// ones only.
#[derive(Debug, Default)]
pub struct Gate {
    closed: AtomicBool,
    inside: AtomicUsize,
}

/// Somebody is inside.
#[derive(Debug)]
#[must_use = "whoever is inside leaves when this is dropped"]
pub struct Inside<'a>(&'a Gate);

impl Gate {
    /// Enters, unless it is closed.
    pub fn enter(&self) -> Option<Inside<'_>> {
        // Announced before the look: either we see that it is closed, or who closes sees us.
        self.inside.fetch_add(1, SeqCst);
        let inside = Inside(self);
        (!self.is_closed()).then_some(inside)
    }

    /// Whether it is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    /// Closes it, and waits for those inside to leave, at most so long: who calls this may be inside
    /// without knowing, in a handler that shuts the runtime down. Whether nobody is inside.
    pub fn close(&self, patience: Duration) -> bool {
        self.closed.store(true, SeqCst);
        let deadline = Instant::now() + patience;
        while self.inside.load(SeqCst) > 0 {
            if Instant::now() >= deadline {
                return false;
            }
            thread::yield_now();
        }
        true
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn nobody_enters_once_it_is_closed_and_who_closes_waits_for_those_inside() {
        let gate = Gate::default();
        thread::scope(|scope| {
            let inside = gate.enter().expect("it is open");
            let closing = scope.spawn(|| gate.close(LONG));
            while !gate.is_closed() {
                thread::yield_now();
            }
            assert!(gate.enter().is_none());
            assert!(!closing.is_finished());
            assert!(!gate.close(Duration::ZERO));
            drop(inside);
        });
        assert!(gate.enter().is_none());
    }
}
