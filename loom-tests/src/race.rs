//! The part of a model that is explored: threads that run against each other.
//!
//! What comes before and after is not explored, nor is a thread's registration with its domain and
//! its leaving: these are crossbeam's own business, and would multiply the executions by hundreds.

use hsa_serializer::Domain;
use loom::sync::{Condvar, Mutex};
use loom::thread::JoinHandle;
use std::sync::Arc;

/// Where a thread waits for the others.
struct Gate {
    stage: Mutex<Stage>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Registering,
    Registered,
    Running,
    Through,
    Leaving,
}

impl Gate {
    fn advance(&self, to: Stage) {
        *self.stage.lock().expect("nobody panics with it") = to;
        self.changed.notify_all();
    }

    fn wait_for(&self, stage: Stage) {
        let mut now = self.stage.lock().expect("nobody panics with it");
        while *now < stage {
            now = self.changed.wait(now).expect("nobody panics with it");
        }
    }
}

struct Racer<T> {
    gate: Arc<Gate>,
    thread: JoinHandle<T>,
}

impl<T: 'static> Racer<T> {
    /// A thread that is ready to start.
    fn new(domain: &Domain, run: impl FnOnce() -> T + 'static) -> Self {
        let gate = Arc::new(Gate {
            stage: Mutex::new(Stage::Registering),
            changed: Condvar::new(),
        });
        let (its, domain) = (gate.clone(), domain.clone());
        let thread = loom::thread::spawn(move || {
            domain.register_thread();
            its.advance(Stage::Registered);
            its.wait_for(Stage::Running);
            let result = run();
            its.advance(Stage::Through);
            its.wait_for(Stage::Leaving);
            result
        });
        gate.wait_for(Stage::Registered);
        Self { gate, thread }
    }

    fn leave(self) -> T {
        self.gate.advance(Stage::Leaving);
        self.thread.join().expect("the thread returns")
    }
}

/// Runs two threads against each other.
pub fn together<A: 'static, B>(
    domain: &Domain,
    a: impl FnOnce() -> A + 'static,
    b: impl FnOnce() -> B,
) -> (A, B) {
    domain.register_thread();
    let a = Racer::new(domain, a);
    loom::explore();
    a.gate.advance(Stage::Running);
    let b = b();
    a.gate.wait_for(Stage::Through);
    loom::stop_exploring();
    (a.leave(), b)
}

/// Runs three threads against each other.
pub fn together3<A: 'static, B: 'static, C>(
    domain: &Domain,
    a: impl FnOnce() -> A + 'static,
    b: impl FnOnce() -> B + 'static,
    c: impl FnOnce() -> C,
) -> (A, B, C) {
    domain.register_thread();
    let (a, b) = (Racer::new(domain, a), Racer::new(domain, b));
    loom::explore();
    a.gate.advance(Stage::Running);
    b.gate.advance(Stage::Running);
    let c = c();
    a.gate.wait_for(Stage::Through);
    b.gate.wait_for(Stage::Through);
    loom::stop_exploring();
    (a.leave(), b.leave(), c)
}

/// Reclaims all that can be, now that the other threads are through. One of them may still be
/// giving up its handle of the domain, hence the loop.
pub fn drain(domain: &Domain, collect: impl Fn()) {
    for _ in 0..100 {
        collect();
        if domain.pending() == 0 {
            return;
        }
        loom::thread::yield_now();
    }
}
