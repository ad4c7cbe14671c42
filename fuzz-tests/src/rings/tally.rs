//! What runs have exercised: a run in which nothing happened has tested nothing.

use std::fmt;

macro_rules! tally {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// How often things happened that this test wants to have happen.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
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

        impl fmt::Display for Tally {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(writeln!(f, "{:>10} {}", self.$name, stringify!($name))?;)*
                Ok(())
            }
        }
    };
}

tally! {
    /// Kernels launched.
    kernels,
    /// Barrier-AND packets launched that named a signal.
    ands,
    /// Barrier-OR packets launched that named two signals, one of which was not met.
    ors,
    /// Packets with the barrier bit launched behind a kernel that had run.
    barrier_bits,
    /// Packets of types that HSA does not know, or that a vendor defines.
    foreign,
    /// Times that a packet was seen to wait for earlier ones.
    waited_earlier,
    /// Times that one was seen to wait for signals.
    waited_signals,
    /// Times that a kernel was seen to wait for room.
    waited_full,
    /// Times that a slot was seen to be published too late, or not rung for.
    waited_unpublished,
    /// Kernels that ended well.
    ended,
    /// Kernels that ended badly.
    ended_badly,
    /// Kernels that faulted.
    faults,
    /// Error callbacks.
    errors_told,
    /// Completion signals counted down.
    completions,
    /// Completions of a signal that had been destroyed, or never was one.
    stale_completions,
    /// Signals written by a kernel.
    writes,
    /// Packets looked at that wait for a destroyed signal.
    stale_waits,
    /// Handlers called.
    handlers,
    /// Refills from an overflow.
    refills,
    /// Packets launched from a second round of their ring, or a later one.
    rounds,
    /// Packets launched past the write index.
    past_write,
    /// Packets that went with their queue.
    dropped,
    /// Kernels that ran when their queue went.
    abandoned,
    /// Times that everything was still and somebody waited.
    stuck,
    /// Times that everything was still and nobody did.
    idle,
    /// Creations refused because of a ring's size.
    bad_sizes,
    /// Reservations refused.
    no_room,
    /// Signals that could not be had.
    no_signal,
}
