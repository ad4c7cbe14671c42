//! The seeded generator that everything is drawn from, so that a seed says it all.

use parking_lot::Mutex;

/// One generator for the whole emulator.
#[derive(Debug)]
pub(crate) struct Dice(Mutex<fastrand::Rng>);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }

    /// A number below `n`, which must not be 0.
    pub(crate) fn below(&self, n: u64) -> u64 {
        self.0.lock().u64(0..n)
    }

    /// True with this probability; draws nothing where it is certain.
    pub(crate) fn chance(&self, probability: f64) -> bool {
        probability > 0.0 && (probability >= 1.0 || self.0.lock().f64() < probability)
    }
}
