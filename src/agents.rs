//! The agents of a process: one serializer for each, made when somebody first asks for it.
//!
//! # Participants
//! - *Who looks up* an agent, on any thread, an interceptor's among them. It walks a list.
//! - *Who touches* an agent for the first time: several may at once.
//! - *Who requests all*, or gives that back.
//!
//! # The list
//! Nodes are pushed in front and never taken out while the agents live, so looking up takes no lock, no
//! pin and no count. Who makes a node searches the list first, and pushes by compare-exchange against
//! the very front that he has searched from. Where somebody else came first he searches what is new, and
//! drops his own serializer if it is there. A serializer without queues has made no signals, so nobody
//! hears of it.
//!
//! # Requests of all
//! A counter that all serializers of the group look at when they [settle](crate::requests). An agent that
//! comes while all are requested has to be turned on by somebody:
//!
//! | who makes an agent | who requests all |
//! |---|---|
//! | 1. pushes its node | 1. adds to the counter |
//! | 2. settles it: reads the counter | 2. walks the list, and settles each one |
//!
//! That is a store-buffering pair: all four accesses are sequentially consistent, so where the first does
//! not see the counter, the second sees the node. Settling twice does nothing more. The same holds for
//! who gives it back. A node is found by look-ups only when it has *inherited*, that is, after step 2; who
//! finds it earlier inherits on its behalf. So nobody dispatches on an agent that others have requested
//! and that is not serialized yet.
//!
//! # Nobody waits for another agent
//! Each agent has its own transition lock, and a dispatch or a look-up takes none. Only who requests all,
//! or some, goes from one agent to the next, and holds no more than one lock at a time.

use crate::error::{AgentError, SignalError, TransitionError};
use crate::requests::Request;
use crate::runtime::Runtime;
use crate::serializer::Serializer;
use crate::sync::{
    AtomicPtr, AtomicU32, AtomicU64, Ordering, Step, between_store_and_load, stands,
};
use crate::transition::Wish;
use std::fmt;
use std::ptr;
use std::sync::Arc;

/// A serializer's place in a group.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) agent: u64,
    all: Arc<AtomicU64>,
}

impl Member {
    /// Requests of all agents of the group.
    pub(crate) fn requests_of_all(&self) -> u64 {
        // SeqCst: the second half of who makes an agent; see the module.
        self.all.load(Ordering::SeqCst)
    }
}

struct Node<R: Runtime> {
    agent: u64,
    serializer: Serializer<R>,
    /// Whether what was requested of all was heard here.
    inherited: AtomicU32,
    next: *mut Node<R>,
}

struct Group<R: Runtime> {
    first: AtomicPtr<Node<R>>,
    all: Arc<AtomicU64>,
    make: Box<dyn Fn(u64) -> Serializer<R> + Send + Sync>,
}

// SAFETY: `next` is written before its node is pushed, and never again; a node holds a `Serializer`, which
// is `Send` and `Sync`, and atomics. The list owns its nodes, and frees them when nobody has it any more.
unsafe impl<R: Runtime> Send for Group<R> {}
// SAFETY: as above.
unsafe impl<R: Runtime> Sync for Group<R> {}

/// One serializer for each agent, by the handle of HSA's `hsa_agent_t`.
///
/// A cheap handle: clones are the same agents. All serializers live until the last clone, and the last
/// [`AgentsRequest`], is gone.
///
/// ```
/// # use hsa_serializer::{Agents, Mode, Serializer, doc_runtime::Host};
/// let agents = Agents::new(|agent| Serializer::<Host>::builder().agent(agent).build(Host::default()));
/// let profiling = agents.request_all()?; // before there is any agent
/// let serializer = agents.of(0xa001)?; // the first queue of that agent is created
/// assert_eq!(serializer.mode(), Mode::Enabled);
/// drop(profiling);
/// assert_eq!(serializer.mode(), Mode::Disabled);
/// # Ok::<(), hsa_serializer::AgentError>(())
/// ```
pub struct Agents<R: Runtime>(Arc<Group<R>>);

impl<R: Runtime> Agents<R> {
    /// No agents yet. `make` makes a new serializer for an agent; where several threads touch one for the
    /// first time at once it may be called more than once, and all but one of the serializers are dropped.
    pub fn new(make: impl Fn(u64) -> Serializer<R> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Group {
            first: AtomicPtr::new(ptr::null_mut()),
            all: Arc::new(AtomicU64::new(0)),
            make: Box::new(make),
        }))
    }

    /// The agent's serializer, made if this is the first touch; it has heard of what is requested of all.
    ///
    /// For the place where queues are created. Looking up takes no lock; the first touch takes the
    /// transition lock of this one agent, and creates signals where all are requested.
    ///
    /// # Errors
    /// Where all are requested and no signal could be had for this one. It exists, and whoever touches it
    /// next tries again.
    ///
    /// # Panics
    /// Where `make` gives a serializer that is an agent's already.
    pub fn of(&self, agent: u64) -> Result<&Serializer<R>, AgentError> {
        self.of_with(agent, || (self.0.make)(agent))
    }

    /// [`of`](Self::of), with a serializer that somebody else makes: for who can't make one without fail.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    #[doc(hidden)]
    pub fn of_with(
        &self,
        agent: u64,
        make: impl FnOnce() -> Serializer<R>,
    ) -> Result<&Serializer<R>, AgentError> {
        let node = match self.find(agent) {
            Some(node) => node,
            None => self.push(agent, make()),
        };
        node.inherit()?;
        Ok(&node.serializer)
    }

    /// The agent's serializer, if it was touched. It takes no lock and makes nothing: for interceptors.
    #[must_use]
    pub fn get(&self, agent: u64) -> Option<&Serializer<R>> {
        let node = self.find(agent)?;
        node.has_inherited().then_some(&node.serializer)
    }

    /// The agents that were touched, with their serializers, the latest first. Others may come meanwhile.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Serializer<R>)> {
        self.nodes().map(|node| (node.agent, &node.serializer))
    }

    /// Serializes these agents for as long as the guard lives; they are made where they were not touched.
    ///
    /// # Errors
    /// Where no signal could be had for one of them, or its serializer has ended. Nothing is requested
    /// then.
    pub fn request(
        &self,
        agents: impl IntoIterator<Item = u64>,
    ) -> Result<AgentsRequest<R>, AgentError> {
        let request = |agent| {
            let failed = |reason| AgentError { agent, reason };
            self.of(agent)?.request().map_err(failed)
        };
        let some = agents.into_iter().map(request).collect::<Result<_, _>>()?;
        Ok(AgentsRequest {
            agents: self.clone(),
            some,
            all: false,
        })
    }

    /// Serializes all agents for as long as the guard lives, those among them that come later. Agents
    /// whose serializer has ended are passed over.
    ///
    /// # Errors
    /// Where no signal could be had for one of them. Nothing is requested then.
    pub fn request_all(&self) -> Result<AgentsRequest<R>, AgentError> {
        let count = || {
            // SeqCst: the first half of who requests all; see the module.
            self.0.all.fetch_add(1, Ordering::SeqCst);
            between_store_and_load();
        };
        if stands(Step::CountBeforeWalk) {
            count();
        }
        let failed = self.nodes().find_map(|node| {
            let reason = node.settle(Wish::Requested).err()?;
            Some(AgentError {
                agent: node.agent,
                reason,
            })
        });
        if !stands(Step::CountBeforeWalk) {
            count();
        }
        let request = AgentsRequest {
            agents: self.clone(),
            some: Vec::new(),
            all: true,
        };
        // Where it failed, dropping the guard gives it back.
        failed.map_or(Ok(request), Err)
    }

    /// How many requests of all there are.
    #[must_use]
    pub fn requests_of_all(&self) -> u64 {
        self.0.all.load(Ordering::SeqCst)
    }

    fn first(&self) -> *mut Node<R> {
        // SeqCst: the second half of who requests all; see the module. It acquires the node.
        self.0.first.load(Ordering::SeqCst)
    }

    fn nodes(&self) -> impl Iterator<Item = &Node<R>> {
        self.nodes_from(self.first())
    }

    /// The nodes from that one on, which is null or one of the list's.
    fn nodes_from(&self, first: *mut Node<R>) -> impl Iterator<Item = &Node<R>> {
        // SAFETY: nodes live as long as the group, which `self` holds.
        let node = |node: *mut Node<R>| unsafe { node.as_ref() };
        std::iter::successors(node(first), move |before| node(before.next))
    }

    fn find(&self, agent: u64) -> Option<&Node<R>> {
        self.nodes().find(|node| node.agent == agent)
    }

    fn push(&self, agent: u64, serializer: Serializer<R>) -> &Node<R> {
        let place = &serializer.shared.insight.requests.member;
        let all = self.0.all.clone();
        assert!(
            place.set(Member { agent, all }).is_ok(),
            "a serializer is one agent's"
        );
        let node = Box::into_raw(Box::new(Node {
            agent,
            serializer,
            inherited: AtomicU32::new(0),
            next: ptr::null_mut(),
        }));
        if !stands(Step::LookAfterPublish) {
            // SAFETY: made above, and nobody else has it.
            let _ = unsafe { &*node }.inherit();
        }
        let mut first = self.first();
        loop {
            let mut searched = self.nodes_from(first);
            if let Some(other) = searched.find(|node| node.agent == agent) {
                // SAFETY: made above, and nobody else has it.
                drop(unsafe { Box::from_raw(node) });
                return other;
            }
            // SAFETY: as above: it is not pushed yet.
            unsafe { (*node).next = first };
            // SeqCst: the first half of who makes an agent; see the module. It publishes the node.
            match self.exchange(first, node) {
                Ok(_) => break,
                Err(now) => first = now,
            }
        }
        between_store_and_load();
        // SAFETY: it is pushed, so it lives as long as the group.
        unsafe { &*node }
    }

    fn exchange(
        &self,
        first: *mut Node<R>,
        node: *mut Node<R>,
    ) -> Result<*mut Node<R>, *mut Node<R>> {
        if !stands(Step::AgentByExchange) {
            return Ok(self.0.first.swap(node, Ordering::SeqCst));
        }
        self.0
            .first
            .compare_exchange(first, node, Ordering::SeqCst, Ordering::SeqCst)
    }
}

impl<R: Runtime> Node<R> {
    fn has_inherited(&self) -> bool {
        // Acquire: what inheriting has done.
        self.inherited.load(Ordering::Acquire) != 0
    }

    fn inherit(&self) -> Result<(), AgentError> {
        if self.has_inherited() {
            return Ok(());
        }
        self.settle(Wish::Requested).map_err(|reason| AgentError {
            agent: self.agent,
            reason,
        })?;
        self.inherited.store(1, Ordering::Release);
        Ok(())
    }

    /// Makes the agent's mode agree with what is requested. One that has ended needs none.
    fn settle(&self, wish: Wish) -> Result<(), TransitionError> {
        match self.serializer.shared.turn(wish) {
            // Also where that came between two of its signals.
            Ok(_) | Err(TransitionError::ShutDown | TransitionError::Signal(SignalError::Left)) => {
                Ok(())
            }
            Err(e) => Err(e),
        }
    }
}

impl<R: Runtime> Drop for Group<R> {
    fn drop(&mut self) {
        let mut at = self.first.load(Ordering::Relaxed);
        while !at.is_null() {
            // SAFETY: `&mut self`: nobody else is here; each node is reachable once.
            let node = unsafe { Box::from_raw(at) };
            at = node.next;
        }
    }
}

/// Keeps some agents, or all, serialized for as long as it lives. Made by [`Agents::request`] and
/// [`Agents::request_all`].
///
/// Dropping it takes each agent's transition lock for a moment, one after the other, and can't fail.
#[must_use = "kernels are serialized for as long as this lives"]
pub struct AgentsRequest<R: Runtime> {
    agents: Agents<R>,
    some: Vec<Request<R>>,
    all: bool,
}

impl<R: Runtime> Drop for AgentsRequest<R> {
    fn drop(&mut self) {
        self.some.clear();
        if self.all {
            // SeqCst: as for requesting.
            self.agents.0.all.fetch_sub(1, Ordering::SeqCst);
            between_store_and_load();
            for node in self.agents.nodes() {
                node.serializer.shared.settle_requests();
            }
        }
    }
}

impl<R: Runtime> Clone for Agents<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R: Runtime> fmt::Debug for Agents<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents: Vec<_> = self.nodes().map(|node| node.agent).collect();
        f.debug_tuple("Agents").field(&agents).finish()
    }
}

impl<R: Runtime> fmt::Debug for AgentsRequest<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentsRequest")
            .field("some", &self.some)
            .field("all", &self.all)
            .finish()
    }
}
