//! What is let go that something else still holds back: by overtaking, by force, altogether.

use crate::oracle::{Model, Stage};

impl Model {
    /// The token is about to be given on while its holder has it.
    pub(crate) fn overtake(&mut self) {
        let dispatch = self.granted();
        self.token.overtake();
        if let Some(d) = dispatch {
            self.dispatches[d].overtaken = true;
        }
        self.overtaken += 1;
    }

    /// The dispatch that has the token.
    pub(crate) fn granted(&self) -> Option<usize> {
        let holder = self.token.holder?;
        // The serialized dispatches of one queue come to the token in order.
        let next = |d: &usize| {
            let d = &self.dispatches[*d];
            d.queue == holder && d.serialized
        };
        self.unreported.iter().copied().find(next)
    }

    /// Every barrier that is armed, up to that period's, is about to be cleared by force. How many.
    pub(crate) fn force(&mut self, last: usize) -> u64 {
        let mut forced = 0;
        for period in self.periods[..=last].iter_mut().filter(|p| p.is_armed()) {
            period.forced = Some(period.counted.clone());
            forced += 1;
        }
        self.forced += forced;
        self.forcing = forced;
        self.latest_forced = 0;
        forced
    }

    /// Dispatches are about to be turned away.
    pub(crate) fn close(&mut self) {
        self.stage = self.stage.max(Stage::Closing);
    }

    /// Everything is about to be let through. After the end there is nothing to be.
    pub(crate) fn release_all(&mut self) {
        if self.stage <= Stage::Released {
            self.stage = Stage::Released;
            self.let_through = true;
            self.force(self.now());
        }
    }
}
