//! What runs have exercised: a run in which nothing happened has tested nothing.

/// Makes a `Tally` of counters, of which none may stay zero.
#[macro_export]
macro_rules! tally {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// How often things happened that a test wants to have happen.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Tally {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Tally {
            /// Adds another run's.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }

            /// The names of those that never happened.
            #[must_use]
            pub fn zeros(&self) -> Vec<&'static str> {
                let mut zeros = Vec::new();
                $(if self.$name == 0 { zeros.push(stringify!($name)); })*
                zeros
            }
        }

        impl ::std::fmt::Display for Tally {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                $(writeln!(f, "{:>12} {}", self.$name, stringify!($name).replace('_', " "))?;)*
                Ok(())
            }
        }
    };
}

tally! {
    /// Cases.
    cases,
    /// Steps after each of which everything was checked.
    steps,
    /// Kernels that ran.
    kernels,
    /// Those of them that ran serialized.
    kernels_serialized,
    /// Kernels that started while another one ran (where that is allowed).
    kernels_overlapping,
    /// Transitions.
    transitions,
    /// Transitions that counted somebody.
    transitions_that_counted,
    /// Requests.
    requests,
    /// Those of them that were made while another one lived.
    requests_nested,
    /// Times that it was switched off while somebody requested it.
    kept,
    /// Releases of what nobody had acquired.
    unbalanced,
    /// Transition packets.
    tags,
    /// Barriers that were superseded.
    superseded,
    /// Barriers that were retired late, because a packet had not executed.
    deferred_retirements,
    /// Signals that were created with a handle that had been destroyed.
    recycled_handles,
    /// Grants.
    grants,
    /// Grants that waited for another queue.
    contended_grants,
    /// Completions that overtook an earlier one of their queue.
    overtaking_completions,
    /// Completions that came when their queue was gone.
    late_completions,
    /// Completions that were refused for being ahead.
    completions_ahead,
    /// Completions that were refused for being foreign.
    completions_foreign,
    /// Completions that the host lost.
    completions_lost,
    /// `ready` calls that came late or again.
    ready_again,
    /// Queues that were removed while they held the token.
    removed_with_token,
    /// Queues that were removed while they waited for it.
    removed_waiting,
    /// Queues that were removed while a barrier counted them.
    removed_counted,
    /// Queues that were removed while they carried a transition packet.
    removed_tagged,
    /// Queues that were given the place of a former one.
    reused_places,
    /// Calls that failed because the runtime did.
    failures,
    /// Dispatches that were refused.
    refused_dispatches,
    /// Dispatches on queues that were gone.
    dispatches_on_gone,
    /// Epochs that wrapped.
    epochs_wrapped,
    /// Dispatch numbers that wrapped.
    numbers_wrapped,
    /// Barriers that were asked about a drain.
    drains,
    /// Kernels that do not end before another one starts.
    needy,
    /// Kernels that the serializer was not told of.
    unseen,
    /// Markers that were counted for such kernels.
    gaps,
    /// Those of them that were while kernels were serialized.
    gaps_serialized,
    /// Kernels that the serializer was not told of and that a marker stood for.
    unseen_marked,
    /// Cuts.
    cuts,
    /// Things that were told to stand still.
    stalls_named,
    /// Grants that were overtaken.
    overtaken,
    /// Barriers that were cleared by force.
    forced,
    /// Times that several were, by one call.
    forced_at_once,
    /// Kernels that started beside an overtaken holder.
    beside_overtaken,
    /// Kernels that started beside one of an older mode, behind a barrier that was cleared by force.
    beside_forced,
    /// Completions of dispatches that had been overtaken.
    overtaken_completions,
    /// Completions that a barrier which was cleared by force had waited for.
    forced_completions,
    /// Begun shutdowns.
    shutdowns,
    /// Queues that a shutdown gave up.
    given_up,
    /// Shutdowns that have finished.
    finished,
    /// Serializers that were left.
    left,
    /// Times that everything was let through.
    released,
    /// Those of them that misuse led to.
    released_for_misuse,
    /// New serializers that followed one that was shut down.
    fresh,
    /// Cases that were dropped as they stood.
    abrupt_ends,
}
