//! The token: the right to run, held by one queue at a time while kernels are serialized.
//!
//! # For those who know crossbeam and not HSA
//! A queue's packet processor runs its packets in order, on the GPU, without the host. In front of
//! each serialized kernel stand two barrier packets. The first waits for the queue's `ready`
//! signal to be 0 and leaves -1; a handler on the host is called for that: the queue has reached
//! its kernel. The second waits for `block` to be 0: that is the grant. A grant goes only to a
//! queue that has reached its own kernel, never by the order in which the host saw the dispatches:
//! a queue may wait for another queue's kernel before it gets there.
//!
//! # A queue's states
//! | phase | ready | block | next |
//! |---|---|---|---|
//! | Idle | 0, then -1 when packet 2 has executed | 1 | `ready` fires: Waiting, or Granted at once |
//! | Waiting | 1 | 1 | popped by a granter: Granted |
//! | Granted | 1 | 0, then -1 when packet 3 has executed | its kernel completes: Idle; it is overtaken: Overrun |
//! | Overrun | 1 | 0 or -1 | its kernel completes: Idle, and the token is not its to release |
//! | Removed | any | any | when all parties have let go of the cell: Vacant |
//! | Vacant | none | none | the cell's next queue is seated: Idle |
//!
//! Each change is one compare-exchange (or, to Removed, one swap) on the seat's state, so whoever
//! removes, grants or completes at the same time knows who was first. The state carries the
//! sequence number of its grant, so that a decision about one grant can't hit a later one: who finds
//! a holder without progress [overtakes](crate::stall) that very grant, releases the token on its
//! behalf, and does nothing to the next one, however late it comes.
//!
//! # Who grants
//! A counter holds the queues that are ready or granted. A ready queue is *pushed first and then
//! counted*; who makes the counter one grants. A release subtracts one, and who leaves more than
//! zero grants. So there is one granter at a time, and when it pops, the pushes that were counted
//! are complete: pop never finds nothing.
//!
//! Where the counter is zero, nobody is ready or granted: a ready queue that sees nobody in line makes it
//! one by compare-exchange and is its own granter, without having been pushed. Its seat goes from Idle to Granted; where it was removed just now, it releases.
//!
//! # The ready queues
//! A stack onto which anybody pushes by compare-exchange, and a list that belongs to the granter.
//! When the list is empty the granter takes the whole stack and turns it over. So grants are first
//! come, first served; both ends are lock-free without reservation (no thread ever waits for a pusher
//! that was interrupted, as those of crossbeam's array and segment queues do); and since a queue
//! waits at most once, the links are in the seats and nothing is allocated. There is no ABA: only
//! the granter takes from the stack, and it takes all of it.
//!
//! A handler that is interrupted between its push and its count can leave one queue in line behind a free
//! token: its own was granted before it counted, by a later one, which counts for it. Then the next queue
//! that is ready, or that handler, grants. So what waits for an interrupted thread is a queue, until
//! another one is ready.
//!
//! # Orderings
//! Pushing releases and taking acquires the seat's link. The counter's read-modify-writes are
//! AcqRel and hand the granter's list on from one granter to the next.

use crate::insight::Since;
use crate::queue::Slab;
use crate::statistics::Counter;
use crate::sync::{AtomicState, AtomicU32, AtomicU64, Ordering, Step, stands};
use hsa_sys::hsa_signal_t;

/// What a queue is doing as far as the token is concerned.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle = 0,
    Waiting = 1,
    Granted = 2,
    Removed = 3,
    /// Nobody has the seat: a call for it is for a queue that does not exist.
    Vacant = 4,
    /// Its kernel may still run, but the token was given on.
    Overrun = 5,
}

/// A seat's state: its phase, and the number of its last grant.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct State {
    grant: u32,
    phase: u32,
}

impl State {
    const fn new(grant: u32, phase: Phase) -> Self {
        Self {
            grant,
            phase: phase as u32,
        }
    }

    #[inline]
    pub(crate) fn phase(self) -> Phase {
        match self.phase {
            0 => Phase::Idle,
            1 => Phase::Waiting,
            2 => Phase::Granted,
            3 => Phase::Removed,
            5 => Phase::Overrun,
            _ => Phase::Vacant,
        }
    }

    /// The number of its last grant.
    #[inline]
    pub(crate) fn grant(self) -> u32 {
        self.grant
    }
}

/// Link value: nobody. Indices are stored plus one.
const NOBODY: u32 = 0;

/// A queue's part in the protocol.
#[derive(Debug)]
pub(crate) struct Seat {
    state: AtomicState<State>,
    /// The next one in the stack or in the granter's list.
    link: AtomicU32,
    /// Which of the two signals were taken for destruction. The handles stay readable: who read one
    /// while pinned, and before its queue was removed, may still use it.
    taken: AtomicU32,
    ready: AtomicU64,
    block: AtomicU64,
    /// Since when it is ready, or granted.
    pub(crate) since: Since,
}

const READY: u32 = 1;
const BLOCK: u32 = 2;

impl Seat {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicState::new(State::new(0, Phase::Vacant)),
            link: AtomicU32::new(NOBODY),
            taken: AtomicU32::new(READY | BLOCK),
            ready: AtomicU64::new(0),
            block: AtomicU64::new(0),
            since: Since::new(),
        }
    }

    /// Seats a new queue. As for [`QueueCell::adopt`](crate::queue::QueueCell::adopt), nobody of
    /// the former owner is left, and the queue's progress comes alive after this.
    pub(crate) fn adopt(&self, ready: hsa_signal_t, block: hsa_signal_t) {
        self.ready.store(ready.handle, Ordering::Relaxed);
        self.block.store(block.handle, Ordering::Relaxed);
        self.taken.store(0, Ordering::Relaxed);
        // Release: who sees the queue idle sees its signals.
        self.state
            .swap(State::new(0, Phase::Idle), Ordering::AcqRel);
    }

    /// Everybody has let go of the removed queue. It comes before the generation is left: who sees
    /// the next generation does not take its seat for a removed one.
    pub(crate) fn vacate(&self) {
        self.state
            .swap(State::new(0, Phase::Vacant), Ordering::AcqRel);
    }

    #[inline]
    pub(crate) fn ready(&self) -> hsa_signal_t {
        hsa_signal_t {
            handle: self.ready.load(Ordering::Relaxed),
        }
    }

    #[inline]
    pub(crate) fn block(&self) -> hsa_signal_t {
        hsa_signal_t {
            handle: self.block.load(Ordering::Relaxed),
        }
    }

    /// Takes the `ready` signal for destruction: once.
    pub(crate) fn take_ready(&self) -> Option<hsa_signal_t> {
        self.take(READY, self.ready())
    }

    /// Takes the `block` signal for destruction: once.
    pub(crate) fn take_block(&self) -> Option<hsa_signal_t> {
        self.take(BLOCK, self.block())
    }

    #[inline]
    fn take(&self, which: u32, signal: hsa_signal_t) -> Option<hsa_signal_t> {
        // AcqRel: decides who destroys it, and nothing else is ordered by it.
        let before = self.taken.fetch_or(which, Ordering::AcqRel);
        (before & which == 0 && !signal.is_null()).then_some(signal)
    }

    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        self.state().phase()
    }

    #[inline]
    pub(crate) fn state(&self) -> State {
        self.state.load(Ordering::Acquire)
    }

    /// Idle to Waiting. On failure the phase that it is in.
    #[inline]
    pub(crate) fn wait(&self) -> Result<(), Phase> {
        self.leave_idle(|seen| State::new(seen.grant, Phase::Waiting))
    }

    #[inline]
    fn leave_idle(&self, to: impl FnOnce(State) -> State) -> Result<(), Phase> {
        let seen = self.state.load(Ordering::Acquire);
        if seen.phase() != Phase::Idle {
            return Err(seen.phase());
        }
        // AcqRel: the granter sees what the handler did before.
        self.state
            .compare_exchange(seen, to(seen), Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
            .map_err(State::phase)
    }

    /// Waiting to Granted, as the grant of that number. False if the queue was removed.
    #[inline]
    fn grant(&self, number: u32) -> bool {
        let seen = self.state.load(Ordering::Acquire);
        seen.phase() == Phase::Waiting
            && self
                .state
                .compare_exchange(
                    seen,
                    State::new(number, Phase::Granted),
                    Ordering::AcqRel,
                    Ordering::Acquire,
                )
                .is_ok()
    }

    /// Granted, or Overrun, to Idle: which of the two it was. On failure the phase that it is in.
    #[inline]
    pub(crate) fn finish(&self) -> Result<Phase, Phase> {
        let mut seen = self.state.load(Ordering::Acquire);
        loop {
            let was = seen.phase();
            if !matches!(was, Phase::Granted | Phase::Overrun) {
                return Err(was);
            }
            match self.state.compare_exchange(
                seen,
                State::new(seen.grant, Phase::Idle),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(was),
                // Removed, or overtaken a moment ago.
                Err(now) => seen = now,
            }
        }
    }

    /// Granted, with that number, to Overrun. False where that grant has ended.
    pub(crate) fn overtake(&self, number: u32) -> bool {
        let seen = self.state.load(Ordering::Acquire);
        let same = seen.grant == number || !stands(Step::OvertakeOneGrant);
        seen.phase() == Phase::Granted
            && same
            && self
                .state
                .compare_exchange(
                    seen,
                    State::new(seen.grant, Phase::Overrun),
                    Ordering::AcqRel,
                    Ordering::Acquire,
                )
                .is_ok()
    }

    /// Anything to Removed. The phase that it was in.
    pub(crate) fn remove(&self) -> Phase {
        self.state
            .swap(State::new(0, Phase::Removed), Ordering::AcqRel)
            .phase()
    }
}

/// What a granter did.
#[derive(Debug)]
pub(crate) enum Grant {
    /// It granted the queue of this index, whose `block` has now to be set to 0.
    To {
        index: u32,
        /// The generation of the queue that was granted; it may be gone by now.
        generation: u64,
    },
    /// The queue of this index had been removed: its cell is out of the ready queues now. The
    /// granter releases the token on its behalf.
    Gone(u32),
}

/// The token of one agent.
#[derive(Debug)]
pub(crate) struct Token {
    /// Queues that are ready or granted.
    counter: AtomicU32,
    /// Top of the stack of ready queues.
    stack: AtomicU32,
    /// Front of the granter's list. Only the granter uses it.
    front: AtomicU32,
    /// Grants so far. Only the granter uses it.
    grants: AtomicU32,
    /// What statistics say of grants; here because a granter has this line already. Only the granter
    /// writes them.
    pub(crate) granted: Counter,
    pub(crate) contended: Counter,
}

impl Token {
    pub(crate) fn new() -> Self {
        Self {
            counter: AtomicU32::new(0),
            stack: AtomicU32::new(NOBODY),
            front: AtomicU32::new(NOBODY),
            grants: AtomicU32::new(0),
            granted: Counter::new(),
            contended: Counter::new(),
        }
    }

    /// Makes the counter one, if it is zero: then the caller has the token, and has to grant it by
    /// [`grant_at_once`](Self::grant_at_once), or to release it.
    #[must_use]
    #[inline]
    pub(crate) fn take(&self) -> bool {
        // Relaxed: a guess, but for the counter. Who was pushed goes first: where its pusher is interrupted
        // before it counts, who pushes and counts next grants to it; nobody passes it by.
        let line = [&self.stack, &self.front];
        let is_empty = |end: &&AtomicU32| end.load(Ordering::Relaxed) == NOBODY;
        if self.contenders() != 0 || !line.iter().all(is_empty) {
            return false;
        }
        if !stands(Step::TakeByExchange) {
            self.counter.fetch_add(1, Ordering::AcqRel);
            return true;
        }
        // AcqRel: as for all that change the counter. Relaxed: nothing is concluded from a failure.
        self.counter
            .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Idle to Granted, for who has [taken](Self::take) the token for that queue. On failure the phase
    /// that it is in.
    #[inline]
    pub(crate) fn grant_at_once(&self, seat: &Seat) -> Result<(), Phase> {
        let number = self.next();
        seat.leave_idle(|_| State::new(number, Phase::Granted))
    }

    /// The number of the next grant. Only for the granter.
    #[inline]
    fn next(&self) -> u32 {
        let number = self.grants.load(Ordering::Relaxed).wrapping_add(1);
        self.grants.store(number, Ordering::Relaxed);
        number
    }

    /// Adds a queue that has just become Waiting. True if the caller has to grant.
    #[must_use]
    #[inline]
    pub(crate) fn arrive(&self, index: u32, slab: &Slab) -> bool {
        if !stands(Step::PushBeforeAdd) {
            let first = self.counter.fetch_add(1, Ordering::AcqRel) == 0;
            self.push(index, slab);
            return first;
        }
        self.push(index, slab);
        self.counter.fetch_add(1, Ordering::AcqRel) == 0
    }

    #[inline]
    fn push(&self, index: u32, slab: &Slab) {
        let seat = &cell(slab, index).seat();
        let mut top = self.stack.load(Ordering::Relaxed);
        loop {
            seat.link.store(top, Ordering::Relaxed);
            // Release: who takes the stack sees the link.
            match self.stack.compare_exchange_weak(
                top,
                index + 1,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Gives the token back. True if the caller has to grant.
    #[must_use]
    #[inline]
    pub(crate) fn release(&self) -> bool {
        self.counter.fetch_sub(1, Ordering::AcqRel) > 1
    }

    /// Grants to the first ready queue. Only for who was told to grant.
    #[inline]
    pub(crate) fn grant(&self, slab: &Slab) -> Grant {
        let index = self.pop(slab);
        let number = self.next();
        let cell = cell(slab, index);
        // Before: until the granter lets go of it, or grants, the cell is that queue's.
        let generation = cell.progress().generation();
        if cell.seat().grant(number) {
            let generation = if stands(Step::GenerationFirst) {
                generation
            } else {
                cell.progress().generation()
            };
            Grant::To { index, generation }
        } else {
            Grant::Gone(index)
        }
    }

    fn pop(&self, slab: &Slab) -> u32 {
        let mut front = self.front.load(Ordering::Relaxed);
        if front == NOBODY {
            // Acquire: the links of all that were pushed.
            let mut top = self.stack.swap(NOBODY, Ordering::Acquire);
            while top != NOBODY {
                let link = &cell(slab, top - 1).seat().link;
                let below = link.load(Ordering::Relaxed);
                link.store(front, Ordering::Relaxed);
                front = top;
                top = below;
            }
        }
        assert!(front != NOBODY, "a granter found no ready queue");
        let rest = cell(slab, front - 1).seat().link.load(Ordering::Relaxed);
        self.front.store(rest, Ordering::Relaxed);
        front - 1
    }

    /// How many queues are ready or granted now.
    #[inline]
    pub(crate) fn contenders(&self) -> u32 {
        self.counter.load(Ordering::Relaxed)
    }
}

fn cell(slab: &Slab, index: u32) -> &crate::queue::QueueCell {
    slab.get(index)
        .expect("an index in the ready queues is of a cell that was made")
}
