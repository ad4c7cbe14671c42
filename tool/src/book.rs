//! Which queues are intercepted.

use hsa_sys::hsa_agent_t;
use std::collections::HashMap;

/// By the queue's address, with what is kept of each.
///
/// Queues for cooperative launches are shared: an agent has one, which the runtime hands out as often as it is
/// asked for, and destroys with its last user.
pub(crate) struct Book<E>(HashMap<usize, Page<E>>);

struct Page<E> {
    entry: E,
    /// The agent, if it is its cooperative one.
    shared: Option<hsa_agent_t>,
    users: usize,
}

/// What became of a user's leaving.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Left<E> {
    /// Nobody uses it any more, and it is not in the book.
    Last(E),
    /// Others do.
    Others,
    /// It was not in the book.
    Unknown,
}

impl<E> Default for Book<E> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<E> Book<E> {
    pub(crate) fn get(&self, queue: usize) -> Option<&E> {
        self.0.get(&queue).map(|page| &page.entry)
    }

    /// A queue with its first user.
    pub(crate) fn add(&mut self, queue: usize, shared: Option<hsa_agent_t>, entry: E) {
        let page = Page {
            entry,
            shared,
            users: 1,
        };
        self.0.insert(queue, page);
    }

    /// The agent's shared queue, if there is one: it has a user more.
    pub(crate) fn join(&mut self, agent: hsa_agent_t) -> Option<usize> {
        let mut pages = self.0.iter_mut();
        let (queue, page) = pages.find(|(_, page)| page.shared == Some(agent))?;
        page.users += 1;
        Some(*queue)
    }

    /// A user less.
    pub(crate) fn leave(&mut self, queue: usize) -> Left<E> {
        let Some(page) = self.0.get_mut(&queue) else {
            return Left::Unknown;
        };
        page.users -= 1;
        if page.users > 0 {
            return Left::Others;
        }
        match self.0.remove(&queue) {
            Some(page) => Left::Last(page.entry),
            None => Left::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SCENARIOS 46: made twice and destroyed once, it is still there.
    #[test]
    fn s46_an_agents_cooperative_queue_goes_with_its_last_user() {
        let agent = hsa_agent_t { handle: 7 };
        let mut book = Book::default();
        assert_eq!(book.join(agent), None);
        book.add(1, Some(agent), "shared");
        book.add(2, None, "own");
        assert_eq!(book.join(agent), Some(1));
        assert_eq!(book.join(hsa_agent_t { handle: 8 }), None);
        assert_eq!(book.leave(1), Left::Others);
        assert_eq!(book.get(1), Some(&"shared"));
        assert_eq!(book.leave(1), Left::Last("shared"));
        assert_eq!(book.leave(1), Left::Unknown);
        assert_eq!(book.leave(2), Left::Last("own"));
        assert!(book.0.is_empty());
    }
}
