//! What runs have exercised: a run in which nothing happened has tested nothing.

model::tally! {
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
