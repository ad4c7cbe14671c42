//! Counters of what happened off the hot path.

use crate::sync::statistic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// All relaxed: nothing is ordered by a statistic.
        #[derive(Debug)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        impl Counters {
            pub(crate) fn new() -> Self {
                Self { $($name: Counter::new(),)* }
            }

            pub(crate) fn read(&self) -> Statistics {
                Statistics {
                    $($name: self.$name.get(),)*
                    ..Statistics::default()
                }
            }
        }

        /// What a serializer has done so far.
        ///
        /// Each number is exact while nothing happens; while a queue is being removed its dispatches
        /// and completions may be missing for a moment. None of them costs the hot path anything:
        /// dispatches and completions are read off the queues.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Statistics {
            $($(#[$doc])* pub $name: u64,)*
            /// Dispatches of all queues, past and present.
            pub dispatches: u64,
            /// Completions of all queues; those that came after their queue had gone are not counted.
            pub completions: u64,
            /// Queues that are alive.
            pub queues: u64,
            /// Grants of the token.
            pub grants: u64,
            /// Those of them that had to wait for another queue to release it.
            pub grants_contended: u64,
            /// Queues that are ready or granted now, and those that were removed while ready and
            /// that no granter has come to yet.
            pub contenders: u64,
            /// Deferred functions of the whole domain that have not run yet.
            pub reclaim_pending: u64,
        }
    };
}

counters! {
    /// Transitions that took place, cuts, drains and gaps among them.
    transitions,
    /// Those of them that found a dispatch in flight.
    transitions_that_counted,
    /// Barriers created.
    barriers,
    /// Barriers in the list now.
    barriers_live,
    /// The most barriers that were in the list at once.
    barriers_live_most,
    /// Barriers that cleared.
    cleared,
    /// Barriers that were superseded.
    superseded,
    /// Barriers that were cleared by force: losses of exclusiveness.
    forced,
    /// Grants that were overtaken: losses of exclusiveness.
    overtaken,
    /// Transition packets handed out.
    tags,
    /// Barriers taken out of the list.
    retired,
    /// Those of them that had cleared earlier and waited for a tag to drain: the cases in which
    /// the fault that this crate exists for would have struck.
    retired_after_drain,
    /// Barriers whose signal was destroyed.
    reclaimed,
    /// Nanoseconds in which kernels were serialized: the mode was enabled, and the end had not begun. (After
    /// [`leave`](crate::Serializer::leave) alone it goes on: that only says that nothing is to be called.)
    serialized,
    /// Nanoseconds for which barriers were armed, those of all barriers that have ended added up. In that
    /// time kernels of the new mode had to wait for those of the old one.
    barriers_armed,
    /// The most nanoseconds for which one of them was armed.
    barriers_armed_most,
    /// Nanoseconds for which queues waited for the token, from having got to a kernel to its grant; those
    /// of all grants added up. Of this much the GPU's queues stood still because kernels ran one by one.
    token_waited,
    /// The most nanoseconds for which one of them waited.
    token_waited_most,
    /// Queues that were added.
    queues_added,
    /// Queues that are gone.
    queues_gone,
    /// Breaches of the contract that were noticed.
    misuse,
    /// Dispatches of queues that are gone.
    former_dispatches,
    /// Completions of queues that are gone.
    former_completions,
}

/// One relaxed counter.
#[derive(Debug)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(crate) fn add(&self, n: u64) -> u64 {
        self.0.fetch_add(n, Ordering::Relaxed) + n
    }

    /// The same where nobody else adds meanwhile: the caller's protocol says so. A load and a store.
    #[inline]
    pub(crate) fn add_alone(&self, n: u64) {
        self.0.store(self.get() + n, Ordering::Relaxed);
    }

    /// Takes away what [`add_alone`](Self::add_alone) has added.
    #[inline]
    pub(crate) fn sub_alone(&self, n: u64) {
        self.0.store(self.get() - n, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, n: u64) {
        self.0.fetch_sub(n, Ordering::Relaxed);
    }

    pub(crate) fn at_least(&self, n: u64) {
        self.0.fetch_max(n, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
