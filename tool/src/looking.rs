//! The time that passes while somebody looks.
//!
//! A process that is stopped (by SIGSTOP, by a debugger, by a machine that sleeps) gets nowhere, and neither does one
//! on a machine so busy that its threads do not run. That is nobody's stall, so it is not counted.

use std::time::{Duration, Instant};

/// A clock that goes on by so much at most from one look to the next.
#[derive(Debug)]
pub(crate) struct LookingTime {
    last: Instant,
    counted: Duration,
    most: Duration,
}

impl LookingTime {
    /// It begins now, for who looks as often as this.
    pub(crate) fn every(most: Duration) -> Self {
        Self {
            last: Instant::now(),
            counted: Duration::ZERO,
            most,
        }
    }

    /// A look, at this moment: how much time has passed so far.
    pub(crate) fn look(&mut self, now: Instant) -> Duration {
        let gone = now.saturating_duration_since(self.last);
        self.last = now;
        self.counted += gone.min(self.most);
        self.counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_while_the_process_was_stopped_is_not_counted() {
        let second = Duration::from_secs(1);
        let mut time = LookingTime::every(second);
        let start = time.last;
        assert_eq!(time.look(start + second / 2), second / 2);
        let stopped = start + second / 2 + 600 * second;
        assert_eq!(time.look(stopped), second * 3 / 2);
        assert_eq!(time.look(stopped), second * 3 / 2);
        assert_eq!(time.look(stopped + second), second * 5 / 2);
        assert_eq!(time.look(stopped), second * 5 / 2, "the past adds nothing");
    }
}
