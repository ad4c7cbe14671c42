//! Who wants kernels serialized: the host's own switch, and requests.

use crate::calls::wrong;
use crate::fault::Fault;
use crate::operation::Failure;
use crate::run::{Run, pick};
use crate::subject::Subject;
use crate::violation::{Checked, Rule, ensure};
use hsa_serializer::{ReleaseError, Transition, TransitionError};

/// Kernels are serialized while any of these says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    switch: bool,
    guards: u64,
    by_hand: u64,
}

/// What changes who wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The host's own switch.
    Switch(bool),
    /// A guard.
    Request,
    /// The end of the guard at this place, by dropping it or not.
    End {
        place: usize,
        drops: bool,
    },
    Acquire,
    Release,
}

impl Wanted {
    pub(crate) fn any(self) -> bool {
        self.switch || self.requests() > 0
    }

    pub(crate) fn requests(self) -> u64 {
        self.guards + self.by_hand
    }

    pub(crate) fn after(mut self, wish: Wish) -> Self {
        match wish {
            Wish::Switch(on) => self.switch = on,
            Wish::Request => self.guards += 1,
            Wish::End { .. } => self.guards -= 1,
            Wish::Acquire => self.by_hand += 1,
            Wish::Release => self.by_hand = self.by_hand.saturating_sub(1),
        }
        self
    }

    /// What a transition answers that changes nothing.
    pub(crate) fn stays(self, wish: Wish) -> Transition {
        match wish {
            Wish::Switch(false) if self.requests() > 0 => Transition::Kept {
                requests: self.requests(),
            },
            _ => Transition::Unchanged,
        }
    }
}

impl Run {
    pub(crate) fn request(&mut self, failure: Option<Failure>, by_hand: bool) -> Checked {
        if matches!(self.subject, Subject::Set(_)) {
            return Ok(());
        }
        {
            let mut world = self.world();
            let lives = world.model.wanted.requests() > 0;
            world.tally.requests += 1;
            world.tally.requests_nested += u64::from(lives);
        }
        let wish = if by_hand {
            Wish::Acquire
        } else {
            Wish::Request
        };
        self.change(wish, failure)
    }

    pub(crate) fn end_request(&mut self, choice: u8, drops: bool) -> Checked {
        let places: Vec<_> = (0..self.requests.len()).collect();
        let Some(place) = pick(&places, choice) else {
            return Ok(());
        };
        self.change(Wish::End { place, drops }, None)
    }

    pub(crate) fn release(&mut self) -> Checked {
        let Subject::Serializer(serializer) = &self.subject else {
            return Ok(());
        };
        if self.world().model.wanted.by_hand > 0 {
            return self.change(Wish::Release, None);
        }
        match serializer.release() {
            Err(ReleaseError::Unbalanced) => {
                self.world().tally.unbalanced += 1;
                Ok(())
            }
            other => wrong("release", other),
        }
    }

    /// Makes the call. `None` where it says nothing of what it did.
    pub(crate) fn make(&mut self, wish: Wish) -> Result<Option<Transition>, TransitionError> {
        let Subject::Serializer(serializer) = &self.subject else {
            return Ok(None);
        };
        match wish {
            Wish::Switch(true) => serializer.enable().map(Some),
            Wish::Switch(false) => serializer.disable().map(Some),
            Wish::Acquire => serializer.acquire().map(Some),
            Wish::Request => {
                self.requests.push(serializer.request()?);
                Ok(None)
            }
            Wish::End { place, drops } => {
                let request = self.requests.swap_remove(place);
                if self.fault == Some(Fault::RequestKept) {
                    std::mem::forget(request);
                } else if drops {
                    drop(request);
                } else {
                    return Ok(Some(request.end()));
                }
                Ok(None)
            }
            // One that is refused shows in their number.
            Wish::Release => Ok(serializer.release().ok()),
        }
    }

    /// As many requests live as the model has.
    pub(crate) fn check_requests(&self) -> Checked {
        let Subject::Serializer(serializer) = &self.subject else {
            return Ok(());
        };
        let (says, right) = (serializer.requests(), self.world().model.wanted.requests());
        ensure(says == right, Rule::Answer, || {
            format!("there are {says} requests, not {right}")
        })
    }
}
