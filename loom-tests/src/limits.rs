//! That no bound is hit silently: models of loom itself, whose outcome is known.
//!
//! Three things could end an exploration early. A number of steps in one execution: that fails, also
//! where the model would. A number of executions, or a time: these pass, so they are never set, whatever
//! the environment says. And a part that is never explored: so a model that was run once fails.

use crate::check::Model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};

/// It never ends.
pub(crate) static ENDLESS: Model = Model {
    name: "limits: an endless execution",
    bound: 0,
    quick: 0,
    run: || loop {
        loom::thread::yield_now();
    },
    controls: &[],
};

/// Two threads that take three steps each have [`ORDERS`] orders at least.
pub(crate) static COUNTED: Model = Model {
    name: "limits: all executions",
    bound: 6,
    quick: 6,
    run: || {
        let number = Arc::new(AtomicUsize::new(0));
        let step = |number: &AtomicUsize| {
            for _ in 0..3 {
                number.fetch_add(1, Ordering::Relaxed);
            }
        };
        let other = number.clone();
        let thread = loom::thread::spawn(move || {
            step(&other);
        });
        loom::explore();
        step(&number);
        loom::stop_exploring();
        thread.join().expect("it returns");
    },
    controls: &[],
};

pub(crate) const ORDERS: usize = 20;

/// What makes loom stop early, were it listened to.
pub(crate) const EARLY: [(&str, &str); 3] = [
    ("LOOM_CHECKPOINT_INTERVAL", "1"),
    ("LOOM_MAX_PERMUTATIONS", "1"),
    ("LOOM_MAX_DURATION", "0"),
];
