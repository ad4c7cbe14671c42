//! The token as it has to be: one holder, and a queue of those that are ready.

use crate::violation::{Checked, Rule, ensure};
use std::collections::VecDeque;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Token {
    pub(crate) holder: Option<usize>,
    pub(crate) waiting: VecDeque<usize>,
    pub(crate) grants: u64,
}

impl Token {
    pub(crate) fn arrive(&mut self, queue: usize) {
        self.waiting.push_back(queue);
    }

    /// A store has let the queue go.
    pub(crate) fn granted(&mut self, queue: usize) -> Checked {
        ensure(self.holder.is_none(), Rule::TokenDoubled, || {
            format!("queue {queue} was granted while {:?} holds", self.holder)
        })?;
        ensure(self.waiting.contains(&queue), Rule::TokenDoubled, || {
            format!("queue {queue} was granted and is not ready")
        })?;
        let first = self.waiting.pop_front();
        ensure(first == Some(queue), Rule::TokenLost, || {
            format!("queue {queue} was granted before {first:?}, which was ready earlier")
        })?;
        self.holder = Some(queue);
        self.grants += 1;
        Ok(())
    }

    /// The same once everything was let through: it goes on among what is removed, and matters to
    /// nobody.
    pub(crate) fn passed_on(&mut self, queue: usize) {
        self.waiting.retain(|&q| q != queue);
        self.holder = Some(queue);
        self.grants += 1;
    }

    /// The holder's kernel has completed; an overtaken one's gives nothing back.
    pub(crate) fn release(&mut self, queue: usize) {
        if self.holder == Some(queue) {
            self.holder = None;
        }
    }

    /// The token is taken from its holder, to be given on.
    pub(crate) fn overtake(&mut self) {
        self.holder = None;
    }

    pub(crate) fn remove(&mut self, queue: usize) {
        self.release(queue);
        self.waiting.retain(|&q| q != queue);
    }

    pub(crate) fn check(&self) -> Checked {
        let idle = self.holder.is_none() && !self.waiting.is_empty();
        ensure(!idle, Rule::TokenLost, || {
            format!("nobody holds the token; ready: {:?}", self.waiting)
        })
    }
}
